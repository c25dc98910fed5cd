//! Published files that no list names: what they say of themselves.

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use tidetable_store::{Part, Store};

use crate::error::{ExportError, Result};
use crate::publish::{FILE, checksum_of};
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
pub fn adopt(store: &Store, export: &str, folder: &str, label: &str) -> Result<Option<Adopted>> {
    let blobs = store.blobs();
    let path = format!("exports/{folder}/{FILE}");
    let Some(bytes) = blobs.read(&path)? else { return Ok(None) };
    let failed = |source: ParquetError| ExportError::Parquet { path: path.clone(), source };
    let size = bytes.len() as u64;
    let stranger = || ExportError::Stranger { folder: folder.to_owned(), file: FILE.to_owned() };
    let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default()).map_err(failed)?;
    let file = metadata.metadata().file_metadata();
    let says = |key: &str| {
        let pairs = file.key_value_metadata().into_iter().flatten();
        pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.as_deref())
    };
    if says("tidetable.export").is_none() {
        return Err(stranger());
    }
    if says("tidetable.export") != Some(export) || says("tidetable.label") != Some(label) {
        return Ok(None);
    }
    let part = Part {
        folder: folder.to_owned(),
        file: FILE.to_owned(),
        rows: u64::try_from(file.num_rows()).unwrap_or_default(),
        bytes: size,
        checksum: checksum_of(&bytes),
        ..Part::default()
    };
    Ok(Some(Adopted { part, columns: columns(metadata.schema()) }))
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
    let path = format!("exports/{folder}/{FILE}");
    let Some(bytes) = store.blobs().read(&path)? else { return Ok(None) };
    let Ok(metadata) = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default()) else { return Ok(None) };
    let pairs = metadata.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    let export = pairs.filter(|pair| pair.key == "tidetable.export").find_map(|pair| pair.value.clone());
    Ok(export.map(|export| Stranded { path, export }))
}
