//! Publishes written files: finds unchanged ones, and replaces the others.

use tidetable_blobs::BlobError;
use tidetable_store::Store;
use tidetable_store::published::{FileState, Part, PartFile};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{ExportError, Result};
use crate::file::format::FileFormat;
use crate::file::writer::{WrittenFile, hexadecimal};
use crate::part::files::{WrittenPart, part_path, take_place};
use crate::part::request::{Outcome, PublishRequest};

/// A part with its files in place.
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    pub(crate) folder: String,
    pub(crate) files: Vec<PartFile>,
    /// Files that no list names once this part is listed.
    pub(crate) obsolete: Vec<String>,
}

/// Makes written files visible, unless the same ones exist already. `None` if there are none.
pub(crate) fn settle(request: &PublishRequest<'_>, written: WrittenPart, first: &str) -> Result<Option<Settled>> {
    match written {
        WrittenPart::Nothing => Ok(None),
        WrittenPart::One(file) => one(request, file, first).map(Some),
        WrittenPart::Several(files, aside) => {
            let known = request.previous.filter(|previous| same_bytes(&previous.files(), &files));
            if let Some(previous) = known
                && previous.folder == request.folder
                && (request.keep_old || all_hold(request.store, previous)?)
            {
                let mut obsolete = Vec::new();
                if aside.is_none() {
                    obsolete.extend(files.iter().map(|file| part_path(request.folder, &file.file)));
                }
                return Ok(Some(unchanged(previous, obsolete)));
            }

            if let Some(aside) = aside {
                take_place(aside)?;
            }
            Ok(Some(changed(request, files)))
        }
    }
}

/// Makes the only file of a part visible.
fn one(request: &PublishRequest<'_>, file: WrittenFile, name: &str) -> Result<Settled> {
    let new = PartFile { file: name.to_owned(), bytes: file.bytes, checksum: file.checksum.clone(), stamp: None };
    let known = request.previous.filter(|previous| same_bytes(&previous.files(), std::slice::from_ref(&new)));
    if let Some(previous) = known.filter(|previous| request.keep_old && previous.folder == request.folder) {
        // The existing file stays.
        return Ok(unchanged(previous, Vec::new()));
    }

    let renames = request.store.blobs().capabilities().renames;
    if !request.keep_old && renames && follows_several(request, name)? {
        let folder = format!("exports/{}", request.folder);
        let aside = request.store.blobs().staging(&folder)?;
        let aside = aside.ok_or_else(|| ExportError::Elsewhere { folder: request.folder.to_owned() })?;
        file.publish_as(&format!("{}/{name}", aside.path()))?;
        take_place(aside)?;
        return Ok(changed(request, vec![new]));
    }

    let path = part_path(request.folder, name);
    let moved = request.previous.is_some_and(|previous| previous.paths() != [path.as_str()]);
    if request.previous.is_some() && !moved && holds(request.store, &path, &new)? {
        return Ok(Settled { outcome: Outcome::Unchanged, ..changed(request, vec![new]) });
    }

    match renames {
        true => file.publish()?,
        false => file.publish_as(&path)?,
    }
    Ok(changed(request, vec![new]))
}

/// Whether a single file replaces several: listed ones, or those of a run that was interrupted before
/// it listed them.
fn follows_several(request: &PublishRequest<'_>, name: &str) -> Result<bool> {
    let before = request.previous.filter(|previous| previous.more.is_empty()).map(|previous| previous.file.as_str());
    let names = part_names(request.store, request.folder)?;
    Ok(names.iter().any(|known| known != name && Some(known.as_str()) != before))
}

/// The files in a directory that have names of files of parts.
pub(crate) fn part_names(store: &Store, folder: &str) -> Result<Vec<String>> {
    let mut names = names_in(store, folder)?;
    names.retain(|name| FileFormat::is_of_part(name));
    Ok(names)
}

/// The names in the directory of a part; empty if it is a file, which writing will report.
pub(crate) fn names_in(store: &Store, folder: &str) -> Result<Vec<String>> {
    match store.blobs().list(&format!("exports/{folder}")) {
        Err(BlobError::NotADirectory { .. }) => Ok(Vec::new()),
        names => Ok(names?),
    }
}

/// A part whose published files stay as they are.
fn unchanged(previous: &Part, obsolete: Vec<String>) -> Settled {
    Settled { outcome: Outcome::Unchanged, folder: previous.folder.clone(), files: previous.files(), obsolete }
}

/// A part with new files in place.
fn changed(request: &PublishRequest<'_>, files: Vec<PartFile>) -> Settled {
    let written: Vec<String> = files.iter().map(|file| part_path(request.folder, &file.file)).collect();
    let mut obsolete = request.previous.filter(|_| !request.keep_old).map(Part::paths).unwrap_or_default();
    obsolete.retain(|path| !written.contains(path));
    let outcome = if request.previous.is_some() { Outcome::Replaced } else { Outcome::Created };
    Settled { outcome, folder: request.folder.to_owned(), files, obsolete }
}

/// Whether files have the same bytes, whatever their names.
fn same_bytes(one: &[PartFile], other: &[PartFile]) -> bool {
    one.iter().map(|file| &file.checksum).eq(other.iter().map(|file| &file.checksum))
}

/// Whether the directory has exactly the listed files of a part.
fn all_hold(store: &Store, part: &Part) -> Result<bool> {
    let files = part.files();
    // Where files are not renamed, those of before may still be there.
    if store.blobs().capabilities().renames && part_names(store, &part.folder)?.len() != files.len() {
        return Ok(false);
    }
    for file in files {
        if !holds(store, &part_path(&part.folder, &file.file), &file)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the file at `path` has the bytes of `file`. Reads the file, because an interrupted run may
/// have replaced it without updating the list.
fn holds(store: &Store, path: &str, file: &PartFile) -> Result<bool> {
    Ok(matches!(file.verify(store.blobs().as_ref(), path)?, FileState::SameBytes(_)))
}

/// xxh3-128 of a file, hexadecimal.
pub(crate) fn checksum_of(bytes: &[u8]) -> String {
    let mut hash = Xxh3::new();
    hash.update(bytes);
    hexadecimal(&hash)
}
