//! Rows of Bigtable to a row for each cell, all bytes in hexadecimal.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder, TimestampMicrosecondBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::client::Row;
use crate::error::Result;
use crate::pull::{Decoded, Undecoded};

/// Columns beside those of the families.
pub const RAW_COLUMNS: [&str; 3] = ["row_key", "qualifier", "timestamp"];

/// Writes cells as they are: key, qualifier, timestamp, and the value in the column of its family.
#[derive(Debug)]
pub struct RawDecoder {
    families: Vec<String>,
    schema: SchemaRef,
}

/// The column of a family.
pub fn family_column(family: &str) -> String {
    let name: String = family.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("value_{name}")
}

impl RawDecoder {
    /// For a table with these families.
    pub fn new(families: Vec<String>) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let [key, qualifier, timestamp] = RAW_COLUMNS;
        let mut fields = vec![
            Field::new(key, DataType::Utf8, false),
            Field::new(qualifier, DataType::Utf8, false),
            Field::new(timestamp, time, false),
        ];
        fields.extend(families.iter().map(|family| Field::new(family_column(family), DataType::Utf8, true)));
        Self { families, schema: Arc::new(Schema::new(fields)) }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The cells of rows.
    ///
    /// # Errors
    /// Of Arrow.
    pub fn decode(&self, rows: &[Row]) -> Result<Decoded> {
        let (mut keys, mut qualifiers) = (StringBuilder::new(), StringBuilder::new());
        let mut times = TimestampMicrosecondBuilder::new();
        let mut values: Vec<StringBuilder> = self.families.iter().map(|_| StringBuilder::new()).collect();
        let mut undecoded = Vec::new();
        for row in rows {
            if let Some(cell) = row.cells.iter().find(|cell| !self.families.iter().any(|known| **known == *cell.family))
            {
                let reason = format!("family {} was made after the pull began", cell.family);
                undecoded.push(Undecoded::of(row, reason));
                continue;
            }
            let key = hex(&row.key);
            for cell in &row.cells {
                keys.append_value(&key);
                qualifiers.append_value(hex(&cell.qualifier));
                times.append_value(cell.timestamp);
                for (family, values) in self.families.iter().zip(&mut values) {
                    values.append_option((**family == *cell.family).then(|| hex(&cell.value)));
                }
            }
        }
        let times = times.finish().with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(qualifiers.finish()), Arc::new(times)];
        columns.extend(values.into_iter().map(|mut values| Arc::new(values.finish()) as ArrayRef));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(Decoded { batches: vec![batch], undecoded })
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).map_or('0', |digit| char::from(*digit));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The job file of a table that keeps cells as they are. `families` are names with rules.
pub fn raw_job(job: &str, table: &str, pattern: &str, source: &str, families: &[(String, Option<String>)]) -> String {
    let quoted = |text: &str| format!("{text:?}");
    let mut text = format!(
        "name = {}\ndescription = {}\n\n[sources.cells]\nfiles = [{}]\ntime = \"timestamp\"\n\n[sources.cells.columns]\n",
        quoted(job),
        quoted(&format!("The cells of {source}, as they are")),
        quoted(pattern)
    );
    text.push_str(
        "row_key = \"text\" # hexadecimal, as all bytes here\nqualifier = \"text\"\ntimestamp = \"timestamp\"\n",
    );
    for (family, _) in families {
        text.push_str(&format!("{} = \"text\"\n", family_column(family)));
    }
    text.push_str(&format!(
        "\n# A row of the source is a cell: only one of the columns of values holds something.\n[tables.{table}]\nfrom = \
         \"cells\"\nrow_key = \"{{row_key:hex}}\"\n"
    ));
    for (family, rule) in families {
        text.push_str(&format!("\n[tables.{table}.families.{}]\n", quoted(family)));
        if let Some(rule) = rule {
            text.push_str(&format!("# There it is {}. Here all versions stay.\n", quoted(rule)));
        }
        let column = family_column(family);
        text.push_str(&format!("columns = [{{ qualifier = \"{{qualifier:hex}}\", value = \"{{{column}:hex}}\" }}]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Cell;
    use arrow::array::{Array, AsArray};

    #[test]
    fn a_row_for_each_cell() {
        let cell = |family: &str, value: &'static str| Cell {
            family: family.into(),
            qualifier: "q".into(),
            timestamp: 7,
            value: value.into(),
        };
        let rows = [
            Row { key: "\u{1}k".into(), cells: vec![cell("a.b", "\u{0}"), cell("z", "")] },
            Row { key: "l".into(), cells: vec![cell("new", "x")] },
        ];
        let decoded = RawDecoder::new(vec!["a.b".to_owned(), "z".to_owned()]).decode(&rows).unwrap();
        let batch = decoded.batches.first().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns(), decoded.undecoded.len()), (2, 5, 1));
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "016b");
        let values = batch.column_by_name("value_a_b").unwrap().as_string::<i32>();
        assert_eq!((values.value(0), values.is_null(1)), ("00", true));
    }
}
