//! Types of a file in the words that messages use: those of a job file where it has them.

use arrow::datatypes::{DataType, FieldRef, TimeUnit};

/// A type in plain words, such as `float64`, `list of text` or `duration in milliseconds`.
pub(crate) fn type_words(data_type: &DataType) -> String {
    use DataType as D;
    match data_type {
        D::Null => "no values".to_owned(),
        D::Boolean => "bool".to_owned(),
        D::Utf8 | D::LargeUtf8 | D::Utf8View => "text".to_owned(),
        D::Binary | D::LargeBinary | D::BinaryView => "bytes".to_owned(),
        D::FixedSizeBinary(width) => format!("bytes({width})"),
        D::Decimal32(digits, scale)
        | D::Decimal64(digits, scale)
        | D::Decimal128(digits, scale)
        | D::Decimal256(digits, scale) => format!("decimal({digits},{scale})"),
        D::Date32 | D::Date64 => "date".to_owned(),
        D::Timestamp(..) => "timestamp".to_owned(),
        D::Time32(_) | D::Time64(_) => "time of day".to_owned(),
        D::Duration(unit) => format!("duration in {}", unit_words(*unit)),
        D::Interval(_) => "interval".to_owned(),
        D::Dictionary(_, values) => type_words(values),
        D::RunEndEncoded(_, values) => type_words(values.data_type()),
        D::List(item) | D::LargeList(item) | D::ListView(item) | D::LargeListView(item) | D::FixedSizeList(item, _) => {
            format!("list of {}", type_words(item.data_type()))
        }
        D::Map(entries, _) => format!("map of {}", map_value(entries).map_or("values".to_owned(), type_words)),
        D::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("struct of {}", names.join(", "))
        }
        D::Union(fields, _) => {
            let types: Vec<String> = fields.iter().map(|(_, field)| field.data_type()).map(union_words).collect();
            format!("union of {}", types.join(", "))
        }
        // Integers and floats: their names are those of a job file.
        number => number.to_string().to_lowercase(),
    }
}

/// The unit of a duration, in the plural.
pub(crate) fn unit_words(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

/// The type of the values of a map, whose entries are structs of a key and a value.
fn map_value(entries: &FieldRef) -> Option<&DataType> {
    match entries.data_type() {
        DataType::Struct(fields) => fields.get(1).map(|value| value.data_type()),
        _ => None,
    }
}

fn union_words(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "null".to_owned(),
        other => type_words(other),
    }
}
