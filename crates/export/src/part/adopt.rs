//! Identifies published files that no list names, by their metadata.

use std::collections::BTreeMap;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use tidetable_store::Store;
use tidetable_store::published::{Part, PartFile};

use crate::error::{ExportError, Result};
use crate::file::format::FileFormat;
use crate::file::shape::columns;
use crate::part::files::{FILES, part_path};
use crate::part::settle::{checksum_of, names_in};

/// A part found without a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// Its files. The caller fills in what it was made from.
    pub part: Part,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
}

/// The files in `folder` that were published as the part `label` of `export`, `None` without any. Files with metadata
/// of another export or part do not count.
///
/// # Errors
/// If they cannot be read, or one was not published by an export.
pub fn adopt(store: &Store, export: &str, folder: &str, label: &str, format: FileFormat) -> Result<Option<Adopted>> {
    let Some(found) = FilesOnDisk::of(store, folder, format)? else { return Ok(None) };
    if let Some(file) = found.files.iter().find(|file| file.says("tidetable.export").is_none()) {
        return Err(ExportError::Stranger { folder: folder.to_owned(), file: file.file.file.clone() });
    }
    if !found.says_it_is(export, label) {
        return Ok(None);
    }
    match found.is_whole(format) {
        true => Ok(Some(found.adopted(folder))),
        false => Err(ExportError::Partial { folder: folder.to_owned() }),
    }
}

/// The files of a part, if their metadata names `made`, so that rows are not appended twice.
///
/// # Errors
/// If they cannot be read.
pub(crate) fn already_made(store: &Store, folder: &str, format: FileFormat, made: &str) -> Result<Option<Adopted>> {
    let found = FilesOnDisk::of(store, folder, format)?;
    let made_here = found.filter(|found| found.files.iter().all(|file| file.says(MADE) == Some(made)));
    Ok(made_here.map(|found| found.adopted(folder)))
}

/// Metadata key of appended files: the fingerprint of what they were made from.
pub(crate) const MADE: &str = "tidetable.made";

/// The files of `part`, if none of the listed ones exists but others do, as a run leaves them that is interrupted after
/// swapping files and before updating the list. What they were made from is unknown. `None` if there are none, or
/// not all.
///
/// # Errors
/// If they cannot be read.
pub fn found_instead(store: &Store, export: &str, label: &str, part: &Part) -> Result<Option<Part>> {
    let names = names_in(store, &part.folder)?;
    if part.files().iter().any(|file| names.contains(&file.file)) {
        return Ok(None);
    }
    let Some(format) = FileFormat::of_name(&part.file) else { return Ok(None) };
    let Some(found) = FilesOnDisk::of(store, &part.folder, format)? else { return Ok(None) };

    // Only Parquet has the metadata.
    let is_ours = format != FileFormat::Parquet || found.says_it_is(export, label);
    if !is_ours || !found.is_whole(format) {
        return Ok(None);
    }
    let found = found.adopted(&part.folder).part;
    let listed = Part { sources: BTreeMap::new(), rows: found.rows, ..part.clone() };
    Ok(Some(listed.with_files(&found.files())))
}

/// The part as a run left it that was interrupted after it had appended rows to the file of `part` and before it listed them.
/// `None` if the metadata of the file does not say so; only Parquet has it.
///
/// # Errors
/// If it cannot be read.
pub fn appended_unlisted(store: &Store, export: &str, label: &str, part: &Part) -> Result<Option<Part>> {
    let Some(format) = FileFormat::of_name(&part.file) else { return Ok(None) };
    let found = match FilesOnDisk::of(store, &part.folder, format) {
        // Damaged.
        Err(ExportError::Read { .. }) => return Ok(None),
        found => found?,
    };
    let Some(found) = found else { return Ok(None) };

    let is_appended = found.says_it_is(export, label)
        && found.is_whole(format)
        && found.files.iter().all(|file| file.says(MADE).is_some());
    if !is_appended {
        return Ok(None);
    }
    let found = found.adopted(&part.folder).part;
    Ok(Some(Part { rows: found.rows, ..part.clone() }.with_files(&found.files())))
}

/// The files of a part.
struct FilesOnDisk {
    files: Vec<FileOnDisk>,
}

struct FileOnDisk {
    file: PartFile,
    metadata: Option<ArrowReaderMetadata>,
}

impl FilesOnDisk {
    /// Reads the names and metadata in `folder`; `None` if they are no part.
    fn of(store: &Store, folder: &str, format: FileFormat) -> Result<Option<Self>> {
        let names = files_of_part(store, folder, format)?;
        let files = names.into_iter().map(|name| FileOnDisk::read(store, folder, name, format));
        let files = files.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        Ok((!files.is_empty()).then_some(Self { files }))
    }

    /// Whether the metadata names this part.
    fn says_it_is(&self, export: &str, label: &str) -> bool {
        let mut files = self.files.iter();
        files.all(|file| file.says("tidetable.export") == Some(export) && file.says("tidetable.label") == Some(label))
    }

    /// Whether they are all files of a part, as far as the metadata tells.
    fn is_whole(&self, format: FileFormat) -> bool {
        match (self.files.as_slice(), format) {
            ([one], _) => one.file.file == format.file_name(),
            (several, FileFormat::Parquet) => {
                let stated = several.last().and_then(|file| file.says(FILES));
                stated == Some(several.len().to_string().as_str())
            }
            // Other formats have no metadata.
            _ => true,
        }
    }

    /// The part that these files are.
    fn adopted(&self, folder: &str) -> Adopted {
        let files: Vec<PartFile> = self.files.iter().map(|file| file.file.clone()).collect();
        let rows = self.files.iter().map(FileOnDisk::rows).sum();
        let part = Part { folder: folder.to_owned(), rows, ..Part::default() };

        let metadata = self.files.first().and_then(|file| file.metadata.as_ref());
        let columns = metadata.map(|metadata| columns(metadata.schema())).unwrap_or_default();
        Adopted { part: part.with_files(&files), columns }
    }
}

/// The names of the files of a part in `folder`: a single file, or all files of one run.
fn files_of_part(store: &Store, folder: &str, format: FileFormat) -> Result<Vec<String>> {
    let mut names = names_in(store, folder)?;
    let only = format.file_name();
    if names.iter().any(|name| name == only) {
        return Ok(vec![only.to_owned()]);
    }

    let mut several = Vec::new();
    for name in names.drain(..) {
        let Some(run) = format.run_of_several(&name, several.len()).map(str::to_owned) else { continue };
        let first: Option<&String> = several.first();
        if first.is_none_or(|first| *first == format.file_of_several(&run, 0)) {
            several.push(name);
        }
    }
    Ok(several)
}

impl FileOnDisk {
    fn read(store: &Store, folder: &str, name: String, format: FileFormat) -> Result<Option<Self>> {
        let path = part_path(folder, &name);
        let Some(bytes) = store.blobs().read(&path)? else { return Ok(None) };
        // Only Parquet has the metadata.
        let metadata = match format {
            FileFormat::Parquet => Some(ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default())),
            _ => None,
        };
        let metadata = metadata.transpose().map_err(|source| ExportError::Read { path, source })?;

        let file = PartFile { file: name, bytes: bytes.len() as u64, checksum: checksum_of(&bytes), stamp: None };
        Ok(Some(Self { file, metadata }))
    }

    /// The metadata of the file under a key.
    fn says(&self, key: &str) -> Option<&str> {
        let file = self.metadata.as_ref()?.metadata().file_metadata();
        let pairs = file.key_value_metadata().into_iter().flatten();
        pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.as_deref())
    }

    fn rows(&self) -> u64 {
        let rows = self.metadata.as_ref().map_or(0, |metadata| metadata.metadata().file_metadata().num_rows());
        u64::try_from(rows).unwrap_or_default()
    }
}

/// A published part, identified by the metadata of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// Paths of its files inside the store.
    pub paths: Vec<String>,
    /// The export that the metadata names.
    pub export: String,
}

/// The files in `folder` whose metadata names an export. `None` without any.
///
/// # Errors
/// If they cannot be read. Only Parquet files count.
pub fn stranded(store: &Store, folder: &str) -> Result<Option<Stranded>> {
    let found = match FilesOnDisk::of(store, folder, FileFormat::Parquet) {
        Err(ExportError::Read { .. }) => return Ok(None),
        found => found?,
    };
    let Some(found) = found else { return Ok(None) };
    let paths = found.files.iter().map(|file| part_path(folder, &file.file.file)).collect();
    let export = found.files.first().and_then(|file| file.says("tidetable.export")).map(str::to_owned);
    Ok(export.map(|export| Stranded { paths, export }))
}
