//! What numbers of a column are written like, and the type that gives them back so.

use tidetable_layout::FieldType;

use crate::sample::candidate::at_most;

/// Digits that a decimal gets at least, so that a larger value of a later file still fits.
const ROOM: usize = 10;
/// Digits after the point beyond which values are calculated ones, not quoted ones.
const LONGEST_SCALE: usize = 9;
const LONGEST_WHOLE: usize = 18;

/// The forms of the numbers of a column.
#[derive(Debug, Default)]
struct Forms {
    /// `007`
    zeros_in_front: bool,
    exponent: bool,
    point: bool,
    /// `1.50`
    zeros_behind: bool,
    above_i64: bool,
    whole: usize,
    least_scale: usize,
    most_scale: usize,
}

/// The type of `values`, which hold `point` before their fraction; `None` if one is no number.
pub(super) fn kind<'a>(values: impl Iterator<Item = &'a str>, point: char) -> Option<FieldType> {
    let mut forms = Forms { least_scale: usize::MAX, ..Forms::default() };
    for value in values {
        forms.add(value, point)?;
    }
    if forms.zeros_in_front {
        // A code, whose zeros a number would lose.
        return None;
    }
    if !forms.point && !forms.exponent {
        return match forms.whole {
            0..=19 if forms.above_i64 => Some(FieldType::UInt64),
            0..=19 => Some(FieldType::Int64),
            20 => Some(FieldType::UInt64),
            _ => None,
        };
    }
    let alike = forms.least_scale == forms.most_scale;
    let short = forms.most_scale <= LONGEST_SCALE && forms.whole <= LONGEST_WHOLE;
    // A float prints its shortest form: where zeros stand behind, only a decimal gives them back.
    if !forms.exponent && short && (alike || forms.zeros_behind) {
        let precision = (forms.whole + forms.most_scale + 2).max(ROOM);
        return Some(FieldType::Decimal {
            precision: u8::try_from(precision).ok()?,
            scale: u8::try_from(forms.most_scale).ok()?,
        });
    }
    Some(FieldType::Float64)
}

/// The indices of `values` that are no numbers; `None` if there are more than `most`.
pub(super) fn odd(values: &[&str], point: char, most: usize) -> Option<Vec<usize>> {
    let is_number = |value: &str| Forms::default().add(value, point).is_some();
    at_most(values.iter().enumerate().filter(|(_, value)| !is_number(value)).map(|(at, _)| at), most)
}

impl Forms {
    fn add(&mut self, value: &str, point: char) -> Option<()> {
        let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
        let (number, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match number.split_once(point) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let exponent_fits = exponent.is_none_or(|text| {
            let text = text.strip_prefix(['-', '+']).unwrap_or(text);
            !text.is_empty() && digits(text)
        });
        let any = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
        if !digits(whole) || !fraction.is_none_or(digits) || !exponent_fits || !any {
            return None;
        }
        self.zeros_in_front |= whole.len() > 1 && whole.starts_with('0');
        self.exponent |= exponent.is_some();
        self.point |= fraction.is_some();
        self.zeros_behind |= fraction.is_some_and(|fraction| fraction.ends_with('0'));
        self.above_i64 |= exponent.is_none() && whole.len() >= 19 && value.parse::<i64>().is_err();
        self.whole = self.whole.max(whole.len());
        let scale = fraction.map_or(0, str::len);
        self.least_scale = self.least_scale.min(scale);
        self.most_scale = self.most_scale.max(scale);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_are_written() {
        let kind = |values: &str| kind(values.split(' '), '.');
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
        assert_eq!(super::kind(["1,5", "2,5"].into_iter(), ','), decimal(10, 1));
    }
}
