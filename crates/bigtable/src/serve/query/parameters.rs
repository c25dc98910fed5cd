//! Parameters of queries: `@name` in the text, typed when the query is prepared, with values when it is executed.

use std::collections::HashMap;

use arrow::array::ListArray;
use arrow::datatypes::{DataType, FieldRef};
use prost_types::Timestamp;
use tidetable_layout::time::days_from_civil;
use tidetable_sql::ScalarValue;

use crate::proto::data::value::Kind;
use crate::proto::data::{Type, Value};
use crate::proto::dates::Date;
use crate::serve::query::types::parameter_type;
use crate::serve::refusal::Refusal;

const MICROS: i64 = 1_000_000;

/// Names and values of parameters.
pub(super) type Parameters = Vec<(String, ScalarValue)>;

/// A value for each parameter, of its type: for the columns of a query only. Nulls are refused in some places, such as options
/// of views.
///
/// # Errors
/// If a parameter cannot have its type.
pub(super) fn samples(types: &HashMap<String, Type>) -> Result<Parameters, Refusal> {
    types.iter().map(|(name, kind)| Ok((name.clone(), sample(name, &parameter_type(name, kind)?)?))).collect()
}

fn sample(name: &str, kind: &DataType) -> Result<ScalarValue, Refusal> {
    match kind {
        DataType::Binary => Ok(ScalarValue::Binary(Some(Vec::new()))),
        DataType::Utf8 => Ok(ScalarValue::Utf8(Some(String::new()))),
        DataType::List(item) => Ok(list(item, &[])),
        DataType::Boolean => Ok(ScalarValue::Boolean(Some(true))),
        DataType::Date32 => Ok(ScalarValue::Date32(Some(0))),
        DataType::Timestamp(..) => Ok(ScalarValue::TimestampMicrosecond(Some(0), Some("UTC".into()))),
        kind => ScalarValue::new_one(kind).map_err(|error| mismatch(name, kind, &error.to_string())),
    }
}

/// The values of parameters that were prepared with `types`; without, each value has its own.
///
/// # Errors
/// If values and types do not match.
pub(super) fn values(
    types: Option<&HashMap<String, Type>>,
    values: &HashMap<String, Value>,
) -> Result<Parameters, Refusal> {
    if let Some(types) = types
        && let Some(name) = types.keys().find(|name| !values.contains_key(*name))
    {
        return Err(wrong(name, "it was prepared, and has no value"));
    }

    let mut parameters = Parameters::with_capacity(values.len());
    for (name, value) in values {
        let kind = match types {
            Some(types) => types.get(name).ok_or_else(|| wrong(name, "it was not prepared"))?,
            None => value.r#type.as_ref().ok_or_else(|| wrong(name, "it has no type"))?,
        };
        let kind = parameter_type(name, kind)?;
        if let Some(own) = &value.r#type
            && parameter_type(name, own)? != kind
        {
            return Err(wrong(name, "its type is another than that it was prepared with"));
        }
        parameters.push((name.clone(), scalar(name, value, &kind)?));
    }
    Ok(parameters)
}

fn wrong(name: &str, problem: &str) -> Refusal {
    Refusal::Field { field: "params", problem: format!("{name}: {problem}") }
}

fn null(name: &str, kind: &DataType) -> Result<ScalarValue, Refusal> {
    ScalarValue::try_from(kind).map_err(|error| mismatch(name, kind, &error.to_string()))
}

fn mismatch(name: &str, kind: &DataType, said: &str) -> Refusal {
    Refusal::Field { field: "params", problem: format!("{name} is no value of type {kind}: {said}") }
}

fn scalar(name: &str, value: &Value, kind: &DataType) -> Result<ScalarValue, Refusal> {
    let Some(sent) = &value.kind else { return null(name, kind) };

    Ok(match (kind, sent) {
        (DataType::Binary, Kind::BytesValue(bytes)) => ScalarValue::Binary(Some(bytes.to_vec())),
        (DataType::Utf8, Kind::StringValue(text)) => ScalarValue::Utf8(Some(text.clone())),
        (DataType::Int64, Kind::IntValue(number)) => ScalarValue::Int64(Some(*number)),
        (DataType::Float64, Kind::FloatValue(number)) => ScalarValue::Float64(Some(*number)),
        (DataType::Float32, Kind::FloatValue(number)) => ScalarValue::Float32(Some(*number as f32)),
        (DataType::Boolean, Kind::BoolValue(value)) => ScalarValue::Boolean(Some(*value)),
        (DataType::Timestamp(..), Kind::TimestampValue(time)) => {
            let time = micros(time).ok_or_else(|| mismatch(name, kind, "it is out of range"))?;
            ScalarValue::TimestampMicrosecond(Some(time), Some("UTC".into()))
        }
        (DataType::Date32, Kind::DateValue(date)) => {
            let days = days(date).ok_or_else(|| mismatch(name, kind, "it is no date"))?;
            ScalarValue::Date32(Some(days))
        }
        (DataType::List(item), Kind::ArrayValue(array)) => {
            let items = array.values.iter().map(|value| scalar(name, value, item.data_type()));
            list(item, &items.collect::<Result<Vec<_>, _>>()?)
        }
        _ => return Err(mismatch(name, kind, "its value is of another type")),
    })
}

fn list(item: &FieldRef, items: &[ScalarValue]) -> ScalarValue {
    let list: std::sync::Arc<ListArray> = ScalarValue::new_list(items, item.data_type(), true);
    ScalarValue::List(list)
}

fn micros(time: &Timestamp) -> Option<i64> {
    time.seconds.checked_mul(MICROS)?.checked_add(i64::from(time.nanos) / 1_000)
}

fn days(date: &Date) -> Option<i32> {
    let (month, day) = (u32::try_from(date.month).ok()?, u32::try_from(date.day).ok()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    i32::try_from(days_from_civil(date.year.into(), month, day)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::data::{ArrayValue, r#type};

    fn of(kind: Kind) -> Value {
        Value { r#type: None, kind: Some(kind) }
    }

    fn int() -> Type {
        Type { kind: Some(r#type::Kind::Int64Type(r#type::Int64::default())) }
    }

    #[test]
    fn values_have_the_types_they_were_prepared_with() {
        let types = HashMap::from([("n".to_owned(), int())]);
        let given = |value: Value| values(Some(&types), &HashMap::from([("n".to_owned(), value)]));
        assert_eq!(given(of(Kind::IntValue(7))), Ok(vec![("n".to_owned(), ScalarValue::Int64(Some(7)))]));
        assert_eq!(given(Value::default()), Ok(vec![("n".to_owned(), ScalarValue::Int64(None))]));
        assert!(given(of(Kind::StringValue("7".to_owned()))).is_err());
        assert!(values(Some(&types), &HashMap::new()).is_err());
        let other = HashMap::from([("n".to_owned(), of(Kind::IntValue(1))), ("m".to_owned(), of(Kind::IntValue(1)))]);
        assert!(values(Some(&types), &other).is_err());
        // Without types, a value brings its own.
        assert!(values(None, &HashMap::from([("n".to_owned(), of(Kind::IntValue(1)))])).is_err());
        let typed = Value { r#type: Some(int()), kind: Some(Kind::IntValue(1)) };
        assert!(values(None, &HashMap::from([("n".to_owned(), typed)])).is_ok());
    }

    #[test]
    fn arrays_times_and_dates_are_parameters() {
        let item = std::sync::Arc::new(arrow::datatypes::Field::new_list_field(DataType::Int64, true));
        let array = of(Kind::ArrayValue(ArrayValue { values: vec![of(Kind::IntValue(1)), Value::default()] }));
        assert!(matches!(scalar("a", &array, &DataType::List(item)), Ok(ScalarValue::List(_))));
        let date = |year, month, day| scalar("d", &of(Kind::DateValue(Date { year, month, day })), &DataType::Date32);
        assert_eq!(date(1970, 1, 2), Ok(ScalarValue::Date32(Some(1))));
        assert!(date(1970, 13, 2).is_err() && date(1970, 0, 0).is_err());
        assert_eq!(micros(&Timestamp { seconds: -1, nanos: 999_999_000 }), Some(-1));
        assert_eq!(micros(&Timestamp { seconds: i64::MAX, nanos: 0 }), None);
    }
}
