//! Types of SQL results as Bigtable names them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};

use tidetable_sql::DUPLICATE_MARK;

use crate::proto::data::r#type::{self, Kind};
use crate::proto::data::{ColumnMetadata, ProtoSchema, ResultSetMetadata, Type, result_set_metadata};
use crate::serve::refusal::Refusal;

/// Deepest type of a parameter.
const MOST_DEPTH: usize = 8;

/// The type that values of a column are converted to before they are sent: Bigtable has one of each kind.
pub(super) fn normal(kind: &DataType) -> DataType {
    match kind {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Null => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 | DataType::Float32 => DataType::Float32,
        // There is no decimal type.
        DataType::Float64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DataType::Float64,
        DataType::Boolean => DataType::Boolean,

        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Date32 | DataType::Date64 => DataType::Date32,

        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(normal_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(normal_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(normal_field(entries), *sorted),
        DataType::Dictionary(_, value) => normal(value),
        _ => DataType::Utf8,
    }
}

fn normal_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), normal(field.data_type()), field.is_nullable()))
}

/// The name of a column as the query has it; several may have one name.
fn name(field: &Field) -> String {
    field.name().split(DUPLICATE_MARK).next().unwrap_or_default().to_owned()
}

/// The columns of a result.
pub(super) fn metadata(schema: &Schema) -> ResultSetMetadata {
    let columns = schema
        .fields()
        .iter()
        .map(|field| ColumnMetadata { name: name(field), r#type: Some(type_of(&normal(field.data_type()))) });
    let columns = columns.collect();
    ResultSetMetadata { schema: Some(result_set_metadata::Schema::ProtoSchema(ProtoSchema { columns })) }
}

/// A type that [`normal`] returns.
fn type_of(kind: &DataType) -> Type {
    let kind = match kind {
        DataType::Int64 => Kind::Int64Type(r#type::Int64::default()),
        DataType::Float32 => Kind::Float32Type(r#type::Float32 {}),
        DataType::Float64 => Kind::Float64Type(r#type::Float64 {}),
        DataType::Boolean => Kind::BoolType(r#type::Bool {}),
        DataType::Binary => Kind::BytesType(r#type::Bytes::default()),
        DataType::Timestamp(..) => Kind::TimestampType(r#type::Timestamp::default()),
        DataType::Date32 => Kind::DateType(r#type::Date {}),

        DataType::List(item) => Kind::ArrayType(Box::new(r#type::Array { element_type: boxed_type(item) })),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| r#type::r#struct::Field {
                field_name: field.name().clone(),
                r#type: Some(type_of(field.data_type())),
            });
            Kind::StructType(r#type::Struct { fields: fields.collect(), encoding: None })
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => Kind::MapType(Box::new(r#type::Map {
                key_type: fields.first().and_then(boxed_type),
                value_type: fields.get(1).and_then(boxed_type),
            })),
            _ => Kind::MapType(Box::default()),
        },
        _ => Kind::StringType(r#type::String::default()),
    };
    Type { kind: Some(kind) }
}

fn boxed_type(field: &FieldRef) -> Option<Box<Type>> {
    Some(Box::new(type_of(field.data_type())))
}

/// The type of the values of a parameter, by the type that a client declares for it.
///
/// # Errors
/// If parameters cannot have it.
pub(super) fn parameter_type(name: &str, kind: &Type) -> Result<DataType, Refusal> {
    data_type(kind, MOST_DEPTH).ok_or_else(|| Refusal::Field {
        field: "param_types",
        problem: format!(
            "parameter {name} has a type that parameters cannot have: use a scalar, or an array of scalars"
        ),
    })
}

fn data_type(kind: &Type, depth: usize) -> Option<DataType> {
    Some(match kind.kind.as_ref()? {
        Kind::BytesType(_) => DataType::Binary,
        Kind::StringType(_) => DataType::Utf8,
        Kind::Int64Type(_) => DataType::Int64,
        Kind::Float32Type(_) => DataType::Float32,
        Kind::Float64Type(_) => DataType::Float64,
        Kind::BoolType(_) => DataType::Boolean,
        Kind::TimestampType(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::DateType(_) => DataType::Date32,
        Kind::ArrayType(array) => {
            let item = data_type(array.element_type.as_deref()?, depth.checked_sub(1)?)?;
            DataType::List(Arc::new(Field::new_list_field(item, true)))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_a_name_in_bigtable() {
        let entries = Field::new(
            "entries",
            DataType::Struct(
                vec![Field::new("key", DataType::Binary, false), Field::new("value", DataType::Binary, true)].into(),
            ),
            false,
        );
        let schema = Schema::new(vec![
            Field::new("_key", DataType::BinaryView, false),
            Field::new("f", DataType::Map(Arc::new(entries), false), false),
            Field::new("n", DataType::UInt32, true),
            Field::new("d", DataType::Decimal128(9, 2), true),
            Field::new("t", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
        ]);
        let Some(result_set_metadata::Schema::ProtoSchema(found)) = metadata(&schema).schema else {
            panic!("no schema")
        };
        let kind = |at: usize| found.columns[at].r#type.clone().unwrap().kind.unwrap();
        assert!(matches!(kind(0), Kind::BytesType(_)));
        let Kind::MapType(map) = kind(1) else { panic!("no map") };
        assert!(matches!(map.value_type.unwrap().kind, Some(Kind::BytesType(_))));
        assert!(matches!(
            (kind(2), kind(3), kind(4)),
            (Kind::Int64Type(_), Kind::Float64Type(_), Kind::TimestampType(_))
        ));
    }

    #[test]
    fn parameters_are_scalars_and_arrays() {
        let of = |kind: Kind| Type { kind: Some(kind) };
        let array = |item: Type| of(Kind::ArrayType(Box::new(r#type::Array { element_type: Some(Box::new(item)) })));
        let bytes = of(Kind::BytesType(r#type::Bytes::default()));
        assert_eq!(parameter_type("p", &bytes), Ok(DataType::Binary));
        assert!(matches!(parameter_type("p", &array(bytes.clone())), Ok(DataType::List(_))));
        assert!(parameter_type("p", &of(Kind::MapType(Box::default()))).is_err());
        assert!(parameter_type("p", &Type { kind: None }).is_err());
        let deep = (0..50).fold(bytes, |inner, _| array(inner));
        assert!(parameter_type("p", &deep).is_err());
    }
}
