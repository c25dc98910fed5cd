//! Reads snapshots: the list of their manifests, and the files that these name.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::Value;
use tidetable_blobs::Blobs;

use crate::error::Result;
use crate::iceberg::manifest::{Entry, Status, entries_of, manifests_of};
use crate::iceberg::metadata::{Metadata, unusable};

/// The files that a snapshot has, by path below the directory of the table.
pub(crate) type LiveFiles = BTreeMap<String, Entry>;

/// A snapshot as its files say it.
pub(crate) struct ReadSnapshot {
    /// Files of the log, by path below the directory of the table.
    pub(crate) own: BTreeSet<String>,
    pub(crate) files: LiveFiles,
}

/// Reads snapshots, and each manifest once.
pub(crate) struct SnapshotReader<'a> {
    blobs: &'a dyn Blobs,
    folder: &'a str,
    location: &'a str,
    manifests: BTreeMap<String, LiveFiles>,
}

impl<'a> SnapshotReader<'a> {
    pub(crate) fn new(blobs: &'a dyn Blobs, folder: &'a str, metadata: &'a Metadata) -> Self {
        Self { blobs, folder, location: metadata.location(), manifests: BTreeMap::new() }
    }

    /// A path below the directory of the table of a URI; that of another place as it is.
    fn below(&self, uri: &str) -> String {
        uri.strip_prefix(self.location).map_or(uri, |below| below.trim_start_matches('/')).to_owned()
    }

    /// The bytes of a file of the log.
    fn read(&self, below: &str) -> Result<Bytes> {
        let path = format!("exports/{}/{below}", self.folder);
        let found = self.blobs.read(&path)?;
        found.ok_or_else(|| unusable(&path, "it is missing, so which files the table has is not known"))
    }

    /// A snapshot of the metadata.
    pub(crate) fn snapshot(&mut self, snapshot: &Value) -> Result<ReadSnapshot> {
        let list = self.below(snapshot["manifest-list"].as_str().unwrap_or_default());
        let folder = self.folder;
        let damaged = |below: &str, reason: &str| unusable(&format!("exports/{folder}/{below}"), reason);
        let manifests = manifests_of(&self.read(&list)?).map_err(|reason| damaged(&list, &reason))?;

        let (mut own, mut files) = (BTreeSet::from([list]), LiveFiles::new());
        for manifest in manifests {
            let below = self.below(&manifest.path);
            own.insert(below.clone());
            // Rows that another engine deleted come back, since the list counts.
            if manifest.has_deletes {
                continue;
            }
            if !self.manifests.contains_key(&below) {
                let entries = entries_of(&manifest, &self.read(&below)?).map_err(|reason| damaged(&below, &reason))?;
                let live = entries.into_iter().filter(|entry| entry.status != Status::Deleted);
                let live = live.map(|entry| (self.below(&entry.file.path), entry)).collect();
                self.manifests.insert(below.clone(), live);
            }
            files.extend(self.manifests.get(&below).cloned().unwrap_or_default());
        }
        Ok(ReadSnapshot { own, files })
    }
}

/// The files of the current snapshot.
pub(crate) fn live_files(blobs: &dyn Blobs, folder: &str, metadata: &Metadata) -> Result<LiveFiles> {
    let current = metadata.current_snapshot();
    let Some(snapshot) = metadata.items("snapshots").find(|snapshot| snapshot["snapshot-id"].as_i64() == current)
    else {
        return Ok(LiveFiles::new());
    };
    Ok(SnapshotReader::new(blobs, folder, metadata).snapshot(snapshot)?.files)
}
