//! A column of a batch in one of few types of Arrow, so that there are few ways to write values.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use crate::error::Refusal;
use crate::types::{Base, PgType};

/// The values of a column.
#[derive(Debug)]
pub(crate) enum Values {
    Null,
    Bool(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    /// Object ids of system catalogs, which have four bytes.
    Oid(Int64Array),
    Float4(Float32Array),
    Float8(Float64Array),
    Numeric(Decimal128Array),
    WideNumeric(Decimal256Array),
    Text(StringArray),
    Bytes(BinaryArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    /// With whether they are moments, which are shown in UTC.
    Timestamp(TimestampMicrosecondArray, bool),
    Interval(IntervalMonthDayNanoArray),
    /// Lists with their items.
    List(ListArray, Box<Values>, Base),
    /// Maps, structs and nested lists.
    Json(ArrayRef),
}

impl Values {
    /// The values of `array` as those of a type of PostgreSQL.
    ///
    /// # Errors
    /// If a value does not fit into that type, such as a time before 292,000 BC.
    pub(crate) fn new(array: &ArrayRef, kind: PgType) -> Result<Self, Refusal> {
        if *array.data_type() == DataType::Null {
            return Ok(Self::Null);
        }
        if kind.is_array {
            return Self::list(array, kind.base);
        }
        if kind.base == Base::Json {
            return Ok(Self::Json(Arc::clone(array)));
        }

        let target = stored_type(kind.base, array.data_type());
        let converted = if *array.data_type() == target { Arc::clone(array) } else { converted(array, &target)? };
        let of_other_type = || Refusal::internal(format!("a column of {} is not as described", array.data_type()));
        Self::of_stored(&converted, kind.base).ok_or_else(of_other_type)
    }

    /// The values of an array of the type that [`stored_type`] returns.
    fn of_stored(array: &ArrayRef, base: Base) -> Option<Self> {
        Some(match base {
            Base::Bool => Self::Bool(array.as_boolean_opt()?.clone()),
            Base::Int2 => Self::Int2(array.as_primitive_opt()?.clone()),
            Base::Int4 => Self::Int4(array.as_primitive_opt()?.clone()),
            Base::Int8 => Self::Int8(array.as_primitive_opt()?.clone()),
            Base::Oid | Base::Regproc => Self::Oid(array.as_primitive_opt()?.clone()),
            Base::Float4 => Self::Float4(array.as_primitive_opt()?.clone()),
            Base::Float8 => Self::Float8(array.as_primitive_opt()?.clone()),
            Base::Numeric => match array.data_type() {
                DataType::Decimal256(..) => Self::WideNumeric(array.as_primitive_opt()?.clone()),
                _ => Self::Numeric(array.as_primitive_opt()?.clone()),
            },
            Base::Bytea => Self::Bytes(array.as_binary_opt()?.clone()),
            Base::Date => Self::Date(array.as_primitive_opt()?.clone()),
            Base::Time => Self::Time(array.as_primitive_opt()?.clone()),
            Base::Timestamp => Self::Timestamp(array.as_primitive_opt()?.clone(), false),
            Base::TimestampTz => Self::Timestamp(array.as_primitive_opt()?.clone(), true),
            Base::Interval => Self::Interval(array.as_primitive_opt()?.clone()),
            _ => Self::Text(array.as_string_opt()?.clone()),
        })
    }

    fn list(array: &ArrayRef, base: Base) -> Result<Self, Refusal> {
        let target = match array.data_type() {
            DataType::List(_) => Arc::clone(array),
            DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
                converted(array, &DataType::List(Arc::clone(item)))?
            }
            DataType::FixedSizeList(item, _) => converted(array, &DataType::List(Arc::clone(item)))?,
            other => {
                let item = Arc::new(Field::new_list_field(other.clone(), true));
                converted(array, &DataType::List(item))?
            }
        };
        let Some(lists) = target.as_list_opt::<i32>() else {
            return Err(Refusal::internal(format!("a column of {} is no list", array.data_type())));
        };
        let items = Self::new(lists.values(), base.one())?;
        Ok(Self::List(lists.clone(), Box::new(items), base))
    }

    /// Whether the value of a row is null.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(array) => array.is_null(row),
            Self::Int2(array) => array.is_null(row),
            Self::Int4(array) => array.is_null(row),
            Self::Int8(array) | Self::Oid(array) => array.is_null(row),
            Self::Float4(array) => array.is_null(row),
            Self::Float8(array) => array.is_null(row),
            Self::Numeric(array) => array.is_null(row),
            Self::WideNumeric(array) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
            Self::Bytes(array) => array.is_null(row),
            Self::Date(array) => array.is_null(row),
            Self::Time(array) => array.is_null(row),
            Self::Timestamp(array, _) => array.is_null(row),
            Self::Interval(array) => array.is_null(row),
            Self::List(array, ..) => array.is_null(row),
            Self::Json(array) => array.is_null(row),
        }
    }
}

/// The type of Arrow that values of a type of PostgreSQL are written from.
fn stored_type(base: Base, found: &DataType) -> DataType {
    match base {
        Base::Bool => DataType::Boolean,
        Base::Int2 => DataType::Int16,
        Base::Int4 => DataType::Int32,
        Base::Int8 | Base::Oid | Base::Regproc => DataType::Int64,
        Base::Float4 => DataType::Float32,
        Base::Float8 => DataType::Float64,
        Base::Numeric => match found {
            DataType::Decimal128(..) | DataType::Decimal256(..) => found.clone(),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                DataType::Decimal128(*precision, *scale)
            }
            DataType::Dictionary(_, value) => stored_type(base, value),
            _ => DataType::Decimal128(20, 0),
        },
        Base::Bytea => DataType::Binary,
        Base::Date => DataType::Date32,
        Base::Time => DataType::Time64(TimeUnit::Microsecond),
        Base::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Base::TimestampTz => match found {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            _ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        },
        Base::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Utf8,
    }
}

fn converted(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, Refusal> {
    cast(array, target).map_err(|error| Refusal::out_of_range(error.to_string()))
}
