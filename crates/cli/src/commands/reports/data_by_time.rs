//! The records of a table by event time, for its page: how many there are in each slice, and the mean of a measure.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use futures::TryStreamExt;
use tidetable_page::view::{TimeChart, TimeSlice};
use tidetable_sql::{Session, SessionOptions, SqlError, quoted_name};
use tidetable_store::{Snapshot, Store};

use crate::error::CliError;

/// Most slices of time in a chart: more would be narrower than a pixel.
const SLICES: i64 = 150;
/// Lengths of slices, seconds.
const LENGTHS: [i64; 15] =
    [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000, 315_360_000];

/// The chart of a table; `None` if its layout keeps no event time, or it has no records.
///
/// # Errors
/// If the table cannot be read.
pub(super) async fn by_time(store: &Store, snapshot: &Snapshot) -> Result<Option<TimeChart>, CliError> {
    let layout = snapshot.layout();
    let fields = layout.records_schema();
    let Some(time) = layout.event_time_field().and_then(|index| fields.fields().get(index).cloned()) else {
        return Ok(None);
    };
    let session = Session::open(store, &SessionOptions::default())?;
    let (time, table) = (quoted_name(time.name()), quoted_name(&snapshot.version().table.spec.name));

    let bounds = format!("SELECT CAST(min({time}) AS BIGINT), CAST(max({time}) AS BIGINT) FROM {table}");
    let bounds = rows_of(&session, &bounds).await?;
    let Some((first, last)) = bounds.first().and_then(|batch| Some((integer(batch, 0, 0)?, integer(batch, 1, 0)?)))
    else {
        return Ok(None);
    };
    let seconds = last.saturating_sub(first) / 1_000_000;
    let slice = slice_length(seconds, SLICES);

    let measure = fields.fields().iter().find(|field| is_measure(field));
    let mean = match measure {
        Some(field) => format!("CAST(avg({}) AS DOUBLE)", quoted_name(field.name())),
        None => "CAST(NULL AS DOUBLE)".to_owned(),
    };
    let query = format!(
        "SELECT CAST(date_bin(INTERVAL '{slice} seconds', {time}) AS BIGINT) AS slice, count(*), {mean} \
         FROM {table} GROUP BY 1 ORDER BY 1"
    );
    let mut slices = Vec::new();
    for batch in rows_of(&session, &query).await? {
        for row in 0..batch.num_rows() {
            let (Some(start), Some(records)) = (integer(&batch, 0, row), integer(&batch, 1, row)) else { continue };
            slices.push(TimeSlice { start, records: records.unsigned_abs(), mean: float(&batch, 2, row) });
        }
    }
    let measure = measure.map(|field| field.name().clone()).unwrap_or_default();
    Ok((!slices.is_empty()).then_some(TimeChart { slice, measure, slices }))
}

/// The least length of slices, in seconds, of which fewer than `most` whole ones lie in `seconds`: with a begun one that is at
/// most as many. The greatest length if there are more of each.
pub(crate) fn slice_length(seconds: i64, most: i64) -> i64 {
    LENGTHS.into_iter().find(|length| seconds / length < most).unwrap_or(LENGTHS[LENGTHS.len() - 1])
}

/// Whether a column holds measured values: integers may be ids.
fn is_measure(field: &Field) -> bool {
    field.data_type().is_floating() || matches!(field.data_type(), DataType::Decimal128(..) | DataType::Decimal256(..))
}

async fn rows_of(session: &Session, query: &str) -> Result<Vec<RecordBatch>, CliError> {
    Ok(session.stream(query).await?.try_collect().await.map_err(SqlError::from)?)
}

fn integer(batch: &RecordBatch, column: usize, row: usize) -> Option<i64> {
    let column = cast(batch.columns().get(column)?, &DataType::Int64).ok()?;
    (row < column.len() && column.is_valid(row)).then(|| column.as_primitive::<Int64Type>().value(row))
}

fn float(batch: &RecordBatch, column: usize, row: usize) -> Option<f64> {
    let column = batch.columns().get(column)?.as_primitive_opt::<Float64Type>()?;
    (row < column.len() && column.is_valid(row)).then(|| column.value(row))
}
