//! The list of a pull, `pull.json`: which files of a directory hold the rows that were pulled from Bigtable.
//!
//! A pull writes its files into a directory of their own and replaces the list as its last step. The list alone decides
//! what the input is: files of earlier pulls, and of one that did not end, are not read. The files keep the names
//! `part-00000.parquet` and so on as inputs, whatever directory they lie in, so that a name keeps its place in the order
//! of inputs from one pull to the next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::error::SourceError;

/// The name of the list of a pull, in the directory that was pulled into.
pub const PULL_LIST: &str = "pull.json";
/// The name of the list of a pull that has not ended.
pub const PULL_UNDER_WAY: &str = "pull.next.json";
/// The format of lists that name files. Lists without one are of builds that replaced files in place.
pub const PULL_FORMAT: u32 = 2;

/// The beginning of the names of directories that hold the files of one pull.
pub const PULL_DIRECTORY: &str = "pull-";

/// What a pull left in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullList {
    /// The format: [`PULL_FORMAT`], or 0 for a list that decides nothing.
    pub format: u32,
    /// The table of Bigtable, by its full name.
    pub source: String,
    /// Whether cells are kept as they are, each in a row of its own.
    pub raw: bool,
    /// The families of cells that are kept as they are, with the columns that hold their values.
    pub families: Vec<PulledFamily>,
    /// Names of inputs, with their files relative to the directory.
    pub files: BTreeMap<String, String>,
}

/// A family of a pull that keeps cells as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PulledFamily {
    /// The id of the family in Bigtable.
    pub name: String,
    /// The column of the files that holds the values of its cells.
    pub column: String,
}

/// A directory with the list of a pull, which a pattern reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledDirectory {
    /// Its path as the paths of inputs begin, without a slash at the end; empty for the project directory.
    pub directory: String,
    /// The list as it was read there.
    pub list: PullList,
}

impl PullList {
    /// Reads the list of `directory`; `None` if there is none. Other files of this name are none.
    ///
    /// # Errors
    /// If it cannot be read, or a later build wrote it.
    pub fn load(directory: &Path) -> Result<Option<Self>, SourceError> {
        let path = directory.join(PULL_LIST);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(source) => return Err(SourceError::Io { path: path.display().to_string(), source }),
        };
        let list = serde_json::from_slice::<Self>(&bytes).ok().filter(|list| !list.source.is_empty());
        if let Some(format) = list.as_ref().map(|list| list.format).filter(|format| *format > PULL_FORMAT) {
            return Err(SourceError::PullFormat { path: path.display().to_string(), format });
        }
        Ok(list)
    }

    /// Whether the list decides which files are read.
    pub fn decides(&self) -> bool {
        self.format == PULL_FORMAT
    }

    /// The table that was pulled, by its full name. Lists of earlier builds have the selection behind it.
    pub fn table(&self) -> &str {
        self.source.split(' ').next().unwrap_or_default()
    }
}

/// Where the input at `path` lies: a list beside it may name a file in another directory.
///
/// # Errors
/// Those of [`PullList::load`].
pub(super) fn place_of(path: PathBuf) -> Result<PathBuf, SourceError> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_part(name));
    let (Some(name), Some(folder)) = (name, path.parent()) else { return Ok(path) };
    let list = PullList::load(folder)?.filter(PullList::decides);
    let file = list.as_ref().and_then(|list| list.files.get(name));
    Ok(file.map(|file| folder.join(file)).unwrap_or(path))
}

impl PulledDirectory {
    /// Whether `path` is an input that an earlier pull into the directory brought, and this list does not name.
    pub fn drops(&self, path: &str) -> bool {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.list.decides() && directory == self.directory && is_part(name) && !self.list.files.contains_key(name)
    }
}

/// Whether a file belongs to pulls into its directory, where the list decides which of them are read.
pub(super) fn is_of_pull(name: &str) -> bool {
    is_part(name) || matches!(name, PULL_LIST | PULL_UNDER_WAY | "rejected.jsonl")
}

/// Whether `name` is that of an input of a pull: `part-00000.parquet`.
fn is_part(name: &str) -> bool {
    let digits = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".parquet"));
    digits.is_some_and(|digits| digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_not_listed_are_dropped() {
        let files = BTreeMap::from([("part-00000.parquet".to_owned(), "pull-a/part-00000.parquet".to_owned())]);
        let list = PullList { format: PULL_FORMAT, source: "t".to_owned(), files, ..PullList::default() };
        let pulled = PulledDirectory { directory: "pulled/j".to_owned(), list };
        assert!(pulled.drops("pulled/j/part-00001.parquet"));
        for kept in ["pulled/j/part-00000.parquet", "pulled/j/own.parquet", "pulled/i/part-00001.parquet"] {
            assert!(!pulled.drops(kept), "{kept}");
        }
        let old = PulledDirectory { list: PullList { format: 0, ..pulled.list.clone() }, ..pulled };
        assert!(!old.drops("pulled/j/part-00001.parquet"));
    }

    #[test]
    fn lists_of_earlier_builds_and_other_files_decide_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(directory.path().join(PULL_LIST), text).unwrap();
        assert_eq!(PullList::load(directory.path()).unwrap(), None);
        for other in ["[1]", "{\"a\": 1}", "not json"] {
            write(other);
            assert_eq!(PullList::load(directory.path()).unwrap(), None, "{other}");
        }
        write("{\"source\": \"projects/p/instances/i/tables/T PullSelection { }\", \"raw\": true, \"finished\": true}");
        let list = PullList::load(directory.path()).unwrap().unwrap();
        assert_eq!((list.decides(), list.table()), (false, "projects/p/instances/i/tables/T"));
        write("{\"format\": 3, \"source\": \"t\"}");
        assert!(matches!(PullList::load(directory.path()), Err(SourceError::PullFormat { format: 3, .. })));
    }
}
