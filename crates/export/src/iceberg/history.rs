//! Which files of a table are no longer needed, and when they were replaced.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_blobs::Blobs;

use crate::error::Result;
use crate::iceberg::metadata::{HINT, Metadata, create, hint, version_of};
use crate::iceberg::snapshot::{ReadSnapshot, SnapshotReader};
use crate::table::{History, SNAPSHOT_RETENTION, TRIES, TableLog};

/// What the metadata in `folder` tells of replaced files; `None` without any. Files of all its snapshots stay if a catalog
/// has them, too: a run takes them out there first.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn history(blobs: &dyn Blobs, folder: &str, is_cataloged: bool) -> Result<Option<History>> {
    let Some(metadata) = Metadata::newest(blobs, folder)? else { return Ok(None) };
    let log = TableLog::Iceberg.directory();
    let newest = format!("{log}/v{}.metadata.json", metadata.version);
    let mut kept = BTreeSet::from([newest, format!("{log}/{HINT}")]);
    let mut removed = BTreeMap::new();

    let (snapshots, named) = (metadata.snapshots(), metadata.named_snapshots());
    let mut reader = SnapshotReader::new(blobs, folder, &metadata);
    for (place, snapshot) in snapshots.iter().enumerate() {
        let ReadSnapshot { own, files } = reader.snapshot(snapshot)?;
        let paths = own.into_iter().chain(files.into_keys());
        if is_cataloged || snapshot["snapshot-id"].as_i64().is_some_and(|id| named.contains(&id)) {
            kept.extend(paths);
        } else if let Some(next) = snapshots.get(place + 1) {
            // The last one that has the file counts.
            let until = next["timestamp-ms"].as_i64().unwrap_or_default().saturating_mul(1000);
            removed.extend(paths.map(|path| (path, until)));
        }
    }

    // A version was in use until the next one was written.
    let mut versions: BTreeMap<u64, i64> = BTreeMap::new();
    for entry in metadata.items("metadata-log") {
        let version = entry["metadata-file"].as_str().and_then(|file| version_of(file.rsplit('/').next()?));
        versions.extend(version.zip(entry["timestamp-ms"].as_i64()));
    }
    versions.insert(metadata.version, metadata.last_updated());
    for version in versions.keys() {
        let until = versions.range(version + 1..).next().map(|(_, time)| time.saturating_mul(1000));
        removed.extend(until.map(|until| (format!("{log}/v{version}.metadata.json"), until)));
    }

    let names = blobs.list(&TableLog::Iceberg.path(folder))?;
    let own = names.iter().filter(|name| is_ours(name)).map(|name| format!("{log}/{name}")).collect();
    let retention = metadata.retention();
    Ok(Some(History { kept, removed, own, retention }))
}

/// Whether a file of the log has a name as a run gives it.
pub(crate) fn is_ours(name: &str) -> bool {
    let is_manifest = name.strip_suffix("-m0.avro").and_then(|name| name.split_once('-'));
    let is_manifest = is_manifest.is_some_and(|(version, hash)| version.parse::<u64>().is_ok() && is_hash(hash));
    let is_list = name.strip_prefix("snap-").and_then(|name| name.strip_suffix(".avro")?.split_once("-1-"));
    let is_list = is_list.is_some_and(|(id, hash)| id.parse::<i64>().is_ok() && is_hash(hash));
    is_manifest || is_list || version_of(name).is_some()
}

fn is_hash(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Takes snapshots whose retention has passed out of the metadata in `folder`.
///
/// # Errors
/// If it cannot be read or written.
pub(crate) fn forget_expired(blobs: &dyn Blobs, folder: &str, clock: i64) -> Result<()> {
    for _ in 0..TRIES {
        let Some(metadata) = Metadata::newest(blobs, folder)? else { return Ok(()) };
        let retention = metadata.retention().unwrap_or(SNAPSHOT_RETENTION);
        let expired = metadata.expired(retention, clock);
        if expired.is_empty() {
            return Ok(());
        }
        let next = metadata.without(&expired, retention, clock);
        if create(blobs, folder, &next)? {
            return hint(blobs, folder, next.version);
        }
    }
    Ok(())
}
