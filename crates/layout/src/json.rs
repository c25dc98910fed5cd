//! JSON literals of values, and objects of them.

use crate::civil::Calendar;
use crate::datum::Datum;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a value as a JSON literal: integers with all their digits, decimals as numbers with their scale, floats in
/// their shortest form. Texts, times, and what JSON has no number for (NaN, inf, -inf) are strings.
pub(crate) fn write_value(datum: Datum<'_>, calendar: &mut Calendar, out: &mut Vec<u8>) {
    match datum {
        Datum::Text(text) => write_string(text, out),
        Datum::Time(_) | Datum::Date(_) => quoted(datum, calendar, out),
        Datum::Float(value) if !value.is_finite() => quoted(datum, calendar, out),
        Datum::UInt(_) | Datum::Int(_) | Datum::Float(_) | Datum::Decimal(..) | Datum::Bool(_) => {
            datum.write_text(calendar, out);
        }
    }
}

/// A value whose text has nothing to escape.
fn quoted(datum: Datum<'_>, calendar: &mut Calendar, out: &mut Vec<u8>) {
    out.push(b'"');
    datum.write_text(calendar, out);
    out.push(b'"');
}

/// Appends a string with its quotes.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(bytes.get(done..at).unwrap_or_default());
        done = at + 1;
        if short == 0 {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(datum: Datum<'_>) -> String {
        let mut out = Vec::new();
        write_value(datum, &mut Calendar::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_value() {
        for (datum, expected) in [
            (Datum::UInt(u64::MAX), "18446744073709551615"),
            (Datum::Int(i64::MIN), "-9223372036854775808"),
            (Datum::Float(0.1), "0.1"),
            (Datum::Float(1e300), "1e+300"),
            (Datum::Float(-0.0), "-0.0"),
            (Datum::Float(f64::NAN), "\"NaN\""),
            (Datum::Float(f64::INFINITY), "\"inf\""),
            (Datum::Float(f64::NEG_INFINITY), "\"-inf\""),
            (Datum::Decimal(60_060, 2), "600.60"),
            (Datum::Decimal(-5, 2), "-0.05"),
            (Datum::Bool(true), "true"),
            (Datum::Text("José"), "\"José\""),
            (Datum::Text("a\"b\\c\nd\te\u{1}\u{8}\u{c}\r\u{7f}/"), "\"a\\\"b\\\\c\\nd\\te\\u0001\\b\\f\\r\u{7f}/\""),
            (Datum::Time(1_614_945_600_000_000), "\"2021-03-05T12:00:00Z\""),
            (Datum::Date(17_562), "\"2018-01-31\""),
        ] {
            assert_eq!(literal(datum), expected);
        }
    }
}
