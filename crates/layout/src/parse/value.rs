//! One value from the bytes of a cell.

use crate::scalar::Scalar;
use crate::schema::{Encoding, FieldType};
use crate::time::text::{read_date, read_rfc3339};

/// The value of a cell of type `kind` in `encoding`; `None` if the bytes are none.
pub(crate) fn read_value(kind: FieldType, encoding: Encoding, bytes: &[u8]) -> Option<Scalar> {
    match encoding {
        Encoding::Text | Encoding::Bytes => read_text(kind, std::str::from_utf8(bytes).ok()?),
        Encoding::Json => {
            let text = std::str::from_utf8(bytes).ok()?;
            match super::json::string(text) {
                Some(text) => read_text(kind, &text),
                None => read_text(kind, text),
            }
        }
        Encoding::Int64 => {
            let bytes: [u8; 8] = bytes.try_into().ok()?;
            from_bits(kind, u64::from_be_bytes(bytes))
        }
        Encoding::Float64 => Some(Scalar::Float64(f64::from_be_bytes(bytes.try_into().ok()?))),
    }
}

/// A 64-bit integer as a value of type `kind`.
pub(super) fn from_bits(kind: FieldType, bits: u64) -> Option<Scalar> {
    Some(match kind {
        FieldType::UInt64 => Scalar::UInt64(bits),
        FieldType::Int64 => Scalar::Int64(bits.cast_signed()),
        FieldType::Timestamp => Scalar::Timestamp(bits.cast_signed()),
        FieldType::Date => Scalar::Date(i32::try_from(bits.cast_signed()).ok()?),
        FieldType::Bool => Scalar::Bool(bits != 0),
        _ => return None,
    })
}

/// A value from its text. Other programs may write it otherwise than this one: `28.9` is a decimal of scale 2.
pub(super) fn read_text(kind: FieldType, text: &str) -> Option<Scalar> {
    Some(match kind {
        FieldType::UInt64 => Scalar::UInt64(text.parse().ok()?),
        FieldType::Int64 => Scalar::Int64(text.parse().ok()?),
        FieldType::Float64 => Scalar::Float64(text.parse().ok()?),
        FieldType::Decimal { precision, scale } => Scalar::Decimal(read_decimal(text, precision, scale)?),
        FieldType::Text => Scalar::Text(text.to_owned()),
        FieldType::Bool => Scalar::Bool(text.parse().ok()?),
        FieldType::Timestamp => Scalar::Timestamp(read_rfc3339(text)?),
        FieldType::Date => Scalar::Date(i32::try_from(read_date(text)?).ok()?),
    })
}

/// A decimal with at most `scale` digits after the point and `precision` in all, in units of its scale.
fn read_decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let digits = text.strip_prefix('-');
    let (whole, fraction) = digits.unwrap_or(text).split_once('.').unwrap_or((digits.unwrap_or(text), ""));
    let scale = usize::from(scale);
    if whole.is_empty() || fraction.len() > scale || text.ends_with('.') {
        return None;
    }
    let zeros = std::iter::repeat_n(b'0', scale - fraction.len());
    let value = whole.bytes().chain(fraction.bytes()).chain(zeros).try_fold(0_i128, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(i128::from(digit)) }
    })?;
    if value >= 10_i128.checked_pow(precision.into())? {
        return None;
    }
    Some(if digits.is_some() { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_type() {
        let decimal = FieldType::Decimal { precision: 6, scale: 2 };
        for (kind, text, expected) in [
            (FieldType::UInt64, "18446744073709551615", Some(Scalar::UInt64(u64::MAX))),
            (FieldType::Int64, "-5", Some(Scalar::Int64(-5))),
            (FieldType::Int64, "5.0", None),
            (FieldType::Float64, "1e+300", Some(Scalar::Float64(1e300))),
            (decimal, "28.90", Some(Scalar::Decimal(2_890))),
            (decimal, "28.9", Some(Scalar::Decimal(2_890))),
            (decimal, "-0.05", Some(Scalar::Decimal(-5))),
            (decimal, "28.905", None),
            (decimal, "12345.00", None),
            (decimal, "12.", None),
            (decimal, "-", None),
            (FieldType::Text, "é", Some(Scalar::Text("é".to_owned()))),
            (FieldType::Bool, "true", Some(Scalar::Bool(true))),
            (FieldType::Timestamp, "1970-01-01T00:00:00.000001Z", Some(Scalar::Timestamp(1))),
            (FieldType::Date, "1970-01-02", Some(Scalar::Date(1))),
            (FieldType::Date, "yesterday", None),
        ] {
            assert_eq!(read_value(kind, Encoding::Text, text.as_bytes()), expected, "{text}");
        }
        assert_eq!(read_value(FieldType::Text, Encoding::Text, &[0xff]), None);
    }

    #[test]
    fn numbers_in_eight_bytes() {
        let bytes = (-2_i64).to_be_bytes();
        assert_eq!(read_value(FieldType::Int64, Encoding::Int64, &bytes), Some(Scalar::Int64(-2)));
        assert_eq!(read_value(FieldType::UInt64, Encoding::Int64, &bytes), Some(Scalar::UInt64(u64::MAX - 1)));
        assert_eq!(read_value(FieldType::Int64, Encoding::Int64, b"short"), None);
        let float = 0.1_f64.to_be_bytes();
        assert_eq!(read_value(FieldType::Float64, Encoding::Float64, &float), Some(Scalar::Float64(0.1)));
        assert_eq!(read_value(FieldType::Text, Encoding::Json, br#""a\"b""#), Some(Scalar::Text("a\"b".to_owned())));
        assert_eq!(read_value(FieldType::Float64, Encoding::Json, b"\"NaN\"").map(|_| ()), Some(()));
    }
}
