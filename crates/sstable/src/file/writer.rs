//! The writer of a file.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use tidetable_layout::StoredSchema;
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::WriteError;
use crate::file::footer::Footer;
use crate::file::meta::{FilterRef, Meta};
use crate::file::summary::FileSummary;
use crate::file::{filter, header};
use crate::format::{FOOTER_LEN, HEADER_LEN, VERSION};
use crate::io::checksum;
use crate::options::WriteOptions;
use crate::stripe::{EncodedStripe, schema_hash};

/// Writes one file sequentially. After an error the output is unusable.
pub struct Writer<W: Write> {
    out: W,
    hash: Xxh3Default,
    at: u64,
    uid: u128,
    schema_hash: u64,
    meta: Meta,
    filter: filter::Builder,
}

impl<W: Write> Writer<W> {
    /// Starts a file of `schema` with this metadata.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(
        out: W,
        schema: Arc<StoredSchema>,
        options: WriteOptions,
        metadata: BTreeMap<String, String>,
    ) -> Result<Self, WriteError> {
        let mut writer = Self {
            out,
            hash: Xxh3Default::new(),
            at: 0,
            uid: options.uid,
            schema_hash: schema_hash(&schema)?,
            meta: Meta { schema, metadata, filter: FilterRef::default(), stripes: Vec::new() },
            filter: filter::Builder::new(),
        };
        writer.put(&header::encode(options.uid))?;
        debug_assert_eq!(writer.at, HEADER_LEN as u64);
        Ok(writer)
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Appends a stripe.
    ///
    /// # Errors
    /// If its first key is not greater than the last key so far, if it is of another schema, or if the output fails.
    pub fn push(&mut self, stripe: EncodedStripe) -> Result<(), WriteError> {
        let ordinal = self.meta.stripes.len();
        if stripe.schema != self.schema_hash {
            return Err(WriteError::OtherSchema { stripe: ordinal });
        }
        if self.meta.stripes.last().is_some_and(|last| last.last_key >= stripe.meta.first_key) {
            return Err(WriteError::UnsortedStripes { stripe: ordinal });
        }
        let mut meta = stripe.meta;
        meta.offset = self.at;
        meta.head_checksum = checksum::in_file(self.uid, self.at, &stripe.head);
        self.put(&stripe.head)?;
        self.put(&stripe.pages)?;
        self.meta.stripes.push(meta);
        self.filter.add(stripe.hashes);
        Ok(())
    }

    /// Writes filter, meta and footer, and flushes. The caller syncs the file.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> Result<(W, FileSummary), WriteError> {
        if self.meta.stripes.len() > 1 && crate::failpoint!(LoseLastStripe) {
            self.meta.stripes.pop();
        }
        let stripes = &self.meta.stripes;
        let rows = stripes.iter().map(|stripe| stripe.rows).sum();
        let cells = stripes.iter().map(|stripe| stripe.cells).sum();
        let records = stripes.iter().flat_map(|stripe| &stripe.records).sum();
        let times = || stripes.iter().filter_map(|stripe| stripe.timestamps);
        let (min_timestamp, max_timestamp) = (times().map(|time| time.0).min(), times().map(|time| time.1).max());
        let first_key = stripes.first().map(|stripe| stripe.first_key.to_vec()).unwrap_or_default();
        let last_key = stripes.last().map(|stripe| stripe.last_key.to_vec()).unwrap_or_default();
        let stripes = stripes.len() as u64;

        let (kind, bytes) = std::mem::replace(&mut self.filter, filter::Builder::new()).finish(rows);
        let checksum = checksum::in_file(self.uid, self.at, &bytes);
        self.meta.filter = FilterRef { kind, offset: self.at, len: bytes.len() as u64, checksum };
        self.put(&bytes)?;
        let (meta, meta_offset) = (self.meta.encode()?, self.at);
        let meta_checksum = checksum::in_file(self.uid, meta_offset, &meta);
        self.put(&meta)?;
        let file_len = self.at + FOOTER_LEN as u64;
        self.put(&Footer { meta_offset, file_len, meta_checksum, uid: self.uid, version: VERSION }.encode())?;
        self.out.flush()?;
        let summary = FileSummary {
            uid: self.uid,
            bytes: file_len,
            checksum: self.hash.digest128(),
            rows,
            cells,
            records,
            stripes,
            first_key,
            last_key,
            min_timestamp,
            max_timestamp,
            meta_offset,
        };
        Ok((self.out, summary))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(bytes)?;
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }
}
