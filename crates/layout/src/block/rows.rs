//! Columnar blocks of rows: the unit that loads sort, SSTs store, merges combine and records are decoded from.

use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::block::keys::Keys;

/// Rows in key order with all or some of their cells.
///
/// Invariants: keys ascend strictly; the records of a row are sorted by (qualifier bytes ascending, timestamp descending)
/// and distinct unless the group keeps duplicates; every column of a group is as long as its last row end; when all columns
/// are present every record has a value in at least one.
#[derive(Debug, Clone)]
pub struct Block {
    /// The row keys, distinct and ascending.
    pub keys: Keys,
    /// One entry for each group of the stored schema, in its order; `None` if not projected.
    pub groups: Vec<Option<GroupBlock>>,
}

/// The records of one group for the rows of a [`Block`].
#[derive(Debug, Clone)]
pub struct GroupBlock {
    /// For each row, the end of its records (exclusive); the first row starts at 0.
    pub row_ends: Vec<u32>,
    /// Qualifiers of the records of a dynamic group; `None` if not projected.
    pub qualifiers: Option<Qualifiers>,
    /// Cell timestamp of each record, microseconds; `None` if not projected or not stored (all 0).
    pub timestamps: Option<Vec<i64>>,
    /// One entry for each column of the group, in its order, of the type `ValueType::arrow` says;
    /// `None` if not projected. A null is an absent cell.
    pub columns: Vec<Option<ArrayRef>>,
    /// One entry for each column, or no entries: the sum of its values for each row, instead of the values. Only present if
    /// requested by [`GroupProjection::sums`].
    pub sums: Vec<Option<ArrayRef>>,
}

/// The qualifiers of a dynamic group: a sorted dictionary and a code for each record.
#[derive(Debug, Clone, Default)]
pub struct Qualifiers {
    /// Distinct qualifiers in ascending byte order. May hold some that no record uses.
    pub dictionary: Vec<Box<[u8]>>,
    /// For each record, the index of its qualifier in the dictionary.
    pub codes: Vec<u32>,
}

impl GroupBlock {
    /// The records of row `row`, as a range of the lists above.
    pub fn records(&self, row: usize) -> std::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        start..self.row_ends[row] as usize
    }

    /// The number of records of all rows.
    pub fn len(&self) -> usize {
        self.row_ends.last().map_or(0, |end| *end as usize)
    }

    /// Whether no row has a record of the group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Block {
    /// Removes rows without records: a row exists only by its cells. If a group is not projected all rows are kept.
    pub fn without_empty_rows(self) -> Self {
        let Some(groups) = self.groups.iter().map(Option::as_ref).collect::<Option<Vec<&GroupBlock>>>() else {
            return self;
        };

        let mut kept: Vec<usize> = (0..self.keys.len()).collect();
        kept.retain(|row| groups.iter().any(|group| !group.records(*row).is_empty()));
        if kept.len() == self.keys.len() {
            return self;
        }

        let mut keys = Keys::new(Arc::clone(self.keys.tail_shape()));
        for row in &kept {
            let (prefix, tail) = self.keys.parts(*row);
            keys.push(prefix, tail);
        }

        // Removed rows have no records, so only the row ends change.
        let mut groups = self.groups;
        for group in groups.iter_mut().flatten() {
            group.row_ends = kept.iter().map(|row| group.row_ends[*row]).collect();
        }
        Self { keys, groups }
    }
}

/// The parts of a stored block to read. Keys and row ends are always read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// One entry for each group; `None` leaves the group out.
    pub groups: Vec<Option<GroupProjection>>,
}

/// The parts of a group to read. Parts that the group does not store are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProjection {
    /// Whether to decode the qualifiers of a dynamic group.
    pub qualifiers: bool,
    /// Whether to decode the timestamps of a group that stores them.
    pub timestamps: bool,
    /// For each column, whether to decode it.
    pub columns: Vec<bool>,
    /// Read stored sums by row instead of the values of these columns, where sums are stored.
    pub sums: bool,
}

impl Projection {
    /// The projection of everything in `schema`, without sums by row.
    pub fn all(schema: &crate::schema::StoredSchema) -> Self {
        let groups = schema
            .groups
            .iter()
            .map(|group| {
                Some(GroupProjection {
                    qualifiers: true,
                    timestamps: true,
                    columns: vec![true; group.columns.len()],
                    sums: false,
                })
            })
            .collect();
        Self { groups }
    }
}
