//! Reading only records that one column's values let pass gives those that a filter of everything gives.

use std::ops::Bound;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use proptest::prelude::*;
use tidetable_layout::{ColumnRef, Projection};

use super::generate::{self, Random};
use super::{open, spell, write};
use crate::codec::value_range::ValueRange;
use crate::group::RecordFilter;
use crate::options::WriteOptions;
use crate::stats::Scalar;

/// Keeps records by their number, whatever their values.
#[derive(Debug)]
struct Every {
    column: ColumnRef,
    step: usize,
    first: usize,
}

impl RecordFilter for Every {
    fn column(&self) -> ColumnRef {
        self.column
    }

    fn keep(&self, values: &ArrayRef) -> BooleanBuffer {
        BooleanBuffer::collect_bool(values.len(), |at| at % self.step == self.first)
    }

    fn may_keep(&self, _: (Scalar, Scalar)) -> bool {
        true
    }
}

/// Keeps records whose value is in a range.
#[derive(Debug)]
struct Within {
    column: ColumnRef,
    range: ValueRange,
}

impl RecordFilter for Within {
    fn column(&self) -> ColumnRef {
        self.column
    }

    fn range(&self) -> Option<ValueRange> {
        Some(self.range)
    }

    fn keep(&self, values: &ArrayRef) -> BooleanBuffer {
        self.range.mask(values).unwrap()
    }

    fn may_keep(&self, ends: (Scalar, Scalar)) -> bool {
        self.range.overlaps(ends)
    }
}

/// The range between two of the values of a column, of which it may lack either; `None` for columns of other types.
fn some_range(values: &ArrayRef, random: &mut Random) -> Option<ValueRange> {
    let present: Vec<usize> = (0..values.len()).filter(|at| values.is_valid(*at)).collect();
    let mut end = || present.get(random.below(present.len().max(1) as u64) as usize).copied();
    let (one, other) = (end()?, end()?);
    if let Some(floats) = values.as_primitive_opt::<Float64Type>() {
        return Some(ValueRange::floats(Bound::Included(floats.value(one)), Bound::Excluded(floats.value(other))));
    }
    let place = |at: usize| -> Option<i128> {
        if let Some(values) = values.as_primitive_opt::<Decimal128Type>() {
            return Some(values.value(at));
        }
        if let Some(values) = values.as_primitive_opt::<UInt64Type>() {
            return Some(values.value(at).into());
        }
        let values = cast(values, &DataType::Int64)
            .ok()
            .filter(|_| values.data_type().is_temporal() || values.data_type().is_integer())?;
        Some(values.as_primitive::<Int64Type>().value(at).into())
    };
    let (one, other) = (place(one)?, place(other)?);
    Some(ValueRange::integers(one.min(other), one.max(other)))
}

fn check(seed: u64, rows: usize) {
    let mut random = Random(seed);
    let schema = generate::schema(&mut random);
    let block = generate::block(&schema, rows, &mut random);
    let options = WriteOptions::new(1);
    let reader = open(&write(&schema, &block, std::slice::from_ref(&(0..block.keys.len())), &options).0);
    let all = Projection::all(&schema);
    for (at, group) in schema.groups.iter().enumerate() {
        for column in 0..group.columns.len() {
            let step = 1 + random.below(40) as usize;
            let every =
                Every { column: ColumnRef { group: at, column }, step, first: random.below(step as u64) as usize };
            let rows = random.below(3) as usize..block.keys.len();
            let full = reader.stripe(0).unwrap().read(rows.clone(), &all).unwrap();
            let values = full.groups[at].as_ref().unwrap().columns[column].clone().unwrap();
            let within =
                some_range(&values, &mut random).map(|range| Within { column: ColumnRef { group: at, column }, range });
            let filters: [Option<&dyn RecordFilter>; 2] = [Some(&every), within.as_ref().map(|within| within as _)];
            for keep in filters.into_iter().flatten() {
                let mut passes = keep.keep(&values).iter().collect::<Vec<_>>().into_iter();
                let mut expected = spell(&full, 0..rows.len());
                let kept: usize = expected
                    .iter_mut()
                    .map(|(_, groups)| {
                        let group = groups[at].as_mut().unwrap();
                        group.retain(|_| passes.next().unwrap());
                        group.len()
                    })
                    .sum();
                // Rows without records stay where all records pass.
                if kept < values.len() {
                    expected.retain(|(_, groups)| !groups[at].as_ref().unwrap().is_empty());
                }
                let found = reader.stripe(0).unwrap().into_filtered(rows.clone(), &all, keep).unwrap();
                let found = found.map_or(Vec::new(), |block| spell(&block, 0..block.keys.len()));
                if kept == 0 {
                    assert!(found.is_empty(), "{keep:?}: {found:?}");
                } else {
                    assert_eq!(found, expected, "{keep:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn kept_records_are_those_of_a_filter(seed in any::<u64>(), rows in 4usize..60) {
        check(seed, rows);
    }
}
