//! Rows of Bigtable to a row for each cell, with keys, qualifiers and values in hexadecimal.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tidetable_layout::schema::Merge;
use tidetable_source::PulledFamily;

use crate::client::{Cell, Row};
use crate::error::Result;
use crate::pull::{Decoded, Undecoded};

/// Columns beside those of the families.
pub const RAW_COLUMNS: [&str; 3] = ["row_key", "qualifier", "timestamp"];

/// A family of cells that are kept as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawFamily {
    /// The id of the family in Bigtable.
    pub name: String,
    /// The column of its values.
    pub column: String,
    /// How its cells merge.
    pub kind: Merge,
    /// Its garbage-collection rule in Bigtable, in cbt's notation.
    pub rule: Option<String>,
}

/// Writes cells as they are: key, qualifier, timestamp, and the value in the column of its family.
#[derive(Debug)]
pub struct RawDecoder {
    families: Vec<RawFamily>,
    /// Whether timestamps are microseconds.
    is_micros: bool,
    schema: SchemaRef,
}

/// The values of a family.
enum Values {
    /// Any bytes, which are written in hexadecimal.
    Bytes(StringBuilder),
    /// States of sums, minima and maxima.
    Integers(Int64Builder),
}

impl RawFamily {
    /// Whether its cells are integers of eight bytes.
    pub(crate) fn holds_integers(&self) -> bool {
        matches!(self.kind, Merge::Sum | Merge::Min | Merge::Max)
    }
}

impl RawDecoder {
    /// For a table with these families, whose timestamps are microseconds or milliseconds.
    pub fn new(families: Vec<RawFamily>, is_micros: bool) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let [key, qualifier, timestamp] = RAW_COLUMNS;
        let mut fields = vec![
            Field::new(key, DataType::Utf8, false),
            Field::new(qualifier, DataType::Utf8, false),
            Field::new(timestamp, time, false),
        ];
        fields.extend(families.iter().map(|family| {
            let kind = if family.holds_integers() { DataType::Int64 } else { DataType::Utf8 };
            Field::new(&family.column, kind, true)
        }));
        Self { families, is_micros, schema: Arc::new(Schema::new(fields)) }
    }

    /// The columns of its files: [`RAW_COLUMNS`], then one for each family.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The families with their columns, as the list of a pull has them.
    pub(crate) fn pulled_families(&self) -> Vec<PulledFamily> {
        let families = self.families.iter();
        families.map(|family| PulledFamily { name: family.name.clone(), column: family.column.clone() }).collect()
    }

    /// The cells of rows. Cells that do not fit are left out and told with their row.
    ///
    /// # Errors
    /// Of Arrow.
    pub fn decode(&self, rows: &[Row]) -> Result<Decoded> {
        let (mut keys, mut qualifiers) = (StringBuilder::new(), StringBuilder::new());
        let mut times = TimestampMicrosecondBuilder::new();
        let mut values: Vec<Values> = self.families.iter().map(Values::of).collect();

        let (mut written, mut undecoded) = (0, Vec::new());
        for row in rows {
            let key = hex::encode(&row.key);
            let mut rejected: Option<Undecoded> = None;
            for cell in &row.cells {
                match self.family_of(cell) {
                    Ok(at) => {
                        keys.append_value(&key);
                        qualifiers.append_value(hex::encode(&cell.qualifier));
                        times.append_value(cell.timestamp);
                        written += 1;
                        for (family, values) in values.iter_mut().enumerate() {
                            values.append((family == at).then_some(&cell.value));
                        }
                    }
                    Err(reason) => {
                        let row = rejected.get_or_insert_with(|| Undecoded { cells: 0, ..Undecoded::of(row, reason) });
                        row.cells += 1;
                    }
                }
            }
            undecoded.extend(rejected);
        }

        let times = times.finish().with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(qualifiers.finish()), Arc::new(times)];
        columns.extend(values.into_iter().map(Values::finish));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(Decoded { batches: vec![batch], cells: written, undecoded })
    }

    /// The place of the family of a cell, or why the cell cannot be written.
    fn family_of(&self, cell: &Cell) -> Result<usize, String> {
        let at = self.families.iter().position(|family| *family.name == *cell.family);
        let Some((at, family)) = at.and_then(|at| Some((at, self.families.get(at)?))) else {
            return Err(format!("family {} was made after the pull began", cell.family));
        };
        if family.holds_integers() && cell.value.len() != 8 {
            let (name, kind, bytes) = (&family.name, family.kind.word(), cell.value.len());
            return Err(format!("a cell of family {name} of kind {kind} has {bytes} bytes, not the 8 of an integer"));
        }
        if !self.is_micros && cell.timestamp % 1000 != 0 {
            let (name, timestamp) = (&family.name, cell.timestamp);
            return Err(format!("a cell of family {name} has the timestamp {timestamp}, and the table milliseconds"));
        }
        Ok(at)
    }
}

impl Values {
    fn of(family: &RawFamily) -> Self {
        if family.holds_integers() { Self::Integers(Int64Builder::new()) } else { Self::Bytes(StringBuilder::new()) }
    }

    fn append(&mut self, value: Option<&bytes::Bytes>) {
        match self {
            Self::Bytes(builder) => builder.append_option(value.map(hex::encode)),
            Self::Integers(builder) => {
                let bytes = value.and_then(|value| <[u8; 8]>::try_from(value.as_ref()).ok());
                builder.append_option(bytes.map(i64::from_be_bytes));
            }
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bytes(mut builder) => Arc::new(builder.finish()),
            Self::Integers(mut builder) => Arc::new(builder.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int64Type;

    fn cell(family: &str, timestamp: i64, value: &'static [u8]) -> Cell {
        Cell { family: family.into(), qualifier: "q".into(), timestamp, value: value.into() }
    }

    fn family(name: &str, column: &str, kind: Merge) -> RawFamily {
        RawFamily { name: name.to_owned(), column: column.to_owned(), kind, rule: None }
    }

    #[test]
    fn a_row_for_each_cell_and_none_is_lost() {
        let rows = [
            Row { key: "\u{1}k".into(), cells: vec![cell("a.b", 7000, b"\0"), cell("z", 7000, b"")] },
            Row { key: "l".into(), cells: vec![cell("new", 0, b"x"), cell("z", 7, b"x"), cell("z", 0, b"y")] },
            Row { key: "m".into(), cells: vec![cell("n", 0, &[0xff; 8]), cell("n", 0, b"short")] },
        ];
        let families = vec![
            family("a.b", "value_a_b", Merge::Newest),
            family("z", "value_z", Merge::Newest),
            family("n", "value_n", Merge::Sum),
        ];
        let decoded = RawDecoder::new(families, false).decode(&rows).unwrap();
        let batch = decoded.batches.first().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (4, 6));
        let left_out: Vec<u64> = decoded.undecoded.iter().map(|row| row.cells).collect();
        assert_eq!((decoded.cells, left_out), (4, vec![2, 1]));
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "016b");
        let values = batch.column_by_name("value_a_b").unwrap().as_string::<i32>();
        assert_eq!((values.value(0), values.is_null(1)), ("00", true));
        assert_eq!(batch.column_by_name("value_n").unwrap().as_primitive::<Int64Type>().value(3), -1);
    }
}
