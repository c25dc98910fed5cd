//! JSON literals of values.

use crate::scalar::ScalarRef;
use crate::time::calendar::Calendar;

/// The hexadecimal digits, by value.
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a value as a JSON literal: integers with all digits, decimals as numbers with their scale, floats in shortest
/// form. Texts, times and non-finite floats (NaN, inf, -inf) are strings.
pub(crate) fn write_value(scalar: ScalarRef<'_>, calendar: &mut Calendar, out: &mut Vec<u8>) {
    match scalar {
        ScalarRef::Text(text) => write_string(text, out),
        ScalarRef::Time(_) | ScalarRef::Date(_) => quoted(scalar, calendar, out),
        ScalarRef::Float(value) if !value.is_finite() => quoted(scalar, calendar, out),
        ScalarRef::UInt(_) | ScalarRef::Int(_) | ScalarRef::Float(_) | ScalarRef::Decimal(..) | ScalarRef::Bool(_) => {
            scalar.write_text(calendar, out);
        }
    }
}

/// Appends a value whose text needs no escapes, in quotes.
fn quoted(scalar: ScalarRef<'_>, calendar: &mut Calendar, out: &mut Vec<u8>) {
    out.push(b'"');
    scalar.write_text(calendar, out);
    out.push(b'"');
}

/// Appends `text` as a JSON string, escaping what RFC 8259 requires.
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
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    out.push(b'"');
}

fn hex_digit(nibble: u8) -> u8 {
    HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(scalar: ScalarRef<'_>) -> String {
        let mut out = Vec::new();
        write_value(scalar, &mut Calendar::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_value() {
        for (scalar, expected) in [
            (ScalarRef::UInt(u64::MAX), "18446744073709551615"),
            (ScalarRef::Int(i64::MIN), "-9223372036854775808"),
            (ScalarRef::Float(0.1), "0.1"),
            (ScalarRef::Float(1e300), "1e+300"),
            (ScalarRef::Float(-0.0), "-0.0"),
            (ScalarRef::Float(f64::NAN), "\"NaN\""),
            (ScalarRef::Float(f64::INFINITY), "\"inf\""),
            (ScalarRef::Float(f64::NEG_INFINITY), "\"-inf\""),
            (ScalarRef::Decimal(60_060, 2), "600.60"),
            (ScalarRef::Decimal(-5, 2), "-0.05"),
            (ScalarRef::Bool(true), "true"),
            (ScalarRef::Text("José"), "\"José\""),
            (
                ScalarRef::Text("a\"b\\c\nd\te\u{1}\u{8}\u{c}\r\u{7f}/"),
                "\"a\\\"b\\\\c\\nd\\te\\u0001\\b\\f\\r\u{7f}/\"",
            ),
            (ScalarRef::Time(1_614_945_600_000_000), "\"2021-03-05T12:00:00Z\""),
            (ScalarRef::Date(17_562), "\"2018-01-31\""),
        ] {
            assert_eq!(literal(scalar), expected);
        }
    }
}
