//! Errors of reading and writing SSTs, with their position in the file.

use std::{fmt, io};

use arrow::datatypes::DataType;
use tidetable_layout::ColumnRef;

/// A part of an SST, as errors and inspections name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePart {
    /// The fixed start: magic number, format version, file id.
    Header,
    /// The fixed end: magic number, format version, lengths, checksum.
    Footer,
    /// The stored schema, the writer's metadata and the table of stripes, compressed.
    Meta,
    /// The key filter: a binary fuse filter of row keys.
    Filter,
    /// The head of a stripe, before its pages: keys, positions and checksums of the pages, small streams.
    StripeHead,
    /// Qualifiers of the records of a column group, as codes of its dictionary.
    Qualifiers {
        /// Index of the column group in the stored schema.
        group: usize,
    },
    /// Timestamps of a column group: of each record, or with row patterns the first of each row.
    Timestamps {
        /// Index of the column group in the stored schema.
        group: usize,
    },
    /// The values of a column, a null for each record without one.
    Values {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group, as in the stored schema.
        column: usize,
    },
    /// The row sums of a column: for each row the sum of its values.
    Sums {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group, as in the stored schema.
        column: usize,
    },
    /// Outliers of a column: the stream of their values, or that of the indices of their records.
    Outliers {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group, as in the stored schema.
        column: usize,
    },
}

impl FilePart {
    /// The column that the part belongs to, if it belongs to one.
    pub(crate) fn column(&self) -> Option<ColumnRef> {
        match self {
            Self::Values { group, column } | Self::Sums { group, column } | Self::Outliers { group, column } => {
                Some(ColumnRef { group: *group, column: *column })
            }
            _ => None,
        }
    }
}

impl fmt::Display for FilePart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(out, "header"),
            Self::Footer => write!(out, "footer"),
            Self::Meta => write!(out, "meta"),
            Self::Filter => write!(out, "filter"),
            Self::StripeHead => write!(out, "head"),
            Self::Qualifiers { group } => write!(out, "qualifiers of group {group}"),
            Self::Timestamps { group } => write!(out, "timestamps of group {group}"),
            Self::Values { group, column } => write!(out, "values of group {group}, column {column}"),
            Self::Sums { group, column } => write!(out, "sums of group {group}, column {column}"),
            Self::Outliers { group, column } => write!(out, "outliers of group {group}, column {column}"),
        }
    }
}

/// Errors of reading an SST. The caller adds the path, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The magic number at the start or the end is missing, so this is another kind of file, or its end is lost.
    #[error("no magic number at byte {offset}")]
    NotAnSst {
        /// The offset of the byte at which the magic number should be.
        offset: u64,
    },
    /// The format version is one that this build cannot read, usually because a newer build wrote the file.
    #[error("SST format version {found}, and this build reads {newest}; use a newer build")]
    UnsupportedVersion {
        /// The format version in the file's footer or header.
        found: u32,
        /// The newest format version that this build reads.
        newest: u32,
    },
    /// The file is shorter than its footer or the part that is read requires.
    #[error("{what} needs {wanted} bytes at byte {offset}, but the file has {length}")]
    Truncated {
        /// The part that was being read, such as "stripe head".
        what: &'static str,
        /// The offset in the file at which the part begins.
        offset: u64,
        /// The size in bytes that the part has according to its parent.
        wanted: u64,
        /// The size of the file in bytes.
        length: u64,
    },
    /// The checksum of a part differs from the one that its parent states, so its bytes changed after they were written.
    #[error("checksum of {stream}, page {page}{} at byte {offset} does not match", OfStripe(*.stripe))]
    Checksum {
        /// Index of the stripe, if the part is in one.
        stripe: Option<usize>,
        /// The part whose checksum does not match.
        stream: FilePart,
        /// Index of the page in its stream; 0 for parts without pages.
        page: usize,
        /// The offset in the file of the checksummed bytes.
        offset: u64,
    },
    /// The bytes violate the format although their checksum matches: a count, a length or an order is impossible.
    #[error("corrupt {what} near byte {offset}")]
    Corrupt {
        /// The part that was being read, such as "row keys".
        what: &'static str,
        /// The offset in the file of the damage, approximately.
        offset: u64,
    },
    /// The projection was made for another schema: it has another number of groups, or of columns in a group.
    #[error("the projection has {found} entries where the schema has {expected}; build it from the file's schema")]
    Projection {
        /// The number of groups, or of columns of a group, that the schema has.
        expected: usize,
        /// The number that the projection has.
        found: usize,
    },
    /// The requested stripe is not one of the file.
    #[error("stripe {stripe} of {stripes}; use an index of `Reader::stripes`")]
    NoSuchStripe {
        /// The index that was requested, counted from 0.
        stripe: usize,
        /// The number of stripes of the file.
        stripes: usize,
    },
    /// The source of the bytes failed: the disk or the network.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Shows ` of stripe N` if there is a stripe, and nothing otherwise.
struct OfStripe(Option<usize>);

impl fmt::Display for OfStripe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |stripe| write!(out, " of stripe {stripe}"))
    }
}

/// Errors of encoding stripes and writing an SST. Those about rows are errors of the caller, which sorts and merges them first.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A stripe was to be encoded without rows. The format requires at least one.
    #[error("a stripe needs at least one row; push only stripes with rows")]
    NoRows,
    /// A column group of the block, or an array of it, is missing or has the wrong length.
    #[error("group {group}: {what}; pass a complete block of the table's schema")]
    Shape {
        /// Index of the column group in the stored schema.
        group: usize,
        /// What does not match, such as "a column is missing".
        what: &'static str,
    },
    /// The Arrow type of a column does not match the schema.
    #[error("group {group}, column {column} is {found}, but the schema has {expected}")]
    Type {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group, as in the stored schema.
        column: usize,
        /// The Arrow type that the schema prescribes.
        expected: DataType,
        /// The Arrow type of the array in the block.
        found: DataType,
    },
    /// Row keys do not strictly ascend; or, where keys are stored as prefix and tail, a prefix starts with the one
    /// before it, so that tails would decide the order.
    #[error("the key of row {row} does not follow the one before it; sort the rows and merge equal keys first")]
    UnsortedKeys {
        /// Index of the later of the two rows in the stripe.
        row: usize,
    },
    /// Records of a row are not ordered by qualifier, then from the newest timestamp to the oldest.
    #[error("group {group}: records of row {row} are not by qualifier, newest first; sort them and merge equal ones")]
    UnsortedRecords {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the first such row in the stripe.
        row: usize,
    },
    /// The qualifier dictionary is not sorted, or a code is outside it.
    #[error("group {group}: qualifiers are not a sorted dictionary with codes inside it")]
    Qualifiers {
        /// Index of the column group in the stored schema.
        group: usize,
    },
    /// A stripe does not follow the one before it.
    #[error("stripe {stripe} begins at or before the last key of the stripe before it; push stripes in key order")]
    UnsortedStripes {
        /// Index that the refused stripe would have had in the file.
        stripe: usize,
    },
    /// The stripe was encoded for another schema than that of the file.
    #[error("stripe {stripe} was encoded for another schema than the writer's")]
    OtherSchema {
        /// Index that the refused stripe would have had in the file.
        stripe: usize,
    },
    /// A quantity exceeds a limit of the format, which readers check before they allocate.
    #[error("{what}: {found} is over the format's limit of {limit}; write smaller stripes")]
    TooLarge {
        /// The quantity that is limited, such as "rows of a stripe".
        what: &'static str,
        /// The value found, in the unit of `what`.
        found: usize,
        /// The greatest value that the format allows.
        limit: usize,
    },
    /// The pco codec failed to encode a stream of numbers.
    #[error("encoding numbers failed")]
    Numbers(#[from] pco::errors::PcoError),
    /// The stored schema could not be serialized as JSON.
    #[error("writing the schema failed")]
    Schema(#[from] serde_json::Error),
    /// The output failed: the disk is full or the network broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}
