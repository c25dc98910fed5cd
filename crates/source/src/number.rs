//! Parses numbers from bytes. `short_*` parses the common short forms, given the field's length and the bytes after it, and
//! returns `None` for anything else; `parse_*` is complete and defines what a number is.
//!
//! The short forms read eight bytes at once as one word ("SIMD within a register"), after Lemire, "Quickly parsing eight
//! digits" (2018), and Mycroft's test for a zero byte.

/// Why a field is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    NotANumber,
    OutOfRange,
    TooManyDigits,
    NotFinite,
}

const ZEROS: u64 = 0x3030_3030_3030_3030;
pub(crate) const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// The largest integer up to which all are exact as f64.
const EXACT: u64 = 1 << 53;

const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

const FLOAT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

#[inline]
pub(crate) fn word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Bit 7 of each byte that is zero; exact up to the first such byte.
#[inline]
pub(crate) fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH_BITS
}

/// Bit 7 of each byte that is no ASCII digit; exact up to the first such byte.
#[inline]
pub(crate) fn not_digits(word: u64) -> u64 {
    let digits = word ^ ZEROS;
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS
}

/// The value of the first `count` (1..=8) bytes, if they are digits.
#[inline(always)]
fn digits(word: u64, count: usize) -> Option<u64> {
    let digits = (word ^ ZEROS) << (64 - 8 * count);
    if (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS != 0 {
        return None;
    }
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF)
}

/// An integer of 1 to 15 digits, without a sign.
#[inline(always)]
pub(crate) fn short_u64(rest: &[u8], length: usize) -> Option<u64> {
    match length {
        1..=8 => digits(word(rest)?, length),
        9..=15 => {
            let (first, next) = (word(rest)?, word(rest.get(8..)?)?);
            Some(digits(first, 8)? * POWERS[length - 8] + digits(next, length - 8)?)
        }
        _ => None,
    }
}

#[inline(always)]
pub(crate) fn short_i64(rest: &[u8], length: usize) -> Option<i64> {
    if rest.first() == Some(&b'-') {
        return short_u64(rest.get(1..)?, length.checked_sub(1)?).map(|value| -value.cast_signed());
    }
    short_u64(rest, length).map(u64::cast_signed)
}

/// A short decimal: its digits as one integer, how many come after the point, its sign.
struct Short {
    negative: bool,
    digits: u64,
    scale: usize,
}

#[inline(always)]
fn short(rest: &[u8], length: usize, point: u8) -> Option<Short> {
    let negative = rest.first() == Some(&b'-');
    let (rest, length) = if negative { (rest.get(1..)?, length.checked_sub(1)?) } else { (rest, length) };
    if length > 8 {
        return longer(negative, rest, length, point);
    }
    let word = word(rest)?;
    let before = (zero_bytes(word ^ (ONES * u64::from(point))).trailing_zeros() / 8) as usize;
    if before >= length {
        let digits = if length == 0 { None } else { digits(word, length) };
        return Some(Short { negative, digits: digits?, scale: 0 });
    }
    let scale = length - before - 1;
    if before == 0 || scale == 0 {
        return None;
    }
    // Removes the point, so that all digits are parsed at once.
    let whole = (1 << (8 * before)) - 1;
    Some(Short { negative, digits: digits((word & whole) | ((word >> 8) & !whole), length - 1)?, scale })
}

/// More than 8 bytes, with at most 15 digits on either side of the point and 18 in total.
fn longer(negative: bool, rest: &[u8], length: usize, point: u8) -> Option<Short> {
    let Some(before) = rest.get(..length)?.iter().position(|byte| *byte == point) else {
        return Some(Short { negative, digits: short_u64(rest, length)?, scale: 0 });
    };
    let scale = length - before - 1;
    if before + scale > 18 {
        return None;
    }
    let (whole, fraction) = (short_u64(rest, before)?, short_u64(rest.get(before + 1..)?, scale)?);
    Some(Short { negative, digits: whole * POWERS[scale] + fraction, scale })
}

#[inline(always)]
pub(crate) fn short_f64(rest: &[u8], length: usize, point: u8) -> Option<f64> {
    let short = short(rest, length, point)?;
    // Both operands are exact, so the quotient is the nearest double.
    let value = (short.digits <= EXACT).then(|| short.digits.cast_signed() as f64 / FLOAT_POWERS[short.scale])?;
    Some(if short.negative { -value } else { value })
}

#[inline]
pub(crate) fn short_decimal(rest: &[u8], length: usize, point: u8, precision: u8, scale: u8) -> Option<i128> {
    let short = short(rest, length, point)?;
    let missing = usize::from(scale).checked_sub(short.scale)?;
    let value = i128::from(short.digits).checked_mul(10i128.checked_pow(missing as u32)?)?;
    let value = if short.negative { -value } else { value };
    (value.unsigned_abs() <= largest(precision)).then_some(value)
}

/// Whether a minus is in front, and the text behind the sign.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn magnitude(digits: &[u8]) -> Result<u64, NumberFault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberFault::NotANumber);
    }
    digits
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(NumberFault::OutOfRange)
}

pub(crate) fn parse_u64(text: &[u8]) -> Result<u64, NumberFault> {
    let (negative, digits) = signed(text);
    let value = magnitude(digits)?;
    if negative { Err(NumberFault::OutOfRange) } else { Ok(value) }
}

pub(crate) fn parse_i64(text: &[u8]) -> Result<i64, NumberFault> {
    let (negative, digits) = signed(text);
    let value = i128::from(magnitude(digits)?);
    i64::try_from(if negative { -value } else { value }).map_err(|_| NumberFault::OutOfRange)
}

pub(crate) fn parse_f64(text: &[u8], point: u8) -> Result<f64, NumberFault> {
    let (negative, digits) = signed(text);
    let value = if point == b'.' {
        float(digits)?
    } else {
        if digits.contains(&b'.') {
            return Err(NumberFault::NotANumber);
        }
        let mut buffer = [0u8; 128];
        let swapped = buffer.get_mut(..digits.len()).ok_or(NumberFault::NotANumber)?;
        for (to, from) in swapped.iter_mut().zip(digits) {
            *to = if *from == point { b'.' } else { *from };
        }
        float(swapped)?
    };
    Ok(if negative { -value } else { value })
}

fn float(digits: &[u8]) -> Result<f64, NumberFault> {
    let spelled = digits.first().is_some_and(u8::is_ascii_alphabetic);
    // The sign is already split off; a second sign is an error.
    let double_sign = matches!(digits.first(), Some(b'+' | b'-'));
    match fast_float2::parse::<f64, _>(digits) {
        Ok(_) | Err(_) if double_sign => Err(NumberFault::NotANumber),
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) if spelled => Err(NumberFault::NotFinite),
        Ok(_) => Err(NumberFault::OutOfRange),
        Err(_) => Err(NumberFault::NotANumber),
    }
}

/// The largest magnitude of a decimal of `precision` digits.
pub(crate) fn largest(precision: u8) -> u128 {
    10u128.checked_pow(u32::from(precision)).map_or(u128::MAX, |power| power - 1)
}

/// The digits of a decimal of `scale` places as one integer. Zeros beyond these places are cut off, other digits a fault.
pub(crate) fn parse_decimal(text: &[u8], point: u8, precision: u8, scale: u8) -> Result<i128, NumberFault> {
    let (negative, digits) = signed(text);
    let (whole, fraction) = match digits.iter().position(|&byte| byte == point) {
        Some(at) => (digits.get(..at).unwrap_or_default(), digits.get(at + 1..).unwrap_or_default()),
        None => (digits, &[][..]),
    };
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return Err(NumberFault::NotANumber);
    }

    let kept = fraction.len().min(usize::from(scale));
    if fraction.iter().skip(kept).any(|&digit| digit != b'0') {
        return Err(NumberFault::TooManyDigits);
    }
    let zeros = std::iter::repeat_n(&b'0', usize::from(scale) - kept);
    let mut digits = whole.iter().chain(fraction.iter().take(kept)).chain(zeros);

    let value = digits.try_fold(0u128, |value, digit| value.checked_mul(10)?.checked_add(u128::from(digit - b'0')));
    let value = value.filter(|value| *value <= largest(precision)).and_then(|value| i128::try_from(value).ok());
    let value = value.ok_or(NumberFault::OutOfRange)?;
    Ok(if negative { -value } else { value })
}

/// A decimal number without rounding: `digits` × 10^`exponent`. Equal numbers are equal, however they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Exact {
    digits: i128,
    exponent: i32,
}

impl Exact {
    /// Parses a number with an optional fraction and exponent; `None` if it is none, or beyond 38 digits.
    pub fn parse(text: &[u8], point: u8) -> Option<Self> {
        let (negative, unsigned) = signed(text);
        let (mut digits, mut exponent) = (0i128, 0i32);
        let (mut seen, mut after_point) = (false, false);

        let mut rest = unsigned.iter();
        while let Some(byte) = rest.next() {
            match byte {
                b'0'..=b'9' => {
                    digits = digits.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    exponent -= i32::from(after_point);
                    seen = true;
                }
                _ if *byte == point && !after_point => after_point = true,
                b'e' | b'E' if seen => {
                    let written = std::str::from_utf8(rest.as_slice()).ok()?;
                    exponent = exponent.checked_add(written.parse().ok()?)?;
                    break;
                }
                _ => return None,
            }
        }

        seen.then(|| Self { digits: if negative { -digits } else { digits }, exponent }.normalized())
    }

    /// The number `digits` / 10^`scale`, as decimals are stored.
    pub fn of_scaled(digits: i128, scale: u8) -> Self {
        Self { digits, exponent: -i32::from(scale) }.normalized()
    }

    fn normalized(mut self) -> Self {
        while self.digits != 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.exponent = self.exponent.saturating_add(1);
        }
        if self.digits == 0 {
            self.exponent = 0;
        }
        self
    }

    /// The number × `factor` × 10^`power`, rounded down, and whether digits were cut off; `None` on overflow.
    pub fn scaled(self, factor: i64, power: i32) -> Option<(i64, bool)> {
        let product = self.digits.checked_mul(i128::from(factor))?;
        let power = self.exponent.checked_add(power)?;
        let size = 10i128.checked_pow(power.unsigned_abs());
        let (value, cut) = match (power >= 0, size) {
            (true, Some(size)) => (product.checked_mul(size)?, false),
            (true, None) if product == 0 => (0, false),
            (true, None) => return None,
            (false, Some(size)) => (product.div_euclid(size), product.rem_euclid(size) != 0),
            (false, None) => (if product < 0 { -1 } else { 0 }, product != 0),
        };
        Some((i64::try_from(value).ok()?, cut))
    }
}

pub(crate) fn parse_bool(text: &[u8]) -> Option<bool> {
    const TRUE: [&[u8]; 5] = [b"true", b"1", b"t", b"yes", b"y"];
    const FALSE: [&[u8]; 5] = [b"false", b"0", b"f", b"no", b"n"];
    if TRUE.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(true);
    }
    FALSE.iter().any(|word| text.eq_ignore_ascii_case(word)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges() {
        assert_eq!(parse_u64(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), Err(NumberFault::OutOfRange));
        assert_eq!(parse_i64(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775808"), Err(NumberFault::OutOfRange));
        assert_eq!(parse_u64(b"+7"), Ok(7));
        assert_eq!(parse_u64(b"-7"), Err(NumberFault::OutOfRange));
        for bad in [&b""[..], b"+", b"--1", b"1.0", b"1,000", b"0x1", b"1 2"] {
            assert_eq!(parse_i64(bad), Err(NumberFault::NotANumber), "{bad:?}");
        }
        assert_eq!(parse_decimal(b"600.60", b'.', 10, 2), Ok(60060));
        assert_eq!(parse_decimal(b"-600.6", b'.', 10, 2), Ok(-60060));
        assert_eq!(parse_decimal(b".5", b'.', 10, 2), Ok(50));
        assert_eq!(parse_decimal(b"1.2300", b'.', 10, 2), Ok(123));
        assert_eq!(parse_decimal(b"1.234", b'.', 10, 2), Err(NumberFault::TooManyDigits));
        assert_eq!(parse_decimal(b"123456789.00", b'.', 10, 2), Err(NumberFault::OutOfRange));
        assert_eq!(parse_decimal(&[b'9'; 38], b'.', 38, 0), Ok(10i128.pow(38) - 1));
        assert_eq!(parse_decimal(&[b'9'; 60], b'.', 38, 0), Err(NumberFault::OutOfRange));
        assert_eq!(parse_f64(b"1,5", b','), Ok(1.5));
        assert_eq!(parse_f64(b"1.5", b','), Err(NumberFault::NotANumber));
        assert_eq!(parse_f64(b"nan", b'.'), Err(NumberFault::NotFinite));
        assert_eq!(parse_f64(b"-Infinity", b'.'), Err(NumberFault::NotFinite));
        assert_eq!(parse_f64(b"1e999", b'.'), Err(NumberFault::OutOfRange));
        assert_eq!(parse_f64(b"+-1", b'.'), Err(NumberFault::NotANumber));
        assert!(parse_f64(b"-0", b'.').is_ok_and(f64::is_sign_negative));
    }

    #[test]
    fn exact_numbers() {
        let exact = |text: &str| Exact::parse(text.as_bytes(), b'.');
        for same in ["-9999", "-9999.0", "-9999.", "-9999.00", "-9.999e3", "-09999", "-999900e-2"] {
            assert_eq!(exact(same), exact("-9999"), "{same}");
        }
        assert_eq!(exact("0"), exact("-0.00"));
        assert_ne!(exact("-9999"), exact("-9999.5"));
        for bad in ["", "-", ".", "1.2.3", "x", "1e", "1e5.5", "--1", "1_0"] {
            assert_eq!(exact(bad), None, "{bad}");
        }
        assert_eq!(Exact::of_scaled(-999_900, 2), exact("-9999").unwrap());
        assert_eq!(exact("1551129661.4285714").unwrap().scaled(1, 6), Some((1_551_129_661_428_571, true)));
        assert_eq!(exact("-0.5").unwrap().scaled(1, 0), Some((-1, true)));
        assert_eq!(exact("1e30").unwrap().scaled(1, 6), None);
        assert_eq!(exact("1e-50").unwrap().scaled(1, 6), Some((0, true)));
    }

    proptest! {
        #[test]
        fn short_forms_agree_with_the_complete_parsers(
            text in prop_oneof!["-?[0-9]{1,20}(\\.[0-9]{0,19})?", "-?[0-9]{0,6}\\.?[0-9]{0,4}", "[-0-9.:/e+]{0,10}"],
            after in "[,\n0-9.-]{0,2}",
        ) {
            let padded = format!("{text}{after},        \n       ");
            let (bytes, text, length) = (padded.as_bytes(), text.as_bytes(), text.len());
            if let Some(value) = short_f64(bytes, length, b'.') {
                prop_assert_eq!(parse_f64(text, b'.').map(f64::to_bits), Ok(value.to_bits()));
            }
            if let Some(value) = short_decimal(bytes, length, b'.', 20, 6) {
                prop_assert_eq!(parse_decimal(text, b'.', 20, 6), Ok(value));
            }
            if let Some(value) = short_i64(bytes, length) {
                prop_assert_eq!(parse_i64(text), Ok(value));
            }
            if let Some(value) = short_u64(bytes, length) {
                prop_assert_eq!(parse_u64(text), Ok(value));
            }
        }

        #[test]
        fn telemetry_is_written_in_short_forms(whole in 0u64..10_000_000, fraction in 0u64..1000, negative: bool) {
            let text = format!("{}{whole}.{fraction:03}", if negative { "-" } else { "" });
            let padded = format!("{text},        ");
            prop_assert_eq!(short_f64(padded.as_bytes(), text.len(), b'.'), text.parse().ok());
            let padded = format!("{whole}\n        ");
            prop_assert_eq!(short_u64(padded.as_bytes(), padded.len() - 9), Some(whole));
        }
    }
}
