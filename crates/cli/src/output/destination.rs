//! The destination of a result: standard output, a file or an object of a bucket that appears when complete, or a special file
//! that is written in place: a pipe, a device, an inherited descriptor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidetable_blobs::BlobError;
use tidetable_blobs::BlobWriter;
use tidetable_blobs::{Blobs, LocalBlobs, WriteMode};
use tidetable_source::Location;
use tokio::io::Interest;
use tokio::net::unix::pipe;

use crate::error::CliError;
use crate::place::storage_at;
use crate::terminal::printable::Printed;

/// Maximum number of symbolic links to follow.
const MAX_LINKS: usize = 40;
/// Directories with the descriptors of this process.
const OWN_DESCRIPTORS: [&str; 3] = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];

/// Standard output of this process, to be opened anew.
const STDOUT: &str = "/proc/self/fd/1";
/// `ENXIO`, the error of opening a pipe that nobody reads.
const NO_READER: i32 = 6;

/// A destination of a result.
#[derive(Debug, Clone)]
pub struct Destination {
    place: ResultPlace,
    /// Where an object lies.
    bucket: Option<Arc<dyn Blobs>>,
    shown: String,
    /// Whether the reader of a pipe has gone.
    reader_is_gone: Arc<AtomicBool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ResultPlace {
    Stdout,
    /// Written in place: a pipe, a device, a descriptor.
    Stream(PathBuf),
    /// Replaced when complete: a file, existing or not.
    File(PathBuf),
    /// The same in a bucket, by its name there.
    Object(String),
}

impl Destination {
    /// The destination `to`; `-` is standard output. `option` is its name in messages.
    ///
    /// # Errors
    /// If it names no file, is in a missing directory, or in a bucket that does not answer.
    pub fn of(to: &Location, option: &'static str) -> Result<Self, CliError> {
        let shown = to.to_string();
        let path = match to {
            Location::Path(path) => path,
            Location::Bucket(url) => {
                let Some((prefix, name)) = url.object() else { return Err(CliError::NoFileName { path: shown }) };
                let bucket = storage_at(&Location::Bucket(prefix))?;
                // Before the work: a bucket that cannot be reached cannot be written.
                bucket.stat(name)?;
                let place = ResultPlace::Object(name.to_owned());
                return Ok(Self { place, bucket: Some(bucket), shown, reader_is_gone: Arc::default() });
            }
        };
        let place = if path == Path::new("-") { ResultPlace::Stdout } else { place_of(path, option)? };
        let shown = if place == ResultPlace::Stdout { "standard output".to_owned() } else { shown };
        Ok(Self { place, bucket: None, shown, reader_is_gone: Arc::default() })
    }

    /// Standard output, printable if it is a terminal.
    pub fn stdout() -> Self {
        let shown = "standard output".to_owned();
        Self { place: ResultPlace::Stdout, bucket: None, shown, reader_is_gone: Arc::default() }
    }

    /// Its name in messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether it is standard output, which then cannot have messages.
    pub fn is_stdout(&self) -> bool {
        self.place == ResultPlace::Stdout
    }

    /// Whether it is a file or an object, whose name gives the format.
    pub fn is_file(&self) -> bool {
        matches!(self.place, ResultPlace::File(_) | ResultPlace::Object(_))
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        match &self.place {
            ResultPlace::Stdout => io::stdout().is_terminal(),
            // Opening a pipe to test it would show its writer a reader that leaves.
            ResultPlace::Stream(path) => {
                let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device());
                is_device && File::open(path).is_ok_and(|file| file.is_terminal())
            }
            ResultPlace::File(_) | ResultPlace::Object(_) => false,
        }
    }

    /// Whether the reader of a pipe has gone before the end, which is no failure.
    pub fn reader_is_gone(&self) -> bool {
        self.reader_is_gone.load(Ordering::Relaxed)
    }

    /// Opens it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(&self) -> Result<Box<dyn BlobWriter>, CliError> {
        Ok(match &self.place {
            ResultPlace::Stdout => self.stream(Box::new(Printed::new(io::stdout(), self.is_terminal()))),
            ResultPlace::Stream(path) => {
                // As a shell does for `> PATH`; waits for the reader of a pipe.
                let file = OpenOptions::new().write(true).truncate(true).open(path);
                self.stream(Box::new(file.map_err(|source| CliError::Folder { path: self.shown.clone(), source })?))
            }
            ResultPlace::File(path) => {
                let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
                else {
                    return Err(CliError::NoFileName { path: self.shown.clone() });
                };
                LocalBlobs::new(folder.to_owned()).open_writer(name, WriteMode::Replace)?
            }
            ResultPlace::Object(name) => match &self.bucket {
                Some(bucket) => bucket.overwrite_writer(name)?,
                None => return Err(CliError::NoFileName { path: self.shown.clone() }),
            },
        })
    }

    /// A writer to what cannot be replaced when it is complete.
    fn stream(&self, out: Box<dyn Write + Send>) -> Box<Stream> {
        let (shown, reader_is_gone) = (self.shown.clone(), Arc::clone(&self.reader_is_gone));
        Box::new(Stream { out: BufWriter::new(out), shown, reader_is_gone })
    }
}

/// Ends when the reader of standard output, a pipe, has gone, as a program that was killed: nobody waits for what is not written yet.
/// Never ends where standard output is something else.
pub async fn until_reader_is_gone() {
    let is_pipe = fs::metadata(STDOUT).is_ok_and(|found| found.file_type().is_fifo());
    if is_pipe {
        // An end of its own, since what waits does not block, and writers do.
        match pipe::OpenOptions::new().open_sender(STDOUT) {
            Ok(end) if end.ready(Interest::ERROR).await.is_ok() => return,
            // A pipe without a reader cannot be opened.
            Err(error) if error.raw_os_error() == Some(NO_READER) => return,
            Ok(_) | Err(_) => {}
        }
    }
    std::future::pending().await
}

/// Follows symbolic links: the target is replaced, and the links stay.
fn place_of(path: &Path, option: &'static str) -> Result<ResultPlace, CliError> {
    let shown = path.display().to_string();
    let failed = |source| CliError::Folder { path: shown.clone(), source };
    let mut at = std::path::absolute(path).map_err(failed)?;

    for _ in 0..MAX_LINKS {
        let folder = at.parent().unwrap_or(Path::new("/"));
        let Ok(folder) = fs::canonicalize(folder) else { return Err(CliError::NoFolder { option, path: shown }) };
        // `x/` and `..` are directories.
        let Some(name) = at.file_name() else { return Err(CliError::NoFileName { path: shown }) };
        let here = folder.join(name);
        if let Some(descriptor) = descriptor(&folder, name) {
            return Ok(if descriptor == Some(1) { ResultPlace::Stdout } else { ResultPlace::Stream(here) });
        }

        let found = match fs::symlink_metadata(&here) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ResultPlace::File(here)),
            Err(error) => return Err(failed(error)),
        };

        let kind = found.file_type();
        if kind.is_symlink() {
            at = folder.join(fs::read_link(&here).map_err(failed)?);
        } else if kind.is_dir() {
            return Err(CliError::NoFileName { path: shown });
        } else if kind.is_file() {
            return Ok(ResultPlace::File(here));
        } else {
            return Ok(ResultPlace::Stream(here));
        }
    }
    Err(failed(io::Error::other("its links form a cycle")))
}

/// Whether a name in a directory is that of a descriptor, which cannot be replaced; its number, if it belongs to this
/// process.
fn descriptor(folder: &Path, name: &std::ffi::OsStr) -> Option<Option<u32>> {
    let number = name.to_str()?.parse::<u32>().ok()?;
    // Links to the directory of the process, or of a thread.
    let is_own = OWN_DESCRIPTORS.iter().any(|own| {
        let own = Path::new(own);
        own == folder || fs::canonicalize(own).is_ok_and(|own| own == folder)
    });
    if is_own {
        return Some(Some(number));
    }
    (folder.starts_with("/proc") && folder.file_name().is_some_and(|name| name == "fd")).then_some(None)
}

/// A file whose bytes are counted as they are written.
pub(crate) struct CountedFile {
    out: Box<dyn BlobWriter>,
    bytes: u64,
}

impl CountedFile {
    pub(crate) fn new(out: Box<dyn BlobWriter>) -> Self {
        Self { out, bytes: 0 }
    }

    /// Completes the file. Returns its bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn finish(self) -> tidetable_store::Result<u64> {
        self.out.finish()?;
        Ok(self.bytes)
    }
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A file written in place.
struct Stream {
    out: BufWriter<Box<dyn Write + Send>>,
    shown: String,
    reader_is_gone: Arc<AtomicBool>,
}

impl Stream {
    fn noted<T>(&self, done: io::Result<T>) -> io::Result<T> {
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            self.reader_is_gone.store(true, Ordering::Relaxed);
        }
        done
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.noted(done)
    }
}

impl BlobWriter for Stream {
    fn finish(mut self: Box<Self>) -> tidetable_blobs::Result<()> {
        let path = self.shown.clone();
        self.flush().map_err(|source| BlobError::Io { action: "write", path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(path: &Path) -> ResultPlace {
        Destination::of(&Location::Path(path.to_owned()), "--to").unwrap().place
    }

    #[test]
    fn paths_lead_to_what_is_written() {
        let made = tempfile::TempDir::new().unwrap();
        let folder = fs::canonicalize(made.path()).unwrap();
        fs::create_dir(folder.join("inside")).unwrap();
        let at = |name: &str| folder.join(name);
        assert_eq!(place(Path::new("-")), ResultPlace::Stdout);
        assert_eq!(place(&at("new.csv")), ResultPlace::File(at("new.csv")));
        fs::write(at("inside/old.csv"), "x").unwrap();
        symlink("inside/old.csv", at("link.csv")).unwrap();
        symlink("link.csv", at("second.csv")).unwrap();
        assert_eq!(place(&at("second.csv")), ResultPlace::File(at("inside/old.csv")));
        symlink("inside/none.csv", at("open.csv")).unwrap();
        assert_eq!(place(&at("open.csv")), ResultPlace::File(at("inside/none.csv")));
        // As /dev/stdout is made.
        symlink("/proc/self/fd/1", at("stdout")).unwrap();
        assert_eq!(place(&at("stdout")), ResultPlace::Stdout);
        symlink("/dev/fd/2", at("stderr")).unwrap();
        assert!(matches!(place(&at("stderr")), ResultPlace::Stream(_)));
        symlink("/dev/null", at("null")).unwrap();
        assert_eq!(place(&at("null")), ResultPlace::Stream(PathBuf::from("/dev/null")));
        symlink("circle", at("circle")).unwrap();
        for wrong in ["circle", "inside", "nowhere/x.csv", "inside/.."] {
            assert!(Destination::of(&Location::Path(at(wrong)), "--to").is_err(), "{wrong}");
        }
    }
}
