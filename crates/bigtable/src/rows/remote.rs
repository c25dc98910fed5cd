//! Rows of a table of Bigtable, for a thread that may block.

use crate::client::{Row, RowStream};
use crate::error::Result;

/// An iterator over the rows of a stream. Not for threads of an async runtime.
#[derive(Debug)]
pub struct RemoteRows {
    stream: RowStream,
    batch: std::vec::IntoIter<Row>,
}

impl RemoteRows {
    /// The rows of `stream`.
    pub fn new(stream: RowStream) -> Self {
        Self { stream, batch: Vec::new().into_iter() }
    }
}

impl Iterator for RemoteRows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(Ok(row));
            }
            match self.stream.blocking_recv()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
