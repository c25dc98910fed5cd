//! Where a result goes: standard output, a file that appears when it is whole, or what a path leads to that is no file to be
//! replaced: a pipe, a device, a descriptor that another program has opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidetable_store::{BlobWriter, Blobs, LocalBlobs, StoreError};

use crate::error::CliError;

/// Links that are followed, one after the other.
const MOST_LINKS: usize = 40;
/// Folders whose files stand for the descriptors of this process.
const OWN_DESCRIPTORS: [&str; 3] = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];

/// A place for a result.
#[derive(Debug, Clone)]
pub struct Destination {
    place: ResultPlace,
    shown: String,
    /// Whether the reader of it went away.
    closed: Arc<AtomicBool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ResultPlace {
    Stdout,
    /// Written as it is: a pipe, a device, a descriptor.
    Stream(PathBuf),
    /// Replaced when all is written: a file, or where none is yet.
    File(PathBuf),
}

impl Destination {
    /// What `path` stands for; `-` is standard output. `option` is how messages call it.
    ///
    /// # Errors
    /// If it names no file, or is in a folder that is not there.
    pub fn of(path: &Path, option: &'static str) -> Result<Self, CliError> {
        let shown = path.display().to_string();
        let place = if path == Path::new("-") { ResultPlace::Stdout } else { place_of(path, option)? };
        let shown = if place == ResultPlace::Stdout { "standard output".to_owned() } else { shown };
        Ok(Self { place, shown, closed: Arc::default() })
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self { place: ResultPlace::Stdout, shown: "standard output".to_owned(), closed: Arc::default() }
    }

    /// How messages call it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether it is standard output, which then has no room for messages.
    pub fn is_stdout(&self) -> bool {
        self.place == ResultPlace::Stdout
    }

    /// Whether it is a file, whose name says its form.
    pub fn is_file(&self) -> bool {
        matches!(self.place, ResultPlace::File(_))
    }

    /// Whether a person sees what is written.
    pub fn is_terminal(&self) -> bool {
        match &self.place {
            ResultPlace::Stdout => io::stdout().is_terminal(),
            // A pipe must not be opened to be looked at: its writer would see a reader come and go.
            ResultPlace::Stream(path) => {
                let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device());
                is_device && File::open(path).is_ok_and(|file| file.is_terminal())
            }
            ResultPlace::File(_) => false,
        }
    }

    /// Whether the reader went away before all was written, which is no failure.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Opens it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(&self) -> Result<Box<dyn BlobWriter>, CliError> {
        let stream = |out: Box<dyn Write + Send>| {
            let (shown, closed) = (self.shown.clone(), Arc::clone(&self.closed));
            Box::new(Stream { out: BufWriter::new(out), shown, closed })
        };
        Ok(match &self.place {
            ResultPlace::Stdout => stream(Box::new(io::stdout())),
            ResultPlace::Stream(path) => {
                let failed = |source| CliError::Folder { path: self.shown.clone(), source };
                // What a shell does for `> PATH`; it waits for the reader of a pipe.
                let file = OpenOptions::new().write(true).truncate(true).open(path).map_err(failed)?;
                stream(Box::new(file))
            }
            ResultPlace::File(path) => {
                let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
                else {
                    return Err(CliError::NoFileName { path: self.shown.clone() });
                };
                LocalBlobs::new(folder.to_owned()).replacer(name)?
            }
        })
    }
}

/// Follows the links of a path to what is to be written: the target of a link is, and the link stays.
fn place_of(path: &Path, option: &'static str) -> Result<ResultPlace, CliError> {
    let shown = || path.display().to_string();
    let failed = |source| CliError::Folder { path: shown(), source };
    let mut at = std::path::absolute(path).map_err(failed)?;
    for _ in 0..MOST_LINKS {
        let folder = at.parent().unwrap_or(Path::new("/"));
        let Ok(folder) = fs::canonicalize(folder) else { return Err(CliError::NoFolder { option, path: shown() }) };
        // `x/` and `..` are folders.
        let Some(name) = at.file_name() else { return Err(CliError::NoFileName { path: shown() }) };
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
            return Err(CliError::NoFileName { path: shown() });
        } else if kind.is_file() {
            return Ok(ResultPlace::File(here));
        } else {
            return Ok(ResultPlace::Stream(here));
        }
    }
    Err(failed(io::Error::other("its links lead in a circle")))
}

/// Whether a name in a folder stands for a descriptor, which has no file to be replaced; which it is, if it is one of this
/// process.
fn descriptor(folder: &Path, name: &std::ffi::OsStr) -> Option<Option<u32>> {
    let number = name.to_str()?.parse::<u32>().ok()?;
    // They lead to the folder of the process, or of a thread.
    let is_own = OWN_DESCRIPTORS.iter().any(|own| {
        let own = Path::new(own);
        own == folder || fs::canonicalize(own).is_ok_and(|own| own == folder)
    });
    if is_own {
        return Some(Some(number));
    }
    (folder.starts_with("/proc") && folder.file_name().is_some_and(|name| name == "fd")).then_some(None)
}

/// What is written through.
struct Stream {
    out: BufWriter<Box<dyn Write + Send>>,
    shown: String,
    closed: Arc<AtomicBool>,
}

impl Stream {
    fn noted<T>(&self, done: io::Result<T>) -> io::Result<T> {
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            self.closed.store(true, Ordering::Relaxed);
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
    fn finish(mut self: Box<Self>) -> tidetable_store::Result<()> {
        let path = self.shown.clone();
        self.flush().map_err(|source| StoreError::Io { action: "write", path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(path: &Path) -> ResultPlace {
        Destination::of(path, "--to").unwrap().place
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
            assert!(Destination::of(&at(wrong), "--to").is_err(), "{wrong}");
        }
    }
}
