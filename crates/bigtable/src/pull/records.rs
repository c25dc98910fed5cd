//! Rows of Bigtable to records of a job's source, through the layout of its table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema, SchemaRef};
use tidetable_layout::Layout;
use tidetable_layout::error::LostReason;
use tidetable_layout::parse::{BlockParser, ParsedCell};

use crate::client::Row;
use crate::error::{BigtableError, Result};
use crate::pull::{Decoded, Undecoded};

/// Decodes rows through a layout.
#[derive(Debug)]
pub struct RecordDecoder {
    layout: Arc<Layout>,
    schema: SchemaRef,
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
        Ok(Self { layout, schema: Arc::new(Schema::new(fields)) })
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
        let mut out = Decoded { batches: Vec::new(), undecoded: Vec::new() };
        self.decode_into(rows, &mut out)?;
        Ok(out)
    }

    fn decode_into(&self, rows: &[Row], out: &mut Decoded) -> Result<()> {
        let mut parser = BlockParser::new(&self.layout);
        let mut taken: Vec<&Row> = Vec::with_capacity(rows.len());
        for row in rows {
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
            Ok((ends, batch)) => {
                let mut before = 0;
                for (row, end) in taken.iter().zip(ends) {
                    if end == before {
                        out.undecoded.push(Undecoded::of(row, "its cells make no record".to_owned()));
                    }
                    before = end;
                }
                if batch.num_rows() > 0 {
                    out.batches.push(self.as_source(&batch)?);
                }
            }
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

    /// Records as rows of the source: an unpivoted record becomes a row with one of its columns.
    fn as_source(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let unpivot = &self.layout.spec().unpivot;
        let metric = if unpivot.is_empty() { None } else { batch.column_by_name("metric") };
        let column = |field: &Arc<Field>| -> Result<ArrayRef> {
            if let (Some(metric), true) = (metric, unpivot.contains(field.name())) {
                return of_metric(metric.as_ref(), batch.column_by_name("value"), field);
            }
            match batch.column_by_name(field.name()) {
                Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
                Some(column) => Ok(arrow::compute::cast(column, field.data_type())?),
                None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            }
        };
        let columns = self.schema.fields().iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// The values of records of the metric that `field` names.
fn of_metric(metric: &dyn Array, value: Option<&ArrayRef>, field: &Field) -> Result<ArrayRef> {
    let Some(value) = value else { return Ok(new_null_array(field.data_type(), metric.len())) };
    let Some(names) = metric.as_string_opt::<i32>() else {
        return Ok(new_null_array(field.data_type(), metric.len()));
    };
    let at = |(at, name): (usize, Option<&str>)| (name == Some(field.name())).then_some(at as u32);
    let indices: UInt32Array = names.iter().enumerate().map(at).collect();
    let taken = take(value.as_ref(), &indices, None)?;
    if taken.data_type() == field.data_type() {
        Ok(taken)
    } else {
        Ok(arrow::compute::cast(&taken, field.data_type())?)
    }
}
