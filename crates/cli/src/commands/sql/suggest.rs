//! What an unknown table of a query may stand for.

use tidetable_job::nearest;
use tidetable_sql::SqlError;
use tidetable_store::Store;

/// The name that a query means by an unknown table: an export without its schema, else a similar table or export of
/// `store`. `None` if nothing is near, or the error is another one.
pub(crate) fn suggested_table(store: &Store, error: &SqlError) -> Option<String> {
    let unknown = error.unknown_name().filter(|unknown| unknown.is_table)?.name;
    let files = store.blobs().list("exports").unwrap_or_default();
    let exports: Vec<&str> = files.iter().map(|file| file.strip_suffix(".json").unwrap_or(file)).collect();
    if exports.contains(&unknown.as_str()) && !has_folders_of_days(store, &unknown) {
        return Some(format!("exports.{unknown}"));
    }

    let tables = store.tables().unwrap_or_default();
    let others = exports.into_iter().filter(|export| *export != unknown);
    nearest(&unknown, tables.iter().map(String::as_str))
        .or_else(|| nearest(&unknown, others).map(|export| format!("exports.{export}")))
}

/// Whether a folder of `exports` is no part, but holds parts in folders such as `dt=2018-01-05`.
fn has_folders_of_days(store: &Store, folder: &str) -> bool {
    let inside = store.blobs().list(&format!("exports/{folder}")).unwrap_or_default();
    inside.iter().any(|name| name.contains('='))
}
