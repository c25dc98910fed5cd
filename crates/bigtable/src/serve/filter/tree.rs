//! The compiled form of a row filter.

use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::serve::filter::patterns::Pattern;

/// A row filter whose patterns are compiled; names and numbers are those of the API's `RowFilter`.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    /// Lets all cells through.
    All,
    /// Lets no cell through.
    Nothing,
    /// One filter after the other.
    Chain(Vec<Self>),
    /// The cells of each, merged.
    Interleave(Vec<Self>),
    /// `yes` for rows of which `predicate` lets a cell through, `no` for others. `index` numbers the conditions: those of the
    /// predicate come before, those of the branches after.
    Condition { index: usize, predicate: Box<Self>, yes: Box<Self>, no: Box<Self> },
    /// Cells go to the result at once, and to no other filter.
    Sink,
    /// Rows whose keys match.
    Key(Pattern),
    /// Rows with this probability.
    Sample { rate: f64, seed: u64 },
    /// Cells by family and qualifier; `index` numbers the filters of names.
    Name { index: usize, name: NameFilter },
    /// Cells by timestamp, microseconds.
    Times(Range<i64>),
    /// Cells whose values match.
    Value(Pattern),
    /// Cells whose values are within a range.
    Values(ByteRange),
    /// All but the first cells of a row.
    RowOffset(Counted),
    /// The first cells of a row.
    RowLimit(Counted),
    /// The newest cells of a column.
    ColumnLimit(Counted),
    /// Lets all cells through, with empty values.
    Strip,
    /// Gives cells a label, by number.
    Label(u16),
}

/// The first cells of a row or a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// Number of the filter among those that count.
    pub(crate) index: usize,
    /// The number of cells that are kept or left out.
    pub(crate) cells: u64,
}

/// A row filter with what its evaluation takes.
#[derive(Debug)]
pub(crate) struct CompiledFilter {
    pub(crate) root: Filter,
    /// Labels that it gives, by number.
    pub(crate) labels: Vec<Arc<str>>,
    /// Filters in the tree, and levels of it.
    pub(crate) nodes: usize,
    pub(crate) depth: usize,
    /// Filters that count cells, and conditions.
    pub(crate) counters: usize,
    pub(crate) conditions: usize,
    /// Kinds of copies of a cell that it may make: by label, with value and without.
    pub(crate) kinds: usize,
}

/// A filter of columns.
#[derive(Debug, Clone)]
pub(crate) enum NameFilter {
    Family(Pattern),
    Qualifier(Pattern),
    Columns { family: Arc<str>, qualifiers: ByteRange },
}

impl NameFilter {
    /// Whether it lets cells of a column through; without a qualifier, whether it may do so for a column of the family.
    pub(crate) fn passes(&self, family: &str, qualifier: Option<&[u8]>) -> bool {
        match self {
            Self::Family(pattern) => pattern.matches(family.as_bytes()),
            Self::Qualifier(pattern) => qualifier.is_none_or(|qualifier| pattern.matches(qualifier)),
            Self::Columns { family: own, qualifiers } => {
                **own == *family && qualifier.is_none_or(|qualifier| qualifiers.contains(qualifier))
            }
        }
    }
}

/// A range of byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: Bound<Bytes>,
    pub(crate) end: Bound<Bytes>,
}

impl ByteRange {
    pub(crate) fn contains(&self, bytes: &[u8]) -> bool {
        let starts = match &self.start {
            Bound::Included(start) => bytes >= start,
            Bound::Excluded(start) => bytes > start,
            Bound::Unbounded => true,
        };
        starts
            && match &self.end {
                Bound::Included(end) => bytes <= end,
                Bound::Excluded(end) => bytes < end,
                Bound::Unbounded => true,
            }
    }
}
