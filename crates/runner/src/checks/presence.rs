//! Whether tables hold records of a period: only such periods are published and checked.

use std::ops::Range;

use tidetable_layout::spec::TimestampSpec;
use tidetable_sql::{Session, SqlError, first_row_of_integers, quoted_name};
use tidetable_store::Snapshot;

/// Whether any of the tables has a record in `time`, microseconds since the epoch. Runs a `LIMIT 1` query.
pub(crate) async fn holds_records(session: &Session, tables: &[String], time: Range<i64>) -> Result<bool, SqlError> {
    let restricted = session.restricted(time).sequential();
    for table in tables {
        let one = format!("SELECT 1 AS n FROM {} LIMIT 1", quoted_name(table));
        if !first_row_of_integers(&restricted, &one, &[]).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the SSTs alone prove that the table has a record in `time`: the first or last cell of one lies there, and
/// nothing hides cells of the table. Saves a query.
pub(crate) fn surely_holds(snapshot: &Snapshot, time: &Range<i64>) -> bool {
    let (version, spec) = (snapshot.version(), snapshot.layout().spec());
    let mut columns = spec.families.iter().flat_map(|family| &family.columns);
    let shows_all = version.tombstones.is_empty() && version.table.gc.is_empty() && !spec.upsert;
    let is_time =
        |timestamp: Option<i64>| timestamp.is_some_and(|timestamp| timestamp > 0 && time.contains(&timestamp));

    shows_all
        && columns.all(|column| column.timestamp == TimestampSpec::Implied)
        && version
            .ssts()
            .any(|sst| sst.multi_window.is_none() && (is_time(sst.min_timestamp) || is_time(sst.max_timestamp)))
}
