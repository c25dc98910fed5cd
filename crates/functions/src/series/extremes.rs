//! `first`, `last`, `arg_min` and `arg_max`: the value of the row with the least or the greatest key.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use crate::series::group_extremes::{BestOfAll, BestOfFrame, GroupExtremes};
use crate::series::pairs::{End, RowPairs, WordPairs};

/// Functions by name, with other names and the end that they take.
const FUNCTIONS: [(&str, &[&str], End); 4] = [
    ("first", &[], End::Least),
    ("last", &[], End::Greatest),
    ("arg_min", &["argmin", "min_by"], End::Least),
    ("arg_max", &["argmax", "max_by"], End::Greatest),
];

pub(super) fn functions() -> Vec<AggregateUDF> {
    let function = |(name, aliases, end): &(&'static str, &[&str], End)| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::from(Extreme { name, aliases, end: *end, signature })
    };
    FUNCTIONS.iter().map(function).collect()
}

/// The value of the row with the least or greatest key, of those rows that have both. As in DuckDB, except that rows with equal keys
/// are told apart by their values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    name: &'static str,
    aliases: Vec<String>,
    end: End,
    signature: Signature,
}

/// The types of value and key.
fn types<'a>(args: &'a AccumulatorArgs<'_>) -> Result<(&'a DataType, &'a DataType)> {
    match args.expr_fields {
        [value, key] => Ok((value.data_type(), key.data_type())),
        _ => internal_err!("{} has two arguments", args.name),
    }
}

/// The type that is compared for values of type `kind`.
fn plain_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::Null => DataType::Int64,
        kind => kind.clone(),
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name;
        let [value, key] = kinds else {
            return plan_err!("{name} takes a value and what it is chosen by, as in {name}(kwh, ts)");
        };
        let kinds = vec![plain_type(value), plain_type(key)];
        for kind in &kinds {
            if !RowConverter::supports_fields(&[SortField::new(kind.clone())]) {
                return plan_err!("{name} takes values that can be sorted, not {kind}");
            }
        }
        Ok(kinds)
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("{} has two arguments", self.name),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let [value, key] = args.input_fields else { return internal_err!("{} has two arguments", self.name) };
        let field = |part: &str, kind: &FieldRef| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, part), kind.data_type().clone(), true))
        };
        Ok(vec![field("value", value), field("key", key)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (value, key) = types(&args)?;
        Ok(match WordPairs::new(value, key, self.end) {
            Some(pairs) => Box::new(BestOfAll::new(pairs)),
            None => Box::new(BestOfAll::new(RowPairs::new(value, key, self.end)?)),
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (value, key) = types(&args)?;
        Ok(match WordPairs::new(value, key, self.end) {
            Some(pairs) => Box::new(BestOfFrame::new(pairs)),
            None => Box::new(BestOfFrame::new(RowPairs::new(value, key, self.end)?)),
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let (value, key) = types(&args)?;
        Ok(match WordPairs::new(value, key, self.end) {
            Some(pairs) => Box::new(GroupExtremes::new(pairs)),
            None => Box::new(GroupExtremes::new(RowPairs::new(value, key, self.end)?)),
        })
    }
}
