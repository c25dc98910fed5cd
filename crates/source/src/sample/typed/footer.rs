//! The columns of a file that has them with their types.

use arrow::datatypes::{DataType, UnionFields};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::columnar::{FileColumn, Lists, type_words, unit_words};
use crate::sample::column::UnusualType;
use crate::spec::ColumnSpec;

/// The columns as a job file declares them.
#[derive(Debug, Default)]
pub(in crate::sample) struct TypedColumns {
    pub columns: Vec<ColumnSpec>,
    /// The names of columns that cannot be read, with their types.
    pub left_out: Vec<String>,
    /// Columns whose type no job file has, by name.
    pub unusual: Vec<(String, UnusualType)>,
}

/// The columns that can be read, and those that cannot, of a file with these lists of events.
pub(in crate::sample) fn columns(found: &[FileColumn], lists: &Lists, zone: Option<Tz>) -> TypedColumns {
    let mut typed = TypedColumns::default();
    for column in found {
        match kind(&column.data_type) {
            Some(kind) => {
                let local = matches!(column.data_type, DataType::Timestamp(_, None));
                let timezone = zone.filter(|_| local);
                typed.columns.push(ColumnSpec { timezone, ..ColumnSpec::new(column.name.clone(), kind) });
                typed.unusual.extend(read_as(&column.data_type, kind).map(|read| (column.name.clone(), read)));
            }
            None if column.data_type.is_null() => {
                typed.left_out.push(format!("{} (it has no value yet: declare its type)", column.name));
            }
            None => {
                let (name, words) = (&column.name, type_words(&column.data_type));
                let way_on = match lists.is_empty() && is_list_of_structs(&column.data_type) {
                    true => format!("; `each = [\"{name}\"]` makes an event of each item"),
                    false => String::new(),
                };
                typed.left_out.push(format!("{name} ({words}{way_on})"));
            }
        }
    }
    typed
}

/// How a type is read that no job file has; `None` for others, and for times of day.
fn read_as(from: &DataType, kind: FieldType) -> Option<UnusualType> {
    let is_nested = matches!(from, DataType::Map(..) | DataType::List(_) | DataType::LargeList(_))
        || matches!(from, DataType::FixedSizeList(..));
    let read_as = match from {
        DataType::Duration(unit) => format!("the number of {}", unit_words(*unit)),
        DataType::Union(..) => kind.to_string(),
        decimal if decimal.is_decimal() && kind == FieldType::Float64 => {
            "float64, which keeps 15 to 17 digits; `text` keeps all".to_owned()
        }
        _ if is_nested => "text in JSON".to_owned(),
        _ => return None,
    };
    Some(UnusualType { words: type_words(from), read_as, is_nested })
}

/// Whether a type is a list of structs, which `each` can make events of.
fn is_list_of_structs(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::List(item) | D::LargeList(item) | D::ListView(item) | D::LargeListView(item) | D::FixedSizeList(item, _) => {
            matches!(item.data_type(), D::Struct(_))
        }
        _ => false,
    }
}

fn kind(from: &DataType) -> Option<FieldType> {
    use DataType as D;

    Some(match from {
        D::Dictionary(_, value) => kind(value)?,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => FieldType::Text,
        // Most writers without annotations mean text; the sample tells.
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => FieldType::Text,
        D::UInt64 => FieldType::UInt64,
        integer if integer.is_integer() => FieldType::Int64,
        D::Float16 | D::Float32 | D::Float64 => FieldType::Float64,
        D::Decimal32(precision, scale)
        | D::Decimal64(precision, scale)
        | D::Decimal128(precision, scale)
        | D::Decimal256(precision, scale) => {
            let scale = u8::try_from(*scale).ok().filter(|scale| scale <= precision && *precision <= 38);
            scale.map_or(FieldType::Float64, |scale| FieldType::Decimal { precision: *precision, scale })
        }
        D::Boolean => FieldType::Bool,
        D::Timestamp(..) => FieldType::Timestamp,
        D::Date32 | D::Date64 => FieldType::Date,
        D::Time32(_) | D::Time64(_) => FieldType::Text,
        D::Duration(_) => FieldType::Int64,
        D::List(item) | D::LargeList(item) | D::FixedSizeList(item, _) => flat_text(item.data_type())?,
        D::Map(entries, _) => match entries.data_type() {
            D::Struct(fields) => flat_text(fields.get(1)?.data_type())?,
            _ => return None,
        },
        D::Union(fields, _) => of_union(fields),
        _ => return None,
    })
}

/// Text, for lists and maps of single values: what has structs inside is more than a column.
fn flat_text(item: &DataType) -> Option<FieldType> {
    (!item.is_nested() || matches!(item, DataType::Union(..))).then_some(FieldType::Text)
}

/// The type that holds all alternatives of a union; null is one that any type has.
fn of_union(fields: &UnionFields) -> FieldType {
    let types = fields.iter().map(|(_, field)| field.data_type()).filter(|other| !other.is_null());
    let mut kinds: Vec<Option<FieldType>> = types.map(kind).collect();
    kinds.dedup();
    let are = |fits: fn(FieldType) -> bool| kinds.iter().all(|kind| kind.is_some_and(fits));
    match kinds.as_slice() {
        // Times of one type in two units have no common format.
        [Some(only)] if !matches!(only, FieldType::Timestamp | FieldType::Date) => *only,
        _ if are(|kind| matches!(kind, FieldType::Int64 | FieldType::UInt64)) => FieldType::Int64,
        _ if are(|kind| matches!(kind, FieldType::Int64 | FieldType::UInt64 | FieldType::Float64)) => {
            FieldType::Float64
        }
        _ => FieldType::Text,
    }
}
