//! Rows as the service returns them.

use std::sync::Arc;

use bytes::Bytes;

/// A cell as the service returns it, with its place in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The id of its family.
    pub family: Arc<str>,
    /// Qualifier; may be empty.
    pub qualifier: Bytes,
    /// Microseconds since the epoch.
    pub timestamp: i64,
    /// Its value, as bytes; empty if the request strips values.
    pub value: Bytes,
}

impl Cell {
    /// What orders the cells of a row: family, qualifier, the newest first.
    pub fn place(&self) -> (&str, &[u8], std::cmp::Reverse<i64>) {
        (&self.family, &self.qualifier, std::cmp::Reverse(self.timestamp))
    }
}

/// A row with its cells by family, qualifier and descending timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The row key, as bytes.
    pub key: Bytes,
    /// Its cells; at least one.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Bytes of its key, qualifiers and values.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.cells.iter().map(|cell| cell.qualifier.len() + cell.value.len()).sum::<usize>()
    }

    /// Sorts the cells: the service leaves the order of families open.
    pub(crate) fn sort(&mut self) {
        if !self.cells.is_sorted_by(|a, b| a.place() <= b.place()) {
            self.cells.sort_by(|a, b| a.place().cmp(&b.place()));
        }
    }
}
