//! Errors of the disk of the store: damaged files, with the window that cannot be read, and a disk without room.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, ErrorKind};

use tidetable_blobs::BlobError;
use tidetable_export::ExportError;
use tidetable_job::several;
use tidetable_layout::time::window_name;
use tidetable_record::{LoadRecord, PartState, RunRecord};
use tidetable_sql::SqlError;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;

/// The damaged or missing SST that caused `error`, itself or an error in its chain of sources.
pub(crate) fn damage_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a StoreError> {
    let store_errors =
        std::iter::successors(Some(error), |error| cause(*error)).filter_map(|error| error.downcast_ref());
    store_errors.into_iter().find(|error: &&StoreError| error.damaged_sst().is_some())
}

/// Whether `error` is of a file of the store that could not be written, because its disk is full.
fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut store_errors =
        std::iter::successors(Some(error), |error| cause(*error)).filter_map(|error| error.downcast_ref());
    store_errors.any(|error| match error {
        StoreError::Blob(BlobError::Io { source, .. }) => {
            matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        }
        _ => false,
    })
}

/// The error below `error`. The `source` of a `transparent` error skips the error that it wraps, and that of a boxed one
/// is the box, so these are unwrapped here.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<RunError>() {
        Some(RunError::Store(inner)) => return Some(inner),
        Some(RunError::Export(inner)) => return Some(inner.as_ref()),
        _ => {}
    }
    if let Some(boxed) = error.downcast_ref::<Box<SqlError>>() {
        return Some(boxed.as_ref());
    }
    if let Some(ExportError::Store(inner)) = error.downcast_ref() {
        return Some(inner);
    }
    if let Some(SqlError::Store(inner)) = error.downcast_ref() {
        return Some(inner);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    }
    error.source()
}

/// `error` with what an operator needs: of a damaged SST the window, of a full disk the root and its free space.
pub(crate) fn explained(store: &Store, error: RunError) -> RunError {
    if matches!(error, RunError::DiskFull { .. } | RunError::Damaged { .. }) {
        return error;
    }
    if let (true, Some(root)) = (is_full(&error), store.blobs().directory()) {
        let free = store.free_bytes().map_or("an unknown space".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
        return RunError::DiskFull { root: root.display().to_string(), free, source: Box::new(error) };
    }

    let Some(damaged) = damage_in(&error) else { return error };
    let Some((table, sst)) = damaged.damaged_sst() else { return error };
    match window_of(store, table, sst) {
        Some(window) => RunError::Damaged { table: table.to_owned(), window, reason: damaged.to_string() },
        None => error,
    }
}

/// The note on what a failed run did before its error: it stays, and the next run goes on from there. `None` if that is nothing.
pub(crate) fn kept_note(record: &RunRecord) -> Option<String> {
    let mut kept = Vec::new();
    for LoadRecord { table, before, version, stats, .. } in &record.loads {
        if version != before {
            kept.push(format!("{table} has version {version} with {}", several(stats.rows_accepted, "new row")));
        }
    }

    let mut published: BTreeMap<&str, u64> = BTreeMap::new();
    for part in record.exports.iter().filter(|part| part.state == PartState::Published) {
        *published.entry(&part.export).or_default() += 1;
    }
    kept.extend(
        published.into_iter().map(|(export, parts)| format!("{} of {export} published", several(parts, "part"))),
    );

    (!kept.is_empty())
        .then(|| format!("what the run did before stays: {}; the next run does the rest", kept.join(", ")))
}

/// Name of the window, or of the first and the last window, of an SST in the newest version of `table`.
fn window_of(store: &Store, table: &str, sst: &str) -> Option<String> {
    let version = store.table(table).latest().ok()??;
    let name = |start: i64| window_name(version.table.spec.window, start);
    for window in &version.windows {
        let Some(found) = window.ssts.iter().find(|known| known.id == sst) else { continue };
        let starts = found.multi_window.as_ref().map(|shared| shared.windows.as_slice());
        return Some(match starts {
            Some([first, .., last]) => format!("{} to {}", name(*first), name(*last)),
            Some([start]) => name(*start),
            _ => name(window.start),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use tidetable_record::ExportRecord;

    use super::*;

    #[test]
    fn damage_is_found_at_any_depth() {
        let missing = || StoreError::SstMissing { path: "tables/T/sst/A.sst".to_owned() };
        let query = RunError::Query { export: "E".to_owned(), source: Box::new(SqlError::Store(missing())) };
        let feed = StoreError::Feed { input: "T@d".to_owned(), source: Box::new(SqlError::Store(missing())) };
        for error in [query, RunError::Store(feed), RunError::from(ExportError::Store(missing()))] {
            let found = damage_in(&error).and_then(StoreError::damaged_sst);
            assert_eq!(found, Some(("T", "A")), "{error}");
        }
        assert!(damage_in(&RunError::RejectLog).is_none());
    }

    #[test]
    fn a_failed_run_tells_what_it_did() {
        let mut load = LoadRecord { table: "T".to_owned(), before: 3, version: 3, ..LoadRecord::default() };
        load.stats.rows_accepted = 17_280;
        let part = |state: &str| -> ExportRecord {
            serde_json::from_value(serde_json::json!({ "export": "E", "state": state })).unwrap()
        };
        let exports = vec![part("published"), part("failed"), part("published")];
        let mut record = RunRecord { loads: vec![load], ..RunRecord::default() };
        assert_eq!(kept_note(&record), None);

        record.loads[0].version = 4;
        record.exports = exports;
        let kept = "T has version 4 with 17280 new rows, 2 parts of E published";
        assert!(kept_note(&record).unwrap().contains(kept), "{:?}", kept_note(&record));
    }

    #[test]
    fn a_full_disk_is_found_at_any_depth() {
        let full = || {
            StoreError::Blob(BlobError::Io {
                action: "write",
                path: "runs/r.json".to_owned(),
                source: ErrorKind::StorageFull.into(),
            })
        };
        let query = RunError::Query { export: "E".to_owned(), source: Box::new(SqlError::Store(full())) };
        assert!(is_full(&query) && is_full(&RunError::Store(full())) && !is_full(&RunError::RejectLog));
    }
}
