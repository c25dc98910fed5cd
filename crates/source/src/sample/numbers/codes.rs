//! Names that look like numbers: versions, and identifiers with an exponent.

use std::collections::{HashMap, HashSet};

use crate::number::Exact;

/// Most texts of a column of names that look like numbers, and how often each repeats.
const FEW_NAMES: usize = 20;
const REPEATS: usize = 3;
/// Fewest digits of the exponent of an identifier in hexadecimal digits.
const LEAST_EXPONENT: usize = 2;

/// Why the numbers of a column are names, so that it stays text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codes {
    /// Two texts that are one number, such as the versions 1.1 and 1.10.
    OneNumber(String, String),
    /// Two versions, of which the second follows: 1.9 and 1.10.
    Versions(String, String),
    /// The first of identifiers in hexadecimal digits, such as 1E10.
    Exponents(String),
}

impl Codes {
    /// Why the numbers `values` are names, if they are few and repeat.
    pub(in crate::sample) fn of(values: &[&str], point: u8) -> Option<Self> {
        let mut distinct: HashSet<&str> = HashSet::new();
        for value in values {
            distinct.insert(value);
            if distinct.len() > FEW_NAMES {
                return None;
            }
        }
        if distinct.len() * REPEATS > values.len() {
            return None;
        }
        let mut texts: Vec<&str> = distinct.into_iter().collect();
        texts.sort_unstable();
        one_number(&texts, point).or_else(|| versions(&texts, point)).or_else(|| exponents(&texts))
    }
}

/// Two of `texts` that are the same number with a fraction, or with an exponent.
fn one_number(texts: &[&str], point: u8) -> Option<Codes> {
    let mut numbers: HashMap<Exact, &str> = HashMap::new();
    for text in texts {
        let fraction = text.split_once(char::from(point)).map_or("", |(_, fraction)| fraction);
        let has_fraction = fraction.bytes().any(|byte| byte != b'0') && is_digits(fraction);
        if !has_fraction && bare_exponent(text).is_none() {
            continue;
        }
        let number = Exact::parse(text.as_bytes(), point)?;
        if let Some(earlier) = numbers.insert(number, text) {
            return Some(Codes::OneNumber(earlier.to_owned(), (*text).to_owned()));
        }
    }
    None
}

/// Versions with one number before them that count from 9 to 10.
fn versions(texts: &[&str], point: u8) -> Option<Codes> {
    texts.iter().find_map(|text| {
        let (whole, _) = text.split_once(char::from(point)).filter(|(_, part)| *part == "9")?;
        let next = format!("{whole}{}10", char::from(point));
        texts.contains(&next.as_str()).then(|| Codes::Versions((*text).to_owned(), next))
    })
}

/// Whole numbers of one width, all with an exponent of two digits or more without a sign.
fn exponents(texts: &[&str]) -> Option<Codes> {
    let first = texts.first()?;
    let is_id = |text: &&str| {
        text.len() == first.len() && bare_exponent(text).is_some_and(|exponent| exponent.len() >= LEAST_EXPONENT)
    };
    (texts.len() > 1 && texts.iter().all(is_id)).then(|| Codes::Exponents((*first).to_owned()))
}

/// The digits behind the `E` of digits alone.
fn bare_exponent(text: &str) -> Option<&str> {
    let (number, exponent) = text.split_once('E')?;
    (is_digits(number) && is_digits(exponent)).then_some(exponent)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_names() {
        let of = |values: &[&str]| Codes::of(&values.repeat(5), b'.');
        let one = |one: &str, other: &str| Some(Codes::OneNumber(one.to_owned(), other.to_owned()));
        assert_eq!(of(&["1.9", "1.10", "1.1", "2.0"]), one("1.1", "1.10"));
        assert_eq!(of(&["9.90", "10", "9.90", "0", "0.0"]), None);
        assert_eq!(of(&["1.9", "1.10", "1.11"]), Some(Codes::Versions("1.9".to_owned(), "1.10".to_owned())));
        assert_eq!(of(&["1.90", "1.10", "1.11"]), None);
        let many: Vec<String> = (0..300).map(|number| format!("{number}.10")).collect();
        assert_eq!(Codes::of(&many.iter().map(String::as_str).collect::<Vec<_>>(), b'.'), None);
    }

    #[test]
    fn identifiers_with_an_exponent_are_names() {
        let of = |values: &[&str]| Codes::of(&values.repeat(5), b'.');
        assert_eq!(of(&["1E10", "2E05"]), Some(Codes::Exponents("1E10".to_owned())));
        assert_eq!(of(&["7E10", "12E4", "120E3"]), Some(Codes::OneNumber("120E3".to_owned(), "12E4".to_owned())));
        for measures in [&["1E3", "1E4"][..], &["1e10", "2e05"], &["1E+10", "2E+05"], &["1.5E10", "2.5E05"], &["1E10"]]
        {
            assert_eq!(of(measures), None, "{measures:?}");
        }
    }
}
