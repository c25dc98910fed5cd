//! Rejected rows of a unit: few go with its answer, many wait in a file for the driver.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_blobs::{BlobWriter, TEMPORARY};
use tidetable_ingest::RejectedRow;
use tidetable_store::StoreError;

/// Bytes of rows that go with an answer.
const INLINE: usize = 64 << 10;

/// The rejected rows of a unit, as its answer has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CarriedRejects {
    rows: Vec<RejectedRow>,
    /// A parked file of JSON lines with the rows after those, and their number.
    rest: Option<(String, u64)>,
}

/// Collects the rejected rows of a unit while it runs.
pub(crate) struct RejectBuffer<'a> {
    blobs: &'a dyn Blobs,
    /// A name that no other unit has.
    token: &'a str,
    state: Mutex<RejectBufferState>,
}

#[derive(Default)]
struct RejectBufferState {
    rows: Vec<RejectedRow>,
    bytes: usize,
    file: Option<RejectFile>,
    error: Option<StoreError>,
}

/// The file of the rows that do not go with the answer.
struct RejectFile {
    writer: Box<dyn BlobWriter>,
    rows: u64,
}

impl<'a> RejectBuffer<'a> {
    pub(crate) fn new(blobs: &'a dyn Blobs, token: &'a str) -> Self {
        Self { blobs, token, state: Mutex::default() }
    }

    /// Keeps a row. An error is returned by [`Self::finish`], since the caller is in the middle of a batch.
    pub(crate) fn keep(&self, row: &RejectedRow) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes < INLINE {
            state.bytes += row.raw.len() + row.reason.len() + row.file.len();
            state.rows.push(row.clone());
        } else if state.error.is_none() {
            state.error = self.write(&mut state, row).err();
        }
    }

    fn write(&self, state: &mut RejectBufferState, row: &RejectedRow) -> Result<(), StoreError> {
        // In `exports`, where unfinished files of a bucket may lie, and are swept.
        let path = format!("exports/{TEMPORARY}{}-rejected", self.token);
        let file = match &mut state.file {
            Some(open) => open,
            none => none.insert(RejectFile { writer: self.blobs.overwrite_writer(&path)?, rows: 0 }),
        };

        file.rows += 1;
        let written = serde_json::to_writer(&mut file.writer, row).map_err(std::io::Error::from);
        let written = written.and_then(|()| file.writer.write_all(b"\n"));
        written.map_err(|source| StoreError::Blob(BlobError::Io { action: "write", path, source }))
    }

    /// The rows for the answer.
    pub(crate) fn finish(self) -> Result<CarriedRejects, StoreError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        let rest = match state.file {
            Some(RejectFile { writer, rows }) => Some((writer.park()?, rows)),
            None => None,
        };
        Ok(CarriedRejects { rows: state.rows, rest })
    }
}

impl CarriedRejects {
    /// Passes all rows to `keep`, and removes their file.
    pub(crate) fn take(self, blobs: &dyn Blobs, keep: &dyn Fn(&RejectedRow)) -> Result<(), StoreError> {
        self.rows.iter().for_each(keep);
        let Some((path, count)) = self.rest else { return Ok(()) };

        let bytes = blobs.read(&path)?.unwrap_or_default();
        let damaged =
            |source: std::io::Error| StoreError::Blob(BlobError::Io { action: "read", path: path.clone(), source });
        let mut rows = 0;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            keep(&serde_json::from_slice(line).map_err(|error| damaged(error.into()))?);
            rows += 1;
        }

        if rows != count {
            return Err(damaged(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(blobs.delete(&path)?)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn all_rows_come_in_order_however_many_they_are() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let row = |line: u64| RejectedRow {
            file: "a.csv".to_owned(),
            table: None,
            line,
            column: None,
            reason: "no number".to_owned(),
            raw: "x".repeat(1000),
        };
        for count in [0, 3, 500] {
            let buffer = RejectBuffer::new(&blobs, "unit");
            (0..count).for_each(|line| buffer.keep(&row(line)));
            let carried = buffer.finish().unwrap();
            let sent: CarriedRejects = serde_json::from_slice(&serde_json::to_vec(&carried).unwrap()).unwrap();
            let lines = RefCell::new(Vec::new());
            sent.take(&blobs, &|row| lines.borrow_mut().push(row.line)).unwrap();
            assert_eq!(*lines.borrow(), (0..count).collect::<Vec<_>>());
            assert!(blobs.leftovers("exports").unwrap().is_empty());
        }
    }
}
