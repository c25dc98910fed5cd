//! The responses of an executed query: rows as serialized values, in batches with checksums and places to resume at.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use bytes::{Bytes, BytesMut};
use prost::Message;

use crate::proto::data::execute_query_response::Response;
use crate::proto::data::partial_result_set::PartialRows;
use crate::proto::data::{ExecuteQueryResponse, PartialResultSet, ProtoRows, ProtoRowsBatch, ResultSetMetadata, Value};
use crate::serve::query::types::normal;
use crate::serve::query::values::value;

/// Bytes at which a batch of rows is full.
const FULL: usize = 256 << 10;
/// Bytes of a batch in one response; a row may be larger.
const MOST: usize = 1 << 20;

/// The response with the columns.
pub(super) fn columns(metadata: ResultSetMetadata) -> ExecuteQueryResponse {
    ExecuteQueryResponse { response: Some(Response::Metadata(metadata)) }
}

/// A place in a result, without rows.
pub(super) fn place(resume_token: Bytes) -> ExecuteQueryResponse {
    results(PartialResultSet { resume_token, ..PartialResultSet::default() })
}

fn results(results: PartialResultSet) -> ExecuteQueryResponse {
    ExecuteQueryResponse { response: Some(Response::Results(results)) }
}

/// The columns of a batch in the types that Bigtable has.
///
/// # Errors
/// If a value cannot be converted, such as an integer that exceeds 64 bits.
pub(super) fn converted(batch: &RecordBatch) -> Result<Vec<ArrayRef>, arrow::error::ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut columns = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let kind = normal(column.data_type());
        let is_normal = kind == *column.data_type();
        columns.push(if is_normal { ArrayRef::clone(column) } else { cast_with_options(column, &kind, &options)? });
    }
    Ok(columns)
}

/// The serialized rows from `row` on, as many as a batch takes, and the row after them.
pub(super) fn rows(columns: &[ArrayRef], mut row: usize, end: usize) -> (Bytes, usize) {
    let mut out = BytesMut::new();
    while row < end && out.len() < FULL {
        let values: Vec<Value> = columns.iter().map(|column| value(column.as_ref() as &dyn Array, row)).collect();
        // Serialized messages with repeated fields can be concatenated. Writing to memory does not fail.
        let _ = ProtoRows { values }.encode(&mut out);
        row += 1;
    }
    (out.freeze(), row)
}

/// The responses that hold a batch, in pieces; the last has checksum and place.
pub(super) fn batch(data: &Bytes, resume_token: Bytes) -> Vec<ExecuteQueryResponse> {
    let pieces = data.len().div_ceil(MOST).max(1);
    let responses = (0..pieces).map(|at| {
        let batch_data = data.slice(at * MOST..data.len().min((at + 1) * MOST));
        let is_last = at + 1 == pieces;
        results(PartialResultSet {
            batch_checksum: is_last.then(|| crc32c::crc32c(data)),
            resume_token: if is_last { resume_token.clone() } else { Bytes::new() },
            // No estimate of the size of the batch: the Node client takes it for the place of a buffered batch, and fails.
            partial_rows: Some(PartialRows::ProtoRowsBatch(ProtoRowsBatch { batch_data })),
            ..PartialResultSet::default()
        })
    });
    responses.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BinaryArray, UInt64Array};

    use super::*;

    #[test]
    fn batches_are_cut_and_have_a_checksum() {
        let large = vec![7_u8; FULL];
        let keys: ArrayRef = Arc::new(BinaryArray::from_iter_values([&large[..], b"small", b"", &large]));
        let (first, row) = rows(&[Arc::clone(&keys)], 0, 4);
        assert_eq!(row, 1);
        let (second, row) = rows(&[keys], row, 4);
        assert_eq!(row, 4);
        let values = ProtoRows::decode(second.clone()).unwrap().values;
        assert_eq!(values.len(), 3);
        let responses = batch(&[first, second].concat().into(), Bytes::from("here"));
        let Some(Response::Results(only)) = &responses[0].response else { panic!("no results") };
        assert!(responses.len() == 1 && only.batch_checksum.is_some() && only.resume_token == "here");
    }

    #[test]
    fn large_batches_come_in_pieces() {
        let data: Bytes = vec![1_u8; 2 * MOST + 1].into();
        let mut joined = Vec::new();
        let responses = batch(&data, Bytes::from("t"));
        for (at, response) in responses.iter().enumerate() {
            let Some(Response::Results(results)) = &response.response else { panic!("no results") };
            assert_eq!((results.batch_checksum.is_some(), results.resume_token.len()), (at == 2, usize::from(at == 2)));
            let Some(PartialRows::ProtoRowsBatch(rows)) = &results.partial_rows else { panic!("no rows") };
            joined.extend_from_slice(&rows.batch_data);
        }
        assert_eq!((responses.len(), joined), (3, data.to_vec()));
    }

    #[test]
    fn integers_that_exceed_64_bits_are_errors() {
        let column: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        assert!(converted(&batch).is_err());
    }
}
