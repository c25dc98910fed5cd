//! Local storage: files in a directory, made durable by fsync.
//!
//! A file is written under a hidden temporary name, synced, linked to its own name (which fails if that is taken),
//! and the directory is synced. `object_store` links before the bytes are durable and never syncs, so it is not used
//! here.

use std::collections::HashSet;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tidetable_sstable::ReadAt;

use crate::blobs::{Blobs, OpenMode};
use crate::disk::{Disk, DiskFile, OsDisk};
use crate::durability::{TEMPORARY, sync_directory_of};
use crate::error::{BlobError, Result};
use crate::file::{Listed, Listing, Stat, Tag};
use crate::place::Place;
use crate::staging::LocalStaging;
use crate::writer::{BlobWriter, StagingDirectory, WriteMode};

/// Bytes of a file that are buffered before they are written.
const WRITE_BUFFER: usize = 1 << 20;
/// What failed, in errors, if a directory cannot be made.
const MAKE_DIRECTORY: &str = "create the directory of";

/// A directory of the local disk.
#[derive(Debug)]
pub struct LocalBlobs {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// Serial number of the next temporary name.
    next: AtomicU64,
    /// Directories whose names are known to be durable.
    durable: Mutex<HashSet<PathBuf>>,
}

impl LocalBlobs {
    /// Storage in the directory `root`, which is created with the first file.
    pub fn new(root: PathBuf) -> Self {
        Self::on(Arc::new(OsDisk), root)
    }

    /// Storage in the directory `root` of `disk`.
    pub fn on(disk: Arc<dyn Disk>, root: PathBuf) -> Self {
        Self { disk, root, next: AtomicU64::new(0), durable: Mutex::default() }
    }

    /// Path of a file on the disk.
    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Begins a file that `publish` names once it is finished.
    fn local_writer(&self, path: &str, publish: Publish) -> Result<LocalWriter> {
        let (temporary, file) = match self.temporary(path) {
            // The root was removed while this process ran, such as by a person between two runs on executors.
            Err(BlobError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                self.durable.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.temporary(path)?
            }
            made => made?,
        };

        Ok(LocalWriter {
            out: Some(BufWriter::with_capacity(WRITE_BUFFER, file)),
            is_synced: false,
            disk: Arc::clone(&self.disk),
            root: self.root.clone(),
            temporary,
            target: self.full(path),
            path: path.to_owned(),
            publish,
        })
    }

    /// Takes over the file that another process parked at `parked`, to be finished as `path`.
    fn parked_writer(&self, path: &str, parked: &str) -> LocalWriter {
        LocalWriter {
            out: None,
            is_synced: true,
            disk: Arc::clone(&self.disk),
            root: self.root.clone(),
            temporary: self.full(parked),
            target: self.full(path),
            path: path.to_owned(),
            publish: replace,
        }
    }

    /// The staging directory at `path`, to be swapped with `directory`, whose links are resolved.
    fn staging_at(&self, path: String, directory: PathBuf) -> LocalStaging {
        let (disk, root) = (Arc::clone(&self.disk), self.root.clone());
        LocalStaging { disk, root, path, directory, is_parked: false }
    }

    /// Makes a staging directory under a new name, to be swapped with `directory`.
    fn make_staging(&self, directory: PathBuf) -> Result<LocalStaging> {
        loop {
            let serial = self.next.fetch_add(1, Ordering::Relaxed);
            let path = format!("{TEMPORARY}{}-{serial}-aside", std::process::id());
            match self.disk.make_directory(&self.full(&path)) {
                Ok(()) => return Ok(self.staging_at(path, directory)),
                // Of another process with the same process id, such as in a container.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error("create", &path)(error)),
            }
        }
    }

    /// Creates a directory and its ancestors up to the root, and syncs the parent of each. An existing one may be
    /// from a process that ended before it synced, so each is synced once. Errors name `path`.
    fn make_directory(&self, directory: &Path, path: &str) -> Result<()> {
        let is_durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner).contains(directory);
        if is_durable || self.disk.is_directory(directory) && tidetable_sstable::failpoint!(TrustDirectory) {
            return Ok(());
        }

        if directory == self.root || !directory.starts_with(&self.root) {
            make_outer_directory(&*self.disk, directory).map_err(io_error(MAKE_DIRECTORY, path))?;
        } else {
            self.make_inner_directory(directory, path)?;
        }

        self.durable.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned());
        Ok(())
    }

    /// As [`Self::make_directory`], of a directory inside the root.
    fn make_inner_directory(&self, directory: &Path, path: &str) -> Result<()> {
        if let Some(parent) = directory.parent() {
            self.make_directory(parent, path)?;
        }

        match self.disk.make_directory(directory) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !self.disk.is_directory(directory) {
                    let file = directory.strip_prefix(&self.root).unwrap_or(directory);
                    return Err(BlobError::NotADirectory { path: file.display().to_string() });
                }
            }
            made => made.map_err(io_error(MAKE_DIRECTORY, path))?,
        }
        sync_directory_of(&*self.disk, directory).map_err(io_error(MAKE_DIRECTORY, path))
    }

    /// The error for a path where it, or an ancestor, is a file.
    fn in_the_way(&self, directory: &str) -> BlobError {
        let ends = directory.match_indices('/').map(|(at, _)| at).chain([directory.len()]);
        let mut above = ends.filter_map(|end| directory.get(..end));
        let file = above.find(|path| !self.disk.is_directory(&self.full(path))).unwrap_or(directory);
        BlobError::NotADirectory { path: file.to_owned() }
    }

    /// Creates a temporary file in the directory of `path`, under a unique name.
    fn temporary(&self, path: &str) -> Result<(PathBuf, Box<dyn DiskFile>)> {
        let target = self.full(path);
        let directory = target.parent().unwrap_or(&self.root);
        self.make_directory(directory, path)?;

        loop {
            let serial = self.next.fetch_add(1, Ordering::Relaxed);
            let name = directory.join(format!("{TEMPORARY}{}-{serial}", std::process::id()));
            match self.disk.create(&name) {
                Ok(file) => return Ok((name, file)),
                // Left by a killed process with the same process id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error("create", path)(error)),
            }
        }
    }

    /// The names in a directory that are not hidden, ascending; empty if it does not exist.
    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let mut names = match self.disk.list(&self.full(directory)) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Err(self.in_the_way(directory)),
            Err(error) => return Err(io_error("list", directory)(error)),
        };

        names.retain(|name| !name.starts_with('.'));
        names.sort_unstable();
        Ok(names)
    }

    /// Metadata of a file; `None` if it does not exist.
    fn stat_one(&self, path: &str) -> Result<Option<Stat>> {
        match self.disk.stat(&self.full(path)) {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(io_error("read metadata of", path)(error)),
        }
    }

    /// Removes a file, or a staging directory if it is empty.
    fn delete_one(&self, path: &str) -> Result<()> {
        let whole = self.full(path);
        let is_temporary = whole.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY));
        if is_temporary && self.disk.is_directory(&whole) {
            // It stays if it is not empty.
            let _ = self.disk.remove_directory(&whole);
            return Ok(());
        }

        match self.disk.remove(&whole) {
            Ok(()) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(io_error("delete", path)(error)),
        }
    }
}

impl Blobs for LocalBlobs {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let (temporary, mut file) = self.temporary(path)?;
        if tidetable_sstable::failpoint!(NameBeforeFsync) {
            let made = file.write_all(bytes).and_then(|()| publish(&*self.disk, &temporary, &self.full(path)));
            return made.and_then(|()| file.sync()).map(|()| true).map_err(io_error("write", path));
        }

        let written = write_whole(&mut *file, bytes).and_then(|()| sync(&mut *file));
        let made = written.and_then(|()| publish(&*self.disk, &temporary, &self.full(path)));
        if made.is_err() {
            // If this fails, vacuum removes the temporary file.
            let _ = self.disk.remove(&temporary);
        }

        match made {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io_error("write", path)(error)),
        }
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let (temporary, mut file) = self.temporary(path)?;
        let written = write_whole(&mut *file, bytes).and_then(|()| sync(&mut *file));
        let made = written.and_then(|()| replace(&*self.disk, &temporary, &self.full(path)));
        if made.is_err() {
            let _ = self.disk.remove(&temporary);
        }

        made.map_err(io_error("write", path))
    }

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>> {
        let writer = match mode {
            WriteMode::New => self.local_writer(path, publish)?,
            WriteMode::Replace => self.local_writer(path, replace)?,
            WriteMode::Parked(parked) => self.parked_writer(path, parked),
        };
        Ok(Box::new(writer))
    }

    fn open_staging(&self, directory: &str, parked: Option<&str>) -> Result<Option<Box<dyn StagingDirectory>>> {
        if let Some(parked) = parked {
            let directory = self.disk.real_directory(&self.full(directory)).map_err(io_error("open", directory))?;
            return Ok(Some(Box::new(self.staging_at(parked.to_owned(), directory))));
        }

        self.make_directory(&self.full(directory), directory)?;
        let directory = self.disk.real_directory(&self.full(directory)).map_err(io_error("create", directory))?;
        // A nested directory would have to be moved, which cannot be atomic.
        let names = self.disk.list(&directory).map_err(io_error("list", &directory.display().to_string()))?;
        if names.iter().any(|name| self.disk.is_directory(&directory.join(name))) {
            return Ok(None);
        }

        let staging = self.make_staging(directory)?;
        if !staging.shares_disk().map_err(io_error("create", &staging.path))? {
            return Ok(None);
        }
        // Before files are created: they may inherit the group of their directory.
        let copied = self.disk.copy_mode(&staging.directory, &self.full(&staging.path));
        copied.map_err(io_error("create", &self.root.display().to_string()))?;
        Ok(Some(Box::new(staging)))
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        match self.disk.read(&self.full(path)) {
            Ok(bytes) => Ok(Some((bytes, None))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(io_error("read", path)(error)),
        }
    }

    fn open_file(&self, path: &str, _: OpenMode) -> Result<Arc<dyn ReadAt>> {
        self.disk.open(&self.full(path)).map_err(io_error("open", path))
    }

    fn list_files(&self, directory: &str, listing: Listing<'_>) -> Result<Vec<Listed>> {
        let mut files: Vec<Listed> = self.names(directory)?.into_iter().map(Listed::named).collect();
        match listing {
            Listing::Names => {}
            Listing::After(after) => files.retain(|file| file.name.as_str() > after),
            Listing::Stats => {
                for file in &mut files {
                    file.stat = self.stat_one(&format!("{directory}/{}", file.name))?;
                }
            }
        }
        Ok(files)
    }

    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        paths.iter().map(|path| self.stat_one(path)).collect()
    }

    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        let mut names = match self.disk.list(&self.full(directory)) {
            Ok(names) => names,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", directory)(error)),
        };
        names.retain(|name| name.starts_with(TEMPORARY));
        names.sort_unstable();

        if directory.is_empty() {
            return Ok(names);
        }
        Ok(names.into_iter().map(|name| format!("{directory}/{name}")).collect())
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        let mut done = Ok(());
        for path in paths {
            let deleted = self.delete_one(path);
            done = done.and(deleted);
        }
        done
    }

    fn place(&self) -> Place<'_> {
        Place::Directory(&self.root)
    }
}

/// A temporary file, removed if dropped unfinished.
struct LocalWriter {
    /// `None` once it is synced, or parked by another process.
    out: Option<BufWriter<Box<dyn DiskFile>>>,
    is_synced: bool,
    disk: Arc<dyn Disk>,
    /// Root of the store.
    root: PathBuf,
    /// Where the file is while it is written; empty once it is parked.
    temporary: PathBuf,
    /// Where the file will be.
    target: PathBuf,
    /// Path of the target inside the store, for messages.
    path: String,
    publish: Publish,
}

/// Names a synced file.
type Publish = fn(disk: &dyn Disk, temporary: &Path, target: &Path) -> io::Result<()>;

impl Write for LocalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().ok_or(ErrorKind::BrokenPipe)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().ok_or(ErrorKind::BrokenPipe)?.flush()
    }
}

impl BlobWriter for LocalWriter {
    fn finish_as(mut self: Box<Self>, path: &str) -> Result<()> {
        self.target = self.root.join(path);
        path.clone_into(&mut self.path);
        self.finish()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let synced = self.sync_all();
        let synced = if tidetable_sstable::failpoint!(IgnoreWriteError) { Ok(()) } else { synced };
        let made = synced.and_then(|()| (self.publish)(&*self.disk, &self.temporary, &self.target));
        made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => BlobError::Exists { path: self.path.clone() },
            _ => io_error("write", &self.path)(error),
        })
    }

    fn park(mut self: Box<Self>) -> Result<String> {
        let synced = self.sync_all().and_then(|()| sync_directory_of(&*self.disk, &self.temporary));
        synced.map_err(io_error("write", &self.path))?;

        // The other process has it now.
        let temporary = std::mem::take(&mut self.temporary);
        let path = temporary.strip_prefix(&self.root).unwrap_or(&temporary);
        Ok(path.to_string_lossy().into_owned())
    }
}

impl LocalWriter {
    /// Writes and syncs what is buffered.
    fn sync_all(&mut self) -> io::Result<()> {
        match self.out.take() {
            Some(out) => out.into_inner().map_err(io::IntoInnerError::into_error).and_then(|mut file| sync(&mut *file)),
            None if self.is_synced => Ok(()),
            None => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        // A finished file has no temporary name any more.
        if !self.temporary.as_os_str().is_empty() {
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// Links a synced file to its name, unless that is taken, and syncs the directory.
fn publish(disk: &dyn Disk, temporary: &Path, target: &Path) -> io::Result<()> {
    disk.link(temporary, target)?;
    disk.remove(temporary)?;
    sync_directory_of(disk, target)
}

/// Renames a synced file to its name, replacing any other, and syncs the directory.
fn replace(disk: &dyn Disk, temporary: &Path, target: &Path) -> io::Result<()> {
    disk.rename(temporary, target)?;
    sync_directory_of(disk, target)
}

/// Syncs the bytes of a file.
fn sync(file: &mut dyn DiskFile) -> io::Result<()> {
    if tidetable_sstable::failpoint!(SkipFsync) { Ok(()) } else { file.sync() }
}

/// Writes all bytes of a file.
fn write_whole(file: &mut dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    if tidetable_sstable::failpoint!(IgnoreShortWrite) { file.write(bytes).map(|_| ()) } else { file.write_all(bytes) }
}

/// Creates the root and missing ancestors. Syncs the parent even if the root exists, if the parent may be opened.
fn make_outer_directory(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    use ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};

    if disk.is_directory(directory) {
        return match sync_directory_of(disk, directory) {
            Err(error)
                if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | Unsupported | InvalidInput) =>
            {
                // The parent belongs to another user.
                Ok(())
            }
            synced => synced,
        };
    }

    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !disk.is_directory(parent)) {
        make_outer_directory(disk, parent)?;
    }
    match disk.make_directory(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && disk.is_directory(directory) => {}
        made => made?,
    }
    sync_directory_of(disk, directory)
}

/// Whether an error says that the path does not exist, or that an ancestor is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes the error of an `action`, a verb, upon a path inside the store.
fn io_error(action: &'static str, path: &str) -> impl Fn(io::Error) -> BlobError {
    let path = path.to_owned();
    move |source| BlobError::Io { action, path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn blobs() -> (tempfile::TempDir, Box<dyn Blobs>) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(directory.path().join("root"));
        (directory, Box::new(blobs))
    }

    #[test]
    fn a_name_is_given_once() {
        let (_folder, blobs) = blobs();
        assert!(blobs.create_new("a/b/1.json", b"one").unwrap());
        assert!(!blobs.create_new("a/b/1.json", b"two").unwrap());
        assert_eq!(blobs.read("a/b/1.json").unwrap().unwrap().as_ref(), b"one");
        assert_eq!(blobs.list("a/b").unwrap(), ["1.json"]);
        assert_eq!(blobs.list("a").unwrap(), ["b"]);
    }

    #[test]
    fn a_root_that_was_removed_is_made_again() {
        let (directory, blobs) = blobs();
        assert!(blobs.create_new("a/b/1.json", b"one").unwrap());
        fs::remove_dir_all(directory.path().join("root")).unwrap();
        let mut writer = blobs.writer("a/b/x.sst").unwrap();
        writer.write_all(b"whole").unwrap();
        writer.finish().unwrap();
        assert_eq!(blobs.list("a/b").unwrap(), ["x.sst"]);
    }

    #[test]
    fn an_unfinished_file_is_never_seen() {
        let (directory, blobs) = blobs();
        let mut writer = blobs.writer("sst/x.sst").unwrap();
        writer.write_all(b"half").unwrap();
        assert!(blobs.list("sst").unwrap().is_empty());
        assert_eq!(blobs.leftovers("sst").unwrap().len(), 1);
        drop(writer);
        assert_eq!(fs::read_dir(directory.path().join("root/sst")).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_file_is_there_and_its_name_is_taken() {
        let (_folder, blobs) = blobs();
        for expected in [true, false] {
            let mut writer = blobs.writer("sst/x.sst").unwrap();
            writer.write_all(b"whole").unwrap();
            assert_eq!(writer.finish().is_ok(), expected);
        }
        assert_eq!(blobs.open("sst/x.sst").unwrap().len(), 5);
        assert_eq!(blobs.list("sst").unwrap(), ["x.sst"]);
    }

    #[test]
    fn a_replacement_shows_when_it_is_finished() {
        let (_folder, blobs) = blobs();
        for round in [b"one", b"two"] {
            let mut writer = blobs.overwrite_writer("exports/part.parquet").unwrap();
            writer.write_all(round).unwrap();
            let before = blobs.read("exports/part.parquet").unwrap();
            assert!(before.is_none_or(|before| before.as_ref() != round));
            writer.finish().unwrap();
            assert_eq!(blobs.read("exports/part.parquet").unwrap().unwrap().as_ref(), round);
        }
        assert_eq!(blobs.list("exports").unwrap(), ["part.parquet"]);
    }

    #[test]
    fn what_is_missing_reads_as_none() {
        let (_folder, blobs) = blobs();
        assert!(blobs.read("none").unwrap().is_none());
        assert!(blobs.list("none").unwrap().is_empty());
        blobs.delete("none").unwrap();
    }

    #[test]
    fn a_file_where_a_folder_belongs_is_named() {
        let (_folder, blobs) = blobs();
        blobs.create_new("exports/day", b"in the way").unwrap();
        for path in ["exports/day", "exports/day/deeper"] {
            let error = blobs.list(path).unwrap_err();
            assert!(matches!(&error, BlobError::NotADirectory { path } if path == "exports/day"), "{error}");
            assert!(blobs.leftovers(path).unwrap().is_empty());
        }
        let part = "exports/day/part-0.parquet";
        assert!(blobs.read(part).unwrap().is_none() && blobs.stat(part).unwrap().is_none());
        blobs.delete(part).unwrap();
        for path in [part, "exports/day/deeper/part-0.parquet"] {
            let error = blobs.overwrite_writer(path).err().unwrap();
            assert!(matches!(&error, BlobError::NotADirectory { path } if path == "exports/day"), "{error}");
        }
        let error = blobs.staging("exports/day").err().unwrap();
        assert!(matches!(&error, BlobError::NotADirectory { path } if path == "exports/day"), "{error}");
        assert_eq!(blobs.read("exports/day").unwrap().unwrap().as_ref(), b"in the way");
    }

    #[test]
    fn replacing_shows_the_new_bytes() {
        let (_folder, blobs) = blobs();
        blobs.replace("state.json", b"1").unwrap();
        blobs.replace("state.json", b"2").unwrap();
        assert_eq!(blobs.read("state.json").unwrap().unwrap().as_ref(), b"2");
    }
}
