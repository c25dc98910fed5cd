//! Tombstones for loads: hide cells of an input that is read again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use arrow::array::BooleanArray;
use arrow::compute::nullif;
use tidetable_layout::encode::{Dictionary, EncodedBatch};
use tidetable_layout::{KeyRange, StoredSchema};
use tidetable_store::Result;
use tidetable_store::version::{DeleteTarget, Tombstone};

/// The tombstones that apply to one input.
#[derive(Debug)]
pub(crate) struct TombstoneLoadFilter<'a> {
    schema: &'a StoredSchema,
    targets: Vec<(KeyRange, &'a DeleteTarget)>,
}

/// The events of a chunk of which tombstones hide cells.
#[derive(Debug, Default)]
pub(crate) struct HiddenEvents {
    /// For each event, whether its row is hidden; empty if none is.
    events: Vec<bool>,
    /// Events that lost at least one cell, for the statistics.
    pub(crate) rows: u64,
}

/// Whether keys with one prefix are hidden.
#[derive(Clone, Copy)]
enum PrefixFate {
    Stays,
    Goes,
    /// Depends on the tail of the key.
    Depends,
}

impl<'a> TombstoneLoadFilter<'a> {
    /// The mask of those of `drops` made after the input with this sequence number was first seen.
    pub(crate) fn new(schema: &'a StoredSchema, tombstones: &'a [Tombstone], input_seqno: u64) -> Self {
        let held = tombstones.iter().filter(|tombstone| {
            input_seqno < tombstone.input_seqno && !tidetable_sstable::failpoint!(ForgetDropsInLoads)
        });
        Self { schema, targets: held.map(|tombstone| (tombstone.target.keys(), &tombstone.target)).collect() }
    }

    /// Removes hidden cells from `encoded`, whose codes are of `prefixes` and `qualifiers`. Events of hidden rows stay,
    /// to be counted, and are returned.
    pub(crate) fn apply<'d>(
        &self,
        encoded: &mut EncodedBatch,
        prefixes: &Dictionary,
        qualifiers: impl Fn(usize) -> Option<&'d Dictionary>,
    ) -> Result<HiddenEvents> {
        let mut hidden = HiddenEvents::default();
        if self.targets.is_empty() {
            return Ok(hidden);
        }

        let events = encoded.prefix.len();
        let mut fates: HashMap<u32, PrefixFate> = HashMap::new();
        // Events with a tombstone that may hide some of their cells.
        let mut touched: Vec<(usize, &DeleteTarget)> = Vec::new();
        let mut key = Vec::new();
        for event in 0..events {
            let code = encoded.prefix[event];
            let goes = match *fates.entry(code).or_insert_with(|| self.fate(prefixes.get(code))) {
                PrefixFate::Stays => false,
                PrefixFate::Goes => true,
                PrefixFate::Depends => {
                    key.clear();
                    key.extend_from_slice(prefixes.get(code));
                    self.schema.tail.write(encoded.tail.get(event).copied().unwrap_or(0), &mut key);

                    let goes = self.targets_of(&key).any(DeleteTarget::takes_rows);
                    if !goes {
                        touched.extend(self.targets_of(&key).map(|target| (event, target)));
                    }
                    goes
                }
            };

            if goes {
                hidden.events.resize(events, false);
                hidden.events[event] = true;
                hidden.rows += 1;
            }
        }

        if !touched.is_empty() {
            hidden.rows += self.take_cells(encoded, &touched, qualifiers)?;
        }
        Ok(hidden)
    }

    /// The targets that a row key is in.
    fn targets_of(&self, key: &[u8]) -> impl Iterator<Item = &'a DeleteTarget> {
        self.targets.iter().filter(|(keys, _)| keys.contains(key)).map(|(_, target)| *target)
    }

    /// What becomes of the row keys that begin with `prefix`.
    fn fate(&self, prefix: &[u8]) -> PrefixFate {
        let mut fate = PrefixFate::Stays;
        for (_, target) in &self.targets {
            match target {
                DeleteTarget::Prefix { prefix: dropped } if prefix.starts_with(dropped) => return PrefixFate::Goes,
                DeleteTarget::Prefix { prefix: key }
                | DeleteTarget::Row { key }
                | DeleteTarget::Family { key, .. }
                | DeleteTarget::Column { key, .. } => {
                    if key.starts_with(prefix) {
                        fate = PrefixFate::Depends;
                    }
                }
            }
        }
        fate
    }

    /// Removes cells of events that targets may hide. Returns the number of events that lost one.
    fn take_cells<'d>(
        &self,
        encoded: &mut EncodedBatch,
        touched: &[(usize, &DeleteTarget)],
        qualifiers: impl Fn(usize) -> Option<&'d Dictionary>,
    ) -> Result<u64> {
        let events = encoded.prefix.len();
        let mut lost: BTreeSet<usize> = BTreeSet::new();

        for (at, (group, cells)) in self.schema.groups.iter().zip(&mut encoded.groups).enumerate() {
            let names = qualifiers(at);
            for (column, values) in cells.columns.iter_mut().enumerate() {
                let mut drops: Option<Vec<bool>> = None;
                for (event, target) in touched {
                    let code = cells.qualifier.as_ref().map(|codes| codes[*event]);
                    let qualifier = code.zip(names).map_or(&[][..], |(code, names)| names.get(code));
                    let timestamp = cells.timestamps.as_ref().map_or(0, |timestamps| timestamps[*event]);
                    if target.hides(group, column, qualifier, timestamp) {
                        drops.get_or_insert_with(|| vec![false; events])[*event] = true;
                        lost.insert(*event);
                    }
                }

                if let Some(drops) = drops {
                    *values = nullif(values, &BooleanArray::from(drops))?;
                }
            }
        }
        Ok(lost.len() as u64)
    }
}

impl HiddenEvents {
    /// Removes the hidden events from runs of events by window.
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
