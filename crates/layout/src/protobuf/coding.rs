//! The protobuf wire format of field values.
//!
//! ```text
//! field    key, value               key = varint of number << 3 | wire type
//! type 0   varint                   integers (two's complement or zigzag), bool
//! type 1   8 bytes, little-endian   fixed64, sfixed64, double
//! type 2   varint length, bytes     string, bytes, messages
//! type 5   4 bytes, little-endian   fixed32, sfixed32, float
//! ```

use arrow::datatypes::DataType;

use crate::scalar::ScalarRef;
use crate::schema::{FieldType, ProtoType};
use crate::time::SECOND;
use crate::time::calendar::Calendar;
use crate::varint::{put_varint, zigzag};

/// The wire type of length-delimited values.
pub(crate) const LENGTH: u8 = 2;
/// Seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, between which `google.protobuf.Timestamp` is defined.
const TIMESTAMPS: (i64, i64) = (-62_135_596_800, 253_402_300_799);

impl ProtoType {
    /// The protobuf type that a column of this type has by default.
    pub fn of(kind: FieldType) -> Self {
        match kind {
            FieldType::UInt64 => Self::Uint64,
            // Microseconds.
            FieldType::Int64 | FieldType::Timestamp => Self::Int64,
            FieldType::Float64 => Self::Double,
            FieldType::Bool => Self::Bool,
            // Strings are exact: a decimal keeps its scale.
            FieldType::Text | FieldType::Decimal { .. } | FieldType::Date => Self::String,
        }
    }

    /// The name of the type in a `.proto` file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Float => "float",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Sint32 => "sint32",
            Self::Sint64 => "sint64",
            Self::Fixed32 => "fixed32",
            Self::Fixed64 => "fixed64",
            Self::Sfixed32 => "sfixed32",
            Self::Sfixed64 => "sfixed64",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
        }
    }

    /// The protobuf types that a column of `kind` can have, for messages; `None` if this is one of them.
    pub(crate) fn refuses(self, kind: FieldType) -> Option<&'static str> {
        let (fits, takes) = match kind {
            FieldType::UInt64 | FieldType::Int64 => (self.range().is_some(), "an integer type"),
            FieldType::Float64 => (matches!(self, Self::Double | Self::Float), "double or float"),
            FieldType::Decimal { .. } | FieldType::Date => (self == Self::String, "string"),
            FieldType::Text => (matches!(self, Self::String | Self::Bytes), "string or bytes"),
            FieldType::Bool => (self == Self::Bool, "bool"),
            FieldType::Timestamp => {
                (matches!(self, Self::Int64 | Self::Timestamp), "int64 (microseconds) or google.protobuf.Timestamp")
            }
        };
        (!fits).then_some(takes)
    }

    /// The range of an integer type; `None` for other types.
    fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Int32 | Self::Sint32 | Self::Sfixed32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Int64 | Self::Sint64 | Self::Sfixed64 => (i64::MIN.into(), i64::MAX.into()),
            Self::Uint32 | Self::Fixed32 => (0, u32::MAX.into()),
            Self::Uint64 | Self::Fixed64 => (0, u64::MAX.into()),
            _ => return None,
        })
    }

    /// Whether the type can hold every value of a compatible Arrow column, so that no value needs a check.
    pub(crate) fn holds_all(self, kind: &DataType) -> bool {
        match kind {
            DataType::UInt64 => matches!(self, Self::Uint64 | Self::Fixed64),
            DataType::Int64 => matches!(self, Self::Int64 | Self::Sint64 | Self::Sfixed64),
            _ => !matches!(self, Self::Float | Self::Timestamp),
        }
    }

    /// Whether the type can hold a value of a compatible column.
    pub(crate) fn holds(self, scalar: ScalarRef<'_>) -> bool {
        match scalar {
            ScalarRef::UInt(value) => self.holds_integer(value.into()),
            ScalarRef::Int(value) => self.holds_integer(value.into()),
            ScalarRef::Time(time) if self == Self::Timestamp => {
                let (first, last) = TIMESTAMPS;
                (first..=last).contains(&time.div_euclid(SECOND))
            }
            // Rounding to float is accepted, overflow to infinity is not.
            ScalarRef::Float(value) if self == Self::Float => !value.is_finite() || (value as f32).is_finite(),
            _ => true,
        }
    }

    /// Whether the value is in the range of an integer type; true for other types.
    fn holds_integer(self, value: i128) -> bool {
        self.range().is_none_or(|(low, high)| (low..=high).contains(&value))
    }

    /// The wire type of values of this type.
    fn wire(self) -> u8 {
        match self {
            Self::Double | Self::Fixed64 | Self::Sfixed64 => 1,
            Self::String | Self::Bytes | Self::Timestamp => LENGTH,
            Self::Float | Self::Fixed32 | Self::Sfixed32 => 5,
            _ => 0,
        }
    }
}

/// Appends the key of a field: its number and wire type.
pub(crate) fn write_key(number: u32, wire: u8, out: &mut Vec<u8>) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire));
}

/// Appends the length of `bytes` and then `bytes`.
pub(crate) fn write_delimited(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field. Fields have explicit presence: 0 is written, an absent value is not. `scratch` is overwritten.
pub(crate) fn write_field(
    number: u32,
    kind: ProtoType,
    scalar: ScalarRef<'_>,
    calendar: &mut Calendar,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    write_key(number, kind.wire(), out);

    match (kind, scalar) {
        (ProtoType::Double, ScalarRef::Float(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (ProtoType::Float, ScalarRef::Float(value)) => out.extend_from_slice(&(value as f32).to_le_bytes()),
        (_, ScalarRef::Bool(value)) => out.push(u8::from(value)),
        (ProtoType::Timestamp, ScalarRef::Time(time)) => {
            let (seconds, micros) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
            scratch.clear();
            for (number, part) in [(1, seconds), (2, micros * 1000)] {
                // Its fields have implicit presence.
                if part != 0 {
                    write_key(number, 0, scratch);
                    put_varint(scratch, part.cast_unsigned());
                }
            }
            write_delimited(scratch, out);
        }
        (_, ScalarRef::UInt(value)) => write_integer(kind, value, out),
        (_, ScalarRef::Int(value) | ScalarRef::Time(value)) => write_integer(kind, value.cast_unsigned(), out),
        (_, ScalarRef::Text(text)) => write_delimited(text.as_bytes(), out),
        (_, scalar) => {
            scratch.clear();
            scalar.write_text(calendar, scratch);
            write_delimited(scratch, out);
        }
    }
}

/// Appends an integer in the encoding of its type.
fn write_integer(kind: ProtoType, bits: u64, out: &mut Vec<u8>) {
    match kind {
        ProtoType::Sint32 | ProtoType::Sint64 => put_varint(out, zigzag(bits.cast_signed())),
        ProtoType::Fixed32 | ProtoType::Sfixed32 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        ProtoType::Fixed64 | ProtoType::Sfixed64 => out.extend_from_slice(&bits.to_le_bytes()),
        // A negative int32 takes ten bytes, as an int64 does.
        _ => put_varint(out, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: ProtoType, scalar: ScalarRef<'_>) -> Vec<u8> {
        assert!(kind.holds(scalar));
        let mut out = Vec::new();
        write_field(1, kind, scalar, &mut Calendar::default(), &mut Vec::new(), &mut out);
        out
    }

    #[test]
    fn every_type_on_the_wire() {
        let minus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        for (kind, scalar, expected) in [
            (ProtoType::Uint64, ScalarRef::UInt(0), &[0x08, 0][..]),
            (ProtoType::Uint32, ScalarRef::UInt(300), &[0x08, 0xac, 0x02]),
            (ProtoType::Int32, ScalarRef::Int(-1), &[&[0x08][..], &minus].concat()),
            (ProtoType::Int64, ScalarRef::Int(-1), &[&[0x08][..], &minus].concat()),
            (ProtoType::Sint32, ScalarRef::Int(-1), &[0x08, 1]),
            (ProtoType::Sint64, ScalarRef::Int(i64::MIN), &[&[0x08][..], &minus].concat()),
            (ProtoType::Fixed32, ScalarRef::UInt(1), &[0x0d, 1, 0, 0, 0]),
            (ProtoType::Sfixed32, ScalarRef::Int(-2), &[0x0d, 0xfe, 0xff, 0xff, 0xff]),
            (ProtoType::Fixed64, ScalarRef::UInt(1), &[0x09, 1, 0, 0, 0, 0, 0, 0, 0]),
            (ProtoType::Sfixed64, ScalarRef::Int(-1), &[0x09, 255, 255, 255, 255, 255, 255, 255, 255]),
            (ProtoType::Bool, ScalarRef::Bool(false), &[0x08, 0]),
            (ProtoType::Double, ScalarRef::Float(1.0), &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
            (ProtoType::Float, ScalarRef::Float(1.0), &[0x0d, 0, 0, 0x80, 0x3f]),
            (ProtoType::String, ScalarRef::Text("é"), &[0x0a, 2, 0xc3, 0xa9]),
            (ProtoType::Bytes, ScalarRef::Text(""), &[0x0a, 0]),
            (ProtoType::String, ScalarRef::Decimal(60_060, 2), b"\x0a\x06600.60"),
            (ProtoType::String, ScalarRef::Date(17_562), b"\x0a\x0a2018-01-31"),
            (ProtoType::Int64, ScalarRef::Time(150), &[0x08, 0x96, 0x01]),
            (ProtoType::Timestamp, ScalarRef::Time(0), &[0x0a, 0]),
            (ProtoType::Timestamp, ScalarRef::Time(1_000_001), &[0x0a, 5, 0x08, 1, 0x10, 0xe8, 0x07]),
        ] {
            assert_eq!(field(kind, scalar), expected, "{kind:?} {scalar:?}");
        }
    }

    #[test]
    fn values_that_a_type_cannot_hold() {
        for (kind, scalar) in [
            (ProtoType::Int32, ScalarRef::Int(1 << 31)),
            (ProtoType::Sint32, ScalarRef::Int(-(1 << 31) - 1)),
            (ProtoType::Uint32, ScalarRef::UInt(1 << 32)),
            (ProtoType::Uint64, ScalarRef::Int(-1)),
            (ProtoType::Int64, ScalarRef::UInt(1 << 63)),
            (ProtoType::Float, ScalarRef::Float(1e39)),
            (ProtoType::Timestamp, ScalarRef::Time(253_402_300_800_000_000)),
        ] {
            assert!(!kind.holds(scalar), "{kind:?} {scalar:?}");
        }
        assert!(ProtoType::Float.holds(ScalarRef::Float(f64::INFINITY)));
        assert!(ProtoType::Timestamp.holds(ScalarRef::Time(-1)));
    }
}
