//! Cells become blocks again, and blocks the same cells, for tables of every shape.

use std::sync::Arc;

use tidetable_bigtable::cells::BatchScan;
use tidetable_bigtable::client::{Cell, Row};
use tidetable_bigtable::rows::row_of;
use tidetable_cells::CellScan;
use tidetable_layout::cell::{BlockCells, Passes};
use tidetable_layout::error::ShapeError;
use tidetable_layout::parse::{BlockParser, ParsedCell};
use tidetable_layout::{Block, StoredSchema};
use tidetable_proof::shape::small;
use tidetable_store::Store;

fn rows(store: &Store) -> Vec<Row> {
    let mut rows = Vec::new();
    let scan = BatchScan::from(CellScan::new(store.snapshot("T").unwrap()));
    scan.run(&mut |batch| {
        rows.extend((0..batch.rows()).map(|row| row_of(&batch, row)));
        true
    })
    .unwrap();
    rows
}

fn rows_of_block(schema: &StoredSchema, block: &Block) -> Vec<Row> {
    let cells = BlockCells::new::<ShapeError>(schema, block, |_, _, _| Ok(Passes::All)).unwrap();
    let mut values = cells.values().unwrap();
    let mut out = Vec::new();
    for row in 0..block.keys.len() {
        let mut found = Vec::new();
        cells.row(row, &mut found).unwrap();
        let cell = |cell| {
            let mut value = Vec::new();
            values.write(cell, &mut value);
            value
        };
        let written: Vec<Vec<u8>> = found.iter().map(cell).collect();
        let names = cells.names();
        let cells = found.iter().zip(written).map(|(cell, value)| {
            let name = &names[cell.name as usize];
            let qualifier = bytes::Bytes::copy_from_slice(name.qualifier);
            Cell { family: name.family.into(), qualifier, timestamp: cell.timestamp, value: value.into() }
        });
        out.push(Row { key: block.keys.get(row).into(), cells: cells.collect() });
    }
    out
}

#[test]
fn large_rows_are_refused() {
    for shape in small().unwrap() {
        let store = Store::new(Arc::new(shape.shelf));
        let bytes = |row: &Row| row.cells.iter().map(|cell| 16 + cell.value.len()).sum::<usize>();
        let largest = rows(&store).iter().map(bytes).max().unwrap();
        let scan = CellScan::new(store.snapshot("T").unwrap());
        let run = |most_row| BatchScan { most_row, ..BatchScan::from(scan.clone()) }.run(&mut |_| true);
        run(largest).unwrap();
        let said = run(largest - 1).unwrap_err().to_string();
        assert!(said.contains("--request-memory"), "{said}");
    }
}

#[test]
fn cells_of_every_shape_are_parsed() {
    for shape in small().unwrap() {
        let store = Store::new(Arc::new(shape.shelf));
        let layout = store.snapshot("T").unwrap().layout().clone();
        let rows = rows(&store);
        assert!(!rows.is_empty(), "{}", shape.name);
        let mut parser = BlockParser::new(&layout);
        let mut refused = Vec::new();
        for row in &rows {
            let cells = row.cells.iter().map(|cell| ParsedCell {
                family: &cell.family,
                qualifier: &cell.qualifier,
                timestamp: cell.timestamp,
                value: &cell.value,
            });
            refused.extend(parser.push(&row.key, cells).err());
        }
        if shape.name == "packed" {
            // Its list of messages does not hold the times of its events.
            assert_eq!(refused.len(), rows.len());
            continue;
        }
        assert!(refused.is_empty(), "{}: {refused:?}", shape.name);
        let block = parser.finish().unwrap();
        assert!(rows_of_block(layout.stored(), &block) == rows, "{}", shape.name);
        // Other keys are none of the layout's, and rows in another order neither.
        let mut parser = BlockParser::new(&layout);
        assert!(parser.push(b"", []).is_err() || layout.split_key(b"").is_some(), "{}", shape.name);
        parser.push(&rows[0].key, []).unwrap_or_else(|error| panic!("{}: {error}", shape.name));
        assert!(parser.push(&rows[0].key, []).is_err(), "{}", shape.name);
    }
}
