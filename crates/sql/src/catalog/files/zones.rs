//! Times with a zone in files of CSV.
//!
//! DataFusion reads `2020-01-01T00:00:00+01:00` as the instant that it is, and gives its column a type without a zone: the value prints
//! as 23:00 of the day before, as if that were written there. Columns whose first values all name a zone are instants here.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, StringArray};
use arrow::csv::ReaderBuilder;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::config::CsvOptions;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::error::Result;
use tidetable_source::PlainContent;

/// Rows that are looked at.
const ROWS: usize = 1000;
/// Bytes of a text that may not be the whole file.
const LARGE: usize = 512 << 10;
/// Bytes of a day, and of what stands between it and the time of day.
const DAY: usize = "2020-01-01T".len();

/// A table over files as it is, or with instants where it has times whose zones would be forgotten. `first` is the first of its files, which has
/// `skipped_lines` before the table.
///
/// # Errors
/// None that a caller could meet: the table was made of the same files.
pub(crate) fn with_zones(
    table: Arc<dyn TableProvider>,
    first: &Path,
    skipped_lines: u64,
) -> Result<Arc<dyn TableProvider>> {
    let provider: &dyn Any = table.as_ref();
    let Some(files) = provider.downcast_ref::<ListingTable>() else { return Ok(table) };
    let format: &dyn Any = files.options().format.as_ref();
    let Some(csv) = format.downcast_ref::<CsvFormat>() else { return Ok(table) };

    // Columns of partitions come after those of the files.
    let schema = table.schema();
    let columns = schema.fields().len() - files.options().table_partition_cols.len();
    let mut fields: Vec<Field> = schema.fields()[..columns].iter().map(|field| field.as_ref().clone()).collect();
    let timeless = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, None));
    if !fields.iter().any(timeless) {
        return Ok(table);
    }
    let Some(rows) = first_rows(first, skipped_lines, csv.options(), columns) else { return Ok(table) };

    for (field, values) in fields.iter_mut().zip(&rows) {
        if let DataType::Timestamp(unit, None) = field.data_type()
            && values.null_count() < values.len()
            && values.iter().flatten().all(has_zone)
        {
            field.set_data_type(DataType::Timestamp(*unit, Some("UTC".into())));
        }
    }
    let config = ListingTableConfig::new_with_multi_paths(files.table_paths().clone())
        .with_listing_options(files.options().clone())
        .with_schema(Arc::new(Schema::new(fields)));
    Ok(Arc::new(ListingTable::try_new(config)?))
}

/// The first values of each column of a file, as text; `None` if they are no table of so many columns.
fn first_rows(first: &Path, skipped_lines: u64, csv: &CsvOptions, columns: usize) -> Option<Vec<StringArray>> {
    let mut content = PlainContent::open(first).ok()?;
    content.skip_lines(skipped_lines).ok()?;

    let names = (0..columns).map(|at| Field::new(at.to_string(), DataType::Utf8, true));
    let mut reader = ReaderBuilder::new(Arc::new(Schema::new(names.collect::<Vec<_>>())))
        .with_header(csv.has_header.unwrap_or(true))
        .with_delimiter(csv.delimiter)
        .with_quote(csv.quote)
        .with_batch_size(ROWS);
    if let Some(escape) = csv.escape {
        reader = reader.with_escape(escape);
    }
    if let Some(comment) = csv.comment {
        reader = reader.with_comment(comment);
    }

    // Of a large file the last row may be cut.
    let text = content.at_hand();
    let last = text.iter().rposition(|byte| *byte == b'\n').filter(|_| text.len() >= LARGE);
    let text = last.map_or(text, |last| &text[..=last]);
    let batch = reader.build(text).ok()?.next()?.ok()?;
    batch.columns().iter().map(|column| column.as_any().downcast_ref().cloned()).collect()
}

/// Whether a time ends with a zone: `Z`, or an offset behind its time of day.
fn has_zone(time: &str) -> bool {
    time.trim().get(DAY..).is_some_and(|clock| clock.contains(['Z', 'z', '+', '-']))
}
