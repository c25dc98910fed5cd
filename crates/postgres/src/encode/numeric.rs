//! `numeric` in binary: digits in base 10,000, with the weight of the first one.
//!
//! ```text
//! i16 number of digits | i16 weight of the first | u16 sign | i16 decimal places shown | i16 for each digit
//! ```

use arrow::datatypes::i256;
use bytes::{BufMut, BytesMut};

/// Decimal digits of a digit.
const GROUP: usize = 4;
/// What a digit counts up to.
const BASE: u128 = 10_000;
const NEGATIVE: u16 = 0x4000;
/// Decimal places of values that are written without their text: those with more exceed 128 bits as whole groups.
const MOST_PLACES: usize = 35;
/// Groups of the digits of 128 bits, on both sides of the point.
const MOST_GROUPS: usize = 20;

/// Appends an unscaled value with so many decimal places.
pub(crate) fn write_i128(out: &mut BytesMut, unscaled: i128, scale: i8) {
    let places = usize::from(scale.unsigned_abs());
    if scale < 0 || places > MOST_PLACES {
        return write_digits(out, &unscaled.unsigned_abs().to_string(), unscaled < 0, scale);
    }

    // The groups after the point are whole with zeros at their end.
    let unit = power_of_ten(places);
    let (mut whole, mut fraction) = (unscaled.unsigned_abs() / unit, unscaled.unsigned_abs() % unit);
    fraction *= power_of_ten(padding(places));
    let after = places.div_ceil(GROUP);
    let mut groups = [0; MOST_GROUPS];
    let mut count = 0;
    for group in groups.iter_mut().rev() {
        let rest = if count < after { &mut fraction } else { &mut whole };
        if count >= after && *rest == 0 {
            break;
        }
        *group = i16::try_from(*rest % BASE).unwrap_or_default();
        *rest /= BASE;
        count += 1;
    }
    let groups = groups.get(MOST_GROUPS - count..).unwrap_or_default();
    write_groups(out, groups, count - after, unscaled < 0, places);
}

fn power_of_ten(power: usize) -> u128 {
    10_u128.pow(u32::try_from(power).unwrap_or_default())
}

/// As [`write_i128`], for values of up to 76 digits.
pub(crate) fn write_i256(out: &mut BytesMut, unscaled: i256, scale: i8) {
    let text = unscaled.to_string();
    write_digits(out, text.trim_start_matches('-'), text.starts_with('-'), scale);
}

fn write_digits(out: &mut BytesMut, digits: &str, is_negative: bool, scale: i8) {
    let mut digits = digits.to_owned();
    // A negative scale stands for zeros before the point.
    digits.extend(std::iter::repeat_n('0', usize::from(scale.min(0).unsigned_abs())));
    let places = usize::from(scale.max(0).unsigned_abs());

    // Whole groups on both sides of the point.
    let before = digits.len().saturating_sub(places);
    let (leading, trailing) = (padding(before), padding(places));
    let missing = places.saturating_sub(digits.len());
    let padded = format!("{}{digits}{}", "0".repeat(leading + missing), "0".repeat(trailing));

    let groups: Vec<i16> = padded
        .as_bytes()
        .chunks(GROUP)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + digit_of(*digit)))
        .collect();
    write_groups(out, &groups, (before + leading) / GROUP, is_negative, places);
}

/// Appends groups of digits, so many of which stand before the point, without zeros at both ends.
fn write_groups(out: &mut BytesMut, groups: &[i16], before: usize, is_negative: bool, places: usize) {
    let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
    let last = groups.iter().rposition(|group| *group != 0).map_or(first, |place| place + 1);
    let shown = groups.get(first..last).unwrap_or_default();

    out.put_i16(i16::try_from(shown.len()).unwrap_or(i16::MAX));
    out.put_i16(if shown.is_empty() { 0 } else { signed(before) - 1 - signed(first) });
    out.put_u16(if is_negative && !shown.is_empty() { NEGATIVE } else { 0 });
    out.put_i16(signed(places));
    for group in shown {
        out.put_i16(*group);
    }
}

/// Digits that are missing to whole groups.
fn padding(digits: usize) -> usize {
    (GROUP - digits % GROUP) % GROUP
}

fn digit_of(digit: u8) -> i16 {
    i16::from(digit.saturating_sub(b'0'))
}

fn signed(count: usize) -> i16 {
    i16::try_from(count).unwrap_or(i16::MAX)
}

/// The value of a `numeric` in binary, as text; `None` if the bytes are none, and for NaN and infinities.
pub(crate) fn read(bytes: &[u8]) -> Option<String> {
    let field = |place: usize| -> Option<i16> {
        Some(i16::from_be_bytes(bytes.get(place * 2..place * 2 + 2)?.try_into().ok()?))
    };
    let (count, weight, sign, places) = (field(0)?, field(1)?, field(2)?.cast_unsigned(), field(3)?);
    let count = usize::try_from(count).ok()?;
    if bytes.len() != 8 + 2 * count || places < 0 || !matches!(sign, 0 | NEGATIVE) {
        return None;
    }

    let mut text = if sign == NEGATIVE { "-".to_owned() } else { String::new() };
    let group_at = |power: i32| -> Option<i16> {
        let place = usize::try_from(i32::from(weight) - power).ok().filter(|place| *place < count);
        place.map_or(Some(0), |place| field(4 + place)).filter(|group| (0..10_000).contains(group))
    };
    for power in (0..=i32::from(weight).max(0)).rev() {
        text.push_str(&format!("{:04}", group_at(power)?));
    }
    if places > 0 {
        text.push('.');
        let whole = text.len();
        for power in 1..=i32::from(places).div_euclid(4) + 1 {
            text.push_str(&format!("{:04}", group_at(-power)?));
        }
        text.truncate(whole + usize::try_from(places).ok()?);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digits_of(unscaled: i128, scale: i8) -> Vec<i16> {
        let mut out = BytesMut::new();
        write_i128(&mut out, unscaled, scale);
        out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn digits_are_those_that_postgresql_sends() {
        assert_eq!(digits_of(0, 0), [0, 0, 0, 0]);
        assert_eq!(digits_of(0, 2), [0, 0, 0, 2]);
        assert_eq!(digits_of(1, 0), [1, 0, 0, 0, 1]);
        assert_eq!(digits_of(-12_345_678, 3), [3, 1, 0x4000, 3, 1, 2345, 6780]);
        assert_eq!(digits_of(5, 4), [1, -1, 0, 4, 5]);
        assert_eq!(digits_of(5, 6), [1, -2, 0, 6, 500]);
        assert_eq!(digits_of(10_000, 0), [1, 1, 0, 0, 1]);
        assert_eq!(digits_of(12, -3), [2, 1, 0, 0, 1, 2000]);
    }

    proptest! {
        #[test]
        fn any_number_comes_back(unscaled in any::<i128>(), scale in 0..38_i8) {
            let mut out = BytesMut::new();
            write_i128(&mut out, unscaled, scale);
            let text = read(&out).unwrap();

            let places = usize::try_from(scale).unwrap();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let value: i128 = format!("{}{digits}", if text.starts_with('-') { "-" } else { "" }).parse().unwrap();
            prop_assert_eq!(value, unscaled);
            prop_assert_eq!(text.split_once('.').map_or(0, |(_, decimals)| decimals.len()), places);
        }

        #[test]
        fn any_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
        }
    }
}
