//! Merge operators: merge cells with equal row, column and timestamp, by the kind of their aggregate family.
//!
//! Both loads and scans merge, so the result does not depend on the SSTs that hold the cells. Nulls are ignored. Sums
//! are exact: partial sums have 128 bits, and a result over 64 bits is an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, PrimitiveArray};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use tidetable_layout::block::Qualifiers;
use tidetable_layout::hll::{Sketch, SketchError};
use tidetable_layout::schema::Merge;
use tidetable_layout::{Column, Keys};

use crate::error::StoreError;
use crate::merge::place::RecordRef;

/// Handling of a sum that exceeds 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Fails with an error that names the cell.
    #[default]
    Fails,
    /// Returns any value: for callers that need the existence of cells, not their values.
    Passes,
}

/// Sets of equal cells, older first.
#[derive(Debug, Default)]
pub struct EqualCells {
    /// The cells of all sets, one set after the other.
    cells: Vec<RecordRef>,
    /// Where each set ends in `cells`.
    ends: Vec<usize>,
    /// The output record of each set, ascending.
    records: Vec<usize>,
}

impl EqualCells {
    /// Adds the set of output record `record`.
    pub fn push(&mut self, record: usize, cells: impl IntoIterator<Item = RecordRef>) {
        self.cells.extend(cells);
        self.ends.push(self.cells.len());
        self.records.push(record);
    }

    /// The output record of each set.
    pub fn records(&self) -> &[usize] {
        &self.records
    }

    /// Whether no two cells are equal, so that there is nothing to merge.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn sets(&self) -> impl Iterator<Item = &[RecordRef]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.cells[start..*end])
    }
}

/// Reason why cells could not be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MergeFault {
    Overflow,
    Sketch(SketchError),
    /// A type that no aggregate column has.
    Type,
}

/// A set that could not be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeError {
    record: usize,
    fault: MergeFault,
}

impl MergeError {
    /// The store error with row and column of the output; the caller sets the table.
    pub fn at(self, keys: &Keys, row_ends: &[u32], qualifiers: Option<&Qualifiers>, column: &Column) -> StoreError {
        let row = row_ends.partition_point(|end| *end as usize <= self.record);
        let key = if row < keys.len() { keys.get(row) } else { Vec::new() };
        let row = String::from_utf8_lossy(&key).into_owned();

        let name = qualifiers.and_then(|all| all.dictionary.get(*all.codes.get(self.record)? as usize));
        let qualifier = name.map_or(column.qualifier.as_slice(), |name| name.as_ref());
        let column = format!("{}:{}", column.family, String::from_utf8_lossy(qualifier));

        let table = String::new();
        match self.fault {
            MergeFault::Overflow => StoreError::SumOverflow { table, row, column, key },
            MergeFault::Sketch(source) => StoreError::Sketch { table, row, column, source },
            MergeFault::Type => {
                let source = SketchError::Damaged { what: "its cells are neither integers nor sketches" };
                StoreError::Sketch { table, row, column, source }
            }
        }
    }
}

/// Merges each of `sets` to one value, from the arrays of one column in several sources; null if all its cells are.
pub fn merge_cells(
    merge: Merge,
    sources: &[ArrayRef],
    sets: &EqualCells,
    overflow: Overflow,
) -> Result<ArrayRef, MergeError> {
    let wrong = MergeError { record: sets.records.first().copied().unwrap_or(0), fault: MergeFault::Type };
    match (merge, sources.first().map(|array| array.data_type())) {
        (Merge::Hll, Some(DataType::Binary)) => sketches(sources, sets),
        (Merge::Sum | Merge::Min | Merge::Max, Some(DataType::Int64)) => {
            numbers::<Int64Type>(merge, sources, sets, overflow).unwrap_or(Err(wrong))
        }
        (Merge::Sum | Merge::Min | Merge::Max, Some(DataType::UInt64)) => {
            numbers::<UInt64Type>(merge, sources, sets, overflow).unwrap_or(Err(wrong))
        }
        _ => Err(wrong),
    }
}

/// Merges numbers; `None` if a source has another type.
fn numbers<T>(
    merge: Merge,
    sources: &[ArrayRef],
    sets: &EqualCells,
    overflow: Overflow,
) -> Option<Result<ArrayRef, MergeError>>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128> + Ord + TryFrom<i64>,
{
    let sources: Vec<&PrimitiveArray<T>> =
        sources.iter().map(|source| source.as_primitive_opt::<T>()).collect::<Option<_>>()?;

    let mut out = Vec::with_capacity(sets.records.len());
    for (cells, record) in sets.sets().zip(&sets.records) {
        let held = cells.iter().filter(|cell| sources[cell.source].is_valid(cell.record));
        let values = held.map(|cell| sources[cell.source].value(cell.record));
        out.push(match merge {
            Merge::Min => values.min(),
            Merge::Max => values.max(),
            _ => match sum::<T>(values) {
                Ok(sum) => sum,
                Err(_) if overflow == Overflow::Passes => T::Native::try_from(i64::MAX).ok(),
                Err(fault) => return Some(Err(MergeError { record: *record, fault })),
            },
        });
    }

    Some(Ok(Arc::new(PrimitiveArray::<T>::from_iter(out))))
}

fn sum<T>(values: impl Iterator<Item = T::Native>) -> Result<Option<T::Native>, MergeFault>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128> + TryFrom<i64>,
{
    let mut sum: Option<i128> = None;
    for value in values {
        sum = Some(sum.unwrap_or(0) + value.into());
    }

    let Some(sum) = sum else { return Ok(None) };
    // A cell has 64 bits, two's complement, whatever the type of the column.
    let sum = i64::try_from(sum).map_err(|_| MergeFault::Overflow)?;
    T::Native::try_from(sum).map(Some).map_err(|_| MergeFault::Overflow)
}

/// Unites HyperLogLog sketches of ZetaSketch's format; null where all cells are.
fn sketches(sources: &[ArrayRef], sets: &EqualCells) -> Result<ArrayRef, MergeError> {
    let mut out = BinaryBuilder::with_capacity(sets.records.len(), sets.records.len() * 64);
    let mut bytes = Vec::new();
    for (cells, record) in sets.sets().zip(&sets.records) {
        match union(sources, cells).map_err(|fault| MergeError { record: *record, fault })? {
            Some(union) => {
                bytes.clear();
                union.write(&mut bytes);
                out.append_value(&bytes);
            }
            None => out.append_null(),
        }
    }

    Ok(Arc::new(out.finish()))
}

/// The union of the sketches of some cells; `None` if all are null.
fn union(sources: &[ArrayRef], cells: &[RecordRef]) -> Result<Option<Sketch>, MergeFault> {
    let mut union: Option<Sketch> = None;
    for RecordRef { source, record } in cells {
        let values = sources[*source].as_binary_opt::<i32>().ok_or(MergeFault::Type)?;
        if values.is_null(*record) {
            continue;
        }
        match &mut union {
            Some(union) => union.unite(values.value(*record)).map_err(MergeFault::Sketch)?,
            None => union = Some(Sketch::read(values.value(*record)).map_err(MergeFault::Sketch)?),
        }
    }

    Ok(union)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, UInt64Array};

    use super::*;

    fn all(count: usize) -> EqualCells {
        let mut sets = EqualCells::default();
        sets.push(7, (0..count).map(|record| RecordRef { source: 0, record }));
        sets
    }

    fn folded(merge: Merge, values: &[Option<i64>]) -> Option<i64> {
        let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let folded = merge_cells(merge, &[array], &all(values.len()), Overflow::Fails).unwrap();
        let folded = folded.as_primitive::<Int64Type>();
        folded.is_valid(0).then(|| folded.value(0))
    }

    #[test]
    fn absent_cells_take_no_part() {
        let values = [None, Some(-3), None, Some(5), Some(5)];
        assert_eq!(folded(Merge::Sum, &values), Some(7));
        assert_eq!(folded(Merge::Min, &values), Some(-3));
        assert_eq!(folded(Merge::Max, &values), Some(5));
        for merge in [Merge::Sum, Merge::Min, Merge::Max] {
            assert_eq!(folded(merge, &[None, None]), None);
        }
    }

    #[test]
    fn sums_are_wide_until_they_are_done() {
        assert_eq!(folded(Merge::Sum, &[Some(i64::MAX), Some(5), Some(-5)]), Some(i64::MAX));
        assert_eq!(folded(Merge::Sum, &[Some(i64::MIN), Some(-1), Some(1)]), Some(i64::MIN));
        let array: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1]));
        let error = merge_cells(Merge::Sum, &[array], &all(2), Overflow::Fails).unwrap_err();
        assert_eq!(error, MergeError { record: 7, fault: MergeFault::Overflow });
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![i64::MAX.cast_unsigned(), 1]));
        assert_eq!(
            merge_cells(Merge::Sum, &[array], &all(2), Overflow::Fails).unwrap_err().fault,
            MergeFault::Overflow
        );
    }

    #[test]
    fn damaged_sketches_are_told() {
        let array: ArrayRef = Arc::new(arrow::array::BinaryArray::from_vec(vec![b"abc"]));
        let error = merge_cells(Merge::Hll, &[array], &all(1), Overflow::Fails).unwrap_err();
        assert!(matches!(error.fault, MergeFault::Sketch(_)));
    }
}
