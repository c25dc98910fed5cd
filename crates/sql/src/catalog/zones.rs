//! Times with a zone in files of CSV.
//!
//! DataFusion reads `2020-01-01T00:00:00+01:00` as the instant that it is, and gives its column a type without a zone: the value prints
//! as 23:00 of the day before, as if that were written there. Columns whose first values name a zone are instants here.

use std::any::Any;
use std::path::{Path, PathBuf};
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

/// Files that are looked at.
const FILES: usize = 100;
/// Rows that are looked at of each.
const ROWS: usize = 1000;
/// Bytes of a text that may not be the whole file.
const LARGE: usize = 512 << 10;
/// Bytes of a day, and of what stands between it and the time of day.
const DAY: usize = "2020-01-01T".len();

/// How the times of a column are written.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    with_zone: bool,
    without_zone: bool,
}

/// A table over `files` as it is, or with instants where it has times whose zones would be forgotten. A column of times with and without a
/// zone is text: which instants the others are is not known. The files have `skipped_lines` before the table.
///
/// # Errors
/// None that a caller could meet: the table was made of the same files.
pub(crate) fn with_zones(
    table: Arc<dyn TableProvider>,
    files: &[PathBuf],
    skipped_lines: u64,
) -> Result<Arc<dyn TableProvider>> {
    let provider: &dyn Any = table.as_ref();
    let Some(listed) = provider.downcast_ref::<ListingTable>() else { return Ok(table) };
    let format: &dyn Any = listed.options().format.as_ref();
    let Some(csv) = format.downcast_ref::<CsvFormat>() else { return Ok(table) };

    // Columns of partitions come after those of the files.
    let schema = table.schema();
    let columns = schema.fields().len() - listed.options().table_partition_cols.len();
    let mut fields: Vec<Field> = schema.fields()[..columns].iter().map(|field| field.as_ref().clone()).collect();
    if !fields.iter().any(|field| matches!(field.data_type(), DataType::Timestamp(_, None))) {
        return Ok(table);
    }

    let mut written = vec![Written::default(); columns];
    for file in files.iter().take(FILES) {
        let rows = first_rows(file, skipped_lines, csv.options(), columns).unwrap_or_default();
        for (column, values) in written.iter_mut().zip(&rows) {
            for value in values.iter().flatten().filter(|value| !value.trim().is_empty()) {
                let is_zoned = has_zone(value);
                column.with_zone |= is_zoned;
                column.without_zone |= !is_zoned;
            }
        }
    }

    for (field, column) in fields.iter_mut().zip(written) {
        if let DataType::Timestamp(unit, None) = field.data_type()
            && column.with_zone
        {
            let kind = match column.without_zone {
                true => DataType::Utf8,
                false => DataType::Timestamp(*unit, Some("UTC".into())),
            };
            field.set_data_type(kind);
        }
    }
    let config = ListingTableConfig::new_with_multi_paths(listed.table_paths().clone())
        .with_listing_options(listed.options().clone())
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

/// Whether a time ends with a zone behind its time of day: `Z`, an offset, or the name of one.
fn has_zone(time: &str) -> bool {
    let clock = time.trim().get(DAY..).unwrap_or_default();
    clock.contains(|part: char| part.is_ascii_alphabetic() || matches!(part, '+' | '-'))
}
