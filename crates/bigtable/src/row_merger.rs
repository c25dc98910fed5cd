//! Merges the chunks of a ReadRows stream into rows. A state machine without I/O.
//!
//! ```text
//! chunk   row key, family, qualifier   of the first cell; left out where they are as before
//!         timestamp, value             a value in several chunks has its size in all but the last
//!         commit | reset               ends the row, or takes back what was sent of it
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::proto::data::read_rows_response::CellChunk;
use crate::proto::data::read_rows_response::cell_chunk::RowStatus;
use crate::row::{Cell, Row};

/// What a stream broke of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// A cell before the first row key.
    #[error("a cell without a row key")]
    NoKey,
    /// A cell before the first family, or a family without a qualifier.
    #[error("a cell without a family or a qualifier")]
    NoColumn,
    /// Rows out of order.
    #[error("a row key that is not after the one before")]
    Order,
    /// A row within another.
    #[error("a new row before the end of the one before")]
    Uncommitted,
    /// A reset outside a row, or with content.
    #[error("a reset outside of a row, or with content")]
    Reset,
    /// A commit within a split value, or a cell within another.
    #[error("a value that ends before its size")]
    Split,
    /// The stream ended within a row.
    #[error("the stream ended within a row")]
    Unfinished,
}

/// Merges chunks into rows.
#[derive(Debug, Default)]
pub struct RowMerger {
    /// The current row; none between rows.
    row: Option<Row>,
    /// The last committed or scanned key.
    last: Option<Bytes>,
    family: Option<Arc<str>>,
    qualifier: Option<Bytes>,
    /// The value of a split cell so far.
    split: Option<Split>,
    families: HashMap<String, Arc<str>>,
    reversed: bool,
}

#[derive(Debug)]
struct Split {
    timestamp: i64,
    value: BytesMut,
}

impl RowMerger {
    /// For rows in descending order.
    #[must_use]
    pub fn reversed() -> Self {
        Self { reversed: true, ..Self::default() }
    }

    /// The key after which a stream that broke goes on.
    pub fn last_key(&self) -> Option<&Bytes> {
        self.last.as_ref()
    }

    /// Forgets a row that was not committed, before the stream is read again.
    pub fn abandon(&mut self) {
        self.row = None;
        self.family = None;
        self.qualifier = None;
        self.split = None;
    }

    /// Notes that all rows up to `key` were scanned, whether they were returned or not.
    ///
    /// # Errors
    /// Within a row, or if the key is before another.
    pub fn scanned(&mut self, key: Bytes) -> Result<(), ChunkError> {
        if self.row.is_some() {
            return Err(ChunkError::Uncommitted);
        }
        self.follows(&key)?;
        self.last = Some(key);
        Ok(())
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// Within a row.
    pub fn finish(&self) -> Result<(), ChunkError> {
        if self.row.is_some() { Err(ChunkError::Unfinished) } else { Ok(()) }
    }

    /// Takes a chunk. Returns the row that it commits.
    ///
    /// # Errors
    /// If the chunk breaks the protocol.
    pub fn push(&mut self, chunk: CellChunk) -> Result<Option<Row>, ChunkError> {
        if let Some(RowStatus::ResetRow(true)) = chunk.row_status {
            let is_bare = chunk.row_key.is_empty() && chunk.family_name.is_none() && chunk.qualifier.is_none();
            let is_bare = is_bare && chunk.value.is_empty() && chunk.timestamp_micros == 0 && chunk.labels.is_empty();
            if self.row.is_none() || !is_bare {
                return Err(ChunkError::Reset);
            }
            self.abandon();
            return Ok(None);
        }

        self.enter(&chunk)?;
        let commits = matches!(chunk.row_status, Some(RowStatus::CommitRow(true)));
        self.value(chunk)?;
        if !commits {
            return Ok(None);
        }
        if self.split.is_some() {
            return Err(ChunkError::Split);
        }

        let mut row = self.row.take().ok_or(ChunkError::NoKey)?;
        self.family = None;
        self.qualifier = None;
        self.last = Some(row.key.clone());
        row.sort();
        Ok(Some(row))
    }

    /// Begins a row, and moves to the column of the chunk.
    fn enter(&mut self, chunk: &CellChunk) -> Result<(), ChunkError> {
        if self.split.is_some() {
            let moves = !chunk.row_key.is_empty() || chunk.family_name.is_some() || chunk.qualifier.is_some();
            return if moves { Err(ChunkError::Split) } else { Ok(()) };
        }

        match &self.row {
            None if chunk.row_key.is_empty() => return Err(ChunkError::NoKey),
            None => {
                self.follows(&chunk.row_key)?;
                self.row = Some(Row { key: chunk.row_key.clone(), cells: Vec::new() });
            }
            Some(row) if !chunk.row_key.is_empty() && chunk.row_key != row.key => return Err(ChunkError::Uncommitted),
            Some(_) => {}
        }

        if let Some(family) = &chunk.family_name {
            if chunk.qualifier.is_none() {
                return Err(ChunkError::NoColumn);
            }
            let known = self.families.get(family).cloned();
            let family = known.unwrap_or_else(|| {
                let shared: Arc<str> = family.as_str().into();
                self.families.insert(family.clone(), Arc::clone(&shared));
                shared
            });
            self.family = Some(family);
        }
        if let Some(qualifier) = &chunk.qualifier {
            self.qualifier = Some(Bytes::copy_from_slice(qualifier));
        }
        if self.family.is_none() || self.qualifier.is_none() { Err(ChunkError::NoColumn) } else { Ok(()) }
    }

    fn value(&mut self, chunk: CellChunk) -> Result<(), ChunkError> {
        let is_last = chunk.value_size <= 0;
        if let Some(split) = &mut self.split {
            split.value.extend_from_slice(&chunk.value);
        } else if !is_last {
            let mut value = BytesMut::with_capacity(usize::try_from(chunk.value_size).unwrap_or(0).min(1 << 27));
            value.extend_from_slice(&chunk.value);
            self.split = Some(Split { timestamp: chunk.timestamp_micros, value });
        }
        if !is_last {
            return Ok(());
        }
        let (timestamp, value) = match self.split.take() {
            Some(split) => (split.timestamp, split.value.freeze()),
            None => (chunk.timestamp_micros, chunk.value),
        };
        let (family, qualifier) = self.family.clone().zip(self.qualifier.clone()).ok_or(ChunkError::NoColumn)?;
        let row = self.row.as_mut().ok_or(ChunkError::NoKey)?;
        row.cells.push(Cell { family, qualifier, timestamp, value });
        Ok(())
    }

    fn follows(&self, key: &Bytes) -> Result<(), ChunkError> {
        let in_order = self.last.as_ref().is_none_or(|last| if self.reversed { key < last } else { key > last });
        if in_order { Ok(()) } else { Err(ChunkError::Order) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: &str, column: Option<(&str, &str)>, value: &str, size: i32, status: Option<RowStatus>) -> CellChunk {
        CellChunk {
            row_key: Bytes::copy_from_slice(key.as_bytes()),
            family_name: column.map(|(family, _)| family.to_owned()),
            qualifier: column.map(|(_, qualifier)| qualifier.as_bytes().to_vec()),
            value: Bytes::copy_from_slice(value.as_bytes()),
            value_size: size,
            row_status: status,
            ..CellChunk::default()
        }
    }

    const COMMIT: Option<RowStatus> = Some(RowStatus::CommitRow(true));

    #[test]
    fn a_split_value_is_joined_and_families_are_sorted() {
        let mut merger = RowMerger::default();
        assert_eq!(merger.push(chunk("r", Some(("z", "q")), "he", 5, None)), Ok(None));
        assert_eq!(merger.push(chunk("", None, "llo", 0, None)), Ok(None));
        let row = merger.push(chunk("", Some(("a", "")), "x", 0, COMMIT)).unwrap().unwrap();
        let cells: Vec<(&str, &[u8])> = row.cells.iter().map(|cell| (&*cell.family, &*cell.value)).collect();
        assert_eq!(cells, [("a", &b"x"[..]), ("z", &b"hello"[..])]);
        assert_eq!(merger.last_key(), Some(&Bytes::from_static(b"r")));
    }

    #[test]
    fn a_reset_takes_a_row_back() {
        let mut merger = RowMerger::default();
        merger.push(chunk("r", Some(("f", "q")), "old", 0, None)).unwrap();
        let reset = CellChunk { row_status: Some(RowStatus::ResetRow(true)), ..CellChunk::default() };
        assert_eq!(merger.push(reset.clone()), Ok(None));
        assert_eq!(merger.push(reset), Err(ChunkError::Reset));
        let row = merger.push(chunk("r", Some(("f", "q")), "new", 0, COMMIT)).unwrap().unwrap();
        assert_eq!(row.cells.len(), 1);
        assert_eq!(merger.finish(), Ok(()));
    }

    #[test]
    fn broken_streams_are_refused() {
        let first = |chunk: CellChunk| RowMerger::default().push(chunk);
        assert_eq!(first(chunk("", Some(("f", "q")), "", 0, None)), Err(ChunkError::NoKey));
        assert_eq!(first(chunk("r", None, "", 0, None)), Err(ChunkError::NoColumn));
        let mut merger = RowMerger::default();
        merger.push(chunk("b", Some(("f", "q")), "", 0, COMMIT)).unwrap();
        assert_eq!(merger.push(chunk("a", Some(("f", "q")), "", 0, COMMIT)), Err(ChunkError::Order));
        assert_eq!(merger.scanned(Bytes::from_static(b"a")), Err(ChunkError::Order));
        merger.push(chunk("c", Some(("f", "q")), "", 0, None)).unwrap();
        assert_eq!(merger.finish(), Err(ChunkError::Unfinished));
        assert_eq!(merger.push(chunk("d", None, "", 0, None)), Err(ChunkError::Uncommitted));
        let mut merger = RowMerger::reversed();
        merger.push(chunk("b", Some(("f", "q")), "", 0, COMMIT)).unwrap();
        assert!(merger.push(chunk("a", Some(("f", "q")), "", 9, COMMIT)).is_err());
    }
}
