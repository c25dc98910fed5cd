//! Errors of reading and writing SSTs, with their position in the file.

use std::{fmt, io};

use arrow::datatypes::DataType;

/// A part of an SST, as errors and inspections name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePart {
    /// The fixed start: magic number, format version, file id.
    Header,
    /// The fixed end: magic number, format version, lengths, checksum.
    Footer,
    /// Schema, metadata and the index of stripes.
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
    /// Values of a column.
    Values {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group.
        column: usize,
    },
    /// Row sums of a column.
    Sums {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group.
        column: usize,
    },
    /// Outliers of a column: the stream of their values, or that of the indices of their records.
    Outliers {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group.
        column: usize,
    },
}

impl FilePart {
    /// Group and column of a part that is of a column.
    pub(crate) fn column(&self) -> Option<(usize, usize)> {
        match self {
            Self::Values { group, column } | Self::Sums { group, column } | Self::Outliers { group, column } => {
                Some((*group, *column))
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
    /// The magic number is missing.
    #[error("no magic number at byte {offset}")]
    NotAnSst {
        /// Where the magic number should be.
        offset: u64,
    },
    /// The format version is not supported.
    #[error("SST format version {found}, and this build reads {newest}; use a newer build")]
    UnsupportedVersion {
        /// The version of the file.
        found: u32,
        /// The newest version this build reads.
        newest: u32,
    },
    /// The file is truncated.
    #[error("{what} needs {wanted} bytes at byte {offset}, but the file has {length}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it begins.
        offset: u64,
        /// Bytes needed.
        wanted: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// A checksum does not match.
    #[error("checksum of {stream}, page {page}{} at byte {offset} does not match", OfStripe(*.stripe))]
    Checksum {
        /// Index of the stripe, if the part is in one.
        stripe: Option<usize>,
        /// The part whose checksum does not match.
        stream: FilePart,
        /// Index of the page in its stream; 0 for parts without pages.
        page: usize,
        /// Offset of the checksummed bytes.
        offset: u64,
    },
    /// The content is invalid.
    #[error("corrupt {what} near byte {offset}")]
    Corrupt {
        /// What was being read.
        what: &'static str,
        /// Approximate offset.
        offset: u64,
    },
    /// The projection was made for another schema: it has another number of groups, or of columns in a group.
    #[error("the projection has {found} entries where the schema has {expected}; build it from the file's schema")]
    Projection {
        /// Entries expected.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// There is no such stripe.
    #[error("stripe {stripe} of {stripes}; use an index of `Reader::stripes`")]
    NoSuchStripe {
        /// The requested stripe.
        stripe: usize,
        /// Stripes of the file.
        stripes: usize,
    },
    /// Reading the file failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// ` of stripe N`, or nothing.
struct OfStripe(Option<usize>);

impl fmt::Display for OfStripe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |stripe| write!(out, " of stripe {stripe}"))
    }
}

/// Errors of writing an SST.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A stripe without rows.
    #[error("a stripe needs at least one row; push only stripes with rows")]
    NoRows,
    /// A column group of the block, or an array of it, is missing or has the wrong length.
    #[error("group {group}: {what}; pass a complete block of the table's schema")]
    Shape {
        /// Index of the column group in the stored schema.
        group: usize,
        /// The mismatch.
        what: &'static str,
    },
    /// The Arrow type of a column does not match the schema.
    #[error("group {group}, column {column} is {found}, but the schema has {expected}")]
    Type {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the column in its group.
        column: usize,
        /// The schema's type.
        expected: DataType,
        /// The block's type.
        found: DataType,
    },
    /// Row keys do not strictly ascend; or, where keys are stored as prefix and tail, a prefix starts with the one
    /// before it, so that tails would decide the order.
    #[error("the key of row {row} does not follow the one before it; sort the rows and merge equal keys first")]
    UnsortedKeys {
        /// Index of the row in the stripe.
        row: usize,
    },
    /// Records of a row are not ordered by qualifier, then from the newest timestamp to the oldest.
    #[error("group {group}: records of row {row} are not by qualifier, newest first; sort them and merge equal ones")]
    UnsortedRecords {
        /// Index of the column group in the stored schema.
        group: usize,
        /// Index of the row in the stripe.
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
        /// Index of the refused stripe.
        stripe: usize,
    },
    /// The stripe was encoded for another schema.
    #[error("stripe {stripe} was encoded for another schema than the writer's")]
    OtherSchema {
        /// Index of the refused stripe.
        stripe: usize,
    },
    /// A quantity exceeds a limit of the format.
    #[error("{what}: {found} is over the format's limit of {limit}; write smaller stripes")]
    TooLarge {
        /// The limited quantity.
        what: &'static str,
        /// Its value.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The pco codec failed.
    #[error("encoding numbers failed")]
    Numbers(#[from] pco::errors::PcoError),
    /// The schema could not be serialized.
    #[error("writing the schema failed")]
    Schema(#[from] serde_json::Error),
    /// Writing the file failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}
