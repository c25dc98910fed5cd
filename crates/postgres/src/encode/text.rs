//! Values as text, as PostgreSQL writes them.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

use crate::encode::json::write_json;
use crate::encode::times;
use crate::encode::values::Values;

/// Floats of this magnitude or more, and below the other, have an exponent.
const LARGE: f64 = 1e15;
const SMALL: f64 = 1e-4;

impl Values {
    /// Appends the text of a value that is not null.
    pub(crate) fn write_text(&self, row: usize, out: &mut BytesMut) {
        match self {
            Self::Null => {}
            Self::Bool(array) => out.put_u8(if array.value(row) { b't' } else { b'f' }),
            Self::Int2(array) => display(out, array.value(row)),
            Self::Int4(array) => display(out, array.value(row)),
            Self::Int8(array) | Self::Oid(array) => display(out, array.value(row)),
            Self::Float4(array) => float(out, array.value(row), f64::from(array.value(row))),
            Self::Float8(array) => float(out, array.value(row), array.value(row)),
            Self::Numeric(array) => decimal(out, array.value(row), array.scale()),
            Self::WideNumeric(array) => out.put_slice(array.value_as_string(row).as_bytes()),

            Self::Text(array) => text(out, array.value(row)),
            Self::Bytes(array) => {
                out.put_slice(b"\\x");
                digits(out, array.value(row));
            }
            Self::Date(array) => times::date(out, array.value(row).into()),
            Self::Time(array) => times::time(out, array.value(row)),
            Self::Timestamp(array, is_moment) => times::timestamp(out, array.value(row), *is_moment),
            Self::Interval(array) => times::interval(out, array.value(row)),

            Self::List(array, items, _) => {
                let ends = array.value_offsets();
                let (start, end) = (index(ends, row), index(ends, row + 1));
                list(out, items, start, end);
            }
            Self::Json(array) => write_json(array.as_ref(), row, out),
        }
    }
}

/// An offset of a list array.
pub(crate) fn index(ends: &[i32], at: usize) -> usize {
    ends.get(at).and_then(|end| usize::try_from(*end).ok()).unwrap_or_default()
}

fn display(out: &mut BytesMut, value: impl std::fmt::Display) {
    // A buffer in memory takes all.
    let _ = write!(out, "{value}");
}

/// An unscaled value with so many decimal places.
fn decimal(out: &mut BytesMut, unscaled: i128, scale: i8) {
    if unscaled < 0 {
        out.put_u8(b'-');
    }
    let value = unscaled.unsigned_abs();
    match (usize::from(scale.unsigned_abs()), 10_u128.checked_pow(u32::from(scale.unsigned_abs()))) {
        (0, _) => display(out, value),
        // A negative scale stands for zeros before the point, which nothing has.
        (zeros, _) if scale < 0 => display(out, format_args!("{value}{:0<zeros$}", "")),
        (places, Some(unit)) => display(out, format_args!("{}.{:0places$}", value / unit, value % unit)),
        (places, None) => display(out, format_args!("0.{value:0places$}")),
    }
}

/// Bytes as digits in base 16.
fn digits(out: &mut BytesMut, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    if let Some(place) = out.get_mut(start..) {
        // It has the length that is needed.
        let _ = hex::encode_to_slice(bytes, place);
    }
}

/// Text without the zero bytes that no text of PostgreSQL has.
fn text(out: &mut BytesMut, value: &str) {
    if value.contains('\0') {
        out.put_slice(value.replace('\0', "").as_bytes());
    } else {
        out.put_slice(value.as_bytes());
    }
}

/// A float in as many digits as make it again; `wide` is its value in double precision.
fn float(out: &mut BytesMut, value: impl std::fmt::Display + std::fmt::LowerExp, wide: f64) {
    if wide.is_nan() {
        out.put_slice(b"NaN");
    } else if wide.is_infinite() {
        out.put_slice(if wide > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else if wide != 0.0 && (wide.abs() >= LARGE || wide.abs() < SMALL) {
        let digits = format!("{value:e}");
        match digits.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => display(out, format_args!("{digits}e+{power:0>2}")),
            Some((digits, power)) => display(out, format_args!("{digits}e-{:0>2}", power.trim_start_matches('-'))),
            None => display(out, digits),
        }
    } else {
        display(out, value);
    }
}

/// Items in braces; those that would be read otherwise are quoted.
fn list(out: &mut BytesMut, items: &Values, start: usize, end: usize) {
    out.put_u8(b'{');
    // An item that was written and has to be quoted.
    let mut plain = BytesMut::new();
    for place in start..end {
        if place > start {
            out.put_u8(b',');
        }
        if items.is_null(place) {
            out.put_slice(b"NULL");
            continue;
        }

        let before = out.len();
        items.write_text(place, out);
        let item = out.get(before..).unwrap_or_default();
        if needs_quotes(item) {
            plain.clear();
            plain.put_slice(item);
            out.truncate(before);
            quoted(&plain, out);
        }
    }
    out.put_u8(b'}');
}

fn quoted(item: &[u8], out: &mut BytesMut) {
    out.put_u8(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

fn needs_quotes(item: &[u8]) -> bool {
    let is_special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace();
    item.is_empty() || item.eq_ignore_ascii_case(b"null") || item.iter().any(is_special)
}

#[cfg(test)]
pub(in crate::encode) mod tests {
    use super::*;

    /// What is written, as text.
    pub(in crate::encode) fn shown(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn decimals_have_their_places() {
        for (unscaled, scale, expected) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 3, "-0.005"),
            (12_345, 2, "123.45"),
            (12, -3, "12000"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727"),
        ] {
            assert_eq!(shown(|out| decimal(out, unscaled, scale)), expected);
        }
    }

    #[test]
    fn bytes_are_digits() {
        assert_eq!(shown(|out| digits(out, &[0, 255, 16])), "00ff10");
        assert_eq!(shown(|out| digits(out, &[])), "");
    }
}
