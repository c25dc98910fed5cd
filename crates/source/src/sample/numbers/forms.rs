//! What numbers of a column are written like, and the type that gives them back so.

use tidetable_layout::FieldType;

use crate::value::notation::Notation;

/// Digits that a decimal gets at least, so that a larger value of a later file still fits.
const ROOM: usize = 10;
/// Digits after the point beyond which values are calculated ones, not quoted ones.
const LONGEST_SCALE: usize = 9;
const LONGEST_WHOLE: usize = 18;

/// Digits of the shortest hexadecimal identifiers that look like numbers with an exponent.
const LEAST_HEX_DIGITS: usize = 4;

/// Digits behind a `+` from which on it is part of a telephone number or another code.
const CODE_DIGITS: usize = 8;

/// The forms of the numbers of a column.
#[derive(Debug, Default)]
pub(in crate::sample) struct Forms {
    /// Whether one has zeros in front, as in `007`.
    zeros_in_front: bool,
    /// Whether one is a code with a sign, such as `+4917012345670`.
    is_code: bool,
    exponent: bool,
    point: bool,
    /// Whether an exponent follows zeros in front, as in `00E1`: hexadecimal digits.
    is_hex: bool,
    /// Whether all exponents are digits behind a whole number, as in `1E05`, and have their `E` at different places.
    has_only_bare_exponents: bool,
    exponent_places: Option<(usize, usize)>,
    has_no_exponent: bool,
    least_length: usize,
    most_length: usize,
    /// Whether one has zeros at the end of its fraction, as in `1.50`.
    zeros_behind: bool,
    above_i64: bool,
    whole: usize,
    least_scale: usize,
    most_scale: usize,
    /// The first number that a cell writes differently: `+3.2`, `.5`, `5.`, `1e1`, `00123.9`.
    pub rewritten: Option<String>,
}

/// The forms of `values`, whose fraction follows `point`; `None` if one is no number.
pub(in crate::sample) fn forms<'a>(values: impl Iterator<Item = &'a str>, notation: Notation) -> Option<Forms> {
    let mut forms =
        Forms { least_scale: usize::MAX, least_length: usize::MAX, has_only_bare_exponents: true, ..Forms::default() };
    let mut buffer = Vec::new();
    for value in values {
        let plain = notation.plain(value.as_bytes(), &mut buffer);
        forms.add(std::str::from_utf8(plain).ok()?, char::from(notation.point))?;
    }
    Some(forms)
}

/// The indices of `values` that are no numbers; `None` if there are more than `most`.
pub(in crate::sample) fn odd(values: &[&str], notation: Notation, most: usize) -> Option<Vec<usize>> {
    let odd = values.iter().enumerate().filter(|(_, value)| !is_number(value, notation));
    at_most(odd.map(|(at, _)| at), most)
}

/// All of `indices`; `None` if there are more than `most`.
pub(in crate::sample) fn at_most(indices: impl Iterator<Item = usize>, most: usize) -> Option<Vec<usize>> {
    let found: Vec<usize> = indices.take(most + 1).collect();
    (found.len() <= most).then_some(found)
}

/// Whether a value is a number in this notation.
pub(in crate::sample) fn is_number(value: &str, notation: Notation) -> bool {
    let mut buffer = Vec::new();
    let plain = notation.plain(value.as_bytes(), &mut buffer);
    std::str::from_utf8(plain).is_ok_and(|plain| Forms::default().add(plain, char::from(notation.point)).is_some())
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Forms {
    /// The type that gives the numbers back as they are written; `None` for codes, which a number would change.
    pub fn kind(&self) -> Option<FieldType> {
        let is_whole = !self.point && !self.exponent;
        if is_whole && self.zeros_in_front || self.is_code || self.is_hex || self.are_hex_ids() {
            return None;
        }

        if is_whole {
            return match self.whole {
                0..=19 if self.above_i64 => Some(FieldType::UInt64),
                0..=19 => Some(FieldType::Int64),
                20 => Some(FieldType::UInt64),
                _ => None,
            };
        }

        let has_one_scale = self.least_scale == self.most_scale;
        let short = self.most_scale <= LONGEST_SCALE && self.whole <= LONGEST_WHOLE;
        // A float prints its shortest form: where zeros stand behind, only a decimal gives them back.
        if !self.exponent && short && (has_one_scale || self.zeros_behind) {
            let precision = (self.whole + self.most_scale + 2).max(ROOM);
            return Some(FieldType::Decimal {
                precision: u8::try_from(precision).ok()?,
                scale: u8::try_from(self.most_scale).ok()?,
            });
        }
        Some(FieldType::Float64)
    }

    /// Whether the numbers are identifiers of one width in hexadecimal digits, such as `1105` and `1E05`: an exponent has no
    /// sign, and its `E` is not at one place in all of them.
    fn are_hex_ids(&self) -> bool {
        let have_one_width = self.least_length == self.most_length && self.most_length >= LEAST_HEX_DIGITS;
        let is_at_many_places = self.exponent_places.is_some_and(|(first, last)| first != last) || self.has_no_exponent;
        self.exponent && self.has_only_bare_exponents && !self.point && have_one_width && is_at_many_places
    }

    /// Adds the forms of a number without separators; `None` if it is no number.
    pub fn add(&mut self, value: &str, point: char) -> Option<()> {
        let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
        let (number, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match number.split_once(point) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let exponent_fits = exponent.is_none_or(|text| {
            let text = text.strip_prefix(['-', '+']).unwrap_or(text);
            !text.is_empty() && are_digits(text)
        });
        let any = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
        if !are_digits(whole) || !fraction.is_none_or(are_digits) || !exponent_fits || !any {
            return None;
        }

        let zeros_in_front = whole.len() > 1 && whole.starts_with('0');
        let has_plus = value.starts_with('+');
        self.zeros_in_front |= zeros_in_front;
        self.is_code |= has_plus && fraction.is_none() && exponent.is_none() && whole.len() >= CODE_DIGITS;
        let is_bare_exponent = exponent.is_some_and(are_digits) && fraction.is_none() && unsigned.len() == value.len();
        self.is_hex |= is_bare_exponent && zeros_in_front;
        self.has_only_bare_exponents &= is_bare_exponent || exponent.is_none();
        self.has_no_exponent |= exponent.is_none();
        if exponent.is_some() {
            let (first, last) = self.exponent_places.unwrap_or((whole.len(), whole.len()));
            self.exponent_places = Some((first.min(whole.len()), last.max(whole.len())));
        }
        self.least_length = self.least_length.min(value.len());
        self.most_length = self.most_length.max(value.len());
        self.exponent |= exponent.is_some();
        self.point |= fraction.is_some();
        self.zeros_behind |= fraction.is_some_and(|fraction| fraction.ends_with('0'));
        self.above_i64 |= exponent.is_none() && whole.len() >= 19 && value.parse::<i64>().is_err();

        self.whole = self.whole.max(whole.len());
        let scale = fraction.map_or(0, str::len);
        self.least_scale = self.least_scale.min(scale);
        self.most_scale = self.most_scale.max(scale);

        let is_bare = whole.is_empty() || fraction.is_some_and(str::is_empty);
        if self.rewritten.is_none() && (zeros_in_front || has_plus || exponent.is_some() || is_bare) {
            self.rewritten = Some(value.to_owned());
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_are_written() {
        let of = |values: &str, point| {
            let notation = Notation { point, thousands: None, unicode_minus: true };
            forms(values.split(' '), notation).and_then(|forms| forms.kind())
        };
        let kind = |values: &str| of(values, b'.');
        let decimal = |precision, scale| Some(FieldType::Decimal { precision, scale });
        assert_eq!(kind("1 -20 0"), Some(FieldType::Int64));
        assert_eq!(kind("1 18446744073709551615"), Some(FieldType::UInt64));
        assert_eq!(kind("9999999999999999999"), Some(FieldType::UInt64));
        assert_eq!(kind("123456789012345678901"), None);
        assert_eq!(kind("007 1"), None);
        assert_eq!(kind("600.60 0.05"), decimal(10, 2));
        assert_eq!(kind("1.5 22"), Some(FieldType::Float64));
        assert_eq!(kind("1.5 22.00"), decimal(10, 2));
        assert_eq!(kind("10.357019999999999 8.1"), Some(FieldType::Float64));
        assert_eq!(kind("12345678901234.25 1.50"), decimal(18, 2));
        assert_eq!(kind("1e5 2"), Some(FieldType::Float64));
        for bad in ["", "-", ".", "1.2.3", "1e", "x", "1 x", "0x1", "1_000"] {
            assert_eq!(kind(bad), None, "{bad}");
        }
        assert_eq!(of("1,5 2,5", b','), decimal(10, 1));
        assert_eq!(kind("00123.9 5.25"), Some(FieldType::Float64));
        assert_eq!(kind("+4917012345670 +4917012345671"), None);
        assert_eq!(kind("+3 -2"), Some(FieldType::Int64));
        assert_eq!(kind("00E1 00E2"), None);
        assert_eq!(kind("1105 1E05 0E12 12E4"), None);
        assert_eq!(kind("1e05 2e05 9e04"), Some(FieldType::Float64));
        assert_eq!(kind("1e1 00123.9"), Some(FieldType::Float64));
        assert_eq!(kind("1e+5 1000"), Some(FieldType::Float64));
        assert_eq!(kind("\u{2212}6.0 1.5"), decimal(10, 1));
    }
}
