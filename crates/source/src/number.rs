//! Numbers from bytes. `*_prefix` reads the common short forms from the start of a field and gives up (`None`) on
//! anything else; the functions without it are complete and decide what is a number.

/// Why a field is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    NotANumber,
    OutOfRange,
    TooManyDigits,
    NotFinite,
}

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// Integers up to here are exact as f64.
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

/// Bit 7 of each byte that is no ASCII digit; exact up to the first such byte.
#[inline]
pub(crate) fn not_digits(word: u64) -> u64 {
    let digits = word ^ ZEROS;
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS
}

/// The value of the first `count` (1..=8) bytes, which are digits.
#[inline]
fn value(word: u64, count: usize) -> u64 {
    let digits = (word ^ ZEROS) << (64 - 8 * count);
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF
}

/// A run of at most 15 digits and its length, which may be 0.
#[inline(always)]
fn run(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = word(bytes)?;
    match (not_digits(first).trailing_zeros() / 8) as usize {
        0 => Some((0, 0)),
        8 => {
            let next = word(bytes.get(8..)?)?;
            match (not_digits(next).trailing_zeros() / 8) as usize {
                0 => Some((value(first, 8), 8)),
                8 => None,
                more => Some((value(first, 8) * POWERS[more] + value(next, more), 8 + more)),
            }
        }
        count => Some((value(first, count), count)),
    }
}

#[inline(always)]
pub(crate) fn u64_prefix(bytes: &[u8]) -> Option<(u64, usize)> {
    run(bytes).filter(|(_, length)| *length > 0)
}

#[inline]
pub(crate) fn i64_prefix(bytes: &[u8]) -> Option<(i64, usize)> {
    if bytes.first() == Some(&b'-') {
        let (value, length) = u64_prefix(bytes.get(1..)?)?;
        return Some((-value.cast_signed(), length + 1));
    }
    u64_prefix(bytes).map(|(value, length)| (value.cast_signed(), length))
}

/// A short decimal: its digits as one integer, how many come after the point, its sign.
pub(crate) struct Short {
    pub negative: bool,
    pub digits: u64,
    pub scale: usize,
    pub length: usize,
}

#[inline(always)]
pub(crate) fn short_prefix(bytes: &[u8], point: u8) -> Option<Short> {
    let negative = bytes.first() == Some(&b'-');
    let sign = usize::from(negative);
    let unsigned = bytes.get(sign..)?;
    let (whole, length) = u64_prefix(unsigned)?;
    if unsigned.get(length) != Some(&point) {
        return Some(Short { negative, digits: whole, scale: 0, length: sign + length });
    }
    let (fraction, scale) = u64_prefix(unsigned.get(length + 1..)?)?;
    if length + scale > 18 {
        return None;
    }
    Some(Short { negative, digits: whole * POWERS[scale] + fraction, scale, length: sign + length + 1 + scale })
}

#[inline(always)]
pub(crate) fn f64_prefix(bytes: &[u8], point: u8) -> Option<(f64, usize)> {
    let short = short_prefix(bytes, point)?;
    // Both operands are exact, so the quotient is the nearest double.
    let value = (short.digits <= EXACT).then(|| short.digits as f64 / FLOAT_POWERS[short.scale])?;
    Some((if short.negative { -value } else { value }, short.length))
}

#[inline]
pub(crate) fn decimal_prefix(bytes: &[u8], point: u8, precision: u8, scale: u8) -> Option<(i128, usize)> {
    let short = short_prefix(bytes, point)?;
    let missing = usize::from(scale).checked_sub(short.scale)?;
    let value = i128::from(short.digits).checked_mul(10i128.checked_pow(missing as u32)?)?;
    let value = if short.negative { -value } else { value };
    (value.unsigned_abs() <= largest(precision)).then_some((value, short.length))
}

/// Splits a sign off.
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
    // The sign is already off; a second one is not a number.
    let double_sign = matches!(digits.first(), Some(b'+' | b'-'));
    match fast_float2::parse::<f64, _>(digits) {
        Ok(_) | Err(_) if double_sign => Err(NumberFault::NotANumber),
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) if spelled => Err(NumberFault::NotFinite),
        Ok(_) => Err(NumberFault::OutOfRange),
        Err(_) => Err(NumberFault::NotANumber),
    }
}

/// The largest magnitude of `precision` digits.
pub(crate) fn largest(precision: u8) -> u128 {
    10u128.checked_pow(u32::from(precision)).map_or(u128::MAX, |power| power - 1)
}

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
    let value = whole
        .iter()
        .chain(fraction.iter().take(kept))
        .chain(zeros)
        .try_fold(0u128, |value, digit| value.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
        .filter(|value| *value <= largest(precision))
        .and_then(|value| i128::try_from(value).ok())
        .ok_or(NumberFault::OutOfRange)?;
    Ok(if negative { -value } else { value })
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

    proptest! {
        #[test]
        fn prefixes_agree_with_the_complete_parsers(text in "-?[0-9]{1,20}(\\.[0-9]{0,19})?") {
            let padded = format!("{text},        \n       ");
            let (bytes, end) = (padded.as_bytes(), text.len());
            if let Some((value, length)) = f64_prefix(bytes, b'.') && length == end {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
                prop_assert_eq!(parse_f64(text.as_bytes(), b'.').map(f64::to_bits), Ok(value.to_bits()));
            }
            if let Some((value, length)) = decimal_prefix(bytes, b'.', 20, 6) && length == end {
                prop_assert_eq!(parse_decimal(text.as_bytes(), b'.', 20, 6), Ok(value));
            }
            if let Some((value, length)) = i64_prefix(bytes) && length == end {
                prop_assert_eq!(Ok(value), text.parse::<i64>());
            }
            if let Some((value, length)) = u64_prefix(bytes) && length == end {
                prop_assert_eq!(Ok(value), text.parse::<u64>());
            }
        }
    }
}
