//! Fingerprints of local files, which show without reading a file that it is unchanged.
//!
//! A file's content can change while its size and modification time do not: a program may reset the time, replace the file,
//! or write again within one tick of the file system's clock. So the fingerprint includes the change time and the inode,
//! which programs cannot set, and a fingerprint taken within a tick of the change proves nothing: `1514764800000000000 1514764800000000000 8912345` (modification and change in nanoseconds, the inode),
//! with ` young` after it if so. Fingerprints of before were the modification time alone.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::decompress::AsFound;
use crate::storage::{FileAccess, InputFile};

/// At the end of a fingerprint that was taken within a tick of the file's last change.
const YOUNG: &str = " young";
/// More than a tick of any file system that keeps parts of seconds: those of Linux tick every 1 to 10 ms.
const FINE_TICK: i128 = 50_000_000;
/// More than a tick of one that keeps whole seconds, or every other.
const COARSE_TICK: i128 = 3_000_000_000;
const SECOND: i128 = 1_000_000_000;

/// The fingerprint of a local file, taken at `now` (nanoseconds; `None` if unknown).
pub(super) fn of_file(metadata: &Metadata, now: Option<i128>) -> io::Result<String> {
    let modified = nanos(metadata.modified()?);
    let (changed, inode) = change(metadata, modified);
    let mark = if is_young(modified.max(changed), now) { YOUNG } else { "" };
    Ok(format!("{modified} {changed} {inode}{mark}"))
}

/// Whether the file at `place` still has this size and fingerprint, or is gone.
fn is_of(place: &Path, size: u64, version: &str) -> bool {
    let Ok(metadata) = fs::metadata(place) else { return true };
    metadata.len() == size && of_file(&metadata, None).is_ok_and(|now| now == settled(version))
}

/// The fingerprint of an object that has none of its own but the time of its last change.
pub(super) fn of_time(modified: i64, now: Option<i128>) -> String {
    let mark = if is_young(modified.into(), now) { YOUNG } else { "" };
    format!("{modified}{mark}")
}

fn is_young(changed: i128, now: Option<i128>) -> bool {
    let tick = if changed % SECOND == 0 { COARSE_TICK } else { FINE_TICK };
    now.is_some_and(|now| changed > now - tick)
}

fn settled(version: &str) -> &str {
    version.strip_suffix(YOUNG).unwrap_or(version)
}

/// Nanoseconds since the epoch, negative before it.
fn nanos(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos().cast_signed(),
        Err(before) => -before.duration().as_nanos().cast_signed(),
    }
}

#[cfg(unix)]
fn change(metadata: &Metadata, _: i128) -> (i128, u64) {
    use std::os::unix::fs::MetadataExt;
    (i128::from(metadata.ctime()) * SECOND + i128::from(metadata.ctime_nsec()), metadata.ino())
}

#[cfg(not(unix))]
fn change(_: &Metadata, modified: i128) -> (i128, u64) {
    (modified, 0)
}

impl InputFile {
    /// Whether a local file is still as it was found, or gone; an object that changed is not read at all.
    pub fn is_as_found(&self) -> bool {
        self.look().is_none_or(|is_as_found| is_as_found())
    }

    /// As [`Self::is_as_found`], for a reader of the file; `None` if it cannot change.
    pub(super) fn look(&self) -> Option<AsFound> {
        let FileAccess::Local(place) = &self.location else { return None };
        let (place, size, version) = (place.clone(), self.size, self.version.clone());
        Some(Box::new(move || is_of(&place, size, &version)))
    }

    /// Whether the file is unchanged since it had this size and fingerprint.
    pub fn is_as(&self, size: u64, version: &str) -> bool {
        let is_same = self.version == version || self.is_as_before(version);
        self.size == size && is_same && !self.is_young()
    }

    /// When its content last changed, microseconds since the epoch; `None` if only its store knows.
    pub fn changed_at(&self) -> Option<i64> {
        let modified =
            settled(&self.version).split(' ').next().filter(|_| matches!(self.location, FileAccess::Local(_)));
        modified?.parse::<i128>().ok().and_then(|nanos| i64::try_from(nanos / 1000).ok())
    }

    /// Whether it changed too recently for its fingerprint to prove anything.
    pub fn is_young(&self) -> bool {
        self.version.ends_with(YOUNG)
    }

    /// Whether the fingerprints are equal, which proves nothing if one is recent.
    pub fn looks_as(&self, version: &str) -> bool {
        settled(&self.version) == settled(version) || self.is_as_before(version)
    }

    /// As one that has only its modification time: the same if nothing at all has happened to the file since.
    fn is_as_before(&self, version: &str) -> bool {
        let mut parts = settled(&self.version).split(' ');
        let (modified, changed) = (parts.next(), parts.next());
        matches!(self.location, FileAccess::Local(_)) && modified == Some(version) && changed == modified
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use super::super::{InputFile, Storage};
    use super::*;
    use crate::spec::SourceSpec;

    static CLOCK: AtomicI64 = AtomicI64::new(i64::MAX);

    fn clock() -> i64 {
        CLOCK.load(Ordering::Relaxed)
    }

    #[test]
    fn what_could_lie_proves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.csv");
        let storage = Storage::new(root.path().to_owned(), None).with_clock(clock);
        let spec = SourceSpec { files: vec!["*.csv".to_owned()], ..SourceSpec::default() };
        let look = || storage.discover(&spec).unwrap().remove(0);
        let as_before = |old: &InputFile, new: &InputFile| new.is_as(old.size, &old.version);
        fs::write(&path, "x").unwrap();
        CLOCK.store(i64::MAX / 2000, Ordering::Relaxed);
        let first = look();
        assert!(!first.is_young() && as_before(&first, &look()));

        // Written over with as many bytes, and the time put back.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&path, "y").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert!(cfg!(not(unix)) || !as_before(&first, &look()));

        // Another file in its place, with all its times.
        let old = look();
        fs::write(root.path().join("b"), "z").unwrap();
        fs::rename(root.path().join("b"), &path).unwrap();
        assert!(cfg!(not(unix)) || !as_before(&old, &look()));

        // Looked at in the tick of the change: neither now nor later does that look prove anything.
        let now = fs::metadata(&path).unwrap().modified().unwrap();
        CLOCK.store((nanos(now) / 1000) as i64, Ordering::Relaxed);
        let young = look();
        assert!(young.is_young() && !as_before(&young, &look()));
        CLOCK.store(i64::MAX / 2000, Ordering::Relaxed);
        let settled = look();
        assert!(!as_before(&young, &settled) && settled.looks_as(&young.version) && as_before(&settled, &look()));
    }

    #[test]
    fn fingerprints_of_before_hold_where_nothing_happened_since() {
        let file = |version: &str| InputFile { version: version.to_owned(), ..local() };
        assert!(file("17 17 5").is_as(1, "17") && file("17 17 5").looks_as("17"));
        assert!(!file("17 18 5").is_as(1, "17"), "something happened to it after it was written");
        assert!(!file("18 18 5").is_as(1, "17") && !file("17 17 5 young").is_as(1, "17"));
        assert!(!InputFile::of_rows("T@x", "17 17 5").is_as(0, "17"));
    }

    fn local() -> InputFile {
        let mut file = InputFile::of_rows("a.csv", "");
        (file.size, file.location) = (1, FileAccess::Local("a.csv".into()));
        file
    }

    #[test]
    fn whole_seconds_are_young_for_longer() {
        let second = 1_500_000_000 * SECOND;
        assert!(is_young(second, Some(second + 2 * SECOND)) && !is_young(second, Some(second + 4 * SECOND)));
        let within = second + 1000;
        assert!(is_young(within, Some(within + 10_000_000)) && !is_young(within, Some(within + 100_000_000)));
        assert!(!is_young(second, None));
    }
}
