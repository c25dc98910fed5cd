//! A directory of blocks of immutable objects, shared by processes.
//!
//! ```text
//! DIRECTORY/ab/abcd..        xxh3-128 of name and block, 16 bytes | block
//! ```
//! The name is a hash of the root, the object, its length and the number of the block. A file is written under a temporary
//! name and renamed, and its checksum is compared when it is read: so a killed process, a full disk or a flipped bit cost a
//! request, never a wrong byte. Nothing is synced. Errors of the cache are no errors of the store.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::durability::TEMPORARY;

/// Length of the checksum before a block.
const CHECKSUM: usize = 16;
/// Age of a temporary file that no process writes any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A cache on the local disk.
#[derive(Debug)]
pub struct DiskCache {
    directory: PathBuf,
    limit: u64,
    /// Bytes it holds, as far as this process knows; `None` before it has looked.
    used: Mutex<Option<u64>>,
    next: AtomicU64,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of files, one a block.
    pub files: u64,
    /// Bytes of the files together, with their checksums.
    pub bytes: u64,
}

/// A file of the cache.
struct Held {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl DiskCache {
    /// The cache in `directory`, which is made with the first block, of at most `limit` bytes.
    pub fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit, used: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// Counts what it holds, by listing it.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn usage(&self) -> io::Result<CacheUsage> {
        Ok(usage_of(&self.held()?))
    }

    /// Removes all of it; returns what there was.
    ///
    /// # Errors
    /// If it cannot be listed, or a file cannot be removed.
    pub fn empty(&self) -> io::Result<CacheUsage> {
        let held = self.held()?;
        held.iter().try_for_each(|file| remove(&file.path))?;
        for directory in subdirectories(&self.directory)? {
            // Not if a process has just written into it.
            let _ = fs::remove_dir(directory);
        }
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(usage_of(&held))
    }

    /// A block, if it is there and whole.
    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        let path = self.path(name);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (stated, block) = bytes.split_at_checked(CHECKSUM)?;
        if stated != checksum(name, block) {
            let _ = fs::remove_file(&path);
            return None;
        }
        // The blocks that were not used for longest are removed first.
        let _ = file.set_modified(SystemTime::now());
        Some(Bytes::from(bytes).slice(CHECKSUM..))
    }

    /// Keeps a block. If that fails it is fetched again the next time.
    pub(super) fn put(&self, name: &str, block: &[u8]) {
        if let Err(error) = self.write(name, block) {
            tracing::debug!(%error, "a block is not cached");
        }
    }

    /// Writes a block under its name.
    fn write(&self, name: &str, block: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        let parent = path.parent().unwrap_or(&self.directory);
        self.count((CHECKSUM + block.len()) as u64)?;

        fs::create_dir_all(parent)?;
        let serial = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!("{TEMPORARY}{}-{serial}", std::process::id()));
        let written = File::create_new(&temporary).and_then(|mut file| {
            file.write_all(&checksum(name, block))?;
            file.write_all(block)?;
            fs::rename(&temporary, &path)
        });

        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Counts bytes that are about to be written; makes room if they exceed the limit.
    fn count(&self, bytes: u64) -> io::Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *used {
            Some(used) => used,
            None => usage_of(&self.held()?).bytes,
        };
        let now = before + bytes;
        *used = Some(if now > self.limit { self.make_room()? } else { now });
        Ok(())
    }

    /// Removes the blocks that were not used for longest, down to nine tenths of the limit; returns the bytes that stay.
    fn make_room(&self) -> io::Result<u64> {
        let mut held = self.held()?;
        held.sort_unstable_by_key(|file| file.used);
        let mut bytes = usage_of(&held).bytes;
        for file in held {
            if bytes <= self.limit / 10 * 9 {
                break;
            }
            remove(&file.path)?;
            bytes = bytes.saturating_sub(file.bytes);
        }
        Ok(bytes)
    }

    /// Its files; temporary ones only if they are abandoned, and then as the oldest.
    fn held(&self) -> io::Result<Vec<Held>> {
        let mut held = Vec::new();
        for directory in subdirectories(&self.directory)? {
            for entry in entries(&directory)? {
                let Ok(found) = entry.metadata() else { continue };
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
                let age = SystemTime::now().duration_since(used).unwrap_or_default();
                let used = match is_temporary {
                    true if age < ABANDONED => continue,
                    true => SystemTime::UNIX_EPOCH,
                    false => used,
                };
                held.push(Held { path: entry.path(), bytes: found.len(), used });
            }
        }
        Ok(held)
    }

    /// Path of the file of a block.
    fn path(&self, name: &str) -> PathBuf {
        let hash = format!("{:032x}", xxh3_128(name.as_bytes()));
        self.directory.join(hash.get(..2).unwrap_or_default()).join(hash)
    }
}

fn usage_of(held: &[Held]) -> CacheUsage {
    CacheUsage { files: held.len() as u64, bytes: held.iter().map(|file| file.bytes).sum() }
}

/// The checksum that precedes a block in its file.
fn checksum(name: &str, block: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Xxh3::new();
    hash.update(name.as_bytes());
    hash.update(block);
    hash.digest128().to_le_bytes()
}

/// The directories of a cache that hold blocks.
fn subdirectories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in entries(directory)? {
        // Others, such as a README, are not ours.
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            found.push(entry.path());
        }
    }

    Ok(found)
}

fn entries(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Removes a file, which another process may have removed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: u64) -> (tempfile::TempDir, DiskCache) {
        let directory = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(directory.path().join("blocks"), limit);
        (directory, cache)
    }

    #[test]
    fn a_block_reads_back_and_a_damaged_one_is_gone() {
        let (_directory, cache) = cache(1 << 20);
        assert!(cache.get("a").is_none());
        cache.put("a", b"block");
        cache.put("b", b"");
        assert_eq!((cache.get("a").as_deref(), cache.get("b").as_deref()), (Some(&b"block"[..]), Some(&b""[..])));
        let path = cache.path("a");
        let whole = fs::read(&path).unwrap();
        let other = fs::read(cache.path("b")).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..7], &whole[..0], &other[..]] {
            fs::write(&path, damaged).unwrap();
            assert!(cache.get("a").is_none());
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(&path, flipped).unwrap();
            assert!(cache.get("a").is_none(), "{at}");
        }
        assert_eq!(cache.usage().unwrap(), CacheUsage { files: 1, bytes: 16 });
        // Another process has it, too.
        let other = DiskCache::new(cache.directory.clone(), 1 << 20);
        other.put("a", b"again");
        assert_eq!(cache.get("a").as_deref(), Some(&b"again"[..]));
        assert_eq!(cache.empty().unwrap().files, 2);
        assert_eq!((cache.usage().unwrap(), cache.get("a")), (CacheUsage::default(), None));
    }

    #[test]
    fn it_stays_within_its_limit_and_keeps_what_was_used_last() {
        let (_directory, cache) = cache(10 * 1016);
        for number in 0..10 {
            cache.put(&number.to_string(), &[7; 1000]);
            let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(number);
            File::options().write(true).open(cache.path(&number.to_string())).unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(cache.usage().unwrap().files, 10);
        assert!(cache.get("0").is_some());
        cache.put("10", &[7; 1000]);
        assert!(cache.usage().unwrap().bytes <= 10 * 1016);
        assert!(cache.get("0").is_some() && cache.get("10").is_some() && cache.get("1").is_none());
    }

    #[test]
    fn a_place_that_cannot_be_written_caches_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "in the way").unwrap();
        let cache = DiskCache::new(directory.path().join("file"), 1 << 20);
        cache.put("a", b"block");
        assert!(cache.get("a").is_none());
    }
}
