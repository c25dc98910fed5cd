//! Formats of files and the endings of their names: the one list of both.

mod compression;
mod convert;
mod foreign;
mod shell;

pub(crate) use compression::Compression;
pub(crate) use convert::{conversion, operand};
pub use foreign::Foreign;
pub(crate) use foreign::{LOOKED_AT, WORKBOOK};
pub use shell::shell_word;

/// The bytes that some programs put in front of UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A format of files that are read, told by `format` of a source or by the ending of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Format {
    /// Delimited text: CSV and its kin with any delimiter, possibly compressed.
    Csv,
    /// Apache Parquet, whose row groups are read in slices by several threads.
    Parquet,
    /// JSON lines: a line has an object, possibly compressed.
    Json,
    /// Arrow IPC, a file or a stream, possibly compressed.
    Arrow,
    /// Avro object container files, of which blocks are decoded together, possibly compressed.
    Avro,
    /// Parquet with a row of Bigtable in each record: a key and a list of cells.
    BigtableParquet,
    /// Avro with a row of Bigtable in each record.
    BigtableAvro,
    /// CSV for `cbt import`: a line of families, one of qualifiers, and lines of values of rows.
    CbtCsv,
}

/// Endings of the names of files, in lower case and without those of compressions.
const ENDINGS: [(&str, Format); 17] = [
    (".csv", Format::Csv),
    (".tsv", Format::Csv),
    (".txt", Format::Csv),
    (".tab", Format::Csv),
    (".dat", Format::Csv),
    (".asc", Format::Csv),
    (".rdb", Format::Csv),
    (".parquet", Format::Parquet),
    (".pq", Format::Parquet),
    (".jsonl", Format::Json),
    (".ndjson", Format::Json),
    (".json", Format::Json),
    (".arrow", Format::Arrow),
    (".arrows", Format::Arrow),
    (".ipc", Format::Arrow),
    (".feather", Format::Arrow),
    (".avro", Format::Avro),
];

impl Format {
    /// All formats, in the order in which the reference lists them.
    pub const ALL: [Self; 8] = [
        Self::Csv,
        Self::Parquet,
        Self::Json,
        Self::Arrow,
        Self::Avro,
        Self::BigtableParquet,
        Self::BigtableAvro,
        Self::CbtCsv,
    ];

    /// What `format` of a source may be in a job file, in the order of [`Self::ALL`].
    pub const KEYS: [&'static str; 8] = [
        Self::Csv.key(),
        Self::Parquet.key(),
        Self::Json.key(),
        Self::Arrow.key(),
        Self::Avro.key(),
        Self::BigtableParquet.key(),
        Self::BigtableAvro.key(),
        Self::CbtCsv.key(),
    ];

    /// The format as people call it, for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Json => "JSON",
            Self::Arrow => "Arrow",
            Self::Avro => "Avro",
            Self::BigtableParquet => "Bigtable Parquet",
            Self::BigtableAvro => "Bigtable Avro",
            Self::CbtCsv => "cbt CSV",
        }
    }

    /// The format as job files name it, one of [`Self::KEYS`].
    pub const fn key(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Arrow => "arrow",
            Self::Avro => "avro",
            Self::BigtableParquet => "bigtable-parquet",
            Self::BigtableAvro => "bigtable-avro",
            Self::CbtCsv => "cbt-csv",
        }
    }

    /// The format that a name ends with, also behind `.gz`, `.zst` and `.zip`; `None` if the ending does not say. An archive
    /// holds text: delimited, unless its name says more.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let compression = Compression::of_name(&name);
        let plain = compression.and_then(|found| name.strip_suffix(found.ending)).unwrap_or(&name);
        let found = ENDINGS.iter().find(|(ending, _)| plain.ends_with(ending)).map(|(_, format)| *format);
        match compression {
            Some(Compression::ZIP) => found.filter(|format| format.is_text()).or(Some(Self::Csv)),
            _ => found,
        }
    }

    /// The part of a name before the ending that says its format, and before that of a compression; `None` if the ending does
    /// not say.
    pub(crate) fn stem(name: &str) -> Option<&str> {
        let lower = name.to_ascii_lowercase();
        let compression = Compression::of_name(&lower);
        let plain = compression.and_then(|found| lower.strip_suffix(found.ending)).unwrap_or(&lower);
        let stem = ENDINGS.iter().find_map(|(ending, _)| plain.strip_suffix(ending))?;
        name.get(..stem.len())
    }

    /// Whether a name ends in `.json`, as also settings and catalogs do that lie beside data. Those are not packed.
    pub(crate) fn may_be_settings(name: &str) -> bool {
        name.to_ascii_lowercase().ends_with(".json")
    }

    /// The name of a compressed file before it was compressed: without `.gz`, `.zst` or `.zip`, in any case. `None` for others.
    pub fn name_unpacked(name: &str) -> Option<&str> {
        let compression = Compression::of_name(&name.to_ascii_lowercase())?;
        name.get(..name.len() - compression.ending.len())
    }

    /// Whether a name ends as that of a compressed file does: `.gz`, `.zst` or `.zip`, in any case.
    pub fn is_compressed_name(name: &str) -> bool {
        Self::name_unpacked(name).is_some()
    }

    /// The usual ending of the names of its files, with its point.
    pub(crate) fn ending(self) -> &'static str {
        ENDINGS.iter().find(|(_, format)| *format == self).map_or("", |(ending, _)| ending)
    }

    /// Whether it is text whose records are lines: it is split into chunks of bytes, and may grow.
    pub fn is_text(self) -> bool {
        match self {
            Self::Csv | Self::Json => true,
            Self::Parquet | Self::Arrow | Self::Avro => false,
            Self::BigtableParquet | Self::BigtableAvro | Self::CbtCsv => false,
        }
    }

    /// Whether its files are dumps of tables of Bigtable, of which the newest is the input.
    pub fn is_dump(self) -> bool {
        matches!(self, Self::BigtableParquet | Self::BigtableAvro | Self::CbtCsv)
    }

    /// The endings of all formats, for messages: `.csv, .tsv or .parquet`.
    pub fn endings() -> String {
        let mut endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        let last = endings.pop().unwrap_or_default();
        format!("{} or {last}", endings.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_formats() {
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("in/A.TSV.GZ", Some(Format::Csv)),
            ("a.txt.zst", Some(Format::Csv)),
            ("a.zip", Some(Format::Csv)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.pq.zst", Some(Format::Parquet)),
            ("a.parquet.gz", Some(Format::Parquet)),
            ("a.parquet.zip", Some(Format::Csv)),
            ("a.ndjson.gz", Some(Format::Json)),
            ("a.arrow", Some(Format::Arrow)),
            ("a.avro.zst", Some(Format::Avro)),
            ("a.json.zip", Some(Format::Json)),
            ("a.gz", None),
            ("a.csv.bak", None),
            ("csv", None),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
        assert_eq!((Format::stem("a*.CSV.gz"), Format::stem("x.v2.parquet")), (Some("a*"), Some("x.v2")));
        assert_eq!(Format::stem("*.{csv,txt}"), None);
        assert_eq!(Format::name_unpacked("a.CSV.GZ"), Some("a.CSV"));
        assert!(Format::is_compressed_name("a.CSV.GZ") && !Format::is_compressed_name("a.csv"));
        assert!(Format::endings().ends_with(" or .avro"));
    }
}
