//! The columns of a result as clients see them.

use arrow::datatypes::{DataType, Field, Schema};
use tidetable_sql::DUPLICATE_MARK;

use crate::types::pg_type::{Base, PgType};

/// Key of a field's metadata that names its type in PostgreSQL, such as `oid`: system catalogs have types that tables lack.
pub(crate) const TYPE_KEY: &str = "postgres_type";

/// No modifier of a type.
const NO_MODIFIER: i32 = -1;
/// What PostgreSQL adds to precision and scale in the modifier of `numeric`.
const NUMERIC_HEADER: i32 = 4;
/// Digits of a number in a `numeric` modifier at most.
const MOST_DIGITS: u8 = 76;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: PgType,
    /// Precision and scale of `numeric`, as `pg_attribute.atttypmod` has them; -1 for none.
    pub(crate) modifier: i32,
}

/// The columns of a result.
pub(crate) fn columns(schema: &Schema) -> Vec<Column> {
    schema.fields().iter().map(|field| column(field)).collect()
}

fn column(field: &Field) -> Column {
    let named = field.metadata().get(TYPE_KEY).and_then(|name| PgType::of_name(name));
    let kind = named.unwrap_or_else(|| kind_of(field.data_type()));
    Column { name: message_name(field.name()), kind, modifier: modifier(field.data_type()) }
}

/// A name as the query has it, where several may have one, and without zero bytes, which end names in messages.
fn message_name(name: &str) -> String {
    name.split(DUPLICATE_MARK).next().unwrap_or_default().replace('\0', "")
}

/// The type of PostgreSQL that has the values of a type of Arrow.
pub(crate) fn kind_of(kind: &DataType) -> PgType {
    match kind {
        DataType::Boolean => Base::Bool.one(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Base::Int2.one(),
        DataType::Int32 | DataType::UInt16 => Base::Int4.one(),
        DataType::Int64 | DataType::UInt32 => Base::Int8.one(),
        // No integer of PostgreSQL has all values of it.
        DataType::UInt64 => Base::Numeric.one(),
        DataType::Float16 | DataType::Float32 => Base::Float4.one(),
        DataType::Float64 => Base::Float8.one(),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            Base::Numeric.one()
        }

        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Base::Bytea.one()
        }
        DataType::Date32 | DataType::Date64 => Base::Date.one(),
        DataType::Timestamp(_, Some(_)) => Base::TimestampTz.one(),
        DataType::Timestamp(_, None) => Base::Timestamp.one(),
        DataType::Time32(_) | DataType::Time64(_) => Base::Time.one(),
        DataType::Interval(_) | DataType::Duration(_) => Base::Interval.one(),

        DataType::Dictionary(_, value) => kind_of(value),
        DataType::RunEndEncoded(_, values) => kind_of(values.data_type()),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => match kind_of(item.data_type()) {
            // Arrays of arrays must be rectangular in PostgreSQL, and lists are not.
            PgType { is_array: true, .. } | PgType { base: Base::Json, .. } => Base::Json.one(),
            item => item.base.array(),
        },
        DataType::Map(..) | DataType::Struct(_) | DataType::Union(..) => Base::Json.one(),
        _ => Base::Text.one(),
    }
}

fn modifier(kind: &DataType) -> i32 {
    match kind {
        DataType::UInt64 => numeric_modifier(20, 0),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => numeric_modifier(*precision, *scale),
        _ => NO_MODIFIER,
    }
}

fn numeric_modifier(precision: u8, scale: i8) -> i32 {
    if scale < 0 || precision > MOST_DIGITS {
        return NO_MODIFIER;
    }
    (i32::from(precision) << 16 | i32::from(scale)) + NUMERIC_HEADER
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn types_have_the_one_that_holds_all_their_values() {
        let zone = || Some("UTC".into());
        let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
        for (kind, expected) in [
            (DataType::UInt8, Base::Int2.one()),
            (DataType::UInt16, Base::Int4.one()),
            (DataType::UInt32, Base::Int8.one()),
            (DataType::UInt64, Base::Numeric.one()),
            (DataType::Decimal256(50, 2), Base::Numeric.one()),
            (DataType::Utf8View, Base::Text.one()),
            (DataType::Timestamp(TimeUnit::Microsecond, zone()), Base::TimestampTz.one()),
            (DataType::Timestamp(TimeUnit::Nanosecond, None), Base::Timestamp.one()),
            (list(DataType::Int64), Base::Int8.array()),
            (list(list(DataType::Int64)), Base::Json.one()),
            (DataType::Struct(vec![Field::new("a", DataType::Int8, true)].into()), Base::Json.one()),
            (DataType::Null, Base::Text.one()),
        ] {
            assert_eq!(kind_of(&kind), expected, "{kind}");
        }
    }

    #[test]
    fn decimals_tell_precision_and_scale() {
        let field = Field::new("price", DataType::Decimal128(10, 2), true);
        assert_eq!(column(&field).modifier, (10 << 16 | 2) + 4);
        assert_eq!(modifier(&DataType::Int64), -1);
        assert_eq!(modifier(&DataType::Decimal128(10, -2)), -1);
    }
}
