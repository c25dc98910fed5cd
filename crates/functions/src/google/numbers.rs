//! Arithmetic whose failures are errors or null, and functions of floats.

use crate::google::function::Takes::{Any, Float, Floats, Int};
use crate::google::function::{Definition, Gives};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("divide", &[Float, Float], Gives::Float, divide),
    Definition::new("ieee_divide", &[Float, Float], Gives::Float, ieee_divide),
    Definition::new("safe_divide", &[Float, Float], Gives::Float, safe_divide),
    Definition::new("div", &[Int, Int], Gives::Int, div),
    Definition::new("is_inf", &[Float], Gives::Bool, is_inf),
    Definition::new("is_nan", &[Float], Gives::Bool, is_nan),
    // `CAST(value AS INT64)`.
    Definition::new("cast_int64", &[Any], Gives::Int, cast_int64),
    Definition::new("bit_count", &[Int], Gives::Int, bit_count),
    Definition::new("range_bucket", &[Float, Floats], Gives::Int, range_bucket),
    Definition::new("generate_array", &[Int, Int, Int], Gives::Ints, generate_array).with_arguments(2, 3),
    Definition::new("coth", &[Float], Gives::Float, coth),
    Definition::new("csc", &[Float], Gives::Float, csc),
    Definition::new("csch", &[Float], Gives::Float, csch),
    Definition::new("sec", &[Float], Gives::Float, sec),
    Definition::new("sech", &[Float], Gives::Float, sech),
    Definition::new("cosine_distance", &[Floats, Floats], Gives::Float, cosine_distance),
    Definition::new("euclidean_distance", &[Floats, Floats], Gives::Float, euclidean_distance),
    Definition::new("dot_product", &[Floats, Floats], Gives::Float, dot_product),
    Definition::new("safe_add", &[Int, Int], Gives::Int, safe_add),
    Definition::new("safe_subtract", &[Int, Int], Gives::Int, safe_subtract),
    Definition::new("safe_multiply", &[Int, Int], Gives::Int, safe_multiply),
    Definition::new("safe_negate", &[Int], Gives::Int, safe_negate),
];

/// Most items of `GENERATE_ARRAY`.
const MOST_ITEMS: i64 = 1 << 20;

type Row<'a> = Result<Value<'a>, String>;

fn finite<'a>(value: f64, of: &[Value<'_>]) -> Row<'a> {
    if value.is_finite() || of.iter().any(|value| !value.as_float().is_finite()) {
        return Ok(Value::Float(value));
    }
    Err("the result is too large for FLOAT64".to_owned())
}

fn divide<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    if right.as_float() == 0.0 {
        return Err("division by zero: SAFE_DIVIDE gives NULL, IEEE_DIVIDE infinity".to_owned());
    }
    finite(left.as_float() / right.as_float(), args)
}

fn ieee_divide<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    Ok(Value::Float(left.as_float() / right.as_float()))
}

fn safe_divide<'a>(args: &[Value<'a>]) -> Row<'a> {
    Ok(divide(args).unwrap_or(Value::Null))
}

fn div<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    let quotient = left.as_int().checked_div(right.as_int());
    quotient.map(Value::Int).ok_or_else(|| "division by zero, or a result beyond INT64".to_owned())
}

fn or_null<'a>(value: Option<i64>) -> Row<'a> {
    Ok(value.map_or(Value::Null, Value::Int))
}

fn safe_add<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    or_null(left.as_int().checked_add(right.as_int()))
}

fn safe_subtract<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    or_null(left.as_int().checked_sub(right.as_int()))
}

fn safe_multiply<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [left, right] = args else { return Ok(Value::Null) };
    or_null(left.as_int().checked_mul(right.as_int()))
}

fn safe_negate<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    or_null(value.as_int().checked_neg())
}

fn is_inf<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(value.as_float().is_infinite()))
}

fn is_nan<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(value.as_float().is_nan()))
}

fn cast_int64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    match value {
        Value::Int(value) => Ok(Value::Int(*value)),
        Value::Bool(value) => Ok(Value::Int(i64::from(*value))),
        Value::Float(value) => {
            // Half away from zero. 2^63 is the first float beyond.
            let rounded = value.round();
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded);
            if fits { Ok(Value::Int(rounded as i64)) } else { Err(format!("{value} does not fit into INT64")) }
        }
        Value::Text(text) => whole(text).map(Value::Int).ok_or_else(|| format!("'{text}' is no INT64")),
        Value::Bytes(_) => {
            Err("bytes are no number: TO_INT64 reads 8 bytes, CAST(CAST(.. AS STRING) AS INT64) text".to_owned())
        }
        _ => Err("this type has no INT64".to_owned()),
    }
}

/// A whole number in decimal or, after `0x`, in hexadecimal digits.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => {
            let value = i128::from(u64::from_str_radix(digits, 16).ok()?);
            i64::try_from(if is_negative { -value } else { value }).ok()
        }
        None => text.parse().ok(),
    }
}

fn bit_count<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::Int(i64::from(value.as_int().count_ones())))
}

fn range_bucket<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, bounds] = args else { return Ok(Value::Null) };
    let bounds = bounds.as_list();
    let is_sorted = bounds.windows(2).all(|pair| match pair {
        [one, other] => one.as_float() <= other.as_float(),
        _ => true,
    });
    if !is_sorted {
        return Err("the bounds must ascend".to_owned());
    }
    Ok(Value::Int(bounds.iter().filter(|bound| bound.as_float() <= value.as_float()).count() as i64))
}

fn generate_array<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [start, end, rest @ ..] = args else { return Ok(Value::Null) };
    let (start, end, step) = (start.as_int(), end.as_int(), rest.first().map_or(1, Value::as_int));
    Ok(Value::List(steps(start, end, step)?.into_iter().map(Value::Int).collect()))
}

/// The numbers from `start` to `end`, both included.
///
/// # Errors
/// If they are too many, or the step is 0.
pub(crate) fn steps(start: i64, end: i64, step: i64) -> Result<Vec<i64>, String> {
    if step == 0 {
        return Err("the step must not be 0".to_owned());
    }
    let count = (i128::from(end) - i128::from(start)) / i128::from(step);
    if (end > start) != (step > 0) && end != start {
        return Ok(Vec::new());
    }
    if count > i128::from(MOST_ITEMS) {
        return Err(format!("the array has more than {MOST_ITEMS} items"));
    }
    Ok((0..=count as i64).map(|at| start + at * step).collect())
}

/// One over a function of an angle, which must not be 0.
fn reciprocal<'a>(args: &[Value<'a>], of: fn(f64) -> f64) -> Row<'a> {
    let [angle] = args else { return Ok(Value::Null) };
    match of(angle.as_float()) {
        0.0 => Err("division by zero".to_owned()),
        value => Ok(Value::Float(1.0 / value)),
    }
}

fn coth<'a>(args: &[Value<'a>]) -> Row<'a> {
    reciprocal(args, f64::tanh)
}

fn csc<'a>(args: &[Value<'a>]) -> Row<'a> {
    reciprocal(args, f64::sin)
}

fn csch<'a>(args: &[Value<'a>]) -> Row<'a> {
    reciprocal(args, f64::sinh)
}

fn sec<'a>(args: &[Value<'a>]) -> Row<'a> {
    reciprocal(args, f64::cos)
}

fn sech<'a>(args: &[Value<'a>]) -> Row<'a> {
    reciprocal(args, f64::cosh)
}

/// The numbers of two vectors of one length.
fn pairs(args: &[Value<'_>]) -> Result<Vec<(f64, f64)>, String> {
    let [one, other] = args else { return Ok(Vec::new()) };
    let (one, other) = (one.as_list(), other.as_list());
    if one.len() != other.len() {
        return Err(format!("the vectors have {} and {} numbers", one.len(), other.len()));
    }
    if one.iter().chain(other).any(|value| *value == Value::Null) {
        return Err("a vector has no NULL".to_owned());
    }
    Ok(one.iter().map(Value::as_float).zip(other.iter().map(Value::as_float)).collect())
}

fn cosine_distance<'a>(args: &[Value<'a>]) -> Row<'a> {
    let pairs = pairs(args)?;
    let dot: f64 = pairs.iter().map(|(one, other)| one * other).sum();
    let one: f64 = pairs.iter().map(|(one, _)| one * one).sum();
    let other: f64 = pairs.iter().map(|(_, other)| other * other).sum();
    if one == 0.0 || other == 0.0 {
        return Err("a vector of zeroes has no direction".to_owned());
    }
    Ok(Value::Float(1.0 - dot / (one.sqrt() * other.sqrt())))
}

fn euclidean_distance<'a>(args: &[Value<'a>]) -> Row<'a> {
    let squares: f64 = pairs(args)?.iter().map(|(one, other)| (one - other) * (one - other)).sum();
    Ok(Value::Float(squares.sqrt()))
}

fn dot_product<'a>(args: &[Value<'a>]) -> Row<'a> {
    Ok(Value::Float(pairs(args)?.iter().map(|(one, other)| one * other).sum()))
}
