//! Places of rows and records in the blocks that are merged.

/// A row of one of several blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRef {
    /// Index of the block.
    pub source: usize,
    /// Index of the row in the block.
    pub row: usize,
}

/// A record of one of several sources, which may be blocks or arrays of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef {
    /// Index of the source.
    pub source: usize,
    /// Index of the record in the source.
    pub record: usize,
}
