//! Published files that no list names: what they say of themselves.

use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use tidetable_store::{Part, Store};

use crate::error::{ExportError, Result};
use crate::format::FileFormat;
use crate::publish::checksum_of;
use crate::shape::columns;

/// A file that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The file. What it was made from is for the caller to say.
    pub part: Part,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
}

/// The file that was published in `folder` as the part `label` of `export`, `None` if there is none: a file that
/// says it is of another export or part is none.
///
/// # Errors
/// If it is there and cannot be read, or is none that an export has published.
pub fn adopt(store: &Store, export: &str, folder: &str, label: &str, format: FileFormat) -> Result<Option<Adopted>> {
    let file_name = format.file_name();
    let path = format!("exports/{folder}/{file_name}");
    let Some(found) = read(store, &path, format)? else { return Ok(None) };
    if found.says("tidetable.export").is_none() {
        return Err(ExportError::Stranger { folder: folder.to_owned(), file: file_name.to_owned() });
    }
    if found.says("tidetable.export") != Some(export) || found.says("tidetable.label") != Some(label) {
        return Ok(None);
    }
    Ok(Some(found.adopted(folder, file_name)))
}

/// The file of a part, if it is what `made` names: rows that were added to it are not added again.
///
/// # Errors
/// If it is there and cannot be read.
pub(crate) fn already_made(store: &Store, folder: &str, format: FileFormat, made: &str) -> Result<Option<Adopted>> {
    let file_name = format.file_name();
    let found = read(store, &format!("exports/{folder}/{file_name}"), format)?;
    Ok(found.filter(|found| found.says(MADE) == Some(made)).map(|found| found.adopted(folder, file_name)))
}

/// Names, in a file that rows were added to, what they were made from.
pub(crate) const MADE: &str = "tidetable.made";

struct Found {
    bytes: Bytes,
    metadata: Option<ArrowReaderMetadata>,
}

fn read(store: &Store, path: &str, format: FileFormat) -> Result<Option<Found>> {
    let Some(bytes) = store.blobs().read(path)? else { return Ok(None) };
    let failed = |source: ParquetError| ExportError::Read { path: path.to_owned(), source };
    // Only Parquet says whose it is.
    let metadata = match format {
        FileFormat::Parquet => Some(ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default()).map_err(failed)?),
        _ => None,
    };
    Ok(Some(Found { bytes, metadata }))
}

impl Found {
    fn says(&self, key: &str) -> Option<&str> {
        let file = self.metadata.as_ref()?.metadata().file_metadata();
        let pairs = file.key_value_metadata().into_iter().flatten();
        pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.as_deref())
    }

    fn adopted(&self, folder: &str, file: &str) -> Adopted {
        let rows = self.metadata.as_ref().map_or(0, |metadata| metadata.metadata().file_metadata().num_rows());
        let part = Part {
            folder: folder.to_owned(),
            file: file.to_owned(),
            rows: u64::try_from(rows).unwrap_or_default(),
            bytes: self.bytes.len() as u64,
            checksum: checksum_of(&self.bytes),
            ..Part::default()
        };
        let columns = self.metadata.as_ref().map(|metadata| columns(metadata.schema())).unwrap_or_default();
        Adopted { part, columns }
    }
}

/// A published file, found by what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// Path inside the store.
    pub path: String,
    /// The export it says it is of.
    pub export: String,
}

/// The file in `folder` that says it was published by an export, whichever that is. `None`: there is none that does.
///
/// # Errors
/// If it is there and cannot be read. One that is no Parquet file is none.
pub fn stranded(store: &Store, folder: &str) -> Result<Option<Stranded>> {
    let path = format!("exports/{folder}/{}", FileFormat::Parquet.file_name());
    let Some(bytes) = store.blobs().read(&path)? else { return Ok(None) };
    let Ok(metadata) = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default()) else { return Ok(None) };
    let pairs = metadata.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    let export = pairs.filter(|pair| pair.key == "tidetable.export").find_map(|pair| pair.value.clone());
    Ok(export.map(|export| Stranded { path, export }))
}
