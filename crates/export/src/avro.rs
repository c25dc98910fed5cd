//! Avro object container files, as they are written. A caller knows the schema of the records that it encodes.
//!
//! ```text
//! "Obj" 1, header: map of bytes (avro.schema, avro.codec, ..), 16 bytes that mark the end of a block,
//! then blocks: number of records, length, records (deflated), the same 16 bytes
//! ```

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::Value;

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8] = b"Obj\x01";
/// The names of the schema and the compression in the header.
pub(crate) const SCHEMA: &str = "avro.schema";
pub(crate) const CODEC: &str = "avro.codec";

/// Bytes that mark the end of each block of a file.
pub(crate) type Mark = [u8; 16];

/// Writes values one after the other.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// What was written so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends values that are encoded already.
    pub(crate) fn encoded(&mut self, values: &[u8]) {
        self.bytes.extend_from_slice(values);
    }

    /// An `int` or a `long`.
    pub(crate) fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.long(value.len() as i64);
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// A union of null and another type.
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.long(i64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// An array.
    pub(crate) fn array<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        if items.len() > 0 {
            self.long(items.len() as i64);
            items.for_each(|item| write(self, item));
        }
        self.long(0);
    }
}

/// The header of a file of records of `schema`, with these pairs beside it.
pub(crate) fn header(schema: &Value, pairs: &[(&str, String)], mark: &Mark) -> Vec<u8> {
    let mut all = vec![(SCHEMA, schema.to_string()), (CODEC, "deflate".to_owned())];
    all.extend(pairs.iter().cloned());
    let mut file = Encoder { bytes: MAGIC.to_vec() };
    file.array(all.iter(), |file, (key, value)| {
        file.text(key);
        file.text(value);
    });
    file.encoded(mark);
    file.bytes
}

/// The content of a block as it is stored.
pub(crate) fn packed(records: &Encoder) -> Vec<u8> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    match deflated.write_all(&records.bytes) {
        Ok(()) => deflated.finish().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// A block of `count` records, at least one, whose content is `packed`.
pub(crate) fn block(count: usize, packed: &[u8], mark: &Mark) -> Vec<u8> {
    let mut block = Encoder::default();
    block.long(count as i64);
    block.bytes(packed);
    block.encoded(mark);
    block.bytes
}
