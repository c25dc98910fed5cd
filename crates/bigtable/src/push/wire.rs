//! Bytes of MutateRows requests, written as cells arrive.
//!
//! ```text
//! MutateRowsRequest  1 table  2 entry*  3 app profile
//! Entry              1 row key  2 mutation*  3 idempotency
//! Mutation           1 set  2 delete from column          (or 6 merge, see `merge`)
//! SetCell            1 family  2 qualifier  3 timestamp  4 value
//! DeleteFromColumn   1 family  2 qualifier  3 range { 1 start  2 end }
//! ```
//! A cell costs no allocation: an entry is written once, and sent again from the same bytes.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

/// Bytes of a length-delimited field.
fn field_len(tag: u32, len: usize) -> usize {
    key_len(tag) + encoded_len_varint(len as u64) + len
}

/// Bytes of a length-delimited field that is left out if it is empty, as the language does.
fn some_len(tag: u32, len: usize) -> usize {
    if len == 0 { 0 } else { field_len(tag, len) }
}

fn put_bytes(tag: u32, bytes: &[u8], out: &mut BytesMut) {
    put_head(tag, bytes.len(), out);
    out.put_slice(bytes);
}

fn put_head(tag: u32, len: usize, out: &mut BytesMut) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(len as u64, out);
}

/// Bytes of a number, which is left out if it is 0, as the language does.
fn number_len(tag: u32, number: i64) -> usize {
    if number == 0 { 0 } else { key_len(tag) + encoded_len_varint(number.cast_unsigned()) }
}

fn put_number(tag: u32, number: i64, out: &mut BytesMut) {
    if number != 0 {
        encode_key(tag, WireType::Varint, out);
        encode_varint(number.cast_unsigned(), out);
    }
}

/// Appends a mutation that writes a cell.
pub(crate) fn put_set_cell(family: &str, qualifier: &[u8], timestamp: i64, value: &[u8], out: &mut BytesMut) {
    let names_len = field_len(1, family.len()) + some_len(2, qualifier.len());
    let inner = names_len + number_len(3, timestamp) + some_len(4, value.len());
    put_head(2, field_len(1, inner), out);
    put_head(1, inner, out);
    put_bytes(1, family.as_bytes(), out);
    if !qualifier.is_empty() {
        put_bytes(2, qualifier, out);
    }
    put_number(3, timestamp, out);
    if !value.is_empty() {
        put_bytes(4, value, out);
    }
}

/// Appends a mutation that deletes the cells of a column whose timestamps are within `times`, microseconds.
pub(crate) fn put_delete_cell(family: &str, qualifier: &[u8], times: Range<i64>, out: &mut BytesMut) {
    let range = number_len(1, times.start) + number_len(2, times.end);
    let inner = field_len(1, family.len()) + some_len(2, qualifier.len()) + field_len(3, range);
    put_head(2, field_len(2, inner), out);
    put_head(2, inner, out);
    put_bytes(1, family.as_bytes(), out);
    if !qualifier.is_empty() {
        put_bytes(2, qualifier, out);
    }
    put_head(3, range, out);
    put_number(1, times.start, out);
    put_number(2, times.end, out);
}

/// Appends the entry of a row with these mutations, as a field of the request.
pub(crate) fn put_entry(key: &[u8], mutations: &[u8], out: &mut BytesMut) {
    put_head(2, field_len(1, key.len()) + mutations.len(), out);
    put_bytes(1, key, out);
    out.put_slice(mutations);
}

/// Appends an encoded entry as a field of the request.
pub(crate) fn put_encoded_entry(entry: &[u8], out: &mut BytesMut) {
    put_bytes(2, entry, out);
}

/// The fields of a request before its entries.
pub(crate) fn request_head(table: &str, app_profile: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_bytes(1, table.as_bytes(), &mut out);
    if !app_profile.is_empty() {
        put_bytes(3, app_profile.as_bytes(), &mut out);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::proto::data::mutate_rows_request::Entry;
    use crate::proto::data::mutation::{DeleteFromColumn, Mutation as Kind, SetCell};
    use crate::proto::data::{MutateRowsRequest, Mutation, TimestampRange};

    type Given = (bool, String, Vec<u8>, i64, Vec<u8>);

    proptest! {
        #[test]
        fn requests_are_those_of_the_messages(
            rows in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 1..40), prop::collection::vec(any::<Given>(), 1..5)), 0..4),
            profile in "[a-z]{0,3}",
        ) {
            let mut out = BytesMut::from(&*request_head("t", &profile));
            let mut entries = Vec::new();
            for (key, cells) in &rows {
                let mut body = BytesMut::new();
                let mut mutations = Vec::new();
                for (sets, family, qualifier, timestamp, value) in cells {
                    let (family_name, column_qualifier) = (format!("f{family}"), Bytes::copy_from_slice(qualifier));
                    let end = timestamp.saturating_add(1000);
                    let kind = if *sets {
                        put_set_cell(&family_name, qualifier, *timestamp, value, &mut body);
                        let value = Bytes::copy_from_slice(value);
                        Kind::SetCell(SetCell { family_name, column_qualifier, timestamp_micros: *timestamp, value })
                    } else {
                        put_delete_cell(&family_name, qualifier, *timestamp..end, &mut body);
                        let range = TimestampRange { start_timestamp_micros: *timestamp, end_timestamp_micros: end };
                        Kind::DeleteFromColumn(DeleteFromColumn { family_name, column_qualifier, time_range: Some(range) })
                    };
                    mutations.push(Mutation { mutation: Some(kind) });
                }
                put_entry(key, &body, &mut out);
                entries.push(Entry { row_key: Bytes::copy_from_slice(key), mutations, idempotency: None });
            }
            let expected = MutateRowsRequest {
                table_name: "t".to_owned(), app_profile_id: profile, entries, ..MutateRowsRequest::default()
            };
            prop_assert_eq!(MutateRowsRequest::decode(out.freeze()).unwrap(), expected);
        }
    }
}
