//! A simulated disk that counts its calls, injects a fault, and records its state before each change.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidetable_blobs::{Disk, DiskFile, Stat};
use tidetable_sstable::ReadAt;

use super::platter::{Loss, Platter};

/// A call of the operating system, as the store makes it through [`Disk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the calls")]
pub enum Call {
    Create,
    Write,
    Sync,
    Link,
    Rename,
    Remove,
    MakeFolder,
    SyncFolder,
    List,
    Read,
    Open,
    ReadAt,
    Stat,
}

impl Call {
    /// Whether it changes the disk, so that a power loss before it and after it may differ.
    pub fn changes(self) -> bool {
        !matches!(self, Self::List | Self::Read | Self::Open | Self::ReadAt | Self::Stat)
    }
}

/// How a call fails: before or after it was done, once or for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// EIO, and nothing was done; a failed sync loses the bytes for good.
    Io,
    /// EIO, although it was done: the caller cannot know.
    IoAfter,
    /// ENOSPC after half of a write, and for every later call that needs space, until [`SimDisk::heal`].
    NoSpace,
    /// A short write of half the bytes, without an error.
    Short,
    /// EINTR: nothing was done, and the caller has to repeat the write.
    Interrupted,
    /// This and every later call fails, as after a controller died.
    Dead,
}

impl FaultKind {
    /// All kinds, for proofs that try each at each call.
    pub const ALL: [Self; 6] = [Self::Io, Self::IoAfter, Self::NoSpace, Self::Short, Self::Interrupted, Self::Dead];

    /// Whether `call` can fail in this way; others are not tried with it.
    pub fn concerns(self, call: Call) -> bool {
        let needs_space = call.changes() && call != Call::Remove;
        match self {
            Self::Io | Self::Dead => true,
            Self::IoAfter => call.changes(),
            Self::NoSpace => needs_space,
            Self::Short => call == Call::Write,
            Self::Interrupted => call == Call::Write,
        }
    }
}

/// A fault of one call; the others succeed, unless its kind says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Number of the call since [`SimDisk::fail`], from 0.
    pub at: u64,
    /// How the call fails, and what it does before.
    pub kind: FaultKind,
}

/// State of the disk before a change, as a power loss at this moment finds it.
#[derive(Debug, Clone)]
pub struct Boundary {
    /// Content of the disk, with what is not synced.
    pub platter: Platter,
    /// The last value of [`SimDisk::mark`]: how much was acknowledged before.
    pub mark: u64,
    /// The call that follows, with its path, for messages.
    pub call: (Call, PathBuf),
}

#[derive(Debug, Default)]
struct State {
    platter: Platter,
    calls: Vec<Call>,
    fault: Option<Fault>,
    full: bool,
    dead: bool,
    mark: u64,
    boundaries: Option<Vec<Boundary>>,
}

/// A disk in memory, on which each call can fail. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// What a call does before it returns.
enum Then {
    Do,
    Half,
    DoAndFail,
}

impl SimDisk {
    /// A disk with this content, without faults and with nothing recorded.
    pub fn new(platter: Platter) -> Self {
        Self { state: Arc::new(Mutex::new(State { platter, ..State::default() })) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Injects a fault instead of any earlier one; calls are counted from here.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state();
        state.calls.clear();
        state.fault = Some(fault);
    }

    /// Ends all faults: later calls succeed, except on what a failed sync lost.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.fault, state.full, state.dead) = (None, false, false);
    }

    /// The calls since the disk was created or [`Self::fail`] was called.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// A copy of its content, with what is not synced.
    pub fn platter(&self) -> Platter {
        self.state().platter.clone()
    }

    /// Another disk: what is left of this one after a power loss.
    pub fn after(&self, loss: Loss) -> Self {
        Self::new(self.state().platter.after(loss))
    }

    /// Records the state before each change from here on.
    pub fn remember(&self) {
        self.state().boundaries = Some(Vec::new());
    }

    /// The recorded states in order, and the final one with no call; nothing is recorded any more.
    pub fn boundaries(&self) -> Vec<Boundary> {
        let mut state = self.state();
        let mut boundaries = state.boundaries.take().unwrap_or_default();
        let (platter, mark) = (state.platter.clone(), state.mark);
        boundaries.push(Boundary { platter, mark, call: (Call::Read, PathBuf::new()) });
        boundaries
    }

    /// Sets the mark of later boundaries, such as the number of commits acknowledged so far.
    pub fn mark(&self, mark: u64) {
        self.state().mark = mark;
    }

    /// Performs a call by `act`, unless it must fail.
    fn call<T>(&self, call: Call, path: &Path, act: impl FnOnce(&mut Platter, bool) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        let then = state.begin(call, path)?;
        match then {
            Then::Do => act(&mut state.platter, false),
            Then::Half => act(&mut state.platter, true),
            Then::DoAndFail => act(&mut state.platter, false).and(Err(eio())),
        }
    }
}

fn eio() -> io::Error {
    io::Error::other("simulated EIO")
}

fn missing() -> io::Error {
    ErrorKind::NotFound.into()
}

impl State {
    /// Counts a call, records the state before it if it is a change, and decides what it does.
    fn begin(&mut self, call: Call, path: &Path) -> io::Result<Then> {
        let at = self.calls.len() as u64;
        self.calls.push(call);
        if self.dead {
            return Err(eio());
        }

        if call.changes()
            && let Some(boundaries) = &mut self.boundaries
        {
            let (platter, mark) = (self.platter.clone(), self.mark);
            boundaries.push(Boundary { platter, mark, call: (call, path.to_owned()) });
        }
        if self.full && FaultKind::NoSpace.concerns(call) {
            return Err(ErrorKind::StorageFull.into());
        }

        let Some(fault) = self.fault.filter(|fault| fault.at == at && fault.kind.concerns(call)) else {
            return Ok(Then::Do);
        };

        match fault.kind {
            FaultKind::IoAfter => Ok(Then::DoAndFail),
            FaultKind::Short => Ok(Then::Half),
            FaultKind::Interrupted => Err(ErrorKind::Interrupted.into()),
            FaultKind::NoSpace => {
                self.full = true;
                Err(ErrorKind::StorageFull.into())
            }
            FaultKind::Io | FaultKind::Dead => {
                self.dead = fault.kind == FaultKind::Dead;
                if call == Call::Sync
                    && let Some(file) = self.platter.file(path)
                {
                    self.platter.lose(file);
                }
                Err(eio())
            }
        }
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call(Call::Create, path, |platter, _| {
            if platter.exists(path) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            let file = platter.create(path).ok_or_else(missing)?;
            let (disk, path) = (self.clone(), path.to_owned());
            Ok(Box::new(SimFile { disk, file, path }) as Box<dyn DiskFile>)
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Link, to, |platter, _| {
            if platter.exists(to) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            platter.file(from).ok_or_else(missing)?;
            platter.link(from, to);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename, to, |platter, _| {
            platter.file(from).ok_or_else(missing)?;
            platter.rename(from, to);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove, path, |platter, _| {
            platter.file(path).ok_or_else(missing)?;
            platter.remove(path);
            Ok(())
        })
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.call(Call::MakeFolder, path, |platter, _| {
            if platter.exists(path) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            if platter.make_directory(path) { Ok(()) } else { Err(missing()) }
        })
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.state().platter.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.call(Call::SyncFolder, path, |platter, _| {
            platter.sync_directory(path);
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.call(Call::List, path, |platter, _| platter.list(path).ok_or_else(missing))
    }

    fn read(&self, path: &Path) -> io::Result<Bytes> {
        self.call(Call::Read, path, |platter, _| {
            let file = platter.file(path).ok_or_else(missing)?;
            Ok(Bytes::from(platter.bytes(file).to_vec()))
        })
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        self.call(Call::Open, path, |platter, _| {
            let bytes = platter.bytes(platter.file(path).ok_or_else(missing)?);
            Ok(Arc::new(SimReader { disk: self.clone(), path: path.to_owned(), bytes: bytes.to_vec().into() }) as _)
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.call(Call::Stat, path, |platter, _| {
            let file = platter.file(path).ok_or_else(missing)?;
            Ok(Stat { bytes: platter.bytes(file).len() as u64, modified: Some(platter.made(file)), stamp: None })
        })
    }
}

struct SimFile {
    disk: SimDisk,
    file: usize,
    path: PathBuf,
}

impl Write for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.disk.call(Call::Write, &self.path, |platter, half| {
            let len = if half { bytes.len().div_ceil(2) } else { bytes.len() };
            platter.write(self.file, &bytes[..len]);
            Ok(len)
        });

        // A full disk keeps the bytes that fit.
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::StorageFull) {
            self.disk.state().platter.write(self.file, &bytes[..bytes.len() / 2]);
        }
        done
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.call(Call::Sync, &self.path, |platter, _| {
            platter.sync(self.file);
            Ok(())
        })
    }
}

/// An open file, readable after its name is removed.
#[derive(Debug)]
struct SimReader {
    disk: SimDisk,
    path: PathBuf,
    bytes: Bytes,
}

impl ReadAt for SimReader {
    fn len(&self) -> u64 {
        ReadAt::len(&self.bytes)
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.disk.call(Call::ReadAt, &self.path, |_, _| self.bytes.read_at(offset, len))
    }
}
