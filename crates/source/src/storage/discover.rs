//! Which files a source has: pattern by pattern, on the local disk or in a bucket.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use futures::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::runtime::Handle;

use crate::error::SourceError;
use crate::format::{Foreign, Format};
use crate::location::{LocationError, Split};
use crate::reader_version::ReaderVersion;
use crate::spec::SourceSpec;
use crate::storage::coverage::{Coverage, coverage, is_beside_data};
use crate::storage::dump_set::newest_dump;
use crate::storage::pattern::{Part, Pattern};
use crate::storage::pull_list::PulledDirectory;
use crate::storage::unread::{Unread, UnreadReason, shown_path};
use crate::storage::walk::{FoundFile, Walk};
use crate::storage::{Client, FileAccess, InputFile, Storage, fingerprint, is_missing_object};
use crate::text_shape::TextShape;

/// The files that the patterns of a source match.
#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    /// Distinct files, pattern by pattern, those of each by the bytes of their paths.
    pub files: Vec<InputFile>,
    /// Patterns without a match, as the job writes them.
    pub unmatched: Vec<String>,
    /// Directories of pulls that the patterns reach.
    pub pulled: Vec<PulledDirectory>,
    /// Names that the patterns reach and that are not read.
    pub unread: Vec<Unread>,
    /// Files below a name that begins with `_` or `.` where the pattern has a wildcard, with that name. They are not read,
    /// unless they were inputs before: see [`Self::keep_work_files`].
    pub work_files: Vec<(InputFile, String)>,
}

/// What one pattern reaches, before files of earlier patterns are left out.
#[derive(Debug, Default)]
struct Reached {
    files: Vec<InputFile>,
    pulled: Vec<PulledDirectory>,
    unread: Vec<Unread>,
    work_files: Vec<(InputFile, String)>,
}

impl DiscoveredFiles {
    /// Reads those of the work files that `is_input` says were inputs before, when a build read them; the others are named
    /// as unread.
    pub fn keep_work_files(&mut self, is_input: impl Fn(&str) -> bool) {
        for (file, name) in std::mem::take(&mut self.work_files) {
            match is_input(&file.path) {
                true => self.files.push(file),
                false => self.unread.push(Unread { path: name, reason: UnreadReason::WorkFile }),
            }
        }
    }

    /// Keys of the folders of the files that no column of `spec` reads, each with the first file.
    pub fn undeclared_keys(&self, spec: &SourceSpec) -> BTreeMap<String, String> {
        let mut keys = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.path.contains('=')) {
            for key in spec.undeclared_keys(&file.path) {
                keys.entry(key).or_insert_with(|| file.path.clone());
            }
        }
        keys
    }

    /// Adds what a pattern reaches, without what an earlier pattern reached. Returns whether it reaches nothing to read.
    fn add_pattern(&mut self, mut reached: Reached) -> bool {
        // A pull may have found nothing: its list is the match.
        let is_unmatched = reached.files.is_empty() && !reached.pulled.iter().any(|pulled| pulled.list.decides());
        reached.pulled.retain(|pulled| !self.pulled.contains(pulled));
        self.pulled.append(&mut reached.pulled);

        reached.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        // Two `**` of a pattern may reach a file by two ways.
        reached.files.dedup_by(|a, b| a.path == b.path);
        if !self.files.is_empty() {
            let seen: HashSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
            reached.files.retain(|file| !seen.contains(file.path.as_str()));
        }
        self.files.append(&mut reached.files);
        self.unread.append(&mut reached.unread);
        self.work_files.append(&mut reached.work_files);
        is_unmatched
    }

    /// Removes duplicates, and work files that another pattern reads.
    fn remove_duplicates(&mut self) {
        self.unread.sort_unstable();
        self.unread.dedup();

        self.work_files.sort_unstable_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        self.work_files.dedup_by(|(a, _), (b, _)| a.path == b.path);
        if !self.work_files.is_empty() {
            let seen: HashSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
            self.work_files.retain(|(file, _)| !seen.contains(file.path.as_str()));
        }
    }
}

impl Storage {
    /// The files of a source: pattern by pattern, the matches of each sorted by path bytes, without duplicates.
    ///
    /// Patterns are globs (`*` `?` `[..]` `{a,b}`, `**` for any number of directories) relative to the project root,
    /// absolute, or URLs. A directory stands for all data files below it. Wildcards skip names that begin with `.` or `_`:
    /// other programs keep work files there. `{day:%Y-%m-%d}` matches a day and assigns it to the file.
    ///
    /// # Errors
    /// [`SourceError::NoMatch`] for a pattern without a match; those of [`Storage::find`].
    pub fn discover(&self, spec: &SourceSpec) -> Result<Vec<InputFile>, SourceError> {
        let found = self.find(spec)?;
        match found.unmatched.into_iter().next() {
            Some(pattern) => Err(self.no_match(spec, pattern, &found.unread)),
            None => Ok(found.files),
        }
    }

    /// The error for a pattern without a match; `unread` are the names that the patterns reach and that are not read.
    pub fn no_match(&self, spec: &SourceSpec, pattern: String, unread: &[Unread]) -> SourceError {
        let notes = Unread::notes(unread);
        SourceError::NoMatch { name: spec.name.clone(), pattern, root: self.root.display().to_string(), notes }
    }

    /// As [`Storage::discover`], but a pattern may match nothing.
    ///
    /// # Errors
    /// [`SourceError::BadPattern`], [`SourceError::DayPattern`], [`SourceError::DayInPath`],
    /// [`SourceError::UnknownFormat`], [`SourceError::DumpIncomplete`]; and errors of the disk or the store.
    pub fn find(&self, spec: &SourceSpec) -> Result<DiscoveredFiles, SourceError> {
        let mut all = DiscoveredFiles::default();
        for written in &spec.files {
            let reached = match self.split(written)? {
                Split::Path(path) => self.local(spec, path)?,
                Split::Bucket { base, key } => self.remote(spec, written, base, key)?,
            };
            if all.add_pattern(reached) {
                all.unmatched.push(written.clone());
            }
        }
        all.remove_duplicates();
        if spec.format.is_some_and(Format::is_dump) {
            let (newest, mut older) = newest_dump(all.files)?;
            all.files = newest;
            all.unread.append(&mut older);
        }
        Unread::retain_unread(&mut all.unread, [spec]);
        Ok(all)
    }

    /// The time by the clock of this storage, nanoseconds since the epoch; `None` without a clock.
    fn clock_nanos(&self) -> Option<i128> {
        self.clock.map(|clock| i128::from(clock()) * 1000)
    }

    /// What a pattern of local files reaches: `written` as in the job, relative to the project root, or absolute.
    ///
    /// # Errors
    /// As [`Storage::find`].
    fn local(&self, spec: &SourceSpec, written: &str) -> Result<Reached, SourceError> {
        let pattern_path = written.trim_start_matches("./");
        let is_absolute = pattern_path.starts_with('/');
        let pattern = Pattern::new(pattern_path)?;
        let start = if is_absolute { PathBuf::from("/") } else { self.root.clone() };

        let looked_at = self.clock_nanos();
        let walk = Walk::along(&start, &pattern.parts, spec.format.is_some())?;
        let shown = |path: &Path| {
            let relative = shown_path(path.strip_prefix(&start).unwrap_or(path));
            if is_absolute { format!("/{relative}") } else { relative }
        };

        let mut reached = Reached::default();
        for (folder, list) in walk.lists {
            reached.pulled.push(PulledDirectory { directory: shown(&folder), list });
        }
        for (unread_path, reason) in walk.unread {
            let path = shown(&unread_path);
            if reason != UnreadReason::OtherEnding || pattern.differs_by_ending(&path) {
                reached.unread.push(Unread { path, reason });
            }
        }

        for FoundFile { path: found_path, place: stored_at, metadata, work } in walk.files {
            let path = shown(&found_path);
            let version = match fingerprint::of_file(&metadata, looked_at) {
                Ok(version) => version,
                Err(source) => return Err(SourceError::Io { path, source }),
            };
            let matched = if is_absolute { path.as_str() } else { path.trim_start_matches('/') };
            let day = pattern.day(matched, &path)?;
            let file = MatchedFile { path, size: metadata.len(), version, day, location: FileAccess::Local(stored_at) };
            reached.add_file(file.into_input(spec)?, work.map(|work_name| shown(&work_name)));
        }
        Ok(reached)
    }

    /// What a pattern of objects reaches: `written` as in the job, of which `base` is the URL of the bucket and
    /// `key_pattern` the rest.
    ///
    /// # Errors
    /// As [`Storage::find`], and [`SourceError::Location`] if `key_pattern` is empty.
    fn remote(&self, spec: &SourceSpec, written: &str, base: &str, key_pattern: &str) -> Result<Reached, SourceError> {
        if key_pattern.is_empty() {
            return Err(LocationError::without_key(written).into());
        }
        let pattern = Pattern::new(key_pattern)?;
        let (client, handle) = self.client(base, &spec.name)?;
        let listing = list_objects(&client, &handle, &pattern).map_err(|source| client.error(written, source))?;

        let looked_at = self.clock_nanos();
        let below = pattern.below();
        let parts = if listing.is_folder { &below } else { &pattern.parts };
        let objects = ObjectPattern { spec, base, pattern: &pattern, parts, is_folder: listing.is_folder, looked_at };

        let mut reached = Reached::default();
        for object in listing.objects {
            objects.classify(object, &mut reached)?;
        }
        Ok(reached)
    }
}

impl Reached {
    /// Adds a file; `work_name` is the name of work files that it has or lies below, if any.
    fn add_file(&mut self, file: InputFile, work_name: Option<String>) {
        match work_name {
            Some(work_name) => self.work_files.push((file, work_name)),
            None => self.files.push(file),
        }
    }
}

/// A file or object that a pattern matches.
struct MatchedFile {
    path: String,
    size: u64,
    version: String,
    day: Option<NaiveDate>,
    location: FileAccess,
}

impl MatchedFile {
    /// The input of a source that was never loaded.
    ///
    /// # Errors
    /// As [`format_of`].
    fn into_input(self, spec: &SourceSpec) -> Result<InputFile, SourceError> {
        let format = format_of(spec, &self.path)?;
        Ok(InputFile {
            path: self.path,
            size: self.size,
            version: self.version,
            day: self.day,
            format,
            reader: ReaderVersion::CURRENT,
            breaks: Vec::new(),
            shape: TextShape::default(),
            location: self.location,
        })
    }
}

/// The part of a pattern before its first wildcard.
struct LiteralPrefix {
    key: Key,
    /// Whether the pattern has no wildcard, and so is a key or a folder.
    is_whole: bool,
}

impl LiteralPrefix {
    /// The literal prefix of `pattern`; empty if it begins with a wildcard.
    ///
    /// # Errors
    /// If the prefix is not a key.
    fn of(pattern: &Pattern) -> Result<Self, object_store::path::Error> {
        let mut names = Vec::new();
        for part in &pattern.parts {
            let Part::Literal(name) = part else { break };
            names.push(name.as_str());
        }
        Ok(Self { key: Key::parse(names.join("/"))?, is_whole: names.len() == pattern.parts.len() })
    }
}

/// The objects that a pattern may match.
struct Listing {
    objects: Vec<ObjectMeta>,
    /// Whether the pattern names no object but a folder, of which these are all objects.
    is_folder: bool,
}

/// Lists the objects below the literal prefix of a pattern. A pattern without wildcards is first taken for the key of an
/// object.
fn list_objects(client: &Client, handle: &Handle, pattern: &Pattern) -> Result<Listing, object_store::Error> {
    let prefix = LiteralPrefix::of(pattern)?;
    if prefix.is_whole {
        match handle.block_on(client.store.head(&prefix.key)) {
            Ok(object) => return Ok(Listing { objects: vec![object], is_folder: false }),
            Err(error) if is_missing_object(&error) => {}
            Err(error) => return Err(error),
        }
    }

    let objects = handle.block_on(client.store.list(Some(&prefix.key)).try_collect())?;
    Ok(Listing { objects, is_folder: prefix.is_whole })
}

/// A pattern of objects, as its listing found it.
struct ObjectPattern<'a> {
    spec: &'a SourceSpec,
    /// The URL of the bucket, with which the paths of its objects begin.
    base: &'a str,
    pattern: &'a Pattern,
    /// Parts that cover the keys: those of `pattern`, followed by those of all data files below it if it is a folder.
    parts: &'a [Part],
    is_folder: bool,
    /// When the objects were listed, nanoseconds since the epoch; `None` if unknown.
    looked_at: Option<i128>,
}

impl ObjectPattern<'_> {
    /// Adds a listed object to what the pattern reaches: as a file, a work file or a name that is not read. Adds nothing
    /// if the pattern does not match it.
    ///
    /// # Errors
    /// [`SourceError::DayInPath`], [`SourceError::UnknownFormat`].
    fn classify(&self, object: ObjectMeta, reached: &mut Reached) -> Result<(), SourceError> {
        let key = object.location.as_ref();
        let path = format!("{}/{key}", self.base);
        if !self.is_folder && !self.pattern.is_match(key) {
            let name = key.rsplit('/').next().unwrap_or(key);
            if self.pattern.differs_by_ending(key) && is_beside_data(name) {
                reached.unread.push(Unread { path, reason: UnreadReason::OtherEnding });
            }
            return Ok(());
        }

        let work_name = match coverage(self.parts, key, self.spec.format.is_some()) {
            Coverage::Outside => return Ok(()),
            Coverage::UnknownEnding => {
                reached.unread.push(Unread { path, reason: UnreadReason::UnknownEnding });
                return Ok(());
            }
            Coverage::Work(length) => Some(format!("{}/{}", self.base, key.get(..length).unwrap_or(key))),
            Coverage::Read => None,
        };

        let version = match &object.e_tag {
            Some(etag) => etag.clone(),
            None => {
                let modified = object.last_modified.timestamp_nanos_opt().unwrap_or_default();
                fingerprint::of_time(modified, self.looked_at)
            }
        };
        let day = if self.is_folder { None } else { self.pattern.day(key, &path)? };
        let location = FileAccess::Remote {
            base: self.base.to_owned(),
            source: self.spec.name.clone(),
            key: object.location.clone(),
            etag: object.e_tag,
        };
        let file = MatchedFile { path, size: object.size, version, day, location };
        reached.add_file(file.into_input(self.spec)?, work_name);
        Ok(())
    }
}

/// The format of the file at `path`: that of the source, or else that of the file's ending.
///
/// # Errors
/// [`SourceError::UnknownFormat`] if neither says it.
fn format_of(spec: &SourceSpec, path: &str) -> Result<Format, SourceError> {
    if let Some(format) = spec.format {
        return Ok(format);
    }
    if Foreign::has_ending(path) {
        // A file of another format is opened as text, which says what it is.
        return Ok(Format::Csv);
    }
    Format::of_name(path).ok_or_else(|| SourceError::UnknownFormat { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::ObjectStore;
    use object_store::memory::InMemory;

    use super::*;

    const FILES: [&str; 8] = [
        "in/1.csv",
        "in/_2.csv",
        "in/_temporary/0/3.csv",
        "in/.4.csv",
        "in/deep/5.csv.gz",
        "in/deep/notes.md",
        "in/site=A/6.csv",
        "other/7.csv",
    ];

    /// Files, work files, and other names that are not read, without the start of their paths.
    fn found(storage: &Storage, start: &str, pattern: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let spec = SourceSpec { files: vec![format!("{start}{pattern}")], ..SourceSpec::default() };
        let DiscoveredFiles { files, work_files, unread, .. } = storage.find(&spec).unwrap();
        let plain = |path: &str| path.trim_start_matches(start).to_owned();
        let work_files = work_files.iter().map(|(file, _)| plain(&file.path)).collect();
        let unread = unread.iter().filter(|unread| unread.reason != UnreadReason::WorkFile);
        let unread = unread.map(|unread| plain(&unread.path)).collect();
        (files.iter().map(|file| plain(&file.path)).collect(), work_files, unread)
    }

    #[test]
    fn a_directory_and_a_bucket_are_reached_alike() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let root = tempfile::tempdir().unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for file in FILES {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
            runtime.block_on(store.put(&file.into(), "x".into())).unwrap();
        }
        let storage = Storage::new(root.path().to_owned(), Some(runtime.handle().clone()));
        let storage = storage.with_store("memory://", store);

        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let data = names(&["in/1.csv", "in/deep/5.csv.gz", "in/site=A/6.csv"]);
        for start in ["", "memory:///"] {
            let (files, work, unread) = found(&storage, start, "in");
            assert_eq!((files, unread), (data.clone(), names(&["in/deep/notes.md"])), "{start:?}");
            assert!(work.iter().all(|path| path.contains("/_") || path.contains("/.")), "{work:?}");
            assert_eq!(found(&storage, start, "in/**").0, data, "{start:?}");

            let (files, work, _) = found(&storage, start, "in/**/*.csv");
            assert_eq!(files, names(&["in/1.csv", "in/site=A/6.csv"]), "{start:?}");
            assert!(work.contains(&"in/_temporary/0/3.csv".to_owned()), "{work:?}");
            assert_eq!(found(&storage, start, "in/_*.csv").0, names(&["in/_2.csv"]), "{start:?}");
            assert_eq!(
                found(&storage, start, "in/_temporary/*/*.csv").0,
                names(&["in/_temporary/0/3.csv"]),
                "{start:?}"
            );
        }
    }

    #[test]
    fn data_files_with_another_ending_are_named() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "n/1.csv",
            "n/2.parquet",
            "n/3.csv.gz",
            "n/notes.md",
            "n/requirements.txt",
            "n/_4.parquet",
            "n/readme.csv.gz",
            "s/o.json",
        ] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let storage = Storage::new(root.path().to_owned(), None);
        let unread = |files: &[&str]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            let found = storage.find(&SourceSpec { files, ..SourceSpec::default() }).unwrap();
            let unread = found.unread.into_iter().filter(|unread| unread.reason == UnreadReason::OtherEnding);
            unread.map(|unread| unread.path).collect::<Vec<_>>()
        };

        assert_eq!(unread(&["*/*.csv"]), ["n/2.parquet", "n/3.csv.gz"]);
        assert_eq!(unread(&["**/[0-2]*.csv"]), ["n/2.parquet"]);
        assert_eq!(unread(&["*/*.csv", "./n/*.parquet"]), ["n/3.csv.gz"]);
        for read in ["n", "n/1.csv", "n/*.{csv,csv.gz,parquet}"] {
            assert_eq!(unread(&[read]), Vec::<String>::new(), "{read}");
        }
    }

    #[test]
    fn work_files_that_were_inputs_stay_inputs() {
        let root = tempfile::tempdir().unwrap();
        for name in ["_a.csv", "_b.csv", "c.csv"] {
            std::fs::write(root.path().join(name), "x").unwrap();
        }
        let storage = Storage::new(root.path().to_owned(), None);
        let spec = SourceSpec { files: vec!["*.csv".to_owned()], ..SourceSpec::default() };
        let mut found = storage.find(&spec).unwrap();
        found.keep_work_files(|path| path == "_a.csv");
        assert_eq!(found.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["c.csv", "_a.csv"]);
        assert_eq!(found.unread, [Unread { path: "_b.csv".to_owned(), reason: UnreadReason::WorkFile }]);
    }
}
