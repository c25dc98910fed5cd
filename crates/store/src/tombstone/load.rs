//! Hiding cells of an input that is read again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use arrow::array::BooleanArray;
use arrow::compute::nullif;
use tidetable_layout::encode::{Dictionary, EncodedBatch};
use tidetable_layout::{KeyRange, StoredSchema};
use tidetable_sstable::tools::failpoints;

use super::{Tombstone, DeleteTarget};
use crate::error::Result;

/// The drops that hold for one input.
#[derive(Debug)]
pub(crate) struct LoadMask<'a> {
    schema: &'a StoredSchema,
    /// Each with the keys it is about.
    targets: Vec<(KeyRange, &'a DeleteTarget)>,
}

/// What a mask left of the events of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// For each event, whether its row is hidden; empty if none is.
    events: Vec<bool>,
}

/// What is known of all keys with one prefix.
#[derive(Clone, Copy)]
enum Fate {
    Stays,
    Goes,
    /// The tail decides.
    Depends,
}

impl<'a> LoadMask<'a> {
    /// Those of `drops` that were made after the input with this sequence was first seen.
    pub(crate) fn new(schema: &'a StoredSchema, drops: &'a [Tombstone], sequence: u64) -> Self {
        let held = drops
            .iter()
            .filter(|drop| sequence < drop.sequence && !failpoints::is(failpoints::Bug::ForgetDropsInLoads));
        Self { schema, targets: held.map(|drop| (drop.target.keys(), &drop.target)).collect() }
    }

    /// Takes hidden cells out of `laid`, whose codes are of `prefixes` and `qualifiers`; hidden rows are
    /// told in the answer, for events must stay to be counted.
    pub(crate) fn apply<'d>(
        &self,
        laid: &mut EncodedBatch,
        prefixes: &Dictionary,
        qualifiers: impl Fn(usize) -> Option<&'d Dictionary>,
    ) -> Result<Hidden> {
        let mut hidden = Hidden::default();
        if self.targets.is_empty() {
            return Ok(hidden);
        }
        let events = laid.prefix.len();
        let mut fates: HashMap<u32, Fate> = HashMap::new();
        // Events with a drop that may hide some of their cells.
        let mut touched: Vec<(usize, &DeleteTarget)> = Vec::new();
        let mut key = Vec::new();
        for event in 0..events {
            let code = laid.prefix[event];
            let fate = *fates.entry(code).or_insert_with(|| self.fate(prefixes.get(code)));
            let goes = match fate {
                Fate::Stays => false,
                Fate::Goes => true,
                Fate::Depends => {
                    key.clear();
                    key.extend_from_slice(prefixes.get(code));
                    self.schema.tail.write(laid.tail.get(event).copied().unwrap_or(0), &mut key);
                    let about = || self.targets.iter().filter(|(keys, _)| keys.contains(&key));
                    let goes = about().any(|(_, target)| target.takes_rows());
                    touched.extend(about().filter(|_| !goes).map(|(_, target)| (event, *target)));
                    goes
                }
            };
            if goes {
                hidden.events.resize(events, false);
                hidden.events[event] = true;
            }
        }
        if !touched.is_empty() {
            self.take_cells(laid, &touched, qualifiers)?;
        }
        Ok(hidden)
    }

    fn fate(&self, prefix: &[u8]) -> Fate {
        let mut fate = Fate::Stays;
        for (_, target) in &self.targets {
            match target {
                DeleteTarget::Prefix { prefix: dropped } if prefix.starts_with(dropped) => return Fate::Goes,
                DeleteTarget::Prefix { prefix: key }
                | DeleteTarget::Row { key }
                | DeleteTarget::Family { key, .. }
                | DeleteTarget::Column { key, .. } => {
                    if key.starts_with(prefix) {
                        fate = Fate::Depends;
                    }
                }
            }
        }
        fate
    }

    fn take_cells<'d>(
        &self,
        laid: &mut EncodedBatch,
        touched: &[(usize, &DeleteTarget)],
        qualifiers: impl Fn(usize) -> Option<&'d Dictionary>,
    ) -> Result<()> {
        let events = laid.prefix.len();
        for (at, (group, cells)) in self.schema.groups.iter().zip(&mut laid.groups).enumerate() {
            let names = qualifiers(at);
            for (column, values) in cells.columns.iter_mut().enumerate() {
                let mut drops: Option<Vec<bool>> = None;
                for (event, target) in touched {
                    let code = cells.qualifier.as_ref().map(|codes| codes[*event]);
                    let qualifier = code.zip(names).map_or(&[][..], |(code, names)| names.get(code));
                    let timestamp = cells.timestamps.as_ref().map_or(0, |timestamps| timestamps[*event]);
                    if target.hides(group, column, qualifier, timestamp) {
                        drops.get_or_insert_with(|| vec![false; events])[*event] = true;
                    }
                }
                if let Some(drops) = drops {
                    *values = nullif(values, &BooleanArray::from(drops))?;
                }
            }
        }
        Ok(())
    }
}

impl Hidden {
    /// Leaves the hidden events out of runs of events by window.
    pub(crate) fn leave_out(&self, windows: BTreeMap<i64, Vec<Range<usize>>>) -> BTreeMap<i64, Vec<Range<usize>>> {
        if self.events.is_empty() {
            return windows;
        }
        let left = windows.into_iter().map(|(start, runs)| {
            let mut kept: Vec<Range<usize>> = Vec::new();
            for event in runs.into_iter().flatten().filter(|event| !self.events[*event]) {
                match kept.last_mut() {
                    Some(run) if run.end == event => run.end += 1,
                    _ => kept.push(event..event + 1),
                }
            }
            (start, kept)
        });
        left.filter(|(_, runs)| !runs.is_empty()).collect()
    }
}
