//! Errors of reading and writing SSTs, with their position in the file.

use std::{fmt, io};

use arrow::datatypes::DataType;

/// A part of a file, as errors and inspections name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first bytes.
    Header,
    /// The last bytes.
    Footer,
    /// Schema, metadata and stripe table.
    Meta,
    /// The key filter.
    Filter,
    /// Keys, page tables and small streams of a stripe.
    Head,
    /// Qualifier codes of a group.
    Qualifiers {
        /// Index in the stored schema.
        group: usize,
    },
    /// Timestamps of a group, or the first timestamp of each row.
    Timestamps {
        /// Index in the stored schema.
        group: usize,
    },
    /// Values of a column.
    Values {
        /// Index in the stored schema.
        group: usize,
        /// Index in the group.
        column: usize,
    },
    /// Sums of a column by row.
    Sums {
        /// Index in the stored schema.
        group: usize,
        /// Index in the group.
        column: usize,
    },
    /// The outliers of a column: values or record indices.
    Outliers {
        /// Index in the stored schema.
        group: usize,
        /// Index in the group.
        column: usize,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(out, "header"),
            Self::Footer => write!(out, "footer"),
            Self::Meta => write!(out, "meta"),
            Self::Filter => write!(out, "filter"),
            Self::Head => write!(out, "head"),
            Self::Qualifiers { group } => write!(out, "qualifiers of group {group}"),
            Self::Timestamps { group } => write!(out, "timestamps of group {group}"),
            Self::Values { group, column } => write!(out, "values of group {group}, column {column}"),
            Self::Sums { group, column } => write!(out, "sums of group {group}, column {column}"),
            Self::Outliers { group, column } => write!(out, "outliers of group {group}, column {column}"),
        }
    }
}

/// Errors of reading an SST. The caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The magic number is missing.
    #[error("not an SST: no magic number at byte {offset}; check that the path names a .sst file of this table")]
    NotAnSst {
        /// Where the magic number should be.
        offset: u64,
    },
    /// The format version is not supported.
    #[error("SST format version {found}, and this build reads {newest}; use a newer build")]
    UnsupportedVersion {
        /// The version the file states.
        found: u32,
        /// The newest version this build reads.
        newest: u32,
    },
    /// The file is truncated.
    #[error("{what} needs {wanted} bytes at byte {offset}, but the file has {length}; restore it from its source")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where.
        offset: u64,
        /// Bytes needed.
        wanted: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// A checksum does not match.
    #[error(
        "checksum of {stream}, page {page}{} at byte {offset} does not match; restore the file or rebuild its window",
        Of(*.stripe)
    )]
    Checksum {
        /// The stripe, if any.
        stripe: Option<usize>,
        /// What was being read.
        stream: Part,
        /// Page of the stream; 0 if there is only one.
        page: usize,
        /// Offset of the checksummed bytes.
        offset: u64,
    },
    /// The content is invalid.
    #[error("corrupt {what} near byte {offset}; restore the file or rebuild its window")]
    Corrupt {
        /// What was being read.
        what: &'static str,
        /// Approximate offset.
        offset: u64,
    },
    /// The projection was made for another schema.
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
    /// The source failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct Of(Option<usize>);

impl fmt::Display for Of {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |stripe| write!(out, " of stripe {stripe}"))
    }
}

/// Errors of writing an SST.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A stripe holds at least one row.
    #[error("a stripe needs at least one row; push only stripes with rows")]
    NoRows,
    /// A part of the block is missing or has the wrong length.
    #[error("group {group}: {what}; pass a complete block of the table's schema")]
    Shape {
        /// Index in the stored schema.
        group: usize,
        /// The mismatch.
        what: &'static str,
    },
    /// The Arrow type of a column does not match the schema.
    #[error("group {group}, column {column} is {found}, but the schema has {expected}")]
    Type {
        /// Index in the stored schema.
        group: usize,
        /// Index in the group.
        column: usize,
        /// The schema's type.
        expected: DataType,
        /// The block's type.
        found: DataType,
    },
    /// Keys do not strictly ascend, or a prefix begins with the one before it.
    #[error("the key of row {row} does not follow the one before it; sort the rows and merge equal keys first")]
    UnsortedKeys {
        /// Row of the stripe.
        row: usize,
    },
    /// Records of a row are not in order.
    #[error("group {group}: records of row {row} are not by qualifier, newest first; sort them and merge equal ones")]
    UnsortedRecords {
        /// Index in the stored schema.
        group: usize,
        /// Row of the stripe.
        row: usize,
    },
    /// The qualifier dictionary is not sorted, or a code is outside it.
    #[error("group {group}: qualifiers are not a sorted dictionary with codes inside it")]
    Qualifiers {
        /// Index in the stored schema.
        group: usize,
    },
    /// A stripe does not follow the one before it.
    #[error("stripe {stripe} begins at or before the last key of the stripe before it; push stripes in key order")]
    UnsortedStripes {
        /// Ordinal of the refused stripe.
        stripe: usize,
    },
    /// The stripe was encoded for another schema.
    #[error("stripe {stripe} was encoded for another schema than the writer's")]
    OtherSchema {
        /// Ordinal of the refused stripe.
        stripe: usize,
    },
    /// A limit of the format.
    #[error("{what}: {found} is over the format's limit of {limit}; write smaller stripes")]
    TooLarge {
        /// The limited quantity.
        what: &'static str,
        /// How large.
        found: usize,
        /// The most allowed.
        limit: usize,
    },
    /// The number codec failed.
    #[error("encoding numbers failed")]
    Numbers(#[from] pco::errors::PcoError),
    /// The schema could not be serialized.
    #[error("writing the schema failed")]
    Schema(#[from] serde_json::Error),
    /// The output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}
