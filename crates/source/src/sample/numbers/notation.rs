//! How most numbers of a column are written: with which separators.

use std::collections::HashSet;

use crate::sample::numbers::forms::is_number;
use crate::spec::Thousands;
use crate::spec::{ColumnSpec, CsvOptions};
use crate::value::notation::Notation;

/// Values that decide whether a column is worth counting.
const FIRST: usize = 1000;
/// A notation, and whether another one reads the same values as other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sample) struct Found {
    pub notation: Notation,
    pub also: Option<Notation>,
}

/// The notation of the numbers of a file where columns do not say.
pub(in crate::sample) fn of_file(csv: &CsvOptions) -> Notation {
    plain(if csv.decimal_comma { b',' } else { b'.' })
}

fn plain(point: u8) -> Notation {
    Notation { point, thousands: None, unicode_minus: true }
}

/// The declaration with a notation that differs from the file's.
pub(in crate::sample) fn declared(spec: ColumnSpec, notation: Notation, csv: &CsvOptions) -> ColumnSpec {
    let is_comma = notation.point == b',';
    let decimal_comma = (is_comma != csv.decimal_comma).then_some(is_comma);
    ColumnSpec { decimal_comma, thousands: notation.thousands, ..spec }
}

/// What the columns of a file show of the separators of its numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::sample) struct Marks {
    /// Whether some numbers have a comma that certainly precedes a fraction, and whether some have such a point.
    pub decimal_comma: bool,
    pub decimal_point: bool,
    /// Whether days are written with points, as in `13.01.2024`.
    pub days_with_points: bool,
    /// Whether commas separate the columns too.
    pub commas_separate: bool,
}

/// The notation of `values` in groups of three digits, as in `2.425`, if other columns show that the separator does not
/// precede a fraction; `None` if a value has no such groups, or those columns show nothing.
fn of_groups(values: &[&str], marks: Marks) -> Option<Found> {
    let (point, thousands, separator) = match (marks.decimal_comma, marks.decimal_point) {
        (true, false) => (b',', Thousands::Point, b'.'),
        (false, true) => (b'.', Thousands::Comma, b','),
        _ => return None,
    };
    let notation = Notation { thousands: Some(thousands), ..plain(point) };
    are_grouped(values, separator).then_some(Found { notation, also: Some(plain(separator)) })
}

/// Whether all values are groups of three digits with `separator` between them, or up to three digits, and some have it.
pub(in crate::sample) fn are_grouped(values: &[&str], separator: u8) -> bool {
    let is_grouped = |value: &&str| {
        let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
        let mut groups = unsigned.split(char::from(separator));
        let first = groups.next().unwrap_or_default();
        let is_first = (1..=3).contains(&first.len()) && (first.len() == unsigned.len() || !first.starts_with('0'));
        is_first
            && groups.all(|group| group.len() == 3)
            && unsigned.bytes().all(|b| b.is_ascii_digit() || b == separator)
    };
    values.iter().any(|value| value.as_bytes().contains(&separator)) && values.iter().all(is_grouped)
}

/// Fewest digits before the comma of numbers of one width that are codes.
const CODE_WIDTH: usize = 5;

/// The first of `values` if they look like a code and a flag with a comma between, as in `+0081,5`: some code has zeros in
/// front, or all have one width, and flags are one digit.
pub(in crate::sample) fn first_with_flag<'a>(values: &[&'a str]) -> Option<&'a str> {
    let mut widths = HashSet::new();
    let mut has_zeros = false;
    for value in values {
        let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
        let (code, flag) = unsigned.split_once(',').unwrap_or((unsigned, ""));
        has_zeros |= code.len() > 1 && code.starts_with('0') && !flag.is_empty();
        widths.insert((code.len(), flag.len()));
    }
    let has_one_width = widths.len() == 1 && widths.iter().all(|(code, flag)| *code >= CODE_WIDTH && *flag == 1);
    values.first().copied().filter(|_| has_zeros || has_one_width)
}

/// Most digits of a code in a list of codes.
const LISTED_DIGITS: usize = 2;

/// The first of `values` with a comma, if they look like lists of codes, as `2,6` beside `6`: many are one small number alone,
/// and the parts of the others go up.
pub(in crate::sample) fn first_list<'a>(values: &[&'a str]) -> Option<&'a str> {
    let lists = values.iter().filter(|value| value.contains(','));
    let are_codes = values.iter().all(|value| {
        let parts: Vec<Option<u8>> = value
            .split(',')
            .map(|part| part.parse().ok().filter(|_| part.len() <= LISTED_DIGITS && !part.starts_with(['0', '+'])))
            .collect();
        parts.iter().all(Option::is_some) && parts.is_sorted_by(|one, other| one < other)
    });
    let has_single = lists.clone().count() * 4 <= values.len() * 3;
    lists.copied().next().filter(|_| are_codes && has_single)
}

/// The notation in which most of `values` are numbers, the file's if none is better.
pub(in crate::sample) fn of_values(values: &[&str], csv: &CsvOptions, marks: Marks) -> Found {
    let file = of_file(csv);
    if let Some(found) = of_groups(values, marks) {
        return found;
    }
    let other = plain(if csv.decimal_comma { b'.' } else { b',' });
    let first = values.get(..FIRST).unwrap_or(values);
    let file_misfits = misfits(first, file);
    if file_misfits == 0 && misfits(values, file) == 0 {
        // Where days have points and semicolons separate columns, a point may separate thousands.
        let is_german = marks.days_with_points && csv.delimiter == b';' && file.point == b'.';
        let also = Notation { thousands: Some(Thousands::Point), ..plain(b',') };
        return Found { notation: file, also: (is_german && are_grouped(values, b'.')).then_some(also) };
    }

    let mut candidates = vec![file, other];
    for (notation, thousands) in [
        (plain(b'.'), Thousands::Comma),
        (plain(b','), Thousands::Point),
        (file, Thousands::Blank),
        (other, Thousands::Blank),
        (file, Thousands::Apostrophe),
    ] {
        candidates.push(Notation { thousands: Some(thousands), ..notation });
    }
    candidates.retain(|notation| misfits(first, *notation) * 2 <= first.len());
    candidates.retain(|notation| notation.thousands.is_none() || agrees(values, *notation));
    let counted: Vec<(usize, Notation)> =
        candidates.into_iter().map(|notation| (misfits(values, notation), notation)).collect();

    // Of equals the first.
    let Some((least, best)) = counted.iter().copied().min_by_key(|(misfits, _)| *misfits) else {
        return Found { notation: file, also: None };
    };
    let rival = counted.iter().find(|(misfits, notation)| *misfits == least && *notation != best);
    match rival {
        // `1,025` between commas is how English writes a thousand; elsewhere the comma is the decimal separator.
        Some((_, rival)) if csv.delimiter == b',' && rival.thousands == Some(Thousands::Comma) => {
            Found { notation: *rival, also: Some(best) }
        }
        Some((_, rival)) if rival.thousands.is_some() => Found { notation: best, also: Some(*rival) },
        _ => Found { notation: best, also: None },
    }
}

/// How many of `values` are no numbers in this notation.
fn misfits(values: &[&str], notation: Notation) -> usize {
    values.iter().filter(|value| !is_number(value, notation)).count()
}

/// Whether some value has thousands separators, and none of five digits lacks them.
fn agrees(values: &[&str], notation: Notation) -> bool {
    let mut buffer = Vec::new();
    let mut some = false;
    for value in values {
        let plain = notation.plain(value.as_bytes(), &mut buffer);
        if plain.len() < value.chars().count() {
            some = true;
            continue;
        }
        let whole = plain.split(|byte| *byte == notation.point).next().unwrap_or_default();
        if whole.iter().filter(|byte| byte.is_ascii_digit()).count() > 4 {
            return false;
        }
    }
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &str, delimiter: u8) -> (char, Option<Thousands>, bool) {
        let values: Vec<&str> = values.split('|').collect();
        let found = of_values(&values, &CsvOptions { delimiter, ..CsvOptions::default() }, Marks::default());
        (char::from(found.notation.point), found.notation.thousands, found.also.is_some())
    }

    #[test]
    fn notations_of_columns() {
        assert_eq!(found("900.1|1,025.3|12,345.0", b','), ('.', Some(Thousands::Comma), false));
        assert_eq!(found("900,1|1.025,3|12.345,0", b';'), (',', Some(Thousands::Point), false));
        assert_eq!(found("9,87|12,90", b','), (',', None, false));
        assert_eq!(found("1 025,5|900,5", b';'), (',', Some(Thousands::Blank), false));
        assert_eq!(found("1'025.5|900.5", b';'), ('.', Some(Thousands::Apostrophe), false));
        assert_eq!(found("1,025|2,310", b','), ('.', Some(Thousands::Comma), true));
        assert_eq!(found("1,025|0,350", b','), (',', None, false));
        assert_eq!(found("1,025|2,310", b';'), (',', None, true));
        assert_eq!(found("1.5|2.25", b';'), ('.', None, false));
        assert_eq!(found("a|b|1,5", b','), ('.', None, false));
        assert_eq!(found("12345|1,025", b','), (',', None, false));
    }

    #[test]
    fn other_columns_tell_thousands_from_fractions() {
        let found = |values: &str, decimal_comma: bool| {
            let values: Vec<&str> = values.split('|').collect();
            let csv = CsvOptions { delimiter: b';', decimal_comma, ..CsvOptions::default() };
            let marks = Marks { decimal_comma, decimal_point: !decimal_comma, ..Marks::default() };
            let Found { notation, also } = of_values(&values, &csv, marks);
            (char::from(notation.point), notation.thousands, also.is_some())
        };
        assert_eq!(found("2.425|5.874|859", true), (',', Some(Thousands::Point), true));
        assert_eq!(found("2,263|1,234,567", false), ('.', Some(Thousands::Comma), true));
        for fractions in ["2.425|2.4", "2.425|0.875"] {
            assert_eq!(found(fractions, true), ('.', None, false), "{fractions}");
        }
        assert_eq!(found("2.425|1234", true), ('.', None, true));
    }

    #[test]
    fn points_beside_german_days_may_separate_thousands() {
        let also = |values: &str, delimiter: u8| {
            let values: Vec<&str> = values.split('|').collect();
            let marks = Marks { days_with_points: true, ..Marks::default() };
            of_values(&values, &CsvOptions { delimiter, ..CsvOptions::default() }, marks).also
        };
        assert_eq!(also("1.100|2.107", b';').and_then(|also| also.thousands), Some(Thousands::Point));
        assert_eq!(also("1.100|2.107", b','), None);
        assert_eq!(also("1.100|2.1", b';'), None);
        assert_eq!(also("0.100|2.107", b';'), None);
    }

    #[test]
    fn lists_of_codes_are_no_fractions() {
        assert_eq!(first_list(&["1", "2,6", "6", "2,8"]), Some("2,6"));
        for numbers in [&["21,5", "22", "19,8", "20"][..], &["1", "0,5", "2"], &["1,5", "2,6"], &["1", "2"]] {
            assert_eq!(first_list(numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn codes_with_a_flag_are_no_fractions() {
        assert_eq!(first_with_flag(&["+0081,5", "+9999,9"]), Some("+0081,5"));
        assert_eq!(first_with_flag(&["10167,5", "10171,1"]), Some("10167,5"));
        assert_eq!(first_with_flag(&["1013,2", "998,7"]), None);
        assert_eq!(first_with_flag(&["21,5", "0,5"]), None);
    }
}
