//! The files that the list of an export names, as the log of its table has them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use tidetable_store::published::{PartFile, Published};
use xxhash_rust::xxh3::Xxh3;

/// Files of the list by path below the directory of the table. Names of files are never used again.
pub(crate) type ListedFiles = BTreeMap<String, ListedFile>;

/// A file of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
    /// Its Hive partition directories: `dt=2018-01-31`.
    pub(crate) partition: Vec<(String, String)>,
    /// The day of its part; `None` of months and queries.
    pub(crate) day: Option<NaiveDate>,
}

/// The files of an export below `folder`.
pub(crate) fn files_of(published: &Published, folder: &str) -> ListedFiles {
    let mut files = ListedFiles::new();
    for (label, part) in &published.parts {
        let below = part.folder.strip_prefix(folder).filter(|below| below.is_empty() || below.starts_with('/'));
        let Some(below) = below else { continue };
        let partition = below.split('/').filter_map(|folder| folder.split_once('='));
        // Labels of hours begin with their day.
        let day = label.get(..10).and_then(|day| day.parse().ok());
        let partition: Vec<_> = partition.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for PartFile { file, bytes, checksum, .. } in part.files() {
            let path = format!("{below}/{file}").trim_start_matches('/').to_owned();
            files.insert(path, ListedFile { bytes, checksum, partition: partition.clone(), day });
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
    format!("{:032x}", hash.digest128())
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
