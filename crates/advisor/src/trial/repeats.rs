//! Source rows that are sent again: equal to an earlier one in all columns.

use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType,
    UInt64Type,
};
use tidetable_layout::cell::ColumnText;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes that are held at most; of more rows a part is taken.
const MOST: usize = 8 << 20;
/// The hash of a null.
const NULL: u64 = 0x9ae1_6a3b_2f90_404f;
/// Odd, with about as many ones as zeros.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Counts repeated rows by the hashes of all rows: all of them, or of those that begin with so many zeros that they are few
/// enough. Equal rows have equal hashes, so they are in the part together.
#[derive(Debug)]
pub(super) struct RepeatCounter {
    held: Mutex<Held>,
    most: usize,
}

#[derive(Debug, Default)]
struct Held {
    hashes: Vec<u64>,
    /// Zeros that a hash begins with.
    zeros: u32,
}

impl Default for RepeatCounter {
    fn default() -> Self {
        Self { held: Mutex::default(), most: MOST }
    }
}

impl RepeatCounter {
    /// Hashes the rows of a batch, and keeps the hashes that are in the part.
    pub(super) fn look(&self, batch: &RecordBatch) {
        let mut hashes = vec![0; batch.num_rows()];
        batch.columns().iter().for_each(|column| mix_column(column.as_ref(), &mut hashes));
        // Hashing does not unwind, so poisoned hashes are complete.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let zeros = held.zeros;
        held.hashes.extend(hashes.into_iter().filter(|hash| hash.leading_zeros() >= zeros));
        while held.hashes.len() > self.most && held.zeros < 32 {
            held.zeros += 1;
            let zeros = held.zeros;
            held.hashes.retain(|hash| hash.leading_zeros() >= zeros);
        }
    }

    /// The most source rows that can be repeats: their number if the hashes of all rows were held, else four standard
    /// deviations more than what the part says.
    pub(super) fn finish(&self) -> u64 {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        let Held { mut hashes, zeros } = held;
        hashes.sort_unstable();
        let repeats = hashes.windows(2).filter(|pair| pair.first() == pair.last()).count() as u64;
        let more = if zeros == 0 { 0 } else { 4 * (repeats + 1).isqrt() };
        (repeats + more) << zeros
    }
}

/// Mixes the values of a column into the hashes of the rows.
fn mix_column(column: &dyn Array, hashes: &mut [u64]) {
    match column.data_type() {
        DataType::UInt64 => mix_primitive::<UInt64Type>(column, hashes, |value| value),
        DataType::Int64 => mix_primitive::<Int64Type>(column, hashes, i64::cast_unsigned),
        DataType::Float64 => mix_primitive::<Float64Type>(column, hashes, f64::to_bits),
        DataType::Timestamp(..) => mix_primitive::<TimestampMicrosecondType>(column, hashes, i64::cast_unsigned),
        DataType::Date32 => mix_primitive::<Date32Type>(column, hashes, |value| u64::from(value.cast_unsigned())),
        DataType::Decimal128(..) => {
            mix_primitive::<Decimal128Type>(column, hashes, |value| value as u64 ^ (value >> 64) as u64);
        }
        _ => mix_text(column, hashes),
    }
}

fn mix_primitive<T: ArrowPrimitiveType>(column: &dyn Array, hashes: &mut [u64], bits: impl Fn(T::Native) -> u64) {
    let Some(values) = column.as_primitive_opt::<T>() else { return mix_text(column, hashes) };
    for (row, hash) in hashes.iter_mut().enumerate() {
        mix(hash, if values.is_null(row) { NULL } else { bits(values.value(row)) });
    }
}

fn mix_text(column: &dyn Array, hashes: &mut [u64]) {
    let Some(mut text) = ColumnText::new(column) else { return };
    let mut bytes = Vec::new();
    for (row, hash) in hashes.iter_mut().enumerate() {
        bytes.clear();
        text.write(row, &mut bytes);
        mix(hash, if column.is_null(row) { NULL } else { xxh3_64(&bytes) });
    }
}

/// Both halves of a product, so that each bit of a value reaches all bits of the hash.
fn mix(hash: &mut u64, value: u64) {
    let product = u128::from(*hash ^ value ^ NULL) * u128::from(FACTOR);
    *hash = (product as u64 ^ (product >> 64) as u64).wrapping_mul(FACTOR).rotate_left(29);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    /// Rows (name, time, value).
    fn batch(rows: &[(&str, i64, Option<f64>)]) -> RecordBatch {
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
        let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.1)).with_timezone("UTC");
        let values: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2)));
        RecordBatch::try_from_iter([("name", names), ("ts", Arc::new(times) as ArrayRef), ("value", values)]).unwrap()
    }

    #[test]
    fn rows_that_are_equal_in_all_columns_are_repeats() {
        let rows = [("a", 1, Some(1.0)), ("a", 1, Some(1.0)), ("a", 1, None), ("a", 2, Some(1.0)), ("b", 1, Some(1.0))];
        let counter = RepeatCounter::default();
        counter.look(&batch(&rows));
        // Of two in another batch one was there before, and one differs in its value.
        counter.look(&batch(&[("a", 1, None), ("a", 1, Some(2.0))]));
        assert_eq!(counter.finish(), 2);
    }

    #[test]
    fn of_many_rows_a_part_is_taken() {
        let counter = RepeatCounter { most: 1000, ..RepeatCounter::default() };
        let rows: Vec<_> = (0..20_000).map(|row| ("a", row % 16_000, Some(0.5))).collect();
        rows.chunks(1024).for_each(|rows| counter.look(&batch(rows)));
        let found = counter.finish();
        assert!((4000..8000).contains(&found), "{found}");
    }
}
