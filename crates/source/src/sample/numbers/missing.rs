//! Numbers that may stand for missing ones: `-999`, `9999.9`.

use std::collections::HashMap;

use crate::value::notation::Notation;

/// Fewest nines of such a number, and of one below zero.
const NINES: usize = 3;
const NINES_BELOW_ZERO: usize = 2;

/// Other numbers that programs write: the ends of integers of 16 and 32 bits, the fill value of NetCDF, codes of loggers.
const MARKERS: [&str; 11] = [
    "-32768",
    "-32767",
    "32767",
    "-2147483648",
    "2147483647",
    "9.96921e+36",
    "9.969210e+36",
    "9.969209968386869e+36",
    "6999",
    "-6999",
    "7999",
];

/// Numbers of nines that lie outside the range of the others by more than that range. They are read as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarNumbers {
    /// These numbers, the most frequent first.
    pub numbers: Vec<FarNumber>,
    /// The least of the other numbers, as it is written.
    pub least: String,
    /// The greatest of the other numbers, as it is written.
    pub most: String,
}

/// A number that lies far from the others of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarNumber {
    /// The first value that is this number.
    pub first: String,
    /// How many of the sampled rows have it.
    pub count: u64,
}

/// A number of nines that a column has.
struct Nines<'a> {
    number: f64,
    first: &'a str,
    count: u64,
}

/// A number as it is written.
#[derive(Clone, Copy)]
struct Written<'a> {
    number: f64,
    text: &'a str,
}

/// The least and the greatest number of a column.
struct Ends<'a> {
    least: Written<'a>,
    most: Written<'a>,
}

/// The numbers of nines among `values` that lie outside the range of the others by more than that range, the most frequent
/// first; `None` if there are none.
pub(in crate::sample) fn far_numbers<'a>(
    values: impl Iterator<Item = &'a str>,
    notation: Notation,
) -> Option<FarNumbers> {
    let mut nines: HashMap<u64, Nines<'a>> = HashMap::new();
    let mut ends: Option<Ends<'a>> = None;
    let mut buffer = Vec::new();
    for value in values {
        let plain = notation.plain(value.as_bytes(), &mut buffer);
        let Ok(plain) = std::str::from_utf8(plain) else { continue };
        let number = match notation.point {
            b'.' => plain.parse(),
            _ => plain.replace(char::from(notation.point), ".").parse(),
        };
        let Ok(number) = number else { continue };
        if is_marker(plain, char::from(notation.point)) {
            let found = Nines { number, first: value, count: 0 };
            nines.entry(f64::to_bits(number)).or_insert(found).count += 1;
            continue;
        }
        let own = Written { number, text: value };
        let ends = ends.get_or_insert(Ends { least: own, most: own });
        if number < ends.least.number {
            ends.least = own;
        }
        if number > ends.most.number {
            ends.most = own;
        }
    }

    let Ends { least, most } = ends?;
    let range = most.number - least.number;
    let mut far: Vec<Nines<'_>> = nines.into_values().collect();
    far.retain(|nines| least.number - nines.number > range || nines.number - most.number > range);
    far.sort_by(|a, b| b.count.cmp(&a.count).then(a.first.cmp(b.first)));
    let numbers: Vec<FarNumber> =
        far.into_iter().map(|nines| FarNumber { first: nines.first.to_owned(), count: nines.count }).collect();
    let (least, most) = (least.text.to_owned(), most.text.to_owned());
    (!numbers.is_empty()).then_some(FarNumbers { numbers, least, most })
}

/// The number of nines that all of `values` are, at least two; `None` if there is none.
pub(in crate::sample) fn only_nines<'a>(
    mut values: impl Iterator<Item = &'a str>,
    notation: Notation,
) -> Option<&'a str> {
    let mut buffer = Vec::new();
    let first = values.next()?;
    let plain = notation.plain(first.as_bytes(), &mut buffer);
    let is_marker = std::str::from_utf8(plain).is_ok_and(|plain| is_of_nines(plain, char::from(notation.point)));
    let mut rest = values.peekable();
    (is_marker && rest.peek().is_some() && rest.all(|value| value == first)).then_some(first)
}

/// Whether a number stands for a missing one by its digits: one of nines, or one that programs write.
fn is_marker(number: &str, point: char) -> bool {
    is_of_nines(number, point) || MARKERS.contains(&number)
}

/// Whether a number is nines, with zeros behind the point at most.
pub(in crate::sample) fn is_of_nines(number: &str, point: char) -> bool {
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = unsigned.split_once(point).unwrap_or((unsigned, ""));
    let nines = fraction.trim_end_matches('0');
    let count = whole.len() + nines.len();
    let least = if number.starts_with('-') { NINES_BELOW_ZERO } else { NINES };
    count >= least && !whole.is_empty() && whole.bytes().chain(nines.bytes()).all(|digit| digit == b'9')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(values: &str, point: u8) -> Option<String> {
        let notation = Notation { point, thousands: None, unicode_minus: true };
        let FarNumbers { numbers, least, most } = far_numbers(values.split(' '), notation)?;
        let numbers: Vec<String> = numbers.iter().map(|far| format!("{} x {}", far.count, far.first)).collect();
        Some(format!("{} of {least} to {most}", numbers.join(", ")))
    }

    #[test]
    fn a_column_of_one_marker_is_told() {
        let notation = Notation { point: b'.', thousands: None, unicode_minus: true };
        let only = |values: &'static str| only_nines(values.split(' '), notation);
        assert_eq!(only("-999 -999 -999"), Some("-999"));
        for other in ["-999", "9 9", "-999 -999 1", "12 12"] {
            assert_eq!(only(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_of_nines_far_from_the_others() {
        assert_eq!(far("5.0 -999 7.5 -999.0 31.0", b'.').as_deref(), Some("2 x -999 of 5.0 to 31.0"));
        assert_eq!(far("180 9999 350 999.9 0", b'.').as_deref(), Some("1 x 999.9, 1 x 9999 of 0 to 350"));
        assert_eq!(far("5,1 -99,9 7,5", b',').as_deref(), Some("1 x -99,9 of 5,1 to 7,5"));
        assert_eq!(far("-999 -999 1", b'.').as_deref(), Some("2 x -999 of 1 to 1"));
        assert_eq!(far("1.5 9.96921e+36 2.5", b'.').as_deref(), Some("1 x 9.96921e+36 of 1.5 to 2.5"));
        assert_eq!(far("239 -32768 191", b'.').as_deref(), Some("1 x -32768 of 191 to 239"));
        for near in ["980 999 1020", "1 9 2", "1 99 2", "500 0 999", "-999 -999", "998 1000 1"] {
            assert_eq!(far(near, b'.'), None, "{near}");
        }
    }
}
