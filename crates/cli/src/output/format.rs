//! Formats of results, and the format that the extension of a file name selects.

use tidetable_export::FileFormat;
use tidetable_source::Location;

use crate::args::Output;
use crate::error::CliError;
use crate::output::destination::Destination;

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text, as on standard output.
    Text(Output),
    /// A binary format.
    Binary(FileFormat),
    /// An Arrow IPC stream.
    Stream,
}

/// Extensions with their formats.
pub type Extensions = [(&'static str, OutputFormat)];

/// Extensions of files of rows: `sql -O`.
pub const ROW_FILE_EXTENSIONS: &Extensions = &[
    (".parquet", OutputFormat::Binary(FileFormat::Parquet)),
    (".arrow", OutputFormat::Binary(FileFormat::Arrow)),
    (".arrows", OutputFormat::Stream),
    (".ipc", OutputFormat::Binary(FileFormat::Arrow)),
    (".feather", OutputFormat::Binary(FileFormat::Arrow)),
    (".csv", OutputFormat::Text(Output::Csv)),
    (".json", OutputFormat::Text(Output::Json)),
    (".jsonl", OutputFormat::Text(Output::Json)),
    (".ndjson", OutputFormat::Text(Output::Json)),
    (".md", OutputFormat::Text(Output::Markdown)),
    (".txt", OutputFormat::Text(Output::Table)),
];

/// Extensions of files of `export`.
pub const EXPORT_FILE_EXTENSIONS: &Extensions = &[
    (".parquet", OutputFormat::Binary(FileFormat::Parquet)),
    (".bigtable.parquet", OutputFormat::Binary(FileFormat::BigtableParquet)),
    (".csv", OutputFormat::Text(Output::Csv)),
    (".bigtable.avro", OutputFormat::Binary(FileFormat::BigtableAvro)),
    (".cbt.csv", OutputFormat::Binary(FileFormat::CbtCsv)),
    (".json", OutputFormat::Text(Output::Json)),
    (".jsonl", OutputFormat::Text(Output::Json)),
    (".ndjson", OutputFormat::Text(Output::Json)),
    (".arrow", OutputFormat::Binary(FileFormat::Arrow)),
    (".arrows", OutputFormat::Stream),
    (".ipc", OutputFormat::Binary(FileFormat::Arrow)),
    (".feather", OutputFormat::Binary(FileFormat::Arrow)),
];

/// The format that the extension of the file `to` selects, or `default` if it has no known one and the destination is not a
/// regular file. The error message names `option` as the other way to select a format.
///
/// # Errors
/// If the destination is a regular file, and the extension is missing or unknown.
pub fn format_from_extension(
    to: &Location,
    destination: &Destination,
    extensions: &Extensions,
    default: OutputFormat,
    option: &'static str,
) -> Result<OutputFormat, CliError> {
    let path = to.to_string();
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    // If two extensions match, the longer one counts.
    let found = extensions.iter().filter(|(known, _)| name.ends_with(known)).max_by_key(|(known, _)| known.len());
    match found {
        Some((_, format)) => Ok(*format),
        None if !destination.is_file() => Ok(default),
        None => {
            let known: Vec<&str> = extensions.iter().map(|(known, _)| *known).collect();
            Err(CliError::NoFormat { path, known: listed(&known), option })
        }
    }
}

/// `a, b or c`
fn listed(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_select_the_format() {
        let folder = tempfile::TempDir::new().unwrap();
        let of = |name: &str| {
            let path = Location::Path(folder.path().join(name));
            let destination = Destination::of(&path, "--to").unwrap();
            let default = OutputFormat::Binary(FileFormat::Parquet);
            format_from_extension(&path, &destination, EXPORT_FILE_EXTENSIONS, default, "--format")
        };
        assert_eq!(of("x.cbt.csv").unwrap(), OutputFormat::Binary(FileFormat::CbtCsv));
        assert_eq!(of("x.y.CSV").unwrap(), OutputFormat::Text(Output::Csv));
        for wrong in ["x", "x.xlsx", "csv", "x.csv.gz"] {
            let error = of(wrong).unwrap_err();
            assert!(error.to_string().contains(".ipc or .feather, or add --format"), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
