//! Avro as Dataflow's "Bigtable to Avro" template writes it: a record per row, with its cells.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::avro::{Encoder, Mark, block, header, packed};
use crate::file::cells::Cells;

/// Bytes of records in a block, about.
const BLOCK: usize = 1 << 18;

/// Writes cells sorted by row key.
pub(crate) struct BigtableAvro<W: Write> {
    out: W,
    mark: Mark,
    /// Complete rows of the next block.
    records: Encoder,
    count: usize,
    key: Option<Vec<u8>>,
    /// Cells of the current row.
    cells: Encoder,
    cell_count: usize,
}

impl<W: Write> BigtableAvro<W> {
    pub(crate) fn new(mut out: W) -> Result<Self, ArrowError> {
        let schema = schema();
        let mark = xxh3_128(schema.to_string().as_bytes()).to_le_bytes();
        out.write_all(&header(&schema, &[], &mark))?;
        let (records, cells) = (Encoder::default(), Encoder::default());
        Ok(Self { out, mark, records, count: 0, key: None, cells, cell_count: 0 })
    }

    /// Adds a batch of cells; writes blocks of rows that are complete.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let cells = Cells::of(batch)?;
        for at in 0..cells.len() {
            let key = cells.keys.value(at);
            if self.key.as_deref() != Some(key) {
                self.end_row()?;
                self.key = Some(key.to_vec());
            }
            self.cells.text(cells.families.value(at));
            self.cells.bytes(cells.qualifiers.value(at));
            self.cells.long(cells.timestamps.value(at));
            self.cells.bytes(cells.values.value(at));
            self.cell_count += 1;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<W, ArrowError> {
        self.end_row()?;
        self.write_block()?;
        Ok(self.out)
    }

    fn end_row(&mut self) -> Result<(), ArrowError> {
        let Some(key) = self.key.take() else { return Ok(()) };
        self.records.bytes(&key);
        self.records.long(self.cell_count as i64);
        self.records.encoded(std::mem::take(&mut self.cells).written());
        self.records.long(0);
        self.count += 1;
        self.cell_count = 0;
        if self.records.written().len() >= BLOCK { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> Result<(), ArrowError> {
        let (records, count) = (std::mem::take(&mut self.records), std::mem::take(&mut self.count));
        if count > 0 {
            self.out.write_all(&block(count, &packed(&records), &self.mark))?;
        }
        Ok(())
    }
}

/// The schema of the template.
fn schema() -> Value {
    json!({
        "type": "record",
        "name": "BigtableRow",
        "namespace": "com.google.cloud.teleport.bigtable",
        "fields": [
            { "name": "key", "type": "bytes" },
            { "name": "cells", "type": { "type": "array", "items": {
                "type": "record",
                "name": "BigtableCell",
                "fields": [
                    { "name": "family", "type": "string" },
                    { "name": "qualifier", "type": "bytes" },
                    { "name": "timestamp", "type": "long", "logicalType": "timestamp-micros" },
                    { "name": "value", "type": "bytes" },
                ],
            } } },
        ],
    })
}
