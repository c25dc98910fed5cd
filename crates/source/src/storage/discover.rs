//! Which files a source has.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::{fs, io};

use futures::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::error::SourceError;
use crate::location::{LocationError, Split};
use crate::reader_version::ReaderVersion;
use crate::spec::{Format, SourceSpec};
use crate::storage::pattern::{Part, Pattern};
use crate::storage::pull_list::{PULL_DIRECTORY, PULL_LIST, PULL_UNDER_WAY, PullList, PulledDirectory, is_of_pull};
use crate::storage::{FileAccess, InputFile, Storage, fingerprint, is_missing_object};

/// The files that the patterns of a source match.
#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    /// Distinct files, in order.
    pub files: Vec<InputFile>,
    /// Patterns without a match.
    pub unmatched: Vec<String>,
    /// Directories of pulls that the patterns reach.
    pub pulled: Vec<PulledDirectory>,
}

impl Storage {
    /// The files of a source: pattern by pattern, the matches of each sorted by path bytes, without duplicates.
    ///
    /// Patterns are globs (`*` `?` `[..]` `{a,b}`, `**` for any number of directories) relative to the project root,
    /// absolute, or URLs. `*` and `**` skip names that start with a dot. `{day:%Y-%m-%d}` matches a day and assigns it to
    /// the file.
    ///
    /// # Errors
    /// [`SourceError::NoMatch`] for a pattern without a match; those of [`Storage::find`].
    pub fn discover(&self, spec: &SourceSpec) -> Result<Vec<InputFile>, SourceError> {
        let found = self.find(spec)?;
        match found.unmatched.into_iter().next() {
            Some(pattern) => Err(self.no_match(spec, pattern)),
            None => Ok(found.files),
        }
    }

    /// The error for a pattern without a match.
    pub fn no_match(&self, spec: &SourceSpec, pattern: String) -> SourceError {
        SourceError::NoMatch { name: spec.name.clone(), pattern, root: self.root.display().to_string() }
    }

    /// As [`Storage::discover`], but a pattern may match nothing.
    ///
    /// # Errors
    /// [`SourceError::BadPattern`], [`SourceError::DayPattern`], [`SourceError::DayInPath`],
    /// [`SourceError::UnknownFormat`]; and errors of the disk or the store.
    pub fn find(&self, spec: &SourceSpec) -> Result<DiscoveredFiles, SourceError> {
        let mut all = DiscoveredFiles::default();
        for written in &spec.files {
            let mut pulled = Vec::new();
            let mut found = match self.split(written)? {
                Split::Path(path) => self.local(spec, path, &mut pulled)?,
                Split::Bucket { base, key } => self.remote(spec, written, base, key)?,
            };
            // A pull may have found nothing: its list is the match.
            if found.is_empty() && !pulled.iter().any(|pulled| pulled.list.decides()) {
                all.unmatched.push(written.clone());
            }
            pulled.retain(|pulled| !all.pulled.contains(pulled));
            all.pulled.append(&mut pulled);
            found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            // Two `**` of a pattern may reach a file by two ways.
            found.dedup_by(|a, b| a.path == b.path);
            if !all.files.is_empty() {
                let seen: HashSet<&str> = all.files.iter().map(|file| file.path.as_str()).collect();
                found.retain(|file| !seen.contains(file.path.as_str()));
            }
            all.files.append(&mut found);
        }
        Ok(all)
    }

    /// Nanoseconds since the epoch.
    fn now(&self) -> Option<i128> {
        self.clock.map(|clock| i128::from(clock()) * 1000)
    }

    fn local(
        &self,
        spec: &SourceSpec,
        path: &str,
        pulled: &mut Vec<PulledDirectory>,
    ) -> Result<Vec<InputFile>, SourceError> {
        let path = path.trim_start_matches("./");
        let absolute = path.starts_with('/');
        let pattern = Pattern::new(path)?;
        let start = if absolute { PathBuf::from("/") } else { self.root.clone() };
        let now = self.now();
        let mut walked = Walked::default();
        walk(&start, &pattern.parts, &mut walked)?;
        for (folder, list) in walked.lists {
            let Some(relative) = folder.strip_prefix(&start).ok().and_then(Path::to_str) else { continue };
            let directory = if absolute { format!("/{relative}") } else { relative.to_owned() };
            pulled.push(PulledDirectory { directory, list });
        }
        let mut inputs = Vec::with_capacity(walked.files.len());
        for FoundFile { path, place, metadata } in walked.files {
            // A name that is not UTF-8 cannot be written in a job or a manifest.
            let Some(relative) = path.strip_prefix(&start).ok().and_then(Path::to_str) else { continue };
            let shown = if absolute { format!("/{relative}") } else { relative.to_owned() };
            let io = |source| SourceError::Io { path: shown.clone(), source };
            let matched = if absolute { &shown } else { relative };
            inputs.push(InputFile {
                size: metadata.len(),
                version: fingerprint::of_file(&metadata, now).map_err(io)?,
                day: pattern.day(matched, &shown)?,
                format: format_of(spec, &shown)?,
                reader: ReaderVersion::CURRENT,
                breaks: Vec::new(),
                location: FileAccess::Local(place),
                path: shown,
            });
        }
        Ok(inputs)
    }

    fn remote(&self, spec: &SourceSpec, written: &str, base: &str, key: &str) -> Result<Vec<InputFile>, SourceError> {
        if key.is_empty() {
            return Err(LocationError::without_key(written).into());
        }
        let pattern = Pattern::new(key)?;
        let (client, handle) = self.client(base, &spec.name)?;
        let failed = |source| client.error(written, source);
        let literal: Vec<&str> = pattern
            .parts
            .iter()
            .map_while(|part| match part {
                Part::Literal(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let prefix = Key::parse(literal.join("/")).map_err(|source| failed(source.into()))?;
        let objects: Vec<ObjectMeta> = if literal.len() == pattern.parts.len() {
            match handle.block_on(client.store.head(&prefix)) {
                Ok(object) => vec![object],
                Err(error) if is_missing_object(&error) => Vec::new(),
                Err(source) => return Err(failed(source)),
            }
        } else {
            handle.block_on(client.store.list(Some(&prefix)).try_collect()).map_err(failed)?
        };
        let now = self.now();
        let mut inputs = Vec::with_capacity(objects.len());
        for object in objects.into_iter().filter(|object| pattern.is_match(object.location.as_ref())) {
            let path = format!("{base}/{}", object.location);
            let modified = || {
                let time = object.last_modified.timestamp_nanos_opt().unwrap_or_default();
                fingerprint::of_time(time, now)
            };
            inputs.push(InputFile {
                size: object.size,
                version: object.e_tag.clone().unwrap_or_else(modified),
                day: pattern.day(object.location.as_ref(), &path)?,
                format: format_of(spec, &path)?,
                reader: ReaderVersion::CURRENT,
                breaks: Vec::new(),
                location: FileAccess::Remote {
                    base: base.to_owned(),
                    source: spec.name.clone(),
                    key: object.location.clone(),
                    etag: object.e_tag,
                },
                path,
            });
        }
        Ok(inputs)
    }
}

/// What a walk along a pattern found.
#[derive(Default)]
struct Walked {
    files: Vec<FoundFile>,
    /// The lists of pulls in directories of files.
    lists: Vec<(PathBuf, PullList)>,
}

/// A file that a walk found.
struct FoundFile {
    /// The path that the pattern matches.
    path: PathBuf,
    /// Where it lies: a file of a pull has a directory of its own.
    place: PathBuf,
    metadata: Metadata,
}

/// Files below `folder` that match the parts.
fn walk(folder: &Path, parts: &[Part], found: &mut Walked) -> Result<(), SourceError> {
    let Some((part, rest)) = parts.split_first() else { return Ok(()) };
    let io = |source| SourceError::Io { path: folder.display().to_string(), source };
    let list = if rest.is_empty() { PullList::load(folder)? } else { None };
    let decides = list.as_ref().is_some_and(PullList::decides);
    match part {
        Part::Literal(name) if decides && is_of_pull(name) => {}
        Part::Literal(name) => reach(folder.join(name), rest, found)?,
        Part::Folders => {
            walk(folder, rest, found)?;
            for entry in entries(folder).map_err(io)? {
                // Symbolic links to directories could form cycles.
                if entry.file_type().map_err(io)?.is_dir() && !is_hidden(&entry) && !is_of_a_pull(folder, &entry) {
                    walk(&entry.path(), parts, found)?;
                }
            }
            return Ok(());
        }
        Part::Glob { text, hidden } => {
            for entry in entries(folder).map_err(io)? {
                let name = entry.file_name();
                let is_left = decides && name.to_str().is_some_and(is_of_pull);
                if !is_left && text.is_match(Path::new(&name)) && (*hidden || !is_hidden(&entry)) {
                    reach(entry.path(), rest, found)?;
                }
            }
        }
    }
    if let Some(list) = list {
        listed(folder, part, &list, found)?;
        found.lists.push((folder.to_owned(), list));
    }
    Ok(())
}

/// The files of a list whose names match the last part of a pattern. One that is not there is gone, as any other file.
fn listed(folder: &Path, part: &Part, list: &PullList, found: &mut Walked) -> Result<(), SourceError> {
    for (name, file) in list.files.iter().filter(|_| list.decides()) {
        let is_wanted = match part {
            Part::Literal(text) => text == name,
            Part::Glob { text, .. } => text.is_match(name),
            Part::Folders => false,
        };
        let place = folder.join(file);
        match fs::metadata(&place) {
            Ok(metadata) if is_wanted => found.files.push(FoundFile { path: folder.join(name), place, metadata }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SourceError::Io { path: place.display().to_string(), source }),
        }
    }
    Ok(())
}

/// Whether a directory holds the files of a pull, which its list names.
fn is_of_a_pull(folder: &Path, entry: &fs::DirEntry) -> bool {
    let is_listed = || [PULL_LIST, PULL_UNDER_WAY].into_iter().any(|list| folder.join(list).is_file());
    entry.file_name().as_encoded_bytes().starts_with(PULL_DIRECTORY.as_bytes()) && is_listed()
}

fn reach(path: PathBuf, rest: &[Part], found: &mut Walked) -> Result<(), SourceError> {
    match fs::metadata(&path) {
        Ok(metadata) if rest.is_empty() => {
            if metadata.is_file() {
                found.files.push(FoundFile { place: path.clone(), path, metadata });
            }
            Ok(())
        }
        Ok(metadata) if metadata.is_dir() => walk(&path, rest, found),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SourceError::Io { path: path.display().to_string(), source }),
    }
}

fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn is_hidden(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn format_of(spec: &SourceSpec, path: &str) -> Result<Format, SourceError> {
    if let Some(format) = spec.format {
        return Ok(format);
    }
    let name = path.to_ascii_lowercase();
    if [".parquet", ".pq"].iter().any(|ending| name.ends_with(ending)) {
        return Ok(Format::Parquet);
    }
    let name = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    // What an archive holds has an ending of its own.
    let is_text = [".csv", ".tsv", ".txt", ".zip"].iter().any(|ending| name.ends_with(ending));
    is_text.then_some(Format::Csv).ok_or_else(|| SourceError::UnknownFormat { path: path.to_owned() })
}
