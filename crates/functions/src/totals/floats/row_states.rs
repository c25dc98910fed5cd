//! The partial states of exact sums for the rows of a table, without a group number for each record.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Decimal128Array, Float64Array};

use crate::totals::floats::split::{DECIMALS, Exceptional, Split};
use crate::totals::floats::superaccumulator::Superaccumulator;

/// The state of `sum` of the floats of each row, whose ends are `ends`: the column of sums of decimals, null for a row without a value,
/// and that of the sums of all other floats. For `avg` the number of values stands before them.
pub fn float_row_states(floats: &Float64Array, ends: &[u32]) -> [ArrayRef; 2] {
    let split = Split::of(floats);

    let mut sums = Vec::with_capacity(ends.len());
    for row in rows(ends) {
        sums.push(split.has_value(row.clone()).then(|| split.sum_of(row)));
    }
    if split.exceptions.is_empty() {
        let sums = Decimal128Array::from(sums).with_data_type(DECIMALS);
        return [Arc::new(sums), Arc::new(BinaryArray::new_null(ends.len()))];
    }

    let mut rests: Vec<Option<Superaccumulator>> = vec![None; ends.len()];
    let mut exceptions = split.exceptions.into_iter().peekable();
    for (row, (sum, rest)) in rows(ends).zip(sums.iter_mut().zip(&mut rests)) {
        while let Some(exception) = exceptions.next_if(|exception| exception.at < row.end) {
            match exception.value {
                Exceptional::Decimal(decimal) => *sum = sum.map(|sum| sum + decimal),
                Exceptional::Other(value) => rest.get_or_insert_default().add(value),
            }
        }
    }

    let sums = Decimal128Array::from(sums).with_data_type(DECIMALS);
    let rests = rests.iter().map(|rest| rest.as_ref().map(Superaccumulator::to_bytes));
    [Arc::new(sums), Arc::new(rests.collect::<BinaryArray>())]
}

/// The range of values of each row.
fn rows(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(starts).map(|(end, start)| start as usize..(*end).max(start) as usize)
}
