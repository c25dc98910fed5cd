//! Requests of bounded size, in key order.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tidetable_record::PushCounts;

use crate::proto::data::mutate_rows_request::Entry;
use crate::push::merge::MergeRow;
use crate::push::wire::{put_delete_cell, put_encoded_entry, put_entry, put_set_cell};

/// Bounds of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// Mutations; Bigtable takes 100,000.
    pub(crate) mutations: usize,
    /// Bytes, which one cell may exceed.
    pub(crate) bytes: usize,
    /// Rows, each of them an entry.
    pub(crate) rows: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { mutations: 100_000, bytes: 2 << 20, rows: 4_000 }
    }
}

/// The entries of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    /// Encoded entries, one after the other.
    pub(crate) bytes: Bytes,
    /// Row key and place of each entry.
    pub(crate) entries: Vec<(Bytes, Range<usize>)>,
    /// Entries that merge cells of aggregate families, by index.
    pub(crate) merges: BTreeMap<usize, MergeRow>,
    /// The rows and cells that its entries write and delete.
    pub(crate) counts: PushCounts,
}

/// Collects mutations into batches.
#[derive(Debug)]
pub(crate) struct BatchWriter {
    limits: BatchLimits,
    /// Cells of one timestamp: what a delete of a cell spans, microseconds.
    granularity: i64,
    out: BytesMut,
    batch: Batch,
    mutations: usize,
    /// Mutations of the current row.
    row: BytesMut,
    row_mutations: usize,
    row_counts: PushCounts,
}

impl BatchWriter {
    pub(crate) fn new(limits: BatchLimits, granularity: i64) -> Self {
        Self {
            limits,
            granularity,
            out: BytesMut::new(),
            batch: Batch::default(),
            mutations: 0,
            row: BytesMut::new(),
            row_mutations: 0,
            row_counts: PushCounts::default(),
        }
    }

    /// Writes a cell of the current row.
    pub(crate) fn set(&mut self, family: &str, qualifier: &[u8], timestamp: i64, value: &[u8]) {
        put_set_cell(family, qualifier, timestamp, value, &mut self.row);
        self.row_mutations += 1;
        self.row_counts.cells += 1;
    }

    /// Deletes a cell of the current row.
    pub(crate) fn delete(&mut self, family: &str, qualifier: &[u8], timestamp: i64) {
        let times = timestamp..timestamp.saturating_add(self.granularity);
        put_delete_cell(family, qualifier, times, &mut self.row);
        self.row_mutations += 1;
        self.row_counts.deleted += 1;
    }

    /// Whether the current row has as many mutations as a request takes.
    pub(crate) fn row_is_full(&self) -> bool {
        self.row_mutations >= self.limits.mutations || self.row.len() >= self.limits.bytes.max(32 << 20)
    }

    /// Ends the current row, if it has mutations. `is_whole`: whether no more of it follow. Returns the batch before it, if the
    /// row does not fit into that.
    pub(crate) fn end_row(&mut self, key: &[u8], is_whole: bool) -> Option<Batch> {
        if self.row_mutations == 0 {
            return None;
        }
        let full = self.make_room(self.row_mutations, key.len() + self.row.len());
        let start = self.out.len();
        put_entry(key, &self.row, &mut self.out);
        self.batch.entries.push((Bytes::copy_from_slice(key), start..self.out.len()));
        self.row_counts.rows = u64::from(is_whole);
        self.batch.counts.add(&std::mem::take(&mut self.row_counts));
        self.mutations += std::mem::take(&mut self.row_mutations);
        self.row.clear();
        full
    }

    /// Adds an entry that merges cells. Returns the batch before it, if it does not fit into that.
    pub(crate) fn merge(&mut self, row: MergeRow) -> Option<Batch> {
        let encoded = row.entry.encode_to_vec();
        let full = self.make_room(row.entry.mutations.len(), encoded.len());
        let start = self.out.len();
        put_encoded_entry(&encoded, &mut self.out);
        let Entry { row_key, mutations, .. } = &row.entry;
        self.batch.counts.cells += mutations.len() as u64;
        self.mutations += mutations.len();
        self.batch.entries.push((row_key.clone(), start..self.out.len()));
        self.batch.merges.insert(self.batch.entries.len() - 1, row);
        full
    }

    /// Takes the batch so far, if mutations and bytes of a new entry do not fit into it.
    fn make_room(&mut self, mutations: usize, bytes: usize) -> Option<Batch> {
        let BatchLimits { mutations: most, bytes: most_bytes, rows } = self.limits;
        let fits = self.mutations + mutations <= most && self.out.len() + bytes <= most_bytes;
        if self.batch.entries.is_empty() || (fits && self.batch.entries.len() < rows) {
            None
        } else {
            Some(self.take())
        }
    }

    /// The batch so far.
    pub(crate) fn take(&mut self) -> Batch {
        self.mutations = 0;
        let mut batch = std::mem::take(&mut self.batch);
        batch.bytes = self.out.split().freeze();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::data::MutateRowsRequest;

    #[test]
    fn requests_are_bounded_and_hold_every_row() {
        let limits = BatchLimits { mutations: 5, bytes: 10_000, rows: 3 };
        let mut writer = BatchWriter::new(limits, 1000);
        let mut batches = Vec::new();
        for row in 0_u8..20 {
            for cell in 0..=row % 4 {
                writer.set("f", &[cell], 0, b"v");
            }
            batches.extend(writer.end_row(&[b'a' + row], true));
        }
        batches.extend(writer.end_row(b"a row without mutations is none", true));
        batches.push(writer.take());
        let mut keys = Vec::new();
        for batch in &batches {
            let request = MutateRowsRequest::decode(batch.bytes.clone()).unwrap();
            let mutations: usize = request.entries.iter().map(|entry| entry.mutations.len()).sum();
            assert!(mutations <= 5 && request.entries.len() <= 3, "{mutations}");
            assert_eq!(request.entries.len(), batch.entries.len());
            keys.extend(request.entries.iter().map(|entry| entry.row_key[0]));
        }
        assert_eq!(keys, (b'a'..b'a' + 20).collect::<Vec<u8>>());
        let counts = batches.iter().fold(PushCounts::default(), |mut all, batch| {
            all.add(&batch.counts);
            all
        });
        assert_eq!((counts.rows, counts.cells, counts.deleted), (20, 50, 0));
    }
}
