//! Record alignment: the records of a block, and the group records that each of them takes its cells from.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, Int64Type, TimestampMicrosecondType, UInt64Type};

use crate::block::GroupBlock;
use crate::error::DecodeError;

/// The records of a block, by row.
pub(crate) struct RecordAlignment {
    /// The number of records of all rows.
    pub(crate) count: usize,
    /// For each row, the end of its records.
    pub(crate) row_ends: Vec<u32>,
    /// For each group, the group record that each record takes its cells from.
    pub(crate) picks: Vec<Pick>,
}

/// Which records of a group the records of a block take their cells from.
pub(crate) enum Pick {
    /// Record `i` takes the cells of the group's record `i`.
    Same,
    /// Indices of group records; null where the record has no cells of the group.
    Take(UInt32Array),
}

impl RecordAlignment {
    /// The alignment in which each of `rows` rows is a record.
    pub(crate) fn of_rows(rows: usize) -> Self {
        Self { count: rows, row_ends: (1..=rows as u32).collect(), picks: Vec::new() }
    }

    /// The pick of a row-level group: each record of a row takes the cells of the row.
    pub(super) fn pick_of_row(&self, group: &GroupBlock) -> Pick {
        let rows = self.row_ends.len();
        if self.count == rows && group.len() == rows && is_one_each(&group.row_ends) && is_one_each(&self.row_ends) {
            return Pick::Same;
        }

        let mut indices: Vec<Option<u32>> = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let records = group.records(row);
            let pick = (!records.is_empty()).then_some(records.start as u32);
            indices.resize(*end as usize, pick);
        }
        Pick::Take(UInt32Array::from(indices))
    }

    /// Maps values by group record to values by record.
    pub(crate) fn pick(&self, group: usize, array: &ArrayRef) -> Result<ArrayRef, DecodeError> {
        match self.picks.get(group) {
            Some(Pick::Take(indices)) => Ok(take(array.as_ref(), indices, None)?),
            _ => Ok(std::sync::Arc::clone(array)),
        }
    }

    /// Repeats values by row for each record; with `map`, row `i` has the value `map[i]`.
    pub(crate) fn spread(&self, array: &ArrayRef, map: Option<&[u32]>) -> Result<ArrayRef, DecodeError> {
        if is_one_each(&self.row_ends) {
            // A block has few prefixes for its rows, or one for each.
            return match map.filter(|map| map.len() != array.len() || !map.iter().zip(0..).all(|(at, row)| *at == row))
            {
                Some(map) => Ok(take(array.as_ref(), &UInt32Array::from(map.to_vec()), None)?),
                None => Ok(std::sync::Arc::clone(array)),
            };
        }

        if array.null_count() == 0 {
            if let Some(values) = array.as_primitive_opt::<UInt64Type>() {
                return Ok(self.spread_values(values, map));
            }
            if let Some(values) = array.as_primitive_opt::<Int64Type>() {
                return Ok(self.spread_values(values, map));
            }
            if let Some(values) = array.as_primitive_opt::<TimestampMicrosecondType>() {
                return Ok(self.spread_values(values, map));
            }
        }

        let mut indices = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let source = map.map_or(Some(row as u32), |map| map.get(row).copied()).unwrap_or(0);
            indices.resize(*end as usize, source);
        }
        Ok(take(array.as_ref(), &UInt32Array::from(indices), None)?)
    }

    /// As [`Self::spread`], for numbers without nulls: faster than a list of indices.
    fn spread_values<T: ArrowPrimitiveType>(&self, values: &PrimitiveArray<T>, map: Option<&[u32]>) -> ArrayRef {
        let values_of = values.values();
        let mut out: Vec<T::Native> = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let source = map.map_or(row, |map| map.get(row).map_or(0, |source| *source as usize));
            out.resize(*end as usize, values_of.get(source).copied().unwrap_or_default());
        }
        std::sync::Arc::new(PrimitiveArray::<T>::new(out.into(), None).with_data_type(values.data_type().clone()))
    }

    /// The row that each record belongs to.
    pub(crate) fn rows(&self) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            out.resize(*end as usize, row as u32);
        }
        out
    }
}

/// Whether each row has one record. `ends`: the end of each row's records.
pub fn is_one_each(ends: &[u32]) -> bool {
    // Without an early exit the loop runs in vector instructions.
    ends.iter().zip(1..).fold(true, |all, (end, record): (&u32, u32)| all & (*end == record))
}
