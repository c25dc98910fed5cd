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
    if exports.contains(&unknown.as_str()) {
        return Some(format!("exports.{unknown}"));
    }

    let tables = store.tables().unwrap_or_default();
    nearest(&unknown, tables.iter().map(String::as_str))
        .or_else(|| nearest(&unknown, exports).map(|export| format!("exports.{export}")))
}
