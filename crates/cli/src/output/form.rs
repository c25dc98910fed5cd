//! File formats by the endings of file names.

use std::path::Path;

use tidetable_export::FileFormat;

use crate::args::Output;
use crate::error::CliError;
use crate::output::destination::Destination;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text, as on standard output.
    Text(Output),
    /// A binary format.
    File(FileFormat),
}

/// Endings with their formats.
pub type Endings = [(&'static str, Form)];

/// Files of rows: `sql -O`.
pub const OF_ROWS: &Endings = &[
    (".parquet", Form::File(FileFormat::Parquet)),
    (".arrow", Form::File(FileFormat::Arrow)),
    (".ipc", Form::File(FileFormat::Arrow)),
    (".feather", Form::File(FileFormat::Arrow)),
    (".csv", Form::Text(Output::Csv)),
    (".json", Form::Text(Output::Json)),
    (".jsonl", Form::Text(Output::Json)),
    (".ndjson", Form::Text(Output::Json)),
    (".md", Form::Text(Output::Markdown)),
    (".txt", Form::Text(Output::Table)),
];

/// Files of `export`.
pub const OF_EXPORTS: &Endings = &[
    (".parquet", Form::File(FileFormat::Parquet)),
    (".bigtable.parquet", Form::File(FileFormat::BigtableParquet)),
    (".csv", Form::Text(Output::Csv)),
    (".cbt.csv", Form::File(FileFormat::CbtCsv)),
    (".json", Form::Text(Output::Json)),
    (".jsonl", Form::Text(Output::Json)),
    (".ndjson", Form::Text(Output::Json)),
    (".arrow", Form::File(FileFormat::Arrow)),
    (".ipc", Form::File(FileFormat::Arrow)),
    (".feather", Form::File(FileFormat::Arrow)),
];

/// The format for the name of a file; `usual` for what is not a file. `option` is an alternative, for the
/// message.
///
/// # Errors
/// If the file has no ending or an unknown one.
pub fn form_of(
    path: &Path,
    destination: &Destination,
    endings: &Endings,
    usual: Form,
    option: &'static str,
) -> Result<Form, CliError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    // If two endings match, the longer one counts.
    let found = endings.iter().filter(|(ending, _)| name.ends_with(ending)).max_by_key(|(ending, _)| ending.len());
    match found {
        Some((_, form)) => Ok(*form),
        None if !destination.is_file() => Ok(usual),
        None => {
            let known: Vec<&str> = endings.iter().map(|(ending, _)| *ending).collect();
            Err(CliError::NoForm { path: path.display().to_string(), known: listed(&known), option })
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
    fn endings_say_the_form() {
        let folder = tempfile::TempDir::new().unwrap();
        let of = |name: &str| {
            let path = folder.path().join(name);
            let destination = Destination::of(&path, "--to").unwrap();
            form_of(&path, &destination, OF_EXPORTS, Form::File(FileFormat::Parquet), "--format")
        };
        assert_eq!(of("x.cbt.csv").unwrap(), Form::File(FileFormat::CbtCsv));
        assert_eq!(of("x.y.CSV").unwrap(), Form::Text(Output::Csv));
        for wrong in ["x", "x.xlsx", "csv", "x.csv.gz"] {
            let error = of(wrong).unwrap_err();
            assert!(error.to_string().contains(".ipc or .feather, or add --format"), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
