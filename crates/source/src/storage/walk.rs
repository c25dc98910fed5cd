//! A walk along a pattern on the local disk.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::SourceError;
use crate::storage::coverage::{is_beside_data, is_data_name, is_work_name};
use crate::storage::pattern::Part;
use crate::storage::pull_list::{PULL_DIRECTORY, PULL_LIST, PULL_UNDER_WAY, PullList, is_of_pull};
use crate::storage::unread::UnreadReason;

/// The parts of a folder that is named as such: all data files below it.
const BELOW: [Part; 2] = [Part::Folders, Part::DataFiles];

/// What a walk along a pattern found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub files: Vec<FoundFile>,
    /// The lists of pulls in directories of files.
    pub lists: Vec<(PathBuf, PullList)>,
    /// Names that the pattern reaches and that are not read.
    pub unread: Vec<(PathBuf, UnreadReason)>,
    /// Whether the job says what files of any ending hold.
    any_ending: bool,
    /// The name of work files below which the walk is.
    work: Option<PathBuf>,
}

/// A file that a walk along a pattern found.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// The path that the pattern matches, below the start of the walk.
    pub path: PathBuf,
    /// Where it lies: a file of a pull has a directory of its own.
    pub place: PathBuf,
    pub metadata: Metadata,
    /// The name of work files that it has or lies below, if any.
    pub work: Option<PathBuf>,
}

impl Walk {
    /// The files below `start` that `parts` match. `any_ending`: files of a named folder are read whatever their endings.
    ///
    /// # Errors
    /// [`SourceError::Io`] if a folder cannot be listed, and those of a pull's list.
    pub fn along(start: &Path, parts: &[Part], any_ending: bool) -> Result<Self, SourceError> {
        let mut walk = Self { any_ending, ..Self::default() };
        walk.enter(start, parts)?;
        Ok(walk)
    }

    /// Walks below `folder` along `parts`. What belongs to a pull there is left to the list of the pull.
    fn enter(&mut self, folder: &Path, parts: &[Part]) -> Result<(), SourceError> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        let list = if rest.is_empty() { PullList::load(folder)? } else { None };

        match part {
            Part::Literal(name) if is_left_to(list.as_ref(), OsStr::new(name)) => {}
            Part::Literal(name) => self.reach(folder.join(name), part, rest)?,
            Part::Folders => {
                self.enter(folder, rest)?;
                for entry in self.entries(folder)? {
                    self.descend(folder, &entry, parts)?;
                }
            }
            Part::Glob { .. } | Part::DataFiles => {
                for entry in self.entries(folder)? {
                    let name = entry.file_name();
                    if !is_left_to(list.as_ref(), &name) {
                        self.reach_entry(entry.path(), &name, part, rest)?;
                    }
                }
            }
        }

        if let Some(list) = list {
            self.take_listed(folder, part, &list)?;
            self.lists.push((folder.to_owned(), list));
        }
        Ok(())
    }

    /// Reaches a name that a folder holds, if `part` wants it.
    fn reach_entry(&mut self, path: PathBuf, name: &OsStr, part: &Part, rest: &[Part]) -> Result<(), SourceError> {
        match part {
            Part::Glob { text, .. } if text.is_match(Path::new(name)) => {
                self.reach_by_wildcard(path, name, part, rest)?;
            }
            Part::Glob { .. } if rest.is_empty() => self.pass_data(path, name),
            Part::DataFiles => self.reach_data(path, name)?,
            Part::Glob { .. } | Part::Literal(_) | Part::Folders => {}
        }
        Ok(())
    }

    /// Enters a folder below `**`, which is the first of `parts`.
    fn descend(&mut self, folder: &Path, entry: &DirEntry, parts: &[Part]) -> Result<(), SourceError> {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(source) => return self.failed(&path, source),
        };
        if kind.is_symlink() && !is_work_name(name.as_encoded_bytes()) {
            match fs::metadata(&path) {
                // Links to folders could form cycles.
                Ok(metadata) if metadata.is_dir() => self.leave(path, UnreadReason::LinkedFolder),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.failed(&path, error),
                Err(_) => self.leave(path, UnreadReason::DanglingLink),
            }
            return Ok(());
        }

        if !kind.is_dir() || is_of_a_pull(folder, &name) {
            return Ok(());
        }
        if name.to_str().is_none() {
            self.leave(path, UnreadReason::NotUtf8);
            return Ok(());
        }
        // Such folders hold copies of whole trees (.git, .snapshot): they are not even looked into.
        if name.as_encoded_bytes().starts_with(b".") {
            self.leave(path, UnreadReason::WorkFile);
            return Ok(());
        }
        self.below_work(&path, is_work_name(name.as_encoded_bytes()), |walk| walk.enter(&path, parts))
    }

    /// Reaches a name that a wildcard matches.
    fn reach_by_wildcard(
        &mut self,
        path: PathBuf,
        name: &OsStr,
        part: &Part,
        rest: &[Part],
    ) -> Result<(), SourceError> {
        if name.to_str().is_none() {
            self.leave(path, UnreadReason::NotUtf8);
            return Ok(());
        }
        let skips = part.skips(name.as_encoded_bytes());
        if skips && name.as_encoded_bytes().starts_with(b".") {
            self.leave(path, UnreadReason::WorkFile);
            return Ok(());
        }
        let work = path.clone();
        self.below_work(&work, skips, |walk| walk.reach(path, part, rest))
    }

    /// Reaches a name in a named folder.
    fn reach_data(&mut self, path: PathBuf, name: &OsStr) -> Result<(), SourceError> {
        let is_data = name.to_str().is_some_and(|name| is_data_name(name, self.any_ending));
        let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if is_data || name.to_str().is_none() {
            // Folders are entered by `**`, which is before this part.
            let is_folder = fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            return if is_folder { Ok(()) } else { self.reach_by_wildcard(path, name, &Part::DataFiles, &[]) };
        }
        if is_file && !is_work_name(name.as_encoded_bytes()) {
            self.leave(path, UnreadReason::UnknownEnding);
        }
        Ok(())
    }

    /// Notes a data file that the last part of a pattern does not match.
    fn pass_data(&mut self, path: PathBuf, name: &OsStr) {
        let is_data = name.to_str().is_some_and(is_beside_data);
        if is_data && fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            self.leave(path, UnreadReason::OtherEnding);
        }
    }

    /// Reaches a name that `part` matches; `rest` is what the pattern has behind it.
    fn reach(&mut self, path: PathBuf, part: &Part, rest: &[Part]) -> Result<(), SourceError> {
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.failed(&path, error),
            Err(error) => {
                if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
                    self.leave(path, UnreadReason::DanglingLink);
                    return Ok(());
                }
                let is_gone = error.kind() == io::ErrorKind::NotFound;
                return if is_gone { Ok(()) } else { self.failed(&path, error) };
            }
        };

        if !rest.is_empty() {
            return if metadata.is_dir() { self.enter(&path, rest) } else { Ok(()) };
        }
        match part {
            _ if metadata.is_file() => {
                let work = self.work.clone();
                self.files.push(FoundFile { place: path.clone(), path, metadata, work });
            }
            Part::Literal(_) if metadata.is_dir() => self.enter(&path, &BELOW)?,
            _ if metadata.is_dir() => self.leave(path, UnreadReason::Folder),
            _ => self.leave(path, UnreadReason::NotAFile),
        }
        Ok(())
    }

    /// The files of a list whose names match the last part of a pattern. One that is not there is gone, as any other file.
    fn take_listed(&mut self, folder: &Path, part: &Part, list: &PullList) -> Result<(), SourceError> {
        for (name, file) in list.files.iter().filter(|_| list.decides()) {
            let is_wanted = match part {
                Part::Literal(text) => text == name,
                Part::Glob { text, .. } => text.is_match(name),
                Part::DataFiles => is_data_name(name, self.any_ending),
                Part::Folders => false,
            };
            let place = folder.join(file);
            match fs::metadata(&place) {
                Ok(metadata) if is_wanted => {
                    let work = self.work.clone();
                    self.files.push(FoundFile { path: folder.join(name), place, metadata, work });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return self.failed(&place, source),
            }
        }
        Ok(())
    }

    /// Goes on below `path`; with `is_work`, its files are those of another program.
    fn below_work(
        &mut self,
        path: &Path,
        is_work: bool,
        go_on: impl FnOnce(&mut Self) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        if !is_work || self.work.is_some() {
            return go_on(self);
        }
        self.work = Some(path.to_owned());
        let done = go_on(self);
        self.work = None;
        done
    }

    /// Notes a name that is not read. Below a name of work files nothing is to be read.
    fn leave(&mut self, path: PathBuf, reason: UnreadReason) {
        if self.work.is_none() {
            self.unread.push((path, reason));
        }
    }

    /// An error of the disk, which does not matter among work files.
    fn failed(&self, path: &Path, source: io::Error) -> Result<(), SourceError> {
        match self.work {
            Some(_) => Ok(()),
            None => Err(SourceError::Io { path: path.display().to_string(), source }),
        }
    }

    fn entries(&self, folder: &Path) -> Result<Vec<DirEntry>, SourceError> {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>);
        match entries {
            Ok(entries) => Ok(entries),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Vec::new())
            }
            Err(source) => self.failed(folder, source).map(|()| Vec::new()),
        }
    }
}

/// Whether a directory holds the files of a pull, which its list names.
fn is_of_a_pull(folder: &Path, name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PULL_DIRECTORY.as_bytes())
        && [PULL_LIST, PULL_UNDER_WAY].into_iter().any(|list| folder.join(list).is_file())
}

/// Whether the list of a pull decides whether a name beside it is read.
fn is_left_to(list: Option<&PullList>, name: &OsStr) -> bool {
    list.is_some_and(PullList::decides) && name.to_str().is_some_and(is_of_pull)
}
