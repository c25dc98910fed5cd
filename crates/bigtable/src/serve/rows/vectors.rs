//! The official vectors of `ReadRows`, the other way: the cells of each become chunks, and these become the cells.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message;
use serde_json::Value;

use crate::cells::{CellBatchBuilder, ColumnId};
use crate::proto::data::ReadRowsResponse;
use crate::proto::data::read_rows_response::CellChunk;
use crate::serve::filter::Picked;
use crate::serve::rows::chunks::ChunkWriter;

const VECTORS: &str = include_str!("../../../../../tests/data/bigtable/readrows.json");

/// Key, family, qualifier, timestamp, value, label.
type Cell = (Vec<u8>, String, Vec<u8>, i64, Vec<u8>, String);

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

fn timestamp(object: &Value) -> i64 {
    text(object, "timestampMicros").parse().unwrap_or_default()
}

/// What a client must make of chunks, as the vectors define it.
fn merged(chunks: impl Iterator<Item = CellChunk>) -> Vec<Cell> {
    let (mut cells, mut cell): (Vec<Cell>, Option<Cell>) = (Vec::new(), None);
    let (mut key, mut family, mut qualifier) = (Vec::new(), String::new(), Vec::new());
    for chunk in chunks {
        if !chunk.row_key.is_empty() {
            key = chunk.row_key.to_vec();
        }
        family = chunk.family_name.unwrap_or(family);
        qualifier = chunk.qualifier.unwrap_or(qualifier);
        let label = chunk.labels.into_iter().next().unwrap_or_default();
        let fresh = (key.clone(), family.clone(), qualifier.clone(), chunk.timestamp_micros, Vec::new(), label);
        let (mut row, is_whole) = (cell.take().unwrap_or(fresh), chunk.value_size == 0);
        row.4.extend_from_slice(&chunk.value);
        if is_whole { cells.push(row) } else { cell = Some(row) }
    }
    cells
}

/// The chunks of cells, split where values have more than `most_value` bytes.
fn chunks_of(cells: &[Cell], most_value: usize) -> Vec<CellChunk> {
    let mut labels: Vec<String> = cells.iter().map(|cell| cell.5.clone()).filter(|label| !label.is_empty()).collect();
    labels.dedup();
    let mut writer = ChunkWriter::new(labels.iter().map(|label| label.as_str().into()).collect()).with_sizes(
        1,
        usize::MAX,
        most_value,
    );
    let mut sent = Vec::new();
    for row in cells.chunk_by(|one, other| one.0 == other.0) {
        let id = |cell: &Cell| ColumnId { family: cell.1.as_str().into(), qualifier: Bytes::from(cell.2.clone()) };
        let mut columns: Vec<ColumnId> = row.iter().map(id).collect();
        columns.dedup();
        let mut builder = CellBatchBuilder::new(columns.clone().into());
        for cell in row {
            let column = columns.iter().position(|column| *column == id(cell)).unwrap();
            builder.cell(column as u32, cell.3, |out| out.extend_from_slice(&cell.4));
        }
        builder.end_row(|out| out.extend_from_slice(&row[0].0));
        let label = |cell: &Cell| labels.iter().position(|label| *label == cell.5).map(|label| label as u16);
        let picked = row.iter().zip(0..).map(|(cell, at)| Picked { label: label(cell), ..Picked::one(at) });
        let mut send = |rows| {
            sent.push(rows);
            true
        };
        let batch = builder.finish();
        assert!(writer.cells(&batch, 0, picked, &mut send) && writer.end_row(&batch, 0, &mut send));
    }
    sent.extend(writer.take());
    sent.iter().flat_map(|rows| ReadRowsResponse::decode(rows.0.clone()).unwrap().chunks).collect()
}

#[test]
fn cells_of_the_vectors_come_back_from_chunks() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let mut seen = 0;
    for vector in vectors["readRowsTests"].as_array().unwrap() {
        let results = vector["results"].as_array().cloned().unwrap_or_default();
        if results.is_empty() || results.iter().any(|result| result["error"] == true) {
            continue;
        }
        let bytes = |result: &Value, name: &str| text(result, name).as_bytes().to_vec();
        let cell = |result: &Value| {
            let (key, qualifier) = (bytes(result, "rowKey"), bytes(result, "qualifier"));
            let (family, label) = (text(result, "familyName").to_owned(), text(result, "label").to_owned());
            (key, family, qualifier, timestamp(result), bytes(result, "value"), label)
        };
        let cells: Vec<Cell> = results.iter().map(cell).collect();
        for most_value in [1, 2, 5, 1_000] {
            let chunks = chunks_of(&cells, most_value);
            assert!(chunks.iter().all(|chunk| chunk.value.len() <= most_value));
            assert_eq!(merged(chunks.into_iter()), cells, "{}", vector["description"]);
        }
        // The merger here agrees with the vectors, but for rows that are reset.
        let sent = vector["chunks"].as_array().unwrap();
        if sent.iter().all(|chunk| chunk["resetRow"] != true) {
            assert_eq!(merged(sent.iter().map(chunk)), cells, "{}", vector["description"]);
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

fn chunk(sent: &Value) -> CellChunk {
    let bytes = |name: &str| STANDARD.decode(text(sent, name)).unwrap();
    let given = |name: &str| sent.get(name).is_some();
    CellChunk {
        row_key: bytes("rowKey").into(),
        family_name: given("familyName").then(|| text(sent, "familyName").to_owned()),
        qualifier: given("qualifier").then(|| bytes("qualifier")),
        timestamp_micros: timestamp(sent),
        labels: sent["labels"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|label| label.as_str().map(str::to_owned))
            .collect(),
        value: bytes("value").into(),
        value_size: sent["valueSize"].as_i64().unwrap_or_default() as i32,
        row_status: None,
    }
}
