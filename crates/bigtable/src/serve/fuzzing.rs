//! Arbitrary requests, for a fuzz target: none may panic, and what is answered can be read.

use bytes::Bytes;
use prost::Message;

use crate::cells::{CellBatch, CellBatchBuilder, ColumnId};
use crate::proto::data::{ExecuteQueryRequest, PrepareQueryRequest, ReadRowsRequest, ReadRowsResponse};
use crate::serve::filter::{Evaluator, Wanted};
use crate::serve::query::check_execute;
use crate::serve::rows::{ChunkWriter, RowsPlan};

/// A few rows of two families, with several versions and all kinds of values.
fn rows() -> CellBatch {
    let column = |family: &str, qualifier: &'static [u8]| ColumnId {
        family: family.into(),
        qualifier: Bytes::from_static(qualifier),
    };
    let columns = [column("f", b""), column("f", b"q"), column("g", b"\xff\n"), column("g", b"q")];
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
    let Ok(plan) = RowsPlan::new(&request, true) else { return true };
    let Some(filter) = &plan.filter else { return true };
    let wanted = Wanted::of(filter);
    if let Some(columns) = wanted.columns() {
        columns("f", None);
        columns("g", Some(b"q"));
    }
    let batch = rows();
    let picks = Evaluator::new(filter).picks(&batch);
    let mut writer = ChunkWriter::new(plan.labels.clone());
    let mut is_readable = true;
    let mut read = |rows: crate::serve::EncodedRows| {
        is_readable &= ReadRowsResponse::decode(rows.0).is_ok();
        true
    };
    for row in 0..batch.rows() {
        writer.row(&batch, row, picks.row(row).iter().copied(), &mut read);
    }
    writer.take().is_none_or(read) && is_readable
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
