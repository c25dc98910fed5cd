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
            Self::Numeric(array) => out.put_slice(array.value_as_string(row).as_bytes()),
            Self::WideNumeric(array) => out.put_slice(array.value_as_string(row).as_bytes()),

            Self::Text(array) => text(out, array.value(row)),
            Self::Bytes(array) => {
                out.put_slice(b"\\x");
                out.put_slice(hex::encode(array.value(row)).as_bytes());
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
            Self::Json(array) => {
                let mut json = Vec::new();
                write_json(array.as_ref(), row, &mut json);
                out.put_slice(&json);
            }
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
    let mut item = BytesMut::new();
    for place in start..end {
        if place > start {
            out.put_u8(b',');
        }
        if items.is_null(place) {
            out.put_slice(b"NULL");
            continue;
        }

        item.clear();
        items.write_text(place, &mut item);
        if needs_quotes(&item) {
            out.put_u8(b'"');
            for byte in &item {
                if matches!(byte, b'"' | b'\\') {
                    out.put_u8(b'\\');
                }
                out.put_u8(*byte);
            }
            out.put_u8(b'"');
        } else {
            out.put_slice(&item);
        }
    }
    out.put_u8(b'}');
}

fn needs_quotes(item: &[u8]) -> bool {
    let is_special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace();
    item.is_empty() || item.eq_ignore_ascii_case(b"null") || item.iter().any(is_special)
}
