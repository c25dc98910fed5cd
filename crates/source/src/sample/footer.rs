//! The columns of a file that has them with their types.

use arrow::datatypes::{DataType, Fields, Schema, UnionFields};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::columnar::{FileColumn, type_words, unit_words};
use crate::json::is_id;
use crate::sample::times::named_so;
use crate::spec::ColumnSpec;

/// A type of columns of a file that no job file has, such as a duration or a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusualType {
    /// What it is called, such as `map of text`.
    pub words: String,
    /// What its values are read as, such as `text in JSON`.
    pub read_as: String,
    /// Whether a value consists of others, so that it identifies nothing.
    pub is_nested: bool,
}

/// The columns as a job file declares them.
#[derive(Debug, Default)]
pub(super) struct TypedColumns {
    pub columns: Vec<ColumnSpec>,
    /// The names of columns that cannot be read, with their types.
    pub left_out: Vec<String>,
    /// Columns whose type no job file has, by name.
    pub unusual: Vec<(String, UnusualType)>,
}

/// The columns that can be read, and those that cannot.
pub(super) fn columns(found: &[FileColumn], zone: Option<Tz>) -> TypedColumns {
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
            None => typed.left_out.push(format!("{} ({})", column.name, type_words(&column.data_type))),
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
        _ if is_nested => "text in JSON".to_owned(),
        _ => return None,
    };
    Some(UnusualType { words: type_words(from), read_as, is_nested })
}

/// The lists whose elements are most likely events: the first list of structs that are samples, and that inside of it; or
/// the lists of single values beside one of times.
pub(super) fn likely_lists(schema: &Schema) -> Vec<String> {
    match first_list(schema.fields(), "", Scalars::of(schema.fields(), false)) {
        Some(list) => vec![list],
        None => lists_of_one_time(schema.fields(), "").unwrap_or_default(),
    }
}

/// What the single values of a record, or of an element of a list, are.
#[derive(Debug, Default, Clone, Copy)]
struct Scalars {
    are_there: bool,
    has_time: bool,
    has_measure: bool,
}

impl Scalars {
    /// Those of `fields`; with those of lists inside of them if `with_lists`.
    fn of(fields: &Fields, with_lists: bool) -> Self {
        let mut all = Self::default();
        for field in fields {
            let inner = match field.data_type() {
                DataType::Struct(children) => Self::of(children, with_lists),
                DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
                    DataType::Struct(children) if with_lists => Self::of(children, with_lists),
                    _ => continue,
                },
                other => {
                    let is_time = other.is_temporal() || named_so(field.name());
                    let is_number = other.is_numeric();
                    Self {
                        are_there: true,
                        has_time: is_time,
                        has_measure: is_number && !is_time && !is_id(field.name()),
                    }
                }
            };
            all.are_there |= inner.are_there;
            all.has_time |= inner.has_time;
            all.has_measure |= inner.has_measure;
        }
        all
    }

    /// Whether the elements of a list in a record with these values are samples: they have a time, or measured values that
    /// the record itself lacks.
    fn leave_samples_to(self, elements: Self) -> bool {
        elements.has_time || !self.are_there || elements.has_measure && !self.has_measure
    }
}

/// The paths of lists that lie side by side, one of them of times; `prefix` leads to `fields`.
fn lists_of_one_time(fields: &Fields, prefix: &str) -> Option<Vec<String>> {
    let mut lists = Vec::new();
    let mut has_time = false;
    for field in fields {
        let (DataType::List(item) | DataType::LargeList(item)) = field.data_type() else { continue };
        if kind(item.data_type()).is_some() {
            lists.push(format!("{prefix}{}", field.name()));
            let is_number = item.data_type().is_integer() || matches!(item.data_type(), DataType::Float64);
            has_time |= matches!(item.data_type(), DataType::Timestamp(..)) || is_number && named_so(field.name());
        }
    }
    if has_time && lists.len() > 1 {
        return Some(lists);
    }

    fields.iter().find_map(|field| match field.data_type() {
        DataType::Struct(children) => lists_of_one_time(children, &format!("{prefix}{}.", field.name())),
        _ => None,
    })
}

/// The path of the first list of structs in `fields` that are samples of a record with `own` values, and inside of its
/// elements; `prefix` leads to them.
fn first_list(fields: &Fields, prefix: &str, own: Scalars) -> Option<String> {
    fields.iter().find_map(|field| {
        let path = format!("{prefix}{}", field.name());
        match field.data_type() {
            DataType::Struct(children) => first_list(children, &format!("{path}."), own),
            DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
                DataType::Struct(children) if own.leave_samples_to(Scalars::of(children, true)) => {
                    let inner = first_list(children, &format!("{path}."), Scalars::of(children, false));
                    Some(inner.unwrap_or(path))
                }
                _ => None,
            },
            _ => None,
        }
    })
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
