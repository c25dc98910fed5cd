//! Protobuf messages back to the values of their fields.

use crate::parse::value::{from_bits, read_text};
use crate::scalar::Scalar;
use crate::schema::{FieldType, MessageField, ProtoType};
use crate::time::SECOND;
use crate::varint::take_varint;

/// A value on the wire, by its wire type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
}

/// The fields of a message: number and value. `None` if the bytes are no message.
pub(super) fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Wire::Varint(take_varint(&mut bytes)?),
            1 => Wire::Eight(array(&mut bytes)?),
            2 => {
                let len = usize::try_from(take_varint(&mut bytes)?).ok()?;
                let (payload, after) = bytes.split_at_checked(len)?;
                bytes = after;
                Wire::Bytes(payload)
            }
            5 => Wire::Four(array(&mut bytes)?),
            _ => return None,
        };
        out.push((key >> 3, value));
    }
    Some(out)
}

/// The values of the fields of a message, in the order of `declared`; `kinds` are the types of their columns. A field that is
/// declared nowhere, or has another type, makes it `None`: its value would be lost.
pub(super) fn read_message(
    declared: &[MessageField],
    kinds: &[FieldType],
    bytes: &[u8],
) -> Option<Vec<Option<Scalar>>> {
    let mut out = vec![None; declared.len()];
    for (number, value) in fields(bytes)? {
        let at = declared.iter().position(|field| u64::from(field.number) == number)?;
        let (field, kind) = (declared.get(at)?, kinds.get(at)?);
        // The last one counts, as the language has it.
        *out.get_mut(at)? = Some(read_field(field.kind, *kind, value)?);
    }
    Some(out)
}

/// The value of a field of type `proto` that fills a column of type `kind`; `None` if the wire type is another.
fn read_field(proto: ProtoType, kind: FieldType, value: Wire<'_>) -> Option<Scalar> {
    match (proto, value) {
        (ProtoType::Double, Wire::Eight(bytes)) => Some(Scalar::Float64(f64::from_le_bytes(bytes))),
        (ProtoType::Float, Wire::Four(bytes)) => Some(Scalar::Float64(f32::from_le_bytes(bytes).into())),
        (
            ProtoType::Int32 | ProtoType::Int64 | ProtoType::Uint32 | ProtoType::Uint64 | ProtoType::Bool,
            Wire::Varint(bits),
        ) => from_bits(kind, bits),
        (ProtoType::Sint32 | ProtoType::Sint64, Wire::Varint(bits)) => {
            from_bits(kind, (bits >> 1) ^ (bits & 1).wrapping_neg())
        }
        (ProtoType::Fixed32, Wire::Four(bytes)) => from_bits(kind, u32::from_le_bytes(bytes).into()),
        (ProtoType::Sfixed32, Wire::Four(bytes)) => {
            from_bits(kind, i64::from(i32::from_le_bytes(bytes)).cast_unsigned())
        }
        (ProtoType::Fixed64 | ProtoType::Sfixed64, Wire::Eight(bytes)) => from_bits(kind, u64::from_le_bytes(bytes)),
        (ProtoType::String | ProtoType::Bytes, Wire::Bytes(bytes)) => read_text(kind, std::str::from_utf8(bytes).ok()?),

        (ProtoType::Timestamp, Wire::Bytes(bytes)) => {
            let (mut seconds, mut nanos) = (0_i64, 0_i64);
            for (number, value) in fields(bytes)? {
                match (number, value) {
                    (1, Wire::Varint(bits)) => seconds = bits.cast_signed(),
                    (2, Wire::Varint(bits)) => nanos = bits.cast_signed(),
                    _ => return None,
                }
            }
            Some(Scalar::Timestamp(seconds.checked_mul(SECOND)?.checked_add(nanos / 1000)?))
        }
        _ => None,
    }
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = bytes.split_at_checked(N)?;
    *bytes = after;
    array.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::coding::write_field;
    use crate::time::calendar::Calendar;

    #[test]
    fn every_type_comes_back() {
        for (proto, kind, scalar) in [
            (ProtoType::Double, FieldType::Float64, Scalar::Float64(0.1)),
            (ProtoType::Float, FieldType::Float64, Scalar::Float64(0.5)),
            (ProtoType::Int32, FieldType::Int64, Scalar::Int64(-1)),
            (ProtoType::Int64, FieldType::Int64, Scalar::Int64(i64::MIN)),
            (ProtoType::Uint32, FieldType::UInt64, Scalar::UInt64(300)),
            (ProtoType::Uint64, FieldType::UInt64, Scalar::UInt64(u64::MAX)),
            (ProtoType::Sint32, FieldType::Int64, Scalar::Int64(-7)),
            (ProtoType::Sint64, FieldType::Int64, Scalar::Int64(i64::MIN)),
            (ProtoType::Fixed32, FieldType::UInt64, Scalar::UInt64(7)),
            (ProtoType::Sfixed32, FieldType::Int64, Scalar::Int64(-2)),
            (ProtoType::Fixed64, FieldType::UInt64, Scalar::UInt64(7)),
            (ProtoType::Sfixed64, FieldType::Int64, Scalar::Int64(-2)),
            (ProtoType::Bool, FieldType::Bool, Scalar::Bool(true)),
            (ProtoType::String, FieldType::Text, Scalar::Text("é".to_owned())),
            (ProtoType::Bytes, FieldType::Text, Scalar::Text(String::new())),
            (ProtoType::String, FieldType::Decimal { precision: 9, scale: 2 }, Scalar::Decimal(60_060)),
            (ProtoType::String, FieldType::Date, Scalar::Date(17_562)),
            (ProtoType::Int64, FieldType::Timestamp, Scalar::Timestamp(150)),
            (ProtoType::Timestamp, FieldType::Timestamp, Scalar::Timestamp(-1)),
        ] {
            let mut bytes = Vec::new();
            let typed = scalar.typed(kind).unwrap();
            write_field(3, proto, typed, &mut Calendar::default(), &mut Vec::new(), &mut bytes);
            let declared = [MessageField { name: "f".to_owned(), number: 3, kind: proto }];
            assert_eq!(read_message(&declared, &[kind], &bytes), Some(vec![Some(scalar)]), "{proto:?}");
            let other = [MessageField { name: "f".to_owned(), number: 4, kind: proto }];
            assert_eq!(read_message(&other, &[kind], &bytes), None);
        }
        assert_eq!(fields(&[0x0a, 5, 1]), None);
        assert_eq!(fields(&[0x0b]), None);
    }
}
