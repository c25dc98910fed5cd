//! How the text of files is written, as far as a query does not say.

use std::path::{Path, PathBuf};

use datafusion::error::{DataFusionError, Result};
use tidetable_source::sample::SampleError;
use tidetable_source::{CsvOptions, Format, PlainContent, Storage};

use crate::error::{SqlError, external};
use crate::syntax::rewrite::file_functions::{FileFormat, FileFunction};

/// The mark that some programs put in front of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The form of files: options of their table, and how they are read.
#[derive(Debug, Default)]
pub(crate) struct TextForm {
    /// Options of the table, by the names that DataFusion has for them.
    pub(crate) options: Vec<(&'static str, String)>,
    /// Lines before the table.
    pub(crate) skipped_lines: u64,
    /// Whether the stored bytes are something else than the text.
    pub(crate) is_encoded: bool,
}

impl TextForm {
    /// Finds the form of `files` in the first of them; the others may be compressed or begin with a mark where it does not.
    ///
    /// # Errors
    /// If that cannot be read, or is no text of its format.
    pub(crate) fn find(function: &FileFunction, files: &[PathBuf]) -> Result<Self> {
        let is_text = function.format != FileFormat::Parquet;
        let first = files.first().filter(|_| is_text);
        let mut form = match (function.format, first) {
            (FileFormat::Csv, first) => of_csv(function, first.map(PathBuf::as_path))?,
            (FileFormat::Json, Some(first)) => of_json(first)?,
            _ => Self::default(),
        };
        form.is_encoded = is_text && (form.skipped_lines > 0 || files.iter().any(|file| is_encoded(file)));
        Ok(form)
    }
}

fn of_csv(function: &FileFunction, first: Option<&Path>) -> Result<TextForm> {
    let given = function.delimiter.map(|delimiter| u8::try_from(delimiter).map_err(|_| unknown_delimiter(delimiter)));
    let given = given.transpose()?;
    let found = match first {
        Some(first) => Storage::new(PathBuf::new(), None).csv_dialect(first, given).map_err(failed)?,
        None => CsvOptions::default(),
    };

    let has_header = function.has_header.unwrap_or(found.header);
    let mut options = vec![
        ("format.has_header", has_header.to_string()),
        // By their codes: a digit would be taken for one.
        ("format.delimiter", given.unwrap_or(found.delimiter).to_string()),
    ];
    let bytes = [("format.quote", found.quote), ("format.escape", found.escape), ("format.comment", found.comment)];
    options.extend(bytes.into_iter().filter_map(|(name, byte)| Some((name, byte?.to_string()))));
    Ok(TextForm { options, skipped_lines: found.skip, is_encoded: false })
}

/// JSON is lines with an object each, or an array of objects.
fn of_json(first: &Path) -> Result<TextForm> {
    let content = PlainContent::open(first).map_err(failed)?;
    let is_array = content.at_hand().trim_ascii_start().starts_with(b"[");
    let options = vec![("format.newline_delimited", (!is_array).to_string())];
    Ok(TextForm { options, ..TextForm::default() })
}

/// Whether the bytes of a file are something else than its text.
fn is_encoded(file: &Path) -> bool {
    Format::is_compressed_name(&file.to_string_lossy()) || starts_with_mark(file)
}

fn starts_with_mark(path: &Path) -> bool {
    use std::io::Read;

    let mut start = [0; BYTE_ORDER_MARK.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == BYTE_ORDER_MARK
}

fn unknown_delimiter(delimiter: char) -> DataFusionError {
    DataFusionError::Plan(format!("the delimiter {delimiter:?} is not one byte: write one such as ',', ';' or '|'"))
}

fn failed(error: impl Into<SampleError>) -> DataFusionError {
    external(SqlError::File(error.into()))
}
