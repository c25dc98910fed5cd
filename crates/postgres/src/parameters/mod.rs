//! Values of parameters as drivers send them, in text or in binary.
//!
//! | module | contents |
//! |---|---|
//! | `planned` | the types with which queries are planned for parameters |
//! | `text`, `binary` | one value in either format |
//! | `intervals` | the text of intervals |
//! | `arrays` | arrays in either format |

mod arrays;
mod binary;
mod intervals;
mod planned;
mod text;

use bytes::Bytes;
use tidetable_sql::ScalarValue;

use crate::encode::Format;
use crate::error::{Refusal, code};
use crate::types::PgType;

pub(crate) use planned::planned_type;

/// Characters of a wrong value that an error shows.
const SHOWN: usize = 80;

/// The value of parameter `number` (from 1), which has type `kind`.
///
/// # Errors
/// If the bytes are no value of the type.
pub(crate) fn value(
    number: usize,
    kind: PgType,
    format: Format,
    bytes: Option<&Bytes>,
) -> Result<ScalarValue, Refusal> {
    let planned = planned_type(kind);
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(&planned).map_err(|error| Refusal::internal(error.to_string()));
    };

    let read = match (format, kind.is_array) {
        (Format::Text, false) => text::utf8(bytes).and_then(|text| text::value(kind.base, text)),
        (Format::Text, true) => text::utf8(bytes).and_then(|text| arrays::of_text(kind.base, text)),
        (Format::Binary, false) => binary::value(kind.base, bytes),
        (Format::Binary, true) => arrays::of_binary(kind.base, bytes),
    };
    read.ok_or_else(|| {
        let (name, arrays) = (kind.base.entry().sql, if kind.is_array { "[] of one dimension" } else { "" });
        let (code, shown) = match format {
            Format::Text => {
                let text: String = String::from_utf8_lossy(bytes).chars().take(SHOWN).collect();
                (code::TEXT, format!("{text:?} is not of type"))
            }
            Format::Binary => (code::BINARY, format!("{} bytes are not the binary form of type", bytes.len())),
        };
        Refusal::new(code, format!("invalid value for parameter ${number}: {shown} {name}{arrays}"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::EPOCH_MICROS;
    use crate::types::Base;

    fn read(base: Base, text: &str) -> Result<ScalarValue, Refusal> {
        value(1, base.one(), Format::Text, Some(&Bytes::copy_from_slice(text.as_bytes())))
    }

    #[test]
    fn texts_are_read() {
        assert_eq!(read(Base::Int4, " 7 "), Ok(ScalarValue::Int64(Some(7))));
        assert_eq!(read(Base::Bool, "t"), Ok(ScalarValue::Boolean(Some(true))));
        assert_eq!(read(Base::Numeric, "-1.50"), Ok(ScalarValue::Decimal128(Some(-150), 3, 2)));
        assert_eq!(read(Base::Numeric, "0.001"), Ok(ScalarValue::Decimal128(Some(1), 3, 3)));
        assert_eq!(read(Base::Bytea, "\\x00ff"), Ok(ScalarValue::Binary(Some(vec![0, 255]))));
        assert_eq!(read(Base::Bytea, "a\\000\\\\"), Ok(ScalarValue::Binary(Some(vec![b'a', 0, b'\\']))));
        assert_eq!(read(Base::Date, "1970-01-02"), Ok(ScalarValue::Date32(Some(1))));
        let moment = |micros| Ok(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
        for text in
            ["1970-01-01 00:00:01+00", "1970-01-01T00:00:01Z", "1970-01-01 01:00:01+01:00", "1970-01-01 00:00:01"]
        {
            assert_eq!(read(Base::TimestampTz, text), moment(1_000_000), "{text}");
        }
        for (base, wrong) in [
            (Base::Int8, "x"),
            (Base::Bool, "maybe"),
            (Base::TimestampTz, "soon"),
            (Base::Bytea, "\\x0"),
            (Base::Numeric, "1.2.3"),
            (Base::Numeric, ".-5"),
            (Base::Interval, "1 fortnight"),
        ] {
            let refusal = read(base, wrong).unwrap_err();
            assert_eq!(refusal.code, "22P02");
            assert!(refusal.message.contains("$1"), "{}", refusal.message);
        }
    }

    #[test]
    fn arrays_are_read() {
        let of = |text: &str| arrays::of_text(Base::Text, text).map(|list| list.to_string());
        assert_eq!(of("{a,\"b,c\",NULL}").unwrap(), "[a, b,c, ]");
        assert_eq!(of("{}").unwrap(), "[]");
        assert_eq!(of("{{a}}"), None);
        let bytes =
            Bytes::from_static(b"\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x02\0\0\0\x01\0\0\0\x04\0\0\0\x05\xff\xff\xff\xff");
        assert_eq!(arrays::of_binary(Base::Int4, &bytes).unwrap().to_string(), "[5, ]");
    }

    #[test]
    fn binary_values_are_read() {
        let read = |base: Base, bytes: &'static [u8]| binary::value(base, &Bytes::from_static(bytes));
        assert_eq!(read(Base::Int2, b"\0\x07"), Some(ScalarValue::Int64(Some(7))));
        assert_eq!(read(Base::Int2, b"\0\x07\0"), None);
        let start = ScalarValue::TimestampMicrosecond(Some(EPOCH_MICROS), Some("UTC".into()));
        assert_eq!(read(Base::TimestampTz, &[0; 8]), Some(start));
        assert_eq!(read(Base::Uuid, &[0x11; 16]).unwrap().to_string(), "11111111-1111-1111-1111-111111111111");
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), oid in 0..4_000_u32, is_text in any::<bool>()) {
            if let Some(kind) = PgType::of_oid(oid) {
                let format = if is_text { Format::Text } else { Format::Binary };
                let _ = value(1, kind, format, Some(&Bytes::from(bytes)));
            }
        }
    }
}
