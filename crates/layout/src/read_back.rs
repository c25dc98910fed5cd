//! Rows of Bigtable back to records of a source, through the layout of a table.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{cast, filter_record_batch, nullif, take};
use arrow::datatypes::{Field, Int64Type, Schema, SchemaRef, UInt64Type};
use arrow::error::ArrowError;

use crate::error::{Lost, LostReason};
use crate::parse::{BlockParser, ParsedCell};
use crate::plan::Layout;
use crate::schema::Merge;
use crate::spec::{Granularity, TableSpec};

/// A row as Bigtable holds it, wherever its bytes lie.
pub trait StoredRow {
    /// The row key.
    fn key(&self) -> &[u8];
    /// The cells, in any order.
    fn cells(&self) -> impl Iterator<Item = ParsedCell<'_>>;
}

/// Reads rows through a layout. A record that comes back is written as the same cells by a load.
#[derive(Debug)]
pub struct RowDecoder {
    layout: Arc<Layout>,
    schema: SchemaRef,
    sums: Vec<SumColumn>,
}

/// What became of some rows.
#[derive(Debug, Default)]
pub struct DecodedRows {
    /// Records, in key order.
    pub batches: Vec<RecordBatch>,
    /// For each record of all batches, the place of its row among the rows given.
    pub rows: Vec<u32>,
    /// Rows that the layout cannot have written.
    pub undecoded: Vec<UndecodedRow>,
}

/// A row that is not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecodedRow {
    /// Its place among the rows given.
    pub row: usize,
    /// Why, for a list of rejected rows.
    pub reason: String,
}

impl RowDecoder {
    /// A decoder of rows that `layout` wrote.
    ///
    /// # Errors
    /// A column of the source that the layout uses and that cannot be read back, or the event time if it is lost.
    pub fn new(layout: Arc<Layout>) -> Result<Self, Lost> {
        let source = layout.source();
        let time = source.fields.get(source.time).map(|field| field.name.clone()).unwrap_or_default();
        let lost = layout.lost().iter().find(|lost| lost.why != LostReason::Absent);
        if let Some(lost) = lost.or_else(|| layout.lost().iter().find(|lost| lost.column == time)) {
            return Err(lost.clone());
        }

        let fields: Vec<Field> =
            source.fields.iter().map(|field| Field::new(&field.name, field.kind.arrow(), true)).collect();
        let sums = SumColumn::of(layout.spec());
        Ok(Self { layout, schema: Arc::new(Schema::new(fields)), sums })
    }

    /// The layout by which rows are read.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The columns of the source.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes rows whose keys ascend; those that the layout cannot have written are named with the reason.
    ///
    /// # Errors
    /// Of Arrow.
    pub fn decode<R: StoredRow>(&self, rows: &[R]) -> Result<DecodedRows, ArrowError> {
        let mut decoded = DecodedRows::default();
        let places: Vec<usize> = (0..rows.len()).collect();
        self.decode_into(rows, &places, &mut decoded)?;
        Ok(decoded)
    }

    /// Decodes the rows at `places` all at once; if that fails, halves of them, until the row at fault is alone.
    fn decode_into<R: StoredRow>(&self, rows: &[R], places: &[usize], out: &mut DecodedRows) -> Result<(), ArrowError> {
        let mut parser = BlockParser::new(&self.layout);
        let mut taken = Vec::with_capacity(places.len());
        for place in places.iter().copied() {
            let Some(row) = rows.get(place) else { continue };
            if let Some(timestamp) = self.timestamp_with_micros(row) {
                let reason = format!(
                    "the timestamp {timestamp} has microseconds, and the table keeps milliseconds: write `granularity = \"micros\"`"
                );
                out.undecoded.push(UndecodedRow { row: place, reason });
                continue;
            }
            match parser.push(row.key(), row.cells()) {
                Ok(()) => taken.push(place),
                Err(error) => out.undecoded.push(UndecodedRow { row: place, reason: error.to_string() }),
            }
        }
        if taken.is_empty() {
            return Ok(());
        }

        let block = parser.finish()?;
        let all: Vec<usize> = (0..self.layout.records_schema().fields().len()).collect();
        let decoded =
            self.layout.decode_rows(&block, &[]).and_then(|rows| Ok((rows.ends, self.layout.decode(block, &all)?)));
        match decoded {
            Ok((ends, batch)) => self.keep_summed(rows, &taken, &ends, &batch, out)?,
            Err(error) => match taken.as_slice() {
                [only] => out.undecoded.push(UndecodedRow { row: *only, reason: error.to_string() }),
                // One of them is at fault.
                several => {
                    let (first, second) = several.split_at(several.len() / 2);
                    self.decode_into(rows, first, out)?;
                    self.decode_into(rows, second, out)?;
                }
            },
        }
        Ok(())
    }

    /// A timestamp of the row that a table of milliseconds would cut.
    fn timestamp_with_micros(&self, row: &impl StoredRow) -> Option<i64> {
        let is_millis = self.layout.spec().granularity == Granularity::Millis;
        row.cells().map(|cell| cell.timestamp).find(|timestamp| is_millis && timestamp % 1000 != 0)
    }

    /// Adds the records of the rows at `places`, which end at `ends` in `batch`, except those of rows whose sums are not theirs.
    fn keep_summed<R: StoredRow>(
        &self,
        rows: &[R],
        places: &[usize],
        ends: &[u32],
        batch: &RecordBatch,
        out: &mut DecodedRows,
    ) -> Result<(), ArrowError> {
        let mut batch = self.as_source(batch)?;
        let mut kept = vec![true; batch.num_rows()];
        let mut before = 0;
        for (place, end) in places.iter().copied().zip(ends) {
            let Some(row) = rows.get(place) else { continue };
            let records = before as usize..*end as usize;
            before = *end;
            let reason = if records.is_empty() {
                "its cells make no record".to_owned()
            } else if let Some(family) = self.unsummed(row, &mut batch, records.clone())? {
                format!("the sums of family {family} are not those of its records")
            } else {
                out.rows.extend(std::iter::repeat_n(place as u32, records.len()));
                continue;
            };
            out.undecoded.push(UndecodedRow { row: place, reason });
            kept.get_mut(records).into_iter().flatten().for_each(|kept| *kept = false);
        }

        if kept.contains(&false) {
            batch = filter_record_batch(&batch, &BooleanArray::from(kept))?;
        }
        if batch.num_rows() > 0 {
            out.batches.push(batch);
        }
        Ok(())
    }

    /// The family whose sums in `row` are not those of its records, which a load adds up. A sum of the whole row stands in
    /// all its records: only the first keeps it.
    fn unsummed(
        &self,
        row: &impl StoredRow,
        batch: &mut RecordBatch,
        records: Range<usize>,
    ) -> Result<Option<&str>, ArrowError> {
        for sum in &self.sums {
            let mut cells = row.cells().filter(|cell| sum.holds(cell)).peekable();
            if cells.peek().is_none() {
                continue;
            }
            let states = cells.map(|cell| <[u8; 8]>::try_from(cell.value).unwrap_or_default());
            let expected: i128 = states.map(|state| i128::from(i64::from_be_bytes(state))).sum();
            if total(batch, &sum.field, records.clone()) != expected && sum.is_alone {
                *batch = only_first(batch, &sum.field, records.clone())?;
            }
            if total(batch, &sum.field, records.clone()) != expected {
                return Ok(Some(&sum.family));
            }
        }
        Ok(None)
    }

    /// Records as rows of the source: an unpivoted record becomes a row with one of its columns.
    fn as_source(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let unpivot = &self.layout.spec().unpivot;
        let metric = if unpivot.is_empty() { None } else { batch.column_by_name("metric") };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            if let (Some(metric), true) = (metric, unpivot.contains(field.name())) {
                columns.push(of_metric(metric.as_ref(), batch.column_by_name("value"), field)?);
                continue;
            }
            columns.push(match batch.column_by_name(field.name()) {
                Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
                Some(column) => cast(column, field.data_type())?,
                None => new_null_array(field.data_type(), batch.num_rows()),
            });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

/// A column of a family of sums.
#[derive(Debug)]
struct SumColumn {
    family: String,
    /// The qualifier, if it is constant.
    qualifier: Option<String>,
    /// The field of the source that is added up.
    field: String,
    /// Whether no other column holds the field.
    is_alone: bool,
}

impl SumColumn {
    fn of(spec: &TableSpec) -> Vec<Self> {
        let columns =
            || spec.families.iter().flat_map(|family| family.columns.iter().map(move |column| (family, column)));
        let sums = columns().filter(|(family, _)| family.kind == Merge::Sum);
        sums.map(|(family, column)| Self {
            family: family.name.clone(),
            qualifier: Some(column.qualifier.clone()).filter(|qualifier| !qualifier.contains(['{', '}'])),
            field: column.value.trim_matches(['{', '}']).to_owned(),
            is_alone: columns().filter(|(_, other)| other.value == column.value || other.each).count() == 1,
        })
        .collect()
    }

    fn holds(&self, cell: &ParsedCell<'_>) -> bool {
        let is_named = self.qualifier.as_ref().is_none_or(|qualifier| qualifier.as_bytes() == cell.qualifier);
        cell.family == self.family && is_named
    }
}

/// The sum of a column of integers in some records.
fn total(batch: &RecordBatch, field: &str, records: Range<usize>) -> i128 {
    let Some(column) = batch.column_by_name(field) else { return 0 };
    let column = column.slice(records.start, records.len());
    match (column.as_primitive_opt::<Int64Type>(), column.as_primitive_opt::<UInt64Type>()) {
        (Some(values), _) => values.iter().flatten().map(i128::from).sum(),
        (None, Some(values)) => values.iter().flatten().map(i128::from).sum(),
        (None, None) => 0,
    }
}

/// The batch with nulls in a column of some records, but for the first of them that has a value.
fn only_first(batch: &RecordBatch, field: &str, records: Range<usize>) -> Result<RecordBatch, ArrowError> {
    let Ok(at) = batch.schema().index_of(field) else { return Ok(batch.clone()) };
    let mut columns = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(at) {
        let first = records.clone().find(|record| column.is_valid(*record));
        let again = (0..column.len()).map(|record| Some(records.contains(&record) && Some(record) != first));
        let again: BooleanArray = again.collect();
        *column = nullif(column, &again)?;
    }
    RecordBatch::try_new(batch.schema(), columns)
}

/// The values of records of the metric that `field` names.
fn of_metric(metric: &dyn Array, value: Option<&ArrayRef>, field: &Field) -> Result<ArrayRef, ArrowError> {
    let Some(value) = value else { return Ok(new_null_array(field.data_type(), metric.len())) };
    let Some(names) = metric.as_string_opt::<i32>() else {
        return Ok(new_null_array(field.data_type(), metric.len()));
    };
    let places = names.iter().enumerate().map(|(at, name)| (name == Some(field.name())).then_some(at as u32));
    let indices: UInt32Array = places.collect();
    let taken = take(value.as_ref(), &indices, None)?;
    if taken.data_type() == field.data_type() { Ok(taken) } else { cast(&taken, field.data_type()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::FieldType;
    use crate::spec::{ColumnSpec, FamilySpec, Field as SourceField, SourceSchema};

    /// A row key, and cells of family `M` with their qualifiers, timestamps and values.
    struct TestRow(&'static str, Vec<(&'static str, i64, &'static str)>);

    impl StoredRow for TestRow {
        fn key(&self) -> &[u8] {
            self.0.as_bytes()
        }

        fn cells(&self) -> impl Iterator<Item = ParsedCell<'_>> {
            self.1.iter().map(|(qualifier, timestamp, value)| ParsedCell {
                family: "M",
                qualifier: qualifier.as_bytes(),
                timestamp: *timestamp,
                value: value.as_bytes(),
            })
        }
    }

    fn decoder() -> RowDecoder {
        let field = |name: &str, kind| SourceField { name: name.to_owned(), kind };
        let fields = vec![
            field("meter", FieldType::UInt64),
            field("ts", FieldType::Timestamp),
            field("kwh", FieldType::Float64),
        ];
        let column = ColumnSpec { qualifier: "{ts:%H}".to_owned(), value: "{kwh}".to_owned(), ..ColumnSpec::default() };
        let families = vec![FamilySpec { name: "M".to_owned(), columns: vec![column], ..FamilySpec::default() }];
        let spec = TableSpec { row_key: "{meter:02}#{ts:%Y%m%d}".to_owned(), families, ..TableSpec::default() };
        RowDecoder::new(Arc::new(Layout::compile(&spec, &SourceSchema { fields, time: 1 }).unwrap())).unwrap()
    }

    #[test]
    fn records_and_reasons_name_their_rows() {
        const HOUR: i64 = 3_600_000_000;
        let rows = [
            TestRow("01#19700101", vec![("00", 0, "1.5"), ("01", HOUR, "2")]),
            TestRow("02#19700101", vec![("00", 1, "1")]),
            TestRow("03", vec![("00", 0, "1")]),
            TestRow("04#19700101", vec![("02", 2 * HOUR, "x")]),
            TestRow("05#19700101", vec![("02", 2 * HOUR, "3")]),
        ];
        let decoded = decoder().decode(&rows).unwrap();
        assert_eq!(decoded.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
        assert_eq!(decoded.rows, [0, 0, 4]);
        let undecoded: Vec<(usize, &str)> =
            decoded.undecoded.iter().map(|row| (row.row, row.reason.as_str())).collect();
        assert_eq!(
            undecoded,
            [
                (
                    1,
                    "the timestamp 1 has microseconds, and the table keeps milliseconds: write `granularity = \"micros\"`"
                ),
                (2, "its row key is not of the form of the layout's"),
                (3, "the value of M:02 is no float64"),
            ]
        );
    }
}
