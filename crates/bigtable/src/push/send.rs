//! Sends requests, and their rows again until each is written.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use tidetable_layout::KeyRange;
use tidetable_record::PushCounts;
use tonic::{Code, Status};

use crate::client::{Client, ReadQuery, Repeat, Row, TableName, is_transient};
use crate::error::{BigtableError, Result};
use crate::push::batch::Batch;
use crate::push::merge::{Attempted, MergeRow};
use crate::push::pace::Pace;
use crate::push::wire::request_head;

/// Writes batches into a table.
#[derive(Debug)]
pub(crate) struct BatchSender {
    client: Client,
    target: TableName,
    head: Bytes,
    pace: Pace,
    /// Whether a push before may have sent what is sent now.
    repeats: bool,
}

impl BatchSender {
    pub(crate) fn new(client: Client, target: TableName, pace: Pace, repeats: bool) -> Self {
        let head = request_head(&target.to_string(), &client.options().app_profile);
        Self { client, target, head, pace, repeats }
    }

    /// Writes all rows of a batch.
    ///
    /// # Errors
    /// If a row is refused, a request fails for too long, or someone else writes into an aggregate family.
    pub(crate) async fn send(&self, mut batch: Batch) -> Result<(Bytes, PushCounts)> {
        let last = batch.entries.last().map(|(key, _)| key.clone()).unwrap_or_default();
        let mut counts = std::mem::take(&mut batch.counts);
        let mut waiting: Vec<usize> = (0..batch.entries.len()).collect();
        let mut repeat = Repeat::new(&self.client, "MutateRows", &self.target);
        let mut is_unsure = self.repeats;

        while !waiting.is_empty() {
            if is_unsure {
                self.leave_applied(&batch, &mut waiting).await?;
                if waiting.is_empty() {
                    break;
                }
            }

            self.pace.wait(waiting.len()).await;
            counts.requests += 1;
            let pieces = self.pieces(&batch, &waiting);
            let mutated = self.client.mutate_once(&self.target, pieces, waiting.len()).await;

            let mut failed: Option<Status> = None;
            let mut left = Vec::new();
            for (entry, outcome) in waiting.iter().zip(mutated.entries) {
                let Err(status) = outcome else { continue };
                if !is_transient(&status) {
                    return Err(self.refused(&batch, *entry, &status));
                }
                left.push(*entry);
                failed.get_or_insert(status);
            }
            if left.len() < waiting.len() {
                repeat.progressed();
            }
            waiting = left;

            let is_overloaded = failed.as_ref().is_some_and(|status| {
                matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted)
            });
            self.pace.note(mutated.rate.as_ref(), is_overloaded);
            if let Some(status) = failed {
                counts.repeated += waiting.len() as u64;
                is_unsure = true;
                repeat.after(status).await?;
            }
        }
        Ok((last, counts))
    }

    fn pieces(&self, batch: &Batch, waiting: &[usize]) -> Vec<Bytes> {
        if waiting.len() == batch.entries.len() {
            return vec![self.head.clone(), batch.bytes.clone()];
        }
        let mut some = BytesMut::new();
        for (_, place) in waiting.iter().filter_map(|entry| batch.entries.get(*entry)) {
            some.extend_from_slice(batch.bytes.get(place.clone()).unwrap_or_default());
        }
        vec![self.head.clone(), some.freeze()]
    }

    fn refused(&self, batch: &Batch, entry: usize, status: &Status) -> BigtableError {
        let key = batch.entries.get(entry).map(|(key, _)| key.escape_ascii().to_string()).unwrap_or_default();
        match status.code() {
            // These concern the request, not the row.
            Code::NotFound | Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented => {
                BigtableError::request("MutateRows", &self.target.to_string(), status, std::time::Duration::ZERO)
            }
            _ => BigtableError::RowRefused {
                target: self.target.to_string(),
                key,
                code: status.code(),
                message: status.message().to_owned(),
            },
        }
    }

    /// Removes from `waiting` the merges that an attempt before has applied.
    async fn leave_applied(&self, batch: &Batch, waiting: &mut Vec<usize>) -> Result<()> {
        let unsure: Vec<(usize, &MergeRow)> =
            waiting.iter().filter_map(|entry| Some((*entry, batch.merges.get(entry)?))).collect();
        if unsure.is_empty() {
            return Ok(());
        }

        let mut ranges: Vec<KeyRange> = unsure.iter().map(|(_, row)| KeyRange::of_key(&row.entry.row_key)).collect();
        ranges.dedup();
        let rows = self.client.rows(&self.target, ReadQuery { ranges, ..ReadQuery::default() }).await?;
        let rows: BTreeMap<&[u8], &Row> = rows.iter().map(|row| (&*row.key, row)).collect();

        let mut applied = Vec::new();
        for (entry, row) in unsure {
            match row.attempted(rows.get(&*row.entry.row_key).copied()) {
                Attempted::Applied => applied.push(entry),
                Attempted::Missing => {}
                Attempted::Foreign(cell, _) => {
                    return Err(BigtableError::ForeignMerge {
                        target: self.target.to_string(),
                        key: row.entry.row_key.escape_ascii().to_string(),
                        family: cell.family,
                    });
                }
            }
        }
        waiting.retain(|entry| !applied.contains(entry));
        Ok(())
    }
}
