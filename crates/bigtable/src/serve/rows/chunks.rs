//! Chunks of cells, serialized as they are made.
//!
//! ```text
//! ReadRowsResponse   1: chunk, repeated   2: last_scanned_row_key   3: request_stats
//! CellChunk          1: row_key   2: { 1: family_name }   3: { 1: qualifier }   4: timestamp_micros
//!                    5: label   6: value   7: value_size   9: commit_row
//! ```
//! The first chunk of a row has its key, family and qualifier; others only what has changed, and a new family brings its
//! qualifier. A large value is split: all its chunks but the last have its size, and all but the first only bytes.
//!
//! Responses end with rows. A row that is too large for one goes on in the next with its key again, and no value is cut between them:
//! Google's client for Python takes the first chunk of each response for the beginning of a row.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};

use crate::cells::CellBatch;
use crate::proto::data::RequestStats;
use crate::serve::filter::Picked;
use crate::serve::rows::codec::EncodedRows;

/// Bytes of a response from which on it is sent at the end of a row.
const FULL: usize = 128 << 10;
/// Bytes of a response from which on it is sent within a row.
const FULL_IN_ROW: usize = 1 << 20;
/// Bytes of a value, or of the rest of one, in one chunk.
pub(crate) const MOST_VALUE: usize = 512 << 10;

const CHUNKS: u8 = tag(1);
const LAST_SCANNED: u8 = tag(2);
const STATS: u8 = tag(3);
const KEY: u8 = tag(1);
const FAMILY: u8 = tag(2);
const QUALIFIER: u8 = tag(3);
const TIMESTAMP: u8 = number_tag(4);
const LABEL: u8 = tag(5);
const VALUE: u8 = tag(6);
const VALUE_SIZE: u8 = number_tag(7);
const COMMIT: u8 = number_tag(9);
/// The only field of the wrappers of families and qualifiers.
const WRAPPED: u8 = tag(1);

/// Of a field of bytes.
const fn tag(field: u8) -> u8 {
    field << 3 | 2
}

/// Of a field with a number.
const fn number_tag(field: u8) -> u8 {
    field << 3
}

/// Writes rows as chunks. The last cell of a row waits until it is known to be the last: its chunk commits the row.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    labels: Vec<Arc<str>>,
    out: BytesMut,
    /// The cell of the current row that was written last, and the one that waits.
    last: Option<usize>,
    waiting: Option<Picked>,
    /// Bytes of a response from which on it is sent, at the end of a row and within one.
    full: usize,
    full_in_row: usize,
    most_value: usize,
}

/// What a chunk says of its cell.
#[derive(Default)]
struct Chunk<'a> {
    key: Option<&'a [u8]>,
    family: Option<&'a str>,
    qualifier: Option<&'a [u8]>,
    timestamp: i64,
    label: Option<&'a str>,
    value: &'a [u8],
    /// Of all of a value, of which others follow.
    value_size: usize,
    commits: bool,
}

impl ChunkWriter {
    /// A writer of cells with these labels, by number.
    pub(crate) fn new(labels: Vec<Arc<str>>) -> Self {
        let out = BytesMut::new();
        Self { labels, out, last: None, waiting: None, full: FULL, full_in_row: FULL_IN_ROW, most_value: MOST_VALUE }
    }

    /// The same with other sizes, for tests.
    #[cfg(test)]
    pub(crate) fn with_sizes(self, full: usize, full_in_row: usize, most_value: usize) -> Self {
        Self { full, full_in_row, most_value, ..self }
    }

    /// Appends cells of a row of a batch, which goes on; each full response goes to `send`, which returns false to stop.
    pub(crate) fn cells(
        &mut self,
        batch: &CellBatch,
        row: usize,
        cells: impl IntoIterator<Item = Picked>,
        send: &mut dyn FnMut(EncodedRows) -> bool,
    ) -> bool {
        for picked in cells {
            for _ in 0..picked.copies {
                let Some(before) = self.waiting.replace(picked) else { continue };
                self.cell(batch, row, before, false);
                if !self.send_from(self.full_in_row, send) {
                    return false;
                }
            }
        }
        true
    }

    /// Ends a row, if it has a cell.
    pub(crate) fn end_row(&mut self, batch: &CellBatch, row: usize, send: &mut dyn FnMut(EncodedRows) -> bool) -> bool {
        let Some(last) = self.waiting.take() else { return true };
        self.cell(batch, row, last, true);
        self.last = None;
        self.send_from(self.full, send)
    }

    /// Writes the chunks of a cell; the last of them commits the row if the cell `is_last`.
    fn cell(&mut self, batch: &CellBatch, row: usize, picked: Picked, is_last: bool) {
        let cell = picked.cell as usize;
        let columns = batch.column_of();
        let is_same_column = self.last.is_some_and(|last| columns.get(last) == columns.get(cell));
        let family = batch.family(cell);
        let is_same_family = is_same_column || self.last.is_some_and(|last| batch.family(last) == family);

        let value = if picked.stripped { &[] } else { batch.value(cell) };
        let mut pieces = value.chunks(self.most_value.max(1));
        let first = pieces.next().unwrap_or_default();
        let label = picked.label.and_then(|label| self.labels.get(usize::from(label)).cloned());
        let mut rest = value.len() - first.len();
        self.chunk(&Chunk {
            key: (self.last.is_none() || self.out.is_empty()).then(|| batch.key(row)),
            family: (!is_same_family).then_some(family),
            qualifier: (!is_same_column).then(|| batch.qualifier(cell).as_ref()),
            timestamp: batch.timestamp(cell),
            label: label.as_deref(),
            value: first,
            value_size: if rest > 0 { value.len() } else { 0 },
            commits: is_last && rest == 0,
        });

        for piece in pieces {
            rest -= piece.len();
            let value_size = if rest > 0 { value.len() } else { 0 };
            let commits = is_last && rest == 0;
            self.chunk(&Chunk { value: piece, value_size, commits, ..Chunk::default() });
        }

        self.last = Some(cell);
    }

    /// Sends the response if it has so many bytes; false to stop.
    fn send_from(&mut self, full: usize, send: &mut dyn FnMut(EncodedRows) -> bool) -> bool {
        self.out.len() < full || self.take().is_none_or(&mut *send)
    }

    /// The chunks that are not sent yet.
    pub(crate) fn take(&mut self) -> Option<EncodedRows> {
        (!self.out.is_empty()).then(|| EncodedRows(self.out.split().freeze()))
    }

    /// Appends a chunk to the response.
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        let len = chunk.encoded_len();
        let out = &mut self.out;
        out.reserve(len + 8);
        out.put_u8(CHUNKS);
        encode_varint(len as u64, out);

        if let Some(key) = chunk.key {
            put(KEY, key, out);
        }
        if let Some(family) = chunk.family {
            put_wrapped(FAMILY, family.as_bytes(), out);
        }
        if let Some(qualifier) = chunk.qualifier {
            put_wrapped(QUALIFIER, qualifier, out);
        }
        put_number(TIMESTAMP, chunk.timestamp.cast_unsigned(), out);
        if let Some(label) = chunk.label {
            put(LABEL, label.as_bytes(), out);
        }
        put(VALUE, chunk.value, out);
        put_number(VALUE_SIZE, chunk.value_size as u64, out);
        put_number(COMMIT, u64::from(chunk.commits), out);
    }
}

impl Chunk<'_> {
    /// Bytes of its fields.
    fn encoded_len(&self) -> usize {
        self.key.map_or(0, |key| some_len(key.len()))
            + self.family.map_or(0, |family| field_len(some_len(family.len())))
            + self.qualifier.map_or(0, |qualifier| field_len(some_len(qualifier.len())))
            + number_len(self.timestamp.cast_unsigned())
            + self.label.map_or(0, |label| field_len(label.len()))
            + some_len(self.value.len())
            + number_len(self.value_size as u64)
            + if self.commits { 2 } else { 0 }
    }
}

/// Bytes of a field of so many bytes.
fn field_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

/// Bytes of a field of so many bytes that is left out if there are none.
fn some_len(len: usize) -> usize {
    if len == 0 { 0 } else { field_len(len) }
}

/// Bytes of a field with a number that is left out if it is 0.
fn number_len(number: u64) -> usize {
    if number == 0 { 0 } else { 1 + encoded_len_varint(number) }
}

/// A field of bytes, left out if there are none.
fn put(tag: u8, bytes: &[u8], out: &mut BytesMut) {
    if !bytes.is_empty() {
        out.put_u8(tag);
        encode_varint(bytes.len() as u64, out);
        out.put_slice(bytes);
    }
}

/// A field that is there even if it is empty.
fn put_wrapped(tag: u8, bytes: &[u8], out: &mut BytesMut) {
    out.put_u8(tag);
    encode_varint(some_len(bytes.len()) as u64, out);
    put(WRAPPED, bytes, out);
}

fn put_number(tag: u8, number: u64, out: &mut BytesMut) {
    if number != 0 {
        out.put_u8(tag);
        encode_varint(number, out);
    }
}

/// A response that says how far a scan has come.
pub(crate) fn last_scanned(key: &[u8]) -> EncodedRows {
    let mut out = BytesMut::with_capacity(key.len() + 8);
    put(LAST_SCANNED, key, &mut out);
    EncodedRows(out.freeze())
}

/// A response with statistics.
pub(crate) fn stats(stats: &RequestStats) -> EncodedRows {
    let bytes: Bytes = stats.encode_to_vec().into();
    let mut out = BytesMut::with_capacity(bytes.len() + 8);
    put(STATS, &bytes, &mut out);
    EncodedRows(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{CellBatchBuilder, ColumnId};
    use crate::proto::data::ReadRowsResponse;
    use crate::proto::data::read_rows_response::{CellChunk, cell_chunk};

    fn batch() -> CellBatch {
        let column = |family: &str, qualifier: &str| ColumnId {
            family: family.into(),
            qualifier: Bytes::copy_from_slice(qualifier.as_bytes()),
        };
        let columns = [column("f", ""), column("f", "q"), column("g", "q")];
        let mut builder = CellBatchBuilder::new(columns.into());
        let mut cell = |column, timestamp, value: &str| {
            builder.cell(column, timestamp, |out| out.extend_from_slice(value.as_bytes()));
        };
        cell(0, 2_000, "0123456789");
        cell(0, 1_000, "");
        cell(1, 0, "abc");
        cell(2, -1, "abcd");
        builder.end_row(|out| out.extend_from_slice(b"row"));
        builder.finish()
    }

    fn chunks(full: usize, most_value: usize, cells: &[Picked]) -> (Vec<CellChunk>, usize) {
        let mut writer = ChunkWriter::new(vec!["one".into()]).with_sizes(full, full, most_value);
        let mut sent = Vec::new();
        let mut send = |rows| {
            sent.push(rows);
            true
        };
        assert!(writer.cells(&batch(), 0, cells.iter().copied(), &mut send));
        assert!(writer.end_row(&batch(), 0, &mut send));
        sent.extend(writer.take());
        let decoded = sent.iter().map(|rows| ReadRowsResponse::decode(rows.0.clone()).unwrap());
        (decoded.flat_map(|response| response.chunks).collect(), sent.len())
    }

    #[test]
    fn chunks_say_what_has_changed() {
        let (found, responses) = chunks(1 << 20, 1 << 20, &[0, 1, 2, 3].map(Picked::one));
        let commit = Some(cell_chunk::RowStatus::CommitRow(true));
        let expected = vec![
            CellChunk {
                row_key: "row".into(),
                family_name: Some("f".to_owned()),
                qualifier: Some(Vec::new()),
                timestamp_micros: 2_000,
                value: "0123456789".into(),
                ..CellChunk::default()
            },
            CellChunk { timestamp_micros: 1_000, ..CellChunk::default() },
            CellChunk { qualifier: Some(b"q".to_vec()), value: "abc".into(), ..CellChunk::default() },
            CellChunk {
                family_name: Some("g".to_owned()),
                qualifier: Some(b"q".to_vec()),
                timestamp_micros: -1,
                value: "abcd".into(),
                row_status: commit,
                ..CellChunk::default()
            },
        ];
        assert_eq!((found, responses), (expected, 1));
    }

    #[test]
    fn large_values_are_split() {
        let (found, responses) = chunks(1, 4, &[0, 3].map(Picked::one));
        assert_eq!(responses, 2, "a value is in one response");
        let sizes: Vec<(usize, i32)> = found.iter().map(|chunk| (chunk.value.len(), chunk.value_size)).collect();
        assert_eq!(sizes, [(4, 10), (4, 10), (2, 0), (4, 0)]);
        assert!(found[1].qualifier.is_none() && found[1].timestamp_micros == 0 && found[3].row_status.is_some());
        // The second response begins within the row, and says of which.
        let keys: Vec<&[u8]> = found.iter().map(|chunk| chunk.row_key.as_ref()).collect();
        assert_eq!(keys, [&b"row"[..], b"", b"", b"row"]);
    }

    #[test]
    fn responses_end_with_rows() {
        let mut writer = ChunkWriter::new(Vec::new());
        writer.full = 1;
        let mut sent = Vec::new();
        let mut send = |rows| {
            sent.push(rows);
            true
        };
        for _ in 0..3 {
            assert!(writer.cells(&batch(), 0, [0, 1, 2, 3].map(Picked::one), &mut send));
            assert!(writer.end_row(&batch(), 0, &mut send));
        }
        assert_eq!(sent.len(), 3);
        for rows in sent {
            let chunks = ReadRowsResponse::decode(rows.0).unwrap().chunks;
            assert!(chunks[0].row_key == "row" && chunks[3].row_status.is_some());
        }
    }

    #[test]
    fn labels_and_empty_values_are_written() {
        let one = Picked { cell: 2, label: Some(0), stripped: true, copies: 3 };
        let (found, _) = chunks(1, 1, &[one]);
        assert_eq!(found.len(), 3);
        for (at, chunk) in found.iter().enumerate() {
            assert_eq!((chunk.labels.as_slice(), chunk.value.len()), (&["one".to_owned()][..], 0));
            // Each is in a response of its own.
            assert_eq!((chunk.row_key.as_ref(), chunk.row_status.is_some()), (&b"row"[..], at == 2));
        }
    }

    #[test]
    fn other_responses_can_be_read() {
        let response = ReadRowsResponse::decode(last_scanned(b"key").0).unwrap();
        assert_eq!(response.last_scanned_row_key, "key");
        let response = ReadRowsResponse::decode(stats(&RequestStats::default()).0).unwrap();
        assert_eq!(response.request_stats, None);
    }
}
