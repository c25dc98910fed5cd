//! Writes the files of a part: one, or several above a size limit.
//!
//! A single file is replaced by a rename. Several are written into a staging directory that is swapped with that of the
//! part, so that a listing shows either the old files or the new ones. With [`keep_old`], which preserves files for
//! readers of older snapshots, new files get new names beside the old ones; the Delta log says which belong together.
//!
//! A bucket has no directories to swap. There, several files get new names beside the old ones, and the list of the
//! export says which belong together; a single file is put under its fixed name.
//!
//! [`keep_old`]: PublishRequest::keep_old

use arrow::array::RecordBatch;
use tidetable_blobs::{StagingDirectory, TEMPORARY};
use tidetable_store::published::PartFile;

use crate::error::{ExportError, Result};
use crate::file::failures::Failures;
use crate::file::format::FileFormat;
use crate::file::rows::RowSink;
use crate::file::spec::FileSpec;
use crate::file::writer::{FileWriter, WrittenFile};
use crate::part::request::PublishRequest;

/// The files of a part in progress. The first row creates the first file: a part without rows leaves no directory.
pub(crate) struct PartFiles<'a> {
    request: &'a PublishRequest<'a>,
    spec: &'a FileSpec<'a>,
    /// The first file, while there is no other.
    first: String,
    current: Option<FileWriter>,
    done: Vec<PartFile>,
    aside: Option<Box<dyn StagingDirectory>>,
    /// Whether more than one file is impossible.
    single: bool,
}

/// Metadata key of the last of several files: their number.
pub(crate) const FILES: &str = "tidetable.files";

/// Written files that are not visible yet.
pub(crate) enum WrittenPart {
    /// No rows, so no file.
    Nothing,
    /// One file, which gets its name when the part is settled.
    One(WrittenFile),
    /// Several: in a staging directory, or in place if all names are new.
    Several(Vec<PartFile>, Option<Box<dyn StagingDirectory>>),
}

impl<'a> PartFiles<'a> {
    /// `first` is the file name of a part with one file.
    pub(crate) fn new(request: &'a PublishRequest<'a>, spec: &'a FileSpec<'a>, first: &str) -> Self {
        // All cells of a row belong in one file.
        let single = !request.format.holds_rows();
        Self { request, spec, first: first.to_owned(), current: None, done: Vec::new(), aside: None, single }
    }

    /// The current file, or a new one.
    fn file(&mut self) -> Result<&mut FileWriter> {
        let limit = if self.single { u64::MAX } else { self.request.file_size };
        if let Some(full) = self.current.take_if(|file| file.bytes() >= limit) {
            self.end(full)?;
        }
        let current = match self.current.take() {
            Some(current) => current,
            None => self.begin()?,
        };
        Ok(self.current.insert(current))
    }

    /// Begins the next file.
    fn begin(&self) -> Result<FileWriter> {
        // Its name is known at the end, and an object has one from the beginning.
        let may_change = self.request.apart.is_some() || !self.single && !self.request.keep_old;
        let path = match (&self.aside, self.done.len()) {
            (_, 0) if may_change && !self.renames() => self.temporary(),
            (_, 0) => part_path(self.request.folder, &self.first),
            (Some(aside), at) => format!("{}/{}", aside.path(), self.name(at)),
            (None, at) => part_path(self.request.folder, &self.name(at)),
        };
        let blob = self.request.store.blobs().overwrite_writer(&path)?;
        FileWriter::new(blob, self.spec).map_err(|source| ExportError::Write { path, source })
    }

    /// The name of one of several files. It contains the run, so that no list of another run names it.
    fn name(&self, at: usize) -> String {
        if at == 0 && self.request.keep_old {
            return self.first.clone();
        }
        self.request.format.file_of_several(self.request.stem(), at)
    }

    /// Completes one of several files.
    fn end(&mut self, file: FileWriter) -> Result<()> {
        let at = self.done.len();
        if at == 0 && !self.request.keep_old && self.renames() {
            let Some(aside) = self.request.store.blobs().staging(&self.folder())? else {
                self.single = true;
                self.current = Some(file);
                return Ok(());
            };
            self.aside = Some(aside);
        }

        let name = self.name(at);
        let file = file.finish().map_err(|source| ExportError::Write { path: name.clone(), source })?;
        let done = PartFile { file: name, bytes: file.bytes, checksum: file.checksum.clone(), stamp: None };
        match &self.aside {
            Some(aside) => file.publish_as(&format!("{}/{}", aside.path(), done.file))?,
            None if self.renames() => file.publish()?,
            None => file.publish_as(&part_path(self.request.folder, &done.file))?,
        }
        self.done.push(done);
        Ok(())
    }

    /// Path of the first file in a bucket, until its name is known.
    fn temporary(&self) -> String {
        format!("exports/{TEMPORARY}{}-{}", self.request.stem(), self.request.folder.replace('/', "-"))
    }

    /// Whether files get their names when they are finished; otherwise they have them from the beginning.
    fn renames(&self) -> bool {
        self.request.store.blobs().capabilities().renames
    }

    fn folder(&self) -> String {
        format!("exports/{}", self.request.folder)
    }

    /// Completes the last file.
    pub(crate) fn finish(mut self) -> Result<WrittenPart> {
        let Some(mut last) = self.current.take() else { return Ok(WrittenPart::Nothing) };
        if self.done.is_empty() {
            let path = part_path(self.request.folder, &self.first);
            return last.finish().map(WrittenPart::One).map_err(|source| ExportError::Write { path, source });
        }
        last.say(FILES, &(self.done.len() + 1).to_string());
        self.end(last)?;
        if let Some(aside) = &self.aside {
            self.all_there(aside.path())?;
        }
        Ok(WrittenPart::Several(std::mem::take(&mut self.done), self.aside.take()))
    }

    /// Checks that no file was removed meanwhile.
    fn all_there(&self, folder: &str) -> Result<()> {
        let names = self.request.store.blobs().list(folder)?;
        match self.done.iter().find(|file| !names.contains(&file.file)) {
            Some(PartFile { file, .. }) => Err(ExportError::Gone { path: format!("{folder}/{file}") }),
            None => Ok(()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none()
    }
}

impl Drop for PartFiles<'_> {
    /// Removes files written in place, which no list will name.
    fn drop(&mut self) {
        let blobs = self.request.store.blobs();
        for file in self.done.iter().filter(|_| self.aside.is_none()) {
            let _ = blobs.delete(&part_path(self.request.folder, &file.file));
        }
    }
}

impl RowSink for PartFiles<'_> {
    fn write(&mut self, batch: &RecordBatch, failures: &Failures<'_>) -> Result<()> {
        self.file()?.write(batch).map_err(|error| failures.write(error))
    }
}

/// Swaps the staging directory with that of the part.
pub(crate) fn take_place(aside: Box<dyn StagingDirectory>) -> Result<()> {
    Ok(aside.swap(&FileFormat::is_of_part)?)
}

pub(crate) fn part_path(folder: &str, file: &str) -> String {
    format!("exports/{folder}/{file}")
}
