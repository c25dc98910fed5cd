//! Finds the files of tables with a log that no reader needs any more.
//!
//! A replaced or withdrawn file stays for readers of older versions until the retention of its table has passed since the log
//! removed it. A file of which neither list nor log knows, as a killed run leaves it, stays as long since it was written.

use std::collections::BTreeSet;

use tidetable_blobs::{Blobs, each};
use tidetable_store::published::{Part, Published};

use crate::error::Result;
use crate::table::listed::{files_of, table_folders};
use crate::table::{LEAST_SNAPSHOT_RETENTION, SNAPSHOT_RETENTION, TableLog};
use crate::{delta, iceberg};

/// Paths inside the store of the files of the tables of a list that neither list nor log name, and whose retention has
/// passed. `clock` is the time, microseconds since the epoch.
///
/// # Errors
/// If the storage or a log cannot be read.
pub fn expired_files(blobs: &dyn Blobs, published: &Published, clock: i64) -> Result<Vec<String>> {
    let mut expired = Vec::new();
    // A catalog that is behind may name snapshots that the log has forgotten.
    let cataloged = published.cataloged.as_ref();
    if cataloged.is_some_and(|known| published.owed_to(&known.table).is_some()) {
        return Ok(expired);
    }
    for folder in table_folders(published) {
        let mut histories = Vec::new();
        for log in TableLog::ALL.into_iter().filter(|log| log.may_be_of(published)) {
            let history = match log {
                TableLog::Delta => delta::history(blobs, folder),
                TableLog::Iceberg => iceberg::history::history(blobs, folder, cataloged.is_some()),
            };
            histories.extend(history?);
        }
        let Some(retention) = histories.iter().map(|known| known.retention.unwrap_or(SNAPSHOT_RETENTION)).max() else {
            continue;
        };
        let retention = retention.max(LEAST_SNAPSHOT_RETENTION);

        let listed = files_of(published, folder);
        let removed = |path: &String| histories.iter().filter_map(|known| known.removed.get(path)).max().copied();
        let mut candidates = files_below(blobs, folder)?;
        candidates.retain(|path| removed(path).is_some() || is_ours(path));
        candidates.extend(histories.iter().flat_map(|known| known.own.iter().cloned()));
        candidates.retain(|path| !listed.contains_key(path));
        candidates.retain(|path| !histories.iter().any(|known| known.kept.contains(path)));

        let paths: Vec<String> = candidates.iter().map(|path| format!("exports/{folder}/{path}")).collect();
        let stats = blobs.stat_all(&paths)?;
        for ((below, path), stat) in candidates.iter().zip(paths).zip(stats) {
            let since = removed(below).or_else(|| stat?.modified);
            if since.is_some_and(|since| since.saturating_add(retention) <= clock) {
                expired.push(path);
            }
        }
    }
    Ok(expired)
}

/// Takes versions whose retention has passed out of the logs of the table in `folder`, before the [files](expired_files) that
/// only they name are removed. `clock` is the time, microseconds since the epoch.
///
/// # Errors
/// If a log cannot be read or written.
pub fn forget_expired(blobs: &dyn Blobs, folder: &str, clock: i64) -> Result<()> {
    // Delta's readers are told by the retention alone.
    iceberg::history::forget_expired(blobs, folder, clock)
}

/// The files of an export, by path inside the store: its parts, those that wait for their removal, and of a table with a log all that
/// runs wrote there, replaced files and the log among them. A file that somebody else put there is none of them.
///
/// # Errors
/// If the storage cannot be listed.
pub fn files_of_export(blobs: &dyn Blobs, published: &Published) -> Result<BTreeSet<String>> {
    let mut files: BTreeSet<String> = published.parts.values().flat_map(Part::paths).collect();
    files.extend(published.retired.keys().cloned());
    if published.logged.is_none() {
        return Ok(files);
    }

    for folder in table_folders(published) {
        for log in TableLog::ALL.into_iter().filter(|log| log.may_be_of(published)) {
            files.extend(blobs.files_below(&log.path(folder))?.into_iter().map(|(path, _)| path));
        }
        let written = files_below(blobs, folder)?.into_iter().filter(|path| is_ours(path));
        files.extend(written.map(|path| format!("exports/{folder}/{path}")));
    }
    Ok(files)
}

/// The Parquet files of a table, by path below its directory, those of Hive directories among them.
fn files_below(blobs: &dyn Blobs, folder: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while !folders.is_empty() {
        let directories: Vec<String> = folders.iter().map(|below| format!("exports/{folder}/{below}")).collect();
        let listed = each(blobs, &directories, |directory| blobs.list(directory.trim_end_matches('/')));
        let mut deeper = Vec::new();
        for (below, names) in folders.iter().zip(listed) {
            for name in names? {
                match name.ends_with(".parquet") {
                    true => files.push(format!("{below}{name}")),
                    false if name.contains('=') => deeper.push(format!("{below}{name}/")),
                    false => {}
                }
            }
        }
        folders = deeper;
    }
    Ok(files)
}

/// Whether a file has a name as a run gives it in a table with a log: `part-RUN.parquet`, or with a number.
fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let run = name.strip_prefix("part-").and_then(|name| name.strip_suffix(".parquet"));
    // Names of other engines have more dots: `part-00000-UUID.c000.snappy.parquet`.
    run.is_some_and(|run| run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}
