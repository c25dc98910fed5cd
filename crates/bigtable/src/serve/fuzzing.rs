//! Arbitrary requests, for a fuzz target: none may panic, and what is answered can be read.

use bytes::Bytes;
use prost::Message;

use crate::cells::{CellBatch, CellBatchBuilder, ColumnId};
use crate::proto::data::{ExecuteQueryRequest, PrepareQueryRequest, ReadRowsRequest, ReadRowsResponse};
use crate::serve::filter::{Evaluator, Picked, PickedRows, Wanted};
use crate::serve::query::check_execute;
use crate::serve::rows::{ChunkWriter, EncodedRows, RowsPlan};

/// Bytes that a request may hold.
const MEMORY: usize = 1 << 20;
/// Responses that are read of an answer.
const RESPONSES: usize = 16;

/// A few rows of two families, with several versions and all kinds of values.
fn rows() -> CellBatch {
    let columns: [(&str, &'static [u8]); 4] = [("f", b""), ("f", b"q"), ("g", b"\xff\n"), ("g", b"q")];
    let columns =
        columns.map(|(family, qualifier)| ColumnId { family: family.into(), qualifier: Bytes::from_static(qualifier) });
    let mut builder = CellBatchBuilder::new(columns.into());
    for row in 0..8_u8 {
        for cell in 0..=row {
            builder.cell(u32::from(cell % 4), 4 - i64::from(cell / 4), |out| out.resize(usize::from(cell), cell));
        }
        builder.end_row(|out| out.extend_from_slice(&[b'r', row]));
    }
    builder.finish()
}

/// Reads `bytes` as a request of each kind. Returns false if an answer cannot be read.
pub fn request(bytes: &[u8]) -> bool {
    if let Ok(request) = PrepareQueryRequest::decode(bytes) {
        let _ = request.encoded_len();
    }
    if let Ok(request) = ExecuteQueryRequest::decode(bytes) {
        check_execute(&request);
    }

    let Ok(request) = ReadRowsRequest::decode(bytes) else { return true };
    let Ok(plan) = RowsPlan::new(&request, true, MEMORY) else { return true };
    let Some(filter) = &plan.filter else { return true };
    let wanted = Wanted::of(&filter.root);
    if let Some(columns) = wanted.columns() {
        columns("f", None);
        columns("g", Some(b"q"));
    }

    let batch = rows();
    let mut answer =
        Answer { batch: &batch, writer: ChunkWriter::new(filter.labels.clone()), left: RESPONSES, is_readable: true };
    Evaluator::new(filter, MEMORY).run(&batch, &mut answer);
    let rest = answer.writer.take();
    answer.is_readable && rest.is_none_or(|rows| ReadRowsResponse::decode(rows.0).is_ok())
}

/// An answer of which the first responses are read: a filter may multiply cells without end.
struct Answer<'a> {
    batch: &'a CellBatch,
    writer: ChunkWriter,
    left: usize,
    is_readable: bool,
}

impl PickedRows for Answer<'_> {
    fn goes_on(&mut self) -> bool {
        true
    }

    fn cells(&mut self, row: usize, picked: &[Picked], ends: bool) -> bool {
        let Self { batch, writer, left, is_readable } = self;
        let mut read = |rows: EncodedRows| {
            *is_readable &= ReadRowsResponse::decode(rows.0).is_ok();
            *left -= 1;
            *left > 0
        };
        writer.cells(batch, row, picked.iter().copied(), &mut read) && (!ends || writer.end_row(batch, row, &mut read))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn seeds() -> Vec<Vec<u8>> {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/request");
        std::fs::read_dir(seeds).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    #[test]
    fn seeds_are_answered() {
        let seeds = seeds();
        assert!(seeds.len() > 20);
        assert!(seeds.iter().all(|seed| request(seed)));
    }

    proptest! {
        #[test]
        fn damaged_requests_are_refused_or_answered(
            seed in 0..26_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let seeds = seeds();
            let mut bytes = seeds[seed % seeds.len()].clone();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            prop_assert!(request(&bytes));
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(request(&bytes));
        }
    }
}
