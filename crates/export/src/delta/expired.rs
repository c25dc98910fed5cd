//! Finds the files of Delta tables that no reader needs any more.
//!
//! A replaced or withdrawn file stays for readers of older versions until the retention of its table has passed since the log
//! removed it. A file of which neither list nor log knows, as a killed run leaves it, stays as long since it was written.

use std::collections::BTreeMap;

use tidetable_blobs::{Blobs, each};
use tidetable_store::published::Published;

use crate::delta::listed::{files_of, log_of, table_folders};
use crate::delta::log_state::{LogState, decoded};
use crate::error::Result;

/// Retention of a table that says none: the default of Delta, microseconds.
pub const DELTA_RETENTION: i64 = 7 * 24 * 60 * 60 * 1_000_000;

/// The least retention, microseconds: readers may take as long for one query.
pub const LEAST_DELTA_RETENTION: i64 = 60 * 60 * 1_000_000;

/// Paths inside the store of the files of the Delta tables of a list that neither list nor log name, and whose retention has
/// passed. `clock` is the time, microseconds since the epoch.
///
/// # Errors
/// If the storage or a log cannot be read.
pub fn expired_files(blobs: &dyn Blobs, published: &Published, clock: i64) -> Result<Vec<String>> {
    let mut expired = Vec::new();
    for folder in table_folders(published) {
        let state = LogState::read(blobs, &log_of(folder))?;
        if state.version.is_none() {
            continue;
        }
        let retention = state.retention().unwrap_or(DELTA_RETENTION).max(LEAST_DELTA_RETENTION);
        let mut removed: BTreeMap<String, i64> = BTreeMap::new();
        for (path, remove) in &state.removed {
            let time = remove["deletionTimestamp"].as_i64().unwrap_or_default().saturating_mul(1000);
            let latest = removed.entry(decoded(path)).or_insert(time);
            *latest = time.max(*latest);
        }

        let listed = files_of(published, folder);
        let mut candidates = files_below(blobs, folder)?;
        candidates.retain(|path| !listed.contains_key(path) && !state.files.contains_key(path));
        candidates.retain(|path| removed.contains_key(path) || is_ours(path));
        let paths: Vec<String> = candidates.iter().map(|path| format!("exports/{folder}/{path}")).collect();
        let stats = blobs.stat_all(&paths)?;
        for ((below, path), stat) in candidates.iter().zip(paths).zip(stats) {
            let since = removed.get(below).copied().or_else(|| stat?.modified);
            if since.is_some_and(|since| since.saturating_add(retention) <= clock) {
                expired.push(path);
            }
        }
    }
    Ok(expired)
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

/// Whether a file has a name as a run gives it in a Delta table: `part-RUN.parquet`, or with a number.
fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let run = name.strip_prefix("part-").and_then(|name| name.strip_suffix(".parquet"));
    // Names of other engines have more dots: `part-00000-UUID.c000.snappy.parquet`.
    run.is_some_and(|run| run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}
