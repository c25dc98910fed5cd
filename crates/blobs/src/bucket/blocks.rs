//! A cache of blocks of immutable objects, fetched several at a time and ahead of their use.
//!
//! A block is fetched once, whoever asks for it meanwhile: the others wait. Neighbours that are missing are fetched in one
//! request. No lock is held while a request runs.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt};

use super::client::{Client, blocking};

/// Bytes of a block: a stripe lies in one or two.
const BLOCK: u64 = 256 << 10;
/// Greatest bytes of a request.
const REQUEST: u64 = 8 << 20;
/// Bytes of blocks that are kept.
const CAPACITY: u64 = 256 << 20;
/// Bytes of announced blocks that are being fetched.
const AHEAD: u64 = CAPACITY / 2;

/// Attempts to read a block that others evict.
const ATTEMPTS: usize = 5;

/// A block: its object and its number in it.
type Place = (Arc<str>, u64);

/// Blocks by their places.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Place, Slot>,
    /// Places of fetched blocks with the time of their use when they were queued, the oldest first.
    queue: VecDeque<(Place, u64)>,
    bytes: u64,
    /// Bytes of announced blocks that are being fetched.
    ahead: u64,
    time: u64,
}

#[derive(Debug)]
enum Slot {
    /// Being fetched; its bytes if it was announced.
    Pending {
        ahead: u64,
    },
    Fetched {
        bytes: Bytes,
        used: u64,
    },
    /// For the reader who finds it first; others fetch again.
    Failed(Error),
}

/// The bytes of an object that a request of blocks needs.
#[derive(Debug, Clone)]
pub(super) struct BlockFile {
    pub(super) name: Arc<str>,
    pub(super) key: Key,
    pub(super) len: u64,
    /// Whether no block comes from the disk: for verification.
    is_fresh: bool,
}

impl BlockFile {
    pub(super) fn new(path: &str, key: Key, len: u64, is_fresh: bool) -> Self {
        // In memory, too, the blocks are others.
        let name = if is_fresh { format!("fresh {path}") } else { path.to_owned() };
        Self { name: name.into(), key, len, is_fresh }
    }

    /// The name of a block on disk.
    fn cached(&self, root: &str, number: u64) -> String {
        format!("{root}\0{}\0{}\0{number}", self.name, self.len)
    }

    fn blocks(&self, range: &Range<u64>) -> Range<u64> {
        range.start / BLOCK..range.end.min(self.len).div_ceil(BLOCK)
    }

    fn bytes(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start * BLOCK..(blocks.end * BLOCK).min(self.len)
    }
}

impl Blocks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of `range`, which lies in the object.
    pub(super) fn read(
        self: &Arc<Self>,
        client: &Arc<Client>,
        file: &BlockFile,
        range: &Range<u64>,
    ) -> io::Result<Bytes> {
        let blocks = file.blocks(range);
        let mut again = ATTEMPTS;
        let mut parts: Vec<Bytes> = Vec::with_capacity((blocks.end - blocks.start) as usize);

        while (parts.len() as u64) < blocks.end - blocks.start {
            let rest = blocks.start + parts.len() as u64..blocks.end;
            let missing = self.state().missing(file, &rest, false);
            self.fetch(client, file, missing);
            match self.wait(client, file, rest.start) {
                Ok(block) => parts.push(block),
                // Dropped before it was used: it is fetched again, a few times.
                Err(error) if error.kind() == io::ErrorKind::Interrupted && again > 0 => again -= 1,
                Err(error) => return Err(error),
            }
        }

        let from = (range.start - blocks.start * BLOCK) as usize;
        let len = (range.end - range.start) as usize;
        if let [one] = parts.as_slice() {
            return slice(one, from, len);
        }
        let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        slice(&whole.freeze(), from, len)
    }

    /// Fetches the blocks of `range` that are missing, without waiting for them.
    pub(super) fn announce(self: &Arc<Self>, client: &Arc<Client>, file: &BlockFile, range: &Range<u64>) {
        let blocks = file.blocks(range);
        let missing = {
            let mut state = self.state();
            let wanted = file.bytes(&blocks);
            if state.ahead + (wanted.end.saturating_sub(wanted.start)) > AHEAD {
                return;
            }
            state.missing(file, &blocks, true)
        };
        self.fetch(client, file, missing);
    }

    /// The block, once it is fetched.
    fn wait(&self, client: &Client, file: &BlockFile, number: u64) -> io::Result<Bytes> {
        let place: Place = (Arc::clone(&file.name), number);
        if let Some(found) = self.state().take(&place) {
            return found.map_err(|error| client.io(error));
        }

        blocking(|| {
            let mut state = self.state();
            loop {
                match state.take(&place) {
                    Some(found) => return found.map_err(|error| client.io(error)),
                    // Another reader took its error, or it was evicted at once.
                    None if !state.slots.contains_key(&place) => {
                        return Err(io::Error::new(
                            io::ErrorKind::Interrupted,
                            "a block was dropped before it was used",
                        ));
                    }
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            }
        })
    }

    /// Begins to fetch runs of blocks, which are marked as pending.
    fn fetch(self: &Arc<Self>, client: &Arc<Client>, file: &BlockFile, runs: Vec<Range<u64>>) {
        for run in runs {
            let (blocks, file, from) = (Arc::clone(self), file.clone(), Arc::clone(client));

            client.spawn(async move {
                let guard = Unfetched { blocks: &blocks, file: &file, run: run.clone() };
                for missing in blocks.take_cached(&from, &file, &run).await {
                    // It is closed only when the process ends.
                    let _permit = Arc::clone(&from.reads).acquire_owned().await;
                    let got = from.store.get_range(&file.key, file.bytes(&missing)).await;
                    if let Ok(bytes) = &got {
                        to_disk(&from, &file, &missing, bytes);
                    }
                    blocks.put(&file, &missing, got);
                }
                std::mem::forget(guard);
            });
        }
    }

    /// Takes the blocks of a run that the disk has; returns the runs of the others.
    async fn take_cached(&self, client: &Client, file: &BlockFile, run: &Range<u64>) -> Vec<Range<u64>> {
        let Some(cache) = client.cache.clone().filter(|_| !file.is_fresh) else { return vec![run.clone()] };
        let names: Vec<String> = run.clone().map(|number| file.cached(client.url(), number)).collect();
        let read = tokio::task::spawn_blocking(move || names.iter().map(|name| cache.get(name)).collect::<Vec<_>>());
        // It fails only if it panics, or the process ends.
        let found = read.await.unwrap_or_default();

        let mut missing: Vec<Range<u64>> = Vec::new();
        let mut state = self.state();
        for (at, number) in run.clone().enumerate() {
            match found.get(at) {
                Some(Some(block)) => state.insert((Arc::clone(&file.name), number), block.clone()),
                _ => match missing.last_mut() {
                    Some(last) if last.end == number => last.end += 1,
                    _ => missing.push(number..number + 1),
                },
            }
        }
        drop(state);
        self.changed.notify_all();
        missing
    }

    /// Keeps what was fetched.
    fn put(&self, file: &BlockFile, run: &Range<u64>, got: Result<Bytes, Error>) {
        let wanted = file.bytes(run);
        let got = got.map(|bytes| {
            let is_whole = bytes.len() as u64 == wanted.end - wanted.start;
            // Copies: slices would keep all of the reply in memory.
            is_whole.then(|| bytes.chunks(BLOCK as usize).map(Bytes::copy_from_slice).collect::<Vec<_>>())
        });
        let mut state = self.state();
        match got {
            Ok(Some(blocks)) => {
                for (number, block) in run.clone().zip(blocks) {
                    state.insert((Arc::clone(&file.name), number), block);
                }
            }
            got => {
                let mut error = Some(got.err().unwrap_or_else(|| {
                    let source = io::Error::from(io::ErrorKind::UnexpectedEof);
                    Error::Generic { store: "bucket", source: Box::new(source) }
                }));
                for number in run.clone() {
                    let place = (Arc::clone(&file.name), number);
                    // A reader fetches an announced block again, and has its own error.
                    let announced = state.remove(&place);
                    if let Some(error) = error.take_if(|_| !announced) {
                        state.slots.insert(place, Slot::Failed(error));
                    }
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Forgets blocks whose request was dropped, as when the runtime ends.
struct Unfetched<'a> {
    blocks: &'a Blocks,
    file: &'a BlockFile,
    run: Range<u64>,
}

impl Drop for Unfetched<'_> {
    fn drop(&mut self) {
        let mut state = self.blocks.state();
        for number in self.run.clone() {
            state.remove(&(Arc::clone(&self.file.name), number));
        }
        drop(state);
        self.blocks.changed.notify_all();
    }
}

impl State {
    /// The runs of blocks that are neither kept nor being fetched, marked as pending, each for one request.
    fn missing(&mut self, file: &BlockFile, blocks: &Range<u64>, announced: bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for number in blocks.clone() {
            let place = (Arc::clone(&file.name), number);
            if self.slots.contains_key(&place) {
                continue;
            }
            let bytes = file.bytes(&(number..number + 1));
            let ahead = if announced { bytes.end - bytes.start } else { 0 };
            self.ahead += ahead;
            self.slots.insert(place, Slot::Pending { ahead });
            match runs.last_mut() {
                Some(run) if run.end == number && (number - run.start) * BLOCK < REQUEST => run.end += 1,
                _ => runs.push(number..number + 1),
            }
        }
        runs
    }

    /// The block, or the error of fetching it; `None` if it is not fetched yet.
    fn take(&mut self, place: &Place) -> Option<Result<Bytes, Error>> {
        self.time += 1;
        match self.slots.get_mut(place)? {
            Slot::Pending { .. } => None,
            Slot::Fetched { bytes, used } => {
                *used = self.time;
                Some(Ok(bytes.clone()))
            }
            Slot::Failed(_) => match self.slots.remove(place) {
                Some(Slot::Failed(error)) => Some(Err(error)),
                _ => None,
            },
        }
    }

    /// Forgets a block; returns whether it was announced and not fetched.
    fn remove(&mut self, place: &Place) -> bool {
        let announced = match self.slots.remove(place) {
            Some(Slot::Pending { ahead }) => ahead,
            Some(Slot::Fetched { bytes, .. }) => {
                self.bytes -= bytes.len() as u64;
                0
            }
            Some(Slot::Failed(_)) | None => 0,
        };
        self.ahead = self.ahead.saturating_sub(announced);
        announced > 0
    }

    fn insert(&mut self, place: Place, bytes: Bytes) {
        self.remove(&place);
        self.time += 1;
        self.bytes += bytes.len() as u64;
        self.queue.push_back((place.clone(), self.time));
        self.slots.insert(place, Slot::Fetched { bytes, used: self.time });
        while self.bytes > CAPACITY {
            let Some((oldest, queued)) = self.queue.pop_front() else { return };
            match self.slots.get(&oldest) {
                Some(Slot::Fetched { used, .. }) if *used > queued => self.queue.push_back((oldest, *used)),
                Some(Slot::Fetched { .. }) => drop(self.remove(&oldest)),
                _ => {}
            }
        }
    }
}

/// Writes the blocks of a run to disk, while the query goes on.
fn to_disk(client: &Client, file: &BlockFile, run: &Range<u64>, bytes: &Bytes) {
    let Some(cache) = client.cache.clone().filter(|_| !file.is_fresh) else { return };
    let names: Vec<String> = run.clone().map(|number| file.cached(client.url(), number)).collect();
    let bytes = bytes.clone();
    tokio::task::spawn_blocking(move || {
        for (name, block) in names.iter().zip(bytes.chunks(BLOCK as usize)) {
            cache.put(name, block);
        }
    });
}

/// A slice of `bytes`, if it lies within.
fn slice(bytes: &Bytes, from: usize, len: usize) -> io::Result<Bytes> {
    let end = from.checked_add(len).filter(|end| *end <= bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(bytes.slice(from..end))
}
