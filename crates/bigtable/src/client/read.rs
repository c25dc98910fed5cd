//! ReadRows: rows of key ranges, resumed after the last row where a stream breaks.

use bytes::Bytes;
use tidetable_layout::KeyRange;
use tokio::sync::mpsc;
use tonic::Status;

use crate::client::connection::Client;
use crate::client::repeat::{Repeat, within};
use crate::error::{BigtableError, Result};
use crate::names::TableName;
use crate::proto::data::{ReadRowsRequest, RowFilter, RowRange, RowSet, row_range};
use crate::row::Row;
use crate::row_merger::{ChunkError, RowMerger};

/// Rows and bytes of a batch that is passed on.
const BATCH_ROWS: usize = 1 << 10;
const BATCH_BYTES: usize = 1 << 20;
/// Batches that wait to be taken; then reading waits, too.
const BATCHES: usize = 4;

/// What is read of a table.
#[derive(Debug, Clone, Default)]
pub struct ReadQuery {
    /// Key ranges, ascending and disjoint.
    pub ranges: Vec<KeyRange>,
    /// The filter; all cells without.
    pub filter: Option<RowFilter>,
    /// The greatest number of rows.
    pub limit: Option<u64>,
}

impl ReadQuery {
    /// Everything in one range.
    pub fn range(range: KeyRange) -> Self {
        Self { ranges: vec![range], ..Self::default() }
    }
}

/// Batches of rows, from a task that reads them.
pub type RowStream = mpsc::Receiver<Result<Vec<Row>>>;

impl Client {
    /// Reads rows in key order, in a task of its own. After an error the stream ends.
    pub fn read_rows(&self, table: &TableName, query: ReadQuery) -> RowStream {
        let (sender, receiver) = mpsc::channel(BATCHES);
        let (client, table) = (self.clone(), table.clone());
        tokio::spawn(async move {
            if let Err(error) = client.send_rows(&table, query, &sender).await {
                // Nobody may listen any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        receiver
    }

    /// Reads all rows of a small query.
    ///
    /// # Errors
    /// As of the requests.
    pub async fn rows(&self, table: &TableName, query: ReadQuery) -> Result<Vec<Row>> {
        let mut stream = self.read_rows(table, query);
        let mut rows = Vec::new();
        while let Some(batch) = stream.recv().await {
            rows.extend(batch?);
        }
        Ok(rows)
    }

    /// The last row of a table, of all its cells.
    ///
    /// # Errors
    /// As of the requests.
    pub async fn last_row(&self, table: &TableName) -> Result<Option<Row>> {
        let mut repeat = Repeat::new(self, "ReadRows", table);
        loop {
            match self.try_last_row(table).await {
                Ok(row) => return Ok(row),
                Err(Ended::Status(status)) => repeat.after(status).await?,
                Err(Ended::Broken(error)) => return Err(error),
                Err(Ended::Unwanted) => return Ok(None),
            }
        }
    }

    async fn try_last_row(&self, table: &TableName) -> Result<Option<Row>, Ended> {
        let timeout = self.options().timeout;
        let request = ReadRowsRequest {
            table_name: table.to_string(),
            app_profile_id: self.options().app_profile.clone(),
            rows_limit: 1,
            reversed: true,
            ..ReadRowsRequest::default()
        };
        let request = self.of_table(request, table).await?;
        let mut stream = within(timeout, self.data().read_rows(request)).await?.into_inner();

        let mut merger = RowMerger::reversed();
        while let Some(message) = within(timeout, stream.message()).await? {
            for chunk in message.chunks {
                if let Some(row) = merger.push(chunk).map_err(|source| Ended::broken(table, source))? {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    async fn send_rows(
        &self,
        table: &TableName,
        mut query: ReadQuery,
        sender: &mpsc::Sender<Result<Vec<Row>>>,
    ) -> Result<()> {
        let mut repeat = Repeat::new(self, "ReadRows", table);
        let mut merger = RowMerger::default();
        // The service refuses ranges that hold no key.
        query.ranges.retain(|range| range.end.as_ref().is_none_or(|end| *end > range.start));

        while !query.ranges.is_empty() && query.limit != Some(0) {
            match self.send_once(table, &mut query, &mut merger, &mut repeat, sender).await {
                Ok(()) => return Ok(()),
                Err(Ended::Unwanted) => return Ok(()),
                Err(Ended::Status(status)) => repeat.after(status).await?,
                Err(Ended::Broken(error)) => return Err(error),
            }
            merger.abandon();
            if let Some(last) = merger.last_key() {
                query.ranges = after(std::mem::take(&mut query.ranges), last);
            }
        }
        Ok(())
    }

    /// One request. What it delivers is taken from the limit of `query`.
    async fn send_once(
        &self,
        table: &TableName,
        query: &mut ReadQuery,
        merger: &mut RowMerger,
        repeat: &mut Repeat<'_>,
        sender: &mpsc::Sender<Result<Vec<Row>>>,
    ) -> Result<(), Ended> {
        let timeout = self.options().timeout;
        let request = ReadRowsRequest {
            table_name: table.to_string(),
            app_profile_id: self.options().app_profile.clone(),
            rows: Some(RowSet { row_keys: Vec::new(), row_ranges: query.ranges.iter().map(row_range).collect() }),
            filter: query.filter.clone(),
            rows_limit: query.limit.map_or(0, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            ..ReadRowsRequest::default()
        };
        let request = self.of_table(request, table).await?;
        let mut stream = within(timeout, self.data().read_rows(request)).await?.into_inner();

        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            let message = match within(timeout, stream.message()).await {
                Ok(Some(message)) => message,
                ended => {
                    // Rows that are complete are kept, whatever ended the stream.
                    pass_on(&mut rows, sender).await?;
                    ended?;
                    return merger.finish().map_err(|source| Ended::broken(table, source));
                }
            };

            repeat.progressed();
            for chunk in message.chunks {
                let row = merger.push(chunk).map_err(|source| Ended::broken(table, source))?;
                let Some(row) = row else { continue };
                bytes += row.bytes();
                rows.push(row);
                query.limit = query.limit.map(|limit| limit.saturating_sub(1));
            }
            if !message.last_scanned_row_key.is_empty() {
                let scanned = merger.scanned(message.last_scanned_row_key);
                scanned.map_err(|source| Ended::broken(table, source))?;
            }
            if rows.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                bytes = 0;
                pass_on(&mut rows, sender).await?;
            }
        }
    }
}

/// How a request ended before the end of its rows.
enum Ended {
    Status(Status),
    Broken(BigtableError),
    /// Nobody wants more rows.
    Unwanted,
}

impl Ended {
    fn broken(table: &TableName, source: ChunkError) -> Self {
        Self::Broken(BigtableError::Chunks { table: table.to_string(), source })
    }
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

async fn pass_on(rows: &mut Vec<Row>, sender: &mpsc::Sender<Result<Vec<Row>>>) -> Result<(), Ended> {
    if rows.is_empty() {
        return Ok(());
    }
    sender.send(Ok(std::mem::take(rows))).await.map_err(|_| Ended::Unwanted)
}

/// What of `ranges` is after `last`.
fn after(ranges: Vec<KeyRange>, last: &[u8]) -> Vec<KeyRange> {
    let mut next = last.to_vec();
    next.push(0);
    let left = ranges.into_iter().filter(|range| range.end.as_ref().is_none_or(|end| *end > next));
    left.map(|range| KeyRange { start: range.start.max(next.clone()), end: range.end }).collect()
}

/// A range as the API has it: without an end it goes to the last row.
fn row_range(range: &KeyRange) -> RowRange {
    let end = range.end.as_ref().map(|end| row_range::EndKey::EndKeyOpen(Bytes::copy_from_slice(end)));
    let start =
        (!range.start.is_empty()).then(|| row_range::StartKey::StartKeyClosed(Bytes::copy_from_slice(&range.start)));
    RowRange { start_key: start, end_key: end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_stream_goes_on_after_its_last_row() {
        let range = |start: &str, end: Option<&str>| KeyRange {
            start: start.as_bytes().to_vec(),
            end: end.map(|end| end.as_bytes().to_vec()),
        };
        let ranges = vec![range("a", Some("c")), range("d", Some("f")), range("g", None)];
        assert_eq!(after(ranges.clone(), b"e"), [range("e\0", Some("f")), range("g", None)]);
        assert_eq!(after(ranges.clone(), b"z"), [range("z\0", None)]);
        assert_eq!(after(vec![range("a", Some("a\0"))], b"a"), []);
        assert_eq!(after(ranges.clone(), b"A"), ranges);
    }
}
