//! The files that the list of an export names, as its Delta log has them.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tidetable_store::published::{PartFile, Published};
use xxhash_rust::xxh3::Xxh3;

use crate::file::writer::hexadecimal;

/// Directory of the log of a Delta table, beside the files.
pub const DELTA_LOG: &str = "_delta_log";

/// What is encoded in paths of a log, as in any URL. An equals sign is not: other engines remove files in the spelling that they
/// would write themselves, and some find no file that was added in another one.
const ENCODED: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Files of the list by path below the directory of the table. Names of files are never used again.
pub(crate) type ListedFiles = BTreeMap<String, ListedFile>;

/// A file of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
    /// Its Hive partition directories: `dt=2018-01-31`.
    pub(crate) partition: Vec<(String, String)>,
}

/// The files of an export below `folder`.
pub(crate) fn files_of(published: &Published, folder: &str) -> ListedFiles {
    let mut files = ListedFiles::new();
    for part in published.parts.values() {
        let below = part.folder.strip_prefix(folder).filter(|below| below.is_empty() || below.starts_with('/'));
        let Some(below) = below else { continue };
        let partition = below.split('/').filter_map(|folder| folder.split_once('='));
        let partition: Vec<_> = partition.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for PartFile { file, bytes, checksum, .. } in part.files() {
            let path = format!("{below}/{file}").trim_start_matches('/').to_owned();
            files.insert(path, ListedFile { bytes, checksum, partition: partition.clone() });
        }
    }

    files
}

/// Hash of which files there are.
pub(crate) fn digest(files: &ListedFiles) -> String {
    let mut hash = Xxh3::new();
    for (path, file) in files {
        hash.update(format!("{path}\0{}\0", file.checksum).as_bytes());
    }
    hexadecimal(&hash)
}

/// A path of the log, as it is written there.
pub(crate) fn encoded(path: &str) -> String {
    utf8_percent_encode(path, &ENCODED).to_string()
}

/// Path of the log of the table in `folder`.
pub(crate) fn log_of(folder: &str) -> String {
    format!("exports/{folder}/{DELTA_LOG}")
}

/// The directories below `exports/` that can have a log: parents of Hive directories, or that of the only part.
pub(crate) fn table_folders(published: &Published) -> BTreeSet<&str> {
    let parts = published.parts.values().map(|part| part.folder.as_str());
    let empty = published.empty.values().map(|part| part.folder.as_str());
    let folders: BTreeSet<&str> = parts.chain(empty).filter(|folder| !folder.is_empty()).collect();
    match folders.first() {
        Some(only) if folders.len() == 1 => only.split('/').next().into_iter().collect(),
        _ => folders.iter().filter_map(|folder| Some(folder.split_once('/')?.0)).collect(),
    }
}
