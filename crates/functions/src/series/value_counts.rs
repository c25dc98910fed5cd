//! `mode` and `histogram`: how often each value occurs.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, UInt64Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::series::buckets::BucketCounts;
use crate::series::pairs::comparable;
use crate::series::width_bucket;

/// `mode(value)`: the most frequent value, of several the least.
pub(super) fn mode() -> AggregateUDF {
    AggregateUDF::from(OfCounts {
        result: CountsResult::Mode,
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// `histogram(value)`: a map of the count of each value, as in DuckDB. `histogram(value, low, high, count)`: a list of the counts in
/// buckets of equal width, as in TimescaleDB.
pub(super) fn histogram() -> AggregateUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    AggregateUDF::from(OfCounts { result: CountsResult::Histogram, signature })
}

/// What is made of the counts of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CountsResult {
    Mode,
    Histogram,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfCounts {
    result: CountsResult,
    signature: Signature,
}

/// The fields of an entry of the map of counts.
fn entry_fields(value: &DataType) -> Fields {
    Fields::from(vec![Field::new("key", value.clone(), false), Field::new("value", DataType::UInt64, true)])
}

fn map_type(value: &DataType) -> DataType {
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry_fields(value)), false)), false)
}

impl AggregateUDFImpl for OfCounts {
    fn name(&self) -> &str {
        match self.result {
            CountsResult::Mode => "mode",
            CountsResult::Histogram => "histogram",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match (self.result, kinds) {
            (_, [value]) => {
                let value = match value {
                    DataType::Dictionary(_, values) => values.as_ref(),
                    value => value,
                };
                if !RowConverter::supports_fields(&[SortField::new(value.clone())]) {
                    return plan_err!("{name} takes values that can be sorted, not {value}");
                }
                Ok(vec![value.clone()])
            }
            (CountsResult::Histogram, [_, _, _, _]) => width_bucket::coerced(name, kinds),
            (CountsResult::Mode, _) => plan_err!("mode takes one value, as in mode(state)"),
            (CountsResult::Histogram, _) => plan_err!(
                "histogram takes a value, or a value, the least and greatest value of the buckets and their count, as in \
                 histogram(kwh, 0, 100, 10)"
            ),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match (self.result, kinds) {
            (CountsResult::Mode, [value]) => Ok(value.clone()),
            (CountsResult::Histogram, [value]) => Ok(map_type(value)),
            (CountsResult::Histogram, [_, _, _, _]) => Ok(BucketCounts::kind()),
            _ => internal_err!("{} has other arguments", self.name()),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |part: &str, kind: DataType| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, part), kind, true))
        };
        let list = |of: &DataType| DataType::new_list(of.clone(), true);
        match args.input_fields {
            [value] => Ok(vec![field("values", list(value.data_type())), field("counts", list(&DataType::UInt64))]),
            _ => Ok(vec![field("buckets", BucketCounts::kind())]),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match args.expr_fields {
            [value] => Ok(Box::new(ValueCounts::new(self.result, value.data_type().clone())?)),
            _ => Ok(Box::new(BucketCounts::default())),
        }
    }
}

/// How often each value occurs, by the bytes of the value in their order.
struct ValueCounts {
    result: CountsResult,
    kind: DataType,
    converter: RowConverter,
    counts: BTreeMap<Box<[u8]>, u64>,
    value_bytes: usize,
}

impl Debug for ValueCounts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueCounts").field("result", &self.result).field("values", &self.counts.len()).finish()
    }
}

impl ValueCounts {
    fn new(result: CountsResult, kind: DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(kind.clone())])?;
        Ok(Self { result, kind, converter, counts: BTreeMap::new(), value_bytes: 0 })
    }

    /// Adds the counts of values; those that are null do not count.
    fn add(&mut self, values: &ArrayRef, counts: impl Iterator<Item = u64>) -> Result<()> {
        let nulls = values.logical_nulls();
        let rows = self.converter.convert_columns(&[comparable(values)?])?;
        for (row, (value, count)) in rows.iter().zip(counts).enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            match self.counts.get_mut(value.as_ref()) {
                Some(known) => *known += count,
                None => {
                    self.value_bytes += value.as_ref().len();
                    self.counts.insert(Box::from(value.as_ref()), count);
                }
            }
        }
        Ok(())
    }

    /// The values with these bytes.
    fn values<'a>(&self, bytes: impl Iterator<Item = &'a [u8]>) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let rows: Vec<_> = bytes.map(|bytes| parser.parse(bytes)).collect();
        if rows.is_empty() {
            return Ok(new_empty_array(&self.kind));
        }
        match self.converter.convert_rows(rows)?.pop() {
            Some(values) => Ok(values),
            None => internal_err!("a value has one column"),
        }
    }

    fn value_list(&self) -> Result<ArrayRef> {
        self.values(self.counts.keys().map(AsRef::as_ref))
    }

    fn count_list(&self) -> ArrayRef {
        Arc::new(self.counts.values().copied().collect::<UInt64Array>())
    }
}

impl Accumulator for ValueCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("one argument is counted") };
        self.add(values, std::iter::repeat(1))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return internal_err!("a state of counts has two lists") };
        for (values, counts) in values.as_list::<i32>().iter().zip(counts.as_list::<i32>().iter()) {
            if let (Some(values), Some(counts)) = (values, counts) {
                self.add(&values, counts.as_primitive::<UInt64Type>().values().iter().copied())?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list =
            |array: ArrayRef| ScalarValue::List(Arc::new(SingleRowListArrayBuilder::new(array).build_list_array()));
        Ok(vec![list(self.value_list()?), list(self.count_list())])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::try_from(&match self.result {
                CountsResult::Mode => self.kind.clone(),
                CountsResult::Histogram => map_type(&self.kind),
            });
        }
        match self.result {
            CountsResult::Mode => {
                // The last of equal maxima is taken, so the order is reversed: the least value wins.
                let most = self.counts.iter().rev().max_by_key(|(_, count)| **count);
                let value = self.values(most.into_iter().map(|(bytes, _)| bytes.as_ref()))?;
                ScalarValue::try_from_array(&value, 0)
            }
            CountsResult::Histogram => {
                let entries =
                    StructArray::try_new(entry_fields(&self.kind), vec![self.value_list()?, self.count_list()], None)?;
                let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
                let offsets = OffsetBuffer::from_lengths([entries.len()]);
                Ok(ScalarValue::Map(Arc::new(MapArray::try_new(field, offsets, entries, None, false)?)))
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.len() * 2 * size_of::<(Box<[u8]>, u64)>() + self.value_bytes
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("one argument is counted") };
        let nulls = values.logical_nulls();
        let rows = self.converter.convert_columns(&[comparable(values)?])?;
        for (row, value) in rows.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            match self.counts.get_mut(value.as_ref()) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    self.value_bytes = self.value_bytes.saturating_sub(value.as_ref().len());
                    self.counts.remove(value.as_ref());
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
