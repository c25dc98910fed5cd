//! A function that is defined by its arguments, its type and what it does with one row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::argument_types::{is_bytes, is_text};
use crate::google::value::{Value, build, instant, value_at};

/// Prefix of the names under which the functions are registered.
pub(crate) const PREFIX: &str = "google_";
/// Prefix of the names of the variants that give null instead of an error.
pub(crate) const SAFE_PREFIX: &str = "google_safe_prefix_";
/// Most bytes that one call for a batch may give; beyond it a query fails instead of the process.
const MOST_BATCH_BYTES: usize = 64 << 20;
/// Most bytes of one value of a function whose result may be larger than its arguments.
const MOST_VALUE_BYTES: usize = 16 << 20;
/// The problem of a function whose result would be larger.
const TOO_LARGE: &str = "the result is larger than 16 MiB";

/// # Errors
/// If a value of so many bytes is too large.
pub(crate) fn bounded(bytes: usize) -> std::result::Result<(), String> {
    if bytes > MOST_VALUE_BYTES { Err(TOO_LARGE.to_owned()) } else { Ok(()) }
}

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Any,
    Int,
    Float,
    Text,
    /// Text or bytes. If one such argument is bytes, all become bytes.
    String,
    Bytes,
    /// An instant; text is parsed as one.
    Time,
    Date,
    /// A list of text or of bytes.
    Strings,
    Ints,
    Floats,
}

/// What a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    Bool,
    Int,
    Float,
    Float32,
    Text,
    Bytes,
    Time,
    Date,
    Ints,
    Floats,
    Floats32,
    Times,
    Dates,
    /// Text, or bytes if its arguments are.
    String,
    Strings,
}

/// A function of GoogleSQL.
pub(crate) struct Definition {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Its arguments; the last repeats if there may be more than there are.
    pub(crate) takes: &'static [Takes],
    /// Fewest and most arguments.
    pub(crate) arguments: (usize, usize),
    pub(crate) gives: Gives,
    /// The result for a row; a null argument gives null without a call, unless `takes_null`.
    pub(crate) row: for<'a> fn(&[Value<'a>]) -> std::result::Result<Value<'a>, String>,
    pub(crate) takes_null: bool,
}

impl Definition {
    /// A function of arguments that are all required, and not null.
    pub(crate) const fn new(
        name: &'static str,
        takes: &'static [Takes],
        gives: Gives,
        row: for<'a> fn(&[Value<'a>]) -> std::result::Result<Value<'a>, String>,
    ) -> Self {
        Self { name, takes, arguments: (takes.len(), takes.len()), gives, row, takes_null: false }
    }

    /// The same with another count of arguments.
    pub(crate) const fn with_arguments(self, fewest: usize, most: usize) -> Self {
        Self { arguments: (fewest, most), ..self }
    }

    /// The same, called for null arguments too.
    pub(crate) const fn with_nulls(self) -> Self {
        Self { takes_null: true, ..self }
    }
}

/// The function `definition`; with `is_safe`, null where it fails.
pub(crate) fn function(definition: &'static Definition, is_safe: bool) -> Arc<ScalarUDF> {
    let prefix = if is_safe { SAFE_PREFIX } else { PREFIX };
    let registered = format!("{prefix}{}", definition.name);
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(GoogleFunction { definition, registered, is_safe, signature }))
}

struct GoogleFunction {
    definition: &'static Definition,
    registered: String,
    is_safe: bool,
    signature: Signature,
}

impl std::fmt::Debug for GoogleFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.registered)
    }
}

impl PartialEq for GoogleFunction {
    fn eq(&self, other: &Self) -> bool {
        self.registered == other.registered
    }
}

impl Eq for GoogleFunction {}

impl Hash for GoogleFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.registered.hash(state);
    }
}

impl GoogleFunction {
    /// Its name in queries.
    fn shown(&self) -> String {
        let name = self.definition.name.to_ascii_uppercase();
        if self.is_safe { format!("SAFE.{name}") } else { name }
    }

    fn taken(&self, at: usize) -> Takes {
        let takes = self.definition.takes;
        takes.get(at).or(takes.last()).copied().unwrap_or(Takes::Any)
    }

    /// The result for one row.
    fn row<'a>(&self, values: &[Value<'a>]) -> Result<Value<'a>> {
        if !self.definition.takes_null && values.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        match (self.definition.row)(values) {
            Ok(value) => Ok(value),
            Err(problem) if problem == TOO_LARGE => {
                Err(DataFusionError::ResourcesExhausted(format!("{}: {problem}", self.shown())))
            }
            Err(_) if self.is_safe => Ok(Value::Null),
            Err(problem) => exec_err!("{}: {problem}", self.shown()),
        }
    }
}

impl ScalarUDFImpl for GoogleFunction {
    fn name(&self) -> &str {
        &self.registered
    }

    /// As written in SQL: the name of the output column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{}({})", self.shown().to_ascii_lowercase(), args.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let has_bytes = kinds.iter().any(|kind| is_bytes(kind) || list_item(kind).is_some_and(is_bytes));
        let string = if has_bytes { DataType::Binary } else { DataType::Utf8 };
        let list_of = |kind: DataType| DataType::List(Arc::new(Field::new_list_field(kind, true)));
        Ok(match self.definition.gives {
            Gives::Bool => DataType::Boolean,
            Gives::Int => DataType::Int64,
            Gives::Float => DataType::Float64,
            Gives::Float32 => DataType::Float32,
            Gives::Text => DataType::Utf8,
            Gives::Bytes => DataType::Binary,
            Gives::Time => instant(),
            Gives::Date => DataType::Date32,
            Gives::Ints => list_of(DataType::Int64),
            Gives::Floats => list_of(DataType::Float64),
            Gives::Floats32 => list_of(DataType::Float32),
            Gives::Times => list_of(instant()),
            Gives::Dates => list_of(DataType::Date32),
            Gives::String => string,
            Gives::Strings => list_of(string),
        })
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let (fewest, most) = self.definition.arguments;
        if kinds.len() < fewest || kinds.len() > most {
            let wanted = match (fewest, most) {
                (fewest, usize::MAX) => format!("{fewest} or more"),
                (fewest, most) if fewest == most => fewest.to_string(),
                (fewest, most) => format!("{fewest} to {most}"),
            };
            return plan_err!("{} takes {wanted} arguments, not {}", self.shown(), kinds.len());
        }

        let is_string = |at: usize| matches!(self.taken(at), Takes::String | Takes::Strings);
        let has_bytes = kinds
            .iter()
            .enumerate()
            .any(|(at, kind)| is_string(at) && (is_bytes(kind) || list_item(kind).is_some_and(is_bytes)));

        let mut coerced = Vec::with_capacity(kinds.len());
        for (at, kind) in kinds.iter().enumerate() {
            match coerce(self.taken(at), kind, has_bytes) {
                Some(kind) => coerced.push(kind),
                None => return plan_err!("argument {} of {} cannot be {kind}", at + 1, self.shown()),
            }
        }
        Ok(coerced)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        // A constant stays one row.
        let columns: Vec<(ArrayRef, bool)> = args
            .args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
                ColumnarValue::Scalar(value) => Ok((value.to_array()?, true)),
            })
            .collect::<Result<_>>()?;

        let (mut results, mut bytes) = (Vec::with_capacity(rows), 0_usize);
        for row in 0..rows {
            let values: Vec<Value<'_>> = columns
                .iter()
                .map(|(column, is_constant)| value_at(column.as_ref(), if *is_constant { 0 } else { row }))
                .collect();
            let value = self.row(&values)?;
            bytes = bytes.saturating_add(value.bytes_held());
            if bytes > MOST_BATCH_BYTES {
                return Err(DataFusionError::ResourcesExhausted(format!(
                    "{} gives more than {MOST_BATCH_BYTES} bytes for a batch of rows",
                    self.shown()
                )));
            }
            results.push(value);
        }

        let array = build(&results, args.return_field.data_type())?;
        Ok(match are_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
            false => ColumnarValue::Array(array),
        })
    }
}

/// The type of the items of a list.
pub(crate) fn list_item(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// The type that an argument of type `kind` is converted to; `None` if it is not taken.
fn coerce(takes: Takes, kind: &DataType, has_bytes: bool) -> Option<DataType> {
    let string = if has_bytes { DataType::Binary } else { DataType::Utf8 };
    let is_null = *kind == DataType::Null;
    let list_of = |kind: DataType| DataType::List(Arc::new(Field::new_list_field(kind, true)));
    let item = list_item(kind);
    let is_item =
        |test: fn(&DataType) -> bool| is_null || item.is_some_and(|item| *item == DataType::Null || test(item));
    match takes {
        Takes::Any => Some(match kind {
            kind if kind.is_integer() => DataType::Int64,
            kind if kind.is_decimal() || *kind == DataType::Float16 => DataType::Float64,
            kind if is_text(kind) => DataType::Utf8,
            kind if is_bytes(kind) => DataType::Binary,
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            kind => kind.clone(),
        }),
        Takes::Int => (is_null || kind.is_integer()).then_some(DataType::Int64),
        Takes::Float => (is_null || kind.is_numeric()).then_some(DataType::Float64),
        Takes::Text => (is_null || is_text(kind)).then_some(DataType::Utf8),
        Takes::String => (is_null || is_text(kind) || is_bytes(kind)).then_some(string),
        Takes::Bytes => (is_null || is_text(kind) || is_bytes(kind)).then_some(DataType::Binary),
        Takes::Time => {
            let is_time = is_null || is_text(kind) || matches!(kind, DataType::Timestamp(..) | DataType::Date32);
            is_time.then(instant)
        }
        Takes::Date => (is_null || is_text(kind) || matches!(kind, DataType::Date32)).then_some(DataType::Date32),
        Takes::Strings => is_item(|item| is_text(item) || is_bytes(item)).then(|| list_of(string)),
        Takes::Ints => is_item(DataType::is_integer).then(|| list_of(DataType::Int64)),
        Takes::Floats => is_item(DataType::is_numeric).then(|| list_of(DataType::Float64)),
    }
}
