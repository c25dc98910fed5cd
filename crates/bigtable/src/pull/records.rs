//! Rows of Bigtable to records of a job's source, through the layout of its table.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{filter_record_batch, nullif, take};
use arrow::datatypes::{Field, Int64Type, Schema, SchemaRef, UInt64Type};
use tidetable_layout::error::LostReason;
use tidetable_layout::parse::{BlockParser, ParsedCell};
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::Granularity;
use tidetable_layout::{Layout, TableSpec};

use crate::client::{Cell, Row};
use crate::error::{BigtableError, Result};
use crate::pull::{Decoded, Undecoded};

/// Decodes rows through a layout.
#[derive(Debug)]
pub struct RecordDecoder {
    layout: Arc<Layout>,
    schema: SchemaRef,
    sums: Vec<SumColumn>,
}

impl RecordDecoder {
    /// A decoder of the rows of `table`, a table of a job with this layout.
    ///
    /// # Errors
    /// [`BigtableError::NoWayBack`] if a column of the source that the layout uses cannot be read back.
    pub fn new(table: &str, layout: Arc<Layout>) -> Result<Self> {
        let lost = layout.lost().iter().find(|lost| lost.why != LostReason::Absent);
        let source = layout.source();
        let time = source.fields.get(source.time).map(|field| field.name.clone()).unwrap_or_default();
        let no_time = layout.lost().iter().find(|lost| lost.column == time);
        if let Some(lost) = lost.or(no_time) {
            return Err(BigtableError::NoWayBack {
                table: table.to_owned(),
                column: lost.column.clone(),
                reason: lost.why.to_string(),
            });
        }
        let fields: Vec<Field> =
            source.fields.iter().map(|field| Field::new(&field.name, field.kind.arrow(), true)).collect();
        let sums = SumColumn::of(layout.spec());
        Ok(Self { layout, schema: Arc::new(Schema::new(fields)), sums })
    }

    /// The columns of the source.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes rows, which ascend; those that the layout cannot have written are returned with the reason.
    ///
    /// # Errors
    /// Of Arrow.
    pub fn decode(&self, rows: &[Row]) -> Result<Decoded> {
        let mut out = Decoded { batches: Vec::new(), cells: 0, undecoded: Vec::new() };
        self.decode_into(rows, &mut out)?;
        Ok(out)
    }

    /// Decodes rows all at once; if that fails, halves of them, until the row at fault is alone.
    fn decode_into(&self, rows: &[Row], out: &mut Decoded) -> Result<()> {
        let mut parser = BlockParser::new(&self.layout);
        let mut taken: Vec<&Row> = Vec::with_capacity(rows.len());
        let is_millis = self.layout.spec().granularity == Granularity::Millis;
        for row in rows {
            if let Some(cell) = row.cells.iter().find(|cell| is_millis && cell.timestamp % 1000 != 0) {
                let reason = format!(
                    "the timestamp {} has microseconds, and the table keeps milliseconds: write `granularity = \"micros\"`",
                    cell.timestamp
                );
                out.undecoded.push(Undecoded::of(row, reason));
                continue;
            }
            let cells = row.cells.iter().map(|cell| ParsedCell {
                family: &cell.family,
                qualifier: &cell.qualifier,
                timestamp: cell.timestamp,
                value: &cell.value,
            });
            match parser.push(&row.key, cells) {
                Ok(()) => taken.push(row),
                Err(error) => out.undecoded.push(Undecoded::of(row, error.to_string())),
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
            Ok((ends, batch)) => self.keep_summed(&taken, &ends, &batch, out)?,
            Err(error) => match taken.as_slice() {
                [only] => out.undecoded.push(Undecoded::of(only, error.to_string())),
                // One of them is at fault.
                several => {
                    let (first, second) = several.split_at(several.len() / 2);
                    for half in [first, second] {
                        let half: Vec<Row> = half.iter().map(|row| (*row).clone()).collect();
                        self.decode_into(&half, out)?;
                    }
                }
            },
        }
        Ok(())
    }

    /// Adds the records of `rows`, which end at `ends` in `batch`, but for those of rows whose sums are not theirs.
    fn keep_summed(&self, rows: &[&Row], ends: &[u32], batch: &RecordBatch, out: &mut Decoded) -> Result<()> {
        let mut batch = self.as_source(batch)?;
        let mut kept = vec![true; batch.num_rows()];
        let mut before = 0;
        for (row, end) in rows.iter().zip(ends) {
            let records = before as usize..*end as usize;
            before = *end;
            if records.is_empty() {
                out.undecoded.push(Undecoded::of(row, "its cells make no record".to_owned()));
            } else if let Some(family) = self.unsummed(row, &mut batch, records.clone())? {
                let reason = format!("the sums of family {family} are not those of its records");
                out.undecoded.push(Undecoded::of(row, reason));
                kept.get_mut(records).into_iter().flatten().for_each(|kept| *kept = false);
            } else {
                out.cells += row.cells.len() as u64;
            }
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
    fn unsummed(&self, row: &Row, batch: &mut RecordBatch, records: Range<usize>) -> Result<Option<&str>> {
        for sum in &self.sums {
            let mut cells = row.cells.iter().filter(|cell| sum.holds(cell)).peekable();
            if cells.peek().is_none() {
                continue;
            }
            let states = cells.map(|cell| <[u8; 8]>::try_from(cell.value.as_ref()).unwrap_or_default());
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
    fn as_source(&self, batch: &RecordBatch) -> Result<RecordBatch> {
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
                Some(column) => arrow::compute::cast(column, field.data_type())?,
                None => new_null_array(field.data_type(), batch.num_rows()),
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
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

    fn holds(&self, cell: &Cell) -> bool {
        let is_named = self.qualifier.as_ref().is_none_or(|qualifier| qualifier.as_bytes() == cell.qualifier);
        *cell.family == *self.family && is_named
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
fn only_first(batch: &RecordBatch, field: &str, records: Range<usize>) -> Result<RecordBatch> {
    let Ok(at) = batch.schema().index_of(field) else { return Ok(batch.clone()) };
    let mut columns = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(at) {
        let first = records.clone().find(|record| column.is_valid(*record));
        let again = (0..column.len()).map(|record| Some(records.contains(&record) && Some(record) != first));
        let again: BooleanArray = again.collect();
        *column = nullif(column, &again)?;
    }
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// The values of records of the metric that `field` names.
fn of_metric(metric: &dyn Array, value: Option<&ArrayRef>, field: &Field) -> Result<ArrayRef> {
    let Some(value) = value else { return Ok(new_null_array(field.data_type(), metric.len())) };
    let Some(names) = metric.as_string_opt::<i32>() else {
        return Ok(new_null_array(field.data_type(), metric.len()));
    };
    let places = names.iter().enumerate().map(|(at, name)| (name == Some(field.name())).then_some(at as u32));
    let indices: UInt32Array = places.collect();
    let taken = take(value.as_ref(), &indices, None)?;
    if taken.data_type() == field.data_type() {
        Ok(taken)
    } else {
        Ok(arrow::compute::cast(&taken, field.data_type())?)
    }
}
