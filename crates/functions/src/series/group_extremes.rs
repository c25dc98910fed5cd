//! Accumulators of the value with the least or greatest key.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::nullif;
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::series::pairs::{Pairs, keeps};

/// The columns of values and of keys.
fn columns(columns: &[ArrayRef]) -> Result<(&ArrayRef, &ArrayRef)> {
    match columns {
        [values, keys] => Ok((values, keys)),
        _ => internal_err!("a value and its key are two columns, not {}", columns.len()),
    }
}

/// The best pair of each group.
pub(super) struct GroupExtremes<P: Pairs> {
    pairs: P,
    best: Vec<Option<P::Pair>>,
}

impl<P: Pairs> GroupExtremes<P> {
    pub(super) fn new(pairs: P) -> Self {
        Self { pairs, best: Vec::new() }
    }
}

impl<P: Pairs> GroupsAccumulator for GroupExtremes<P> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let (values, keys) = columns(values)?;
        self.best.resize(total_num_groups, None);

        let group_of = |row: usize| group_indices.get(row).copied().filter(|_| keeps(opt_filter, row));
        self.pairs.keep_best(values, keys, group_of, &mut self.best)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        let [values, _] = self.pairs.decode(&best)?;
        Ok(values)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let best = emit_to.take_needed(&mut self.best);
        Ok(self.pairs.decode(&best)?.to_vec())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let (values, keys) = columns(values)?;
        let Some(filter) = opt_filter else { return Ok(vec![values.clone(), keys.clone()]) };
        let left_out: BooleanArray = (0..values.len()).map(|row| Some(!keeps(Some(filter), row))).collect();
        Ok(vec![nullif(values, &left_out)?, nullif(keys, &left_out)?])
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<Option<P::Pair>>() + P::heap_size_of_all(&self.best)
    }
}

/// The best pair of all rows.
pub(super) struct BestOfAll<P: Pairs> {
    pairs: P,
    best: [Option<P::Pair>; 1],
}

impl<P: Pairs> BestOfAll<P> {
    pub(super) fn new(pairs: P) -> Self {
        Self { pairs, best: [None] }
    }
}

impl<P: Pairs> Debug for BestOfAll<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("BestOfAll")
    }
}

impl<P: Pairs> Accumulator for BestOfAll<P> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, keys) = columns(values)?;
        self.pairs.keep_best(values, keys, |_| Some(0), &mut self.best)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        state(&self.pairs, &self.best)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let [value, _] = self.pairs.decode(&self.best)?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.best.iter().flatten().map(P::heap_size).sum::<usize>()
    }
}

/// The state of one group.
fn state<P: Pairs>(pairs: &P, best: &[Option<P::Pair>]) -> Result<Vec<ScalarValue>> {
    let columns = pairs.decode(best)?;
    columns.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
}

/// The best pair of a frame that moves: all pairs of the frame, with their counts.
pub(super) struct BestOfFrame<P: Pairs> {
    pairs: P,
    counts: BTreeMap<P::Pair, usize>,
    heap_bytes: usize,
}

impl<P: Pairs> BestOfFrame<P> {
    pub(super) fn new(pairs: P) -> Self {
        Self { pairs, counts: BTreeMap::new(), heap_bytes: 0 }
    }

    fn best(&self) -> [Option<P::Pair>; 1] {
        [self.counts.last_key_value().map(|(pair, _)| pair.clone())]
    }
}

impl<P: Pairs> Debug for BestOfFrame<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("BestOfFrame")
    }
}

impl<P: Pairs> Accumulator for BestOfFrame<P> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, keys) = columns(values)?;
        for pair in self.pairs.encode(values, keys)?.into_iter().flatten() {
            self.heap_bytes += P::heap_size(&pair);
            *self.counts.entry(pair).or_default() += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, keys) = columns(values)?;
        for pair in self.pairs.encode(values, keys)?.into_iter().flatten() {
            self.heap_bytes = self.heap_bytes.saturating_sub(P::heap_size(&pair));
            match self.counts.get_mut(&pair) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(&pair)),
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        state(&self.pairs, &self.best())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let [value, _] = self.pairs.decode(&self.best())?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.len() * size_of::<(P::Pair, usize)>() * 2 + self.heap_bytes
    }
}
