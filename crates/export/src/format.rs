//! The forms of published files.

/// The form of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// Parquet.
    #[default]
    Parquet,
    /// CSV with a header.
    Csv,
    /// Arrow IPC, the file form.
    Arrow,
    /// The Parquet that Dataflow's template loads into Bigtable: a row with its cells.
    BigtableParquet,
    /// The CSV that `cbt import` reads: a row with a value a column, `value@micros`.
    CbtCsv,
}

impl FileFormat {
    /// The name of the one file of a part. One, so that a restated part is replaced at once.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Parquet => "part-0.parquet",
            Self::BigtableParquet => "part-0.bigtable.parquet",
            Self::Csv => "part-0.csv",
            Self::CbtCsv => "part-0.cbt.csv",
            Self::Arrow => "part-0.arrow",
        }
    }

    /// Whether its rows are those of the query, and not cells brought together.
    pub fn holds_rows(self) -> bool {
        matches!(self, Self::Parquet | Self::Csv | Self::Arrow)
    }
}
