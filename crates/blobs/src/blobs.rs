//! Storage interface: immutable files with durable, atomic creation.
//!
//! Files of a store are immutable and created once under unique names. So it needs two operations:
//! [`Blobs::create_new`], durable and atomic when it returns, and reading. What several writers change, such as a lease
//! in a bucket, is written by [`Blobs::replace_if`].
//!
//! The trait has what storages do differently. Whoever uses one finds shorter calls beside it, such as `read` and `stat`: they
//! are methods of `dyn Blobs`, which a wrapper need not forward.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_sstable::ReadAt;

use crate::error::Result;
use crate::file::{ETag, Listed, Listing, ReadBytes, Stat, Tag};
use crate::place::{Bucket, Capabilities, Place};
use crate::writer::{BlobWriter, StagingDirectory, WriteMode, unsupported};

/// Storage of immutable files, in a directory or a bucket. Paths are relative, with `/`.
pub trait Blobs: Debug + Send + Sync {
    /// Creates `path` with `bytes`, durably, if it does not exist. Returns `false` if it does.
    ///
    /// # Errors
    /// After an error `path` may or may not exist: read it back.
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool>;

    /// Replaces the content of `path` durably and atomically: readers see the old or the new bytes.
    ///
    /// # Errors
    /// After an error `path` holds the old or the new bytes.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Replaces the content of `path` as [`Self::replace`] does, if it is still the one that was read with `tag`. Returns
    /// the tag of the new content; `None` if another writer was first.
    ///
    /// # Errors
    /// If the storage cannot compare, as a directory; after another error `path` holds the old or the new bytes.
    fn replace_if(&self, path: &str, bytes: &[u8], tag: &Tag) -> Result<Option<Tag>> {
        let _ = (bytes, tag);
        Err(unsupported("compare and replace", path))
    }

    /// Starts a file that becomes visible as `path` once it is finished.
    ///
    /// # Errors
    /// If the file cannot be created, or the storage has no parked files.
    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>>;

    /// Starts a staging directory to be swapped with `directory`, or takes over the one that another process
    /// [parked](StagingDirectory::park) at the path `parked`. `None` where directories cannot be swapped: in a bucket, across
    /// disks, or if there is a directory inside.
    ///
    /// # Errors
    /// If it cannot be created, or the storage has no parked ones.
    fn open_staging(&self, directory: &str, parked: Option<&str>) -> Result<Option<Box<dyn StagingDirectory>>> {
        let _ = directory;
        parked.map_or(Ok(None), |path| Err(unsupported("take over", path)))
    }

    /// The whole file with its tag, where the storage has tags; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>>;

    /// Whole files, with the tags that a list told; in a bucket several at a time. The bytes that belong to a tag may come
    /// from a cache on the local disk. `None` for those that do not exist.
    ///
    /// # Errors
    /// If one exists and cannot be read.
    fn read_listed(&self, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        let mut read = Vec::with_capacity(files.len());
        for (path, _) in files {
            read.push(self.read_tagged(path)?.map(|(bytes, _)| ReadBytes { bytes, is_listed: false }));
        }
        Ok(read)
    }

    /// Opens a file for positioned reads.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    fn open_file(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn ReadAt>>;

    /// The files and directories in `directory`, ascending by name; empty if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be listed, or its files have no metadata.
    fn list_files(&self, directory: &str, listing: Listing<'_>) -> Result<Vec<Listed>>;

    /// The files of two directories, ascending; in a bucket at a time and with their tags, and those of the second only if
    /// they are few enough for one reply.
    ///
    /// # Errors
    /// As [`Self::list_files`].
    fn list_both(&self, first: &str, second: &str) -> Result<(Vec<Listed>, Option<Vec<Listed>>)> {
        let _ = second;
        Ok((self.list_files(first, Listing::Names)?, None))
    }

    /// Metadata of files, in their order; in a bucket in few round trips. `None` for those that do not exist.
    ///
    /// # Errors
    /// If one exists and its metadata cannot be read.
    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>>;

    /// Paths of unfinished files that killed writers left in `directory` and, at the root, of [staging
    /// directories](Self::open_staging); no list shows them.
    ///
    /// # Errors
    /// If the directory exists and cannot be listed.
    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        let _ = directory;
        Ok(Vec::new())
    }

    /// Removes files and empty staging directories, in a bucket many in one request; those that do not exist count as
    /// removed.
    ///
    /// # Errors
    /// If one exists and cannot be removed: the first error, after the others were tried where each takes a call.
    fn delete_all(&self, paths: &[String]) -> Result<()>;

    /// Where the storage is: its directory or bucket, from which follows what it can do. A wrapper forwards it.
    fn place(&self) -> Place<'_>;
}

/// How a file is opened for positioned reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// As it is now.
    Now,
    /// A file that must have so many bytes and never changes. In a bucket it takes no request, and what was read is cached: a
    /// missing file, or one of another length, fails when it is read.
    Sized(u64),
    /// As [`Self::Sized`], but what is read comes from the storage itself, for verification.
    Fresh(u64),
}

impl<'b> dyn Blobs + 'b {
    /// Starts a new file, visible as `path` once it is finished, if that name is free then.
    ///
    /// # Errors
    /// As [`Blobs::open_writer`].
    pub fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.open_writer(path, WriteMode::New)
    }

    /// Starts a file that atomically replaces `path` once it is finished.
    ///
    /// # Errors
    /// As [`Blobs::open_writer`].
    pub fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.open_writer(path, WriteMode::Replace)
    }

    /// The file that another process [parked](BlobWriter::park) at `path`, to be finished as `target` or another name.
    ///
    /// # Errors
    /// As [`Blobs::open_writer`].
    pub fn parked(&self, path: &str, target: &str) -> Result<Box<dyn BlobWriter>> {
        self.open_writer(target, WriteMode::Parked(path))
    }

    /// Starts a staging directory to be swapped with `directory`; `None` where that cannot be done.
    ///
    /// # Errors
    /// As [`Blobs::open_staging`].
    pub fn staging(&self, directory: &str) -> Result<Option<Box<dyn StagingDirectory>>> {
        self.open_staging(directory, None)
    }

    /// The staging directory that another process [parked](StagingDirectory::park) at `path`, to be swapped with `directory`.
    ///
    /// # Errors
    /// As [`Blobs::open_staging`].
    pub fn parked_staging(&self, path: &str, directory: &str) -> Result<Box<dyn StagingDirectory>> {
        self.open_staging(directory, Some(path))?.ok_or_else(|| unsupported("take over", path))
    }

    /// The whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Blobs::read_tagged`].
    pub fn read(&self, path: &str) -> Result<Option<Bytes>> {
        Ok(self.read_tagged(path)?.map(|(bytes, _)| bytes))
    }

    /// As `read`, of many files; in a bucket several at a time.
    ///
    /// # Errors
    /// As [`Blobs::read_listed`].
    pub fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Bytes>>> {
        let files: Vec<_> = paths.iter().map(|path| (path.clone(), None)).collect();
        Ok(self.read_listed(&files)?.into_iter().map(|read| read.map(|read| read.bytes)).collect())
    }

    /// Opens a file as it is now, for positioned reads.
    ///
    /// # Errors
    /// As [`Blobs::open_file`].
    pub fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.open_file(path, OpenMode::Now)
    }

    /// Names of the files and directories in `directory`, ascending; empty if it does not exist.
    ///
    /// # Errors
    /// As [`Blobs::list_files`].
    pub fn list(&self, directory: &str) -> Result<Vec<String>> {
        Ok(self.list_files(directory, Listing::Names)?.into_iter().map(|file| file.name).collect())
    }

    /// The files of `list` that sort after `after`, in a bucket with their tags.
    ///
    /// # Errors
    /// As [`Blobs::list_files`].
    pub fn list_after(&self, directory: &str, after: &str) -> Result<Vec<Listed>> {
        self.list_files(directory, Listing::After(after))
    }

    /// The files of `list` with their metadata. Those that vanished since were removed by another process.
    ///
    /// # Errors
    /// As [`Blobs::list_files`].
    pub fn list_stats(&self, directory: &str) -> Result<Vec<(String, Stat)>> {
        let files = self.list_files(directory, Listing::Stats)?;
        Ok(files.into_iter().filter_map(|file| Some((file.name, file.stat?))).collect())
    }

    /// Metadata of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Blobs::stat_all`].
    pub fn stat(&self, path: &str) -> Result<Option<Stat>> {
        Ok(self.stat_all(&[path.to_owned()])?.into_iter().next().flatten())
    }

    /// The files in `directory` and below it, with their sizes in bytes; hidden ones are left out, and a symbolic link is a file. The
    /// files of a directory come before those of the directories in it.
    ///
    /// # Errors
    /// As [`Blobs::list_files`].
    pub fn files_below(&self, directory: &str) -> Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        let mut directories = VecDeque::from([directory.to_owned()]);
        while let Some(directory) = directories.pop_front() {
            let stats: HashMap<String, Stat> = self.list_stats(&directory)?.into_iter().collect();
            for name in self.list(&directory)? {
                let path = format!("{directory}/{name}");
                let found = self.directory().map(|root| std::fs::symlink_metadata(root.join(&path)));
                let is_directory = found.map(|found| found.is_ok_and(|found| found.is_dir()));
                match stats.get(&name) {
                    // In a bucket, what lies between two slashes has no metadata.
                    Some(stat) if is_directory != Some(true) => files.push((path, stat.bytes)),
                    _ => directories.push_back(path),
                }
            }
        }
        Ok(files)
    }

    /// Removes a file or an empty staging directory; succeeds if it does not exist.
    ///
    /// # Errors
    /// As [`Blobs::delete_all`].
    pub fn delete(&self, path: &str) -> Result<()> {
        self.delete_all(&[path.to_owned()])
    }

    /// What it can do, and what it costs to ask.
    pub fn capabilities(&self) -> Capabilities {
        self.place().capabilities()
    }

    /// The directory of the local disk that it is; `None` elsewhere.
    pub fn directory(&self) -> Option<&Path> {
        match self.place() {
            Place::Directory(directory) => Some(directory),
            Place::Bucket { .. } | Place::Elsewhere(_) => None,
        }
    }

    /// The objects that it is, for readers that speak the protocol of buckets; `None` elsewhere.
    pub fn bucket(&self) -> Option<Bucket> {
        match self.place() {
            Place::Bucket { client, prefix, .. } => Some(Bucket { client: Arc::clone(client), prefix: prefix.clone() }),
            Place::Directory(_) | Place::Elsewhere(_) => None,
        }
    }

    /// Path or URL of the storage, for messages.
    pub fn display(&self) -> String {
        match self.place() {
            Place::Directory(directory) => directory.display().to_string(),
            Place::Bucket { url, .. } => url.to_owned(),
            Place::Elsewhere(name) => name.to_owned(),
        }
    }
}
