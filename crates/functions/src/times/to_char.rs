//! `to_char` of times in their own unit. DataFusion 55.2 casts those with a zone to nanoseconds, which end in 2262.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use crate::argument_types::is_text;
use crate::overridden::{Coercion, Override, overridden};

/// DataFusion's `to_char`, of times in their own unit instead of nanoseconds.
pub(crate) fn function() -> Arc<ScalarUDF> {
    overridden(datetime::to_char(), ToChar)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar;

impl Override for ToChar {
    fn coerced(&self) -> Option<Coercion> {
        Some(coerced)
    }

    fn result(&self, _: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        Ok(None)
    }
}

fn coerced(kinds: &[DataType]) -> Result<Vec<DataType>> {
    use DataType::{Date32, Date64, Duration, Null, Time32, Time64, Timestamp, Utf8};
    let [value, format] = kinds else {
        return plan_err!("to_char takes a time and a format, as in to_char(ts, '%H:%M')");
    };
    let value = match value {
        Null => Date32,
        Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_) | Duration(_) => value.clone(),
        text if is_text(text) => Timestamp(TimeUnit::Microsecond, None),
        other => return plan_err!("to_char takes a time, not {other}"),
    };
    if !(is_text(format) || *format == Null) {
        return plan_err!("to_char takes a format as text, not {format}");
    }
    Ok(vec![value, Utf8])
}
