//! `increase`, `rate`, `delta` and `derivative`: how much and how fast a value changes over time.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::argument_types::is_text;
use crate::series::changes::SampleFunction;
use crate::series::samples::{AllSamples, FrameSamples, list_type};

pub(super) fn functions() -> Vec<AggregateUDF> {
    let functions = [
        ("delta", SampleFunction::Delta),
        ("increase", SampleFunction::Increase),
        ("rate", SampleFunction::Rate),
        ("derivative", SampleFunction::Derivative),
    ];
    let function = |(name, function)| {
        AggregateUDF::from(OfSamples { name, function, signature: Signature::user_defined(Volatility::Immutable) })
    };
    functions.into_iter().map(function).collect()
}

/// A function of values and their times.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfSamples {
    name: &'static str,
    function: SampleFunction,
    signature: Signature,
}

impl AggregateUDFImpl for OfSamples {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name;
        let [value, time] = kinds else {
            return plan_err!("{name} takes a value and its time, as in {name}(kwh, ts)");
        };
        if !value.is_numeric() && *value != DataType::Null {
            return plan_err!("{name} takes numbers, not {value}");
        }
        let zone = match time {
            DataType::Timestamp(_, zone) => zone.clone(),
            DataType::Date32 | DataType::Date64 | DataType::Null => None,
            text if is_text(text) => None,
            other => return plan_err!("{name} takes the time of a value second, not {other}"),
        };
        Ok(vec![DataType::Float64, DataType::Timestamp(TimeUnit::Microsecond, zone)])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |part: &str, of: DataType| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, part), list_type(of), true))
        };
        Ok(vec![field("times", DataType::Int64), field("values", DataType::Float64)])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(AllSamples::new(self.function)))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(FrameSamples::new(self.function)))
    }
}
