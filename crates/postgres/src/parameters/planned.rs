//! The types of Arrow with which queries are planned for parameters.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use crate::types::{Base, PgType};

/// Digits of a decimal at most.
pub(super) const MOST_DIGITS: u8 = 38;
/// Decimal places of a decimal whose value is not known yet.
const PLACES: i8 = 10;

/// The type of Arrow with which a query is planned for parameters of a type.
pub(crate) fn planned_type(kind: PgType) -> DataType {
    let one = match kind.base {
        Base::Bool => DataType::Boolean,
        Base::Int2 | Base::Int4 | Base::Int8 | Base::Oid | Base::Regproc => DataType::Int64,
        Base::Float4 => DataType::Float32,
        Base::Float8 => DataType::Float64,
        Base::Numeric => DataType::Decimal128(MOST_DIGITS, PLACES),
        Base::Bytea => DataType::Binary,
        Base::Date => DataType::Date32,
        Base::Time => DataType::Time64(TimeUnit::Microsecond),
        Base::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Base::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Base::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Utf8,
    };
    if kind.is_array { DataType::List(Arc::new(Field::new_list_field(one, true))) } else { one }
}
