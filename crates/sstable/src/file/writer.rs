//! The writer of a file: stripes as they come, then the parts that are known at the end.

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

/// Writes one file from front to back, without seeking. After an error the output is unusable.
pub struct Writer<W: Write> {
    out: W,
    /// The hash of all bytes written so far.
    hash: Xxh3Default,
    /// The number of bytes written so far.
    at: u64,
    uid: u128,
    schema_hash: u64,
    meta: Meta,
    filter: filter::Builder,
}

impl<W: Write> Writer<W> {
    /// Starts a file of `schema`. `metadata` is attached to it, see [`crate::Reader::metadata`].
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

    /// The number of bytes written so far; before [`Self::finish`] the file is not complete.
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
        let mut summary = self.summary();

        let filter = std::mem::replace(&mut self.filter, filter::Builder::new());
        let (kind, bytes) = filter.finish(summary.rows);
        let checksum = checksum::in_file(self.uid, self.at, &bytes);
        self.meta.filter = FilterRef { kind, offset: self.at, len: bytes.len() as u64, checksum };
        self.put(&bytes)?;

        let meta = self.meta.encode()?;
        summary.meta_offset = self.at;
        let meta_checksum = checksum::in_file(self.uid, self.at, &meta);
        self.put(&meta)?;

        summary.bytes = self.at + FOOTER_LEN as u64;
        let footer = Footer {
            meta_offset: summary.meta_offset,
            file_len: summary.bytes,
            meta_checksum,
            uid: self.uid,
            version: VERSION,
        };
        self.put(&footer.encode())?;
        self.out.flush()?;
        summary.checksum = self.hash.digest128();
        Ok((self.out, summary))
    }

    /// The summary as far as stripes tell; length, checksum and the offset of meta are 0.
    fn summary(&self) -> FileSummary {
        let stripes = &self.meta.stripes;
        FileSummary {
            uid: self.uid,
            bytes: 0,
            checksum: 0,
            rows: stripes.iter().map(|stripe| stripe.rows).sum(),
            cells: stripes.iter().map(|stripe| stripe.cells).sum(),
            records: stripes.iter().flat_map(|stripe| &stripe.records).sum(),
            stripes: stripes.len() as u64,
            first_key: stripes.first().map(|stripe| stripe.first_key.to_vec()).unwrap_or_default(),
            last_key: stripes.last().map(|stripe| stripe.last_key.to_vec()).unwrap_or_default(),
            min_timestamp: stripes.iter().filter_map(|stripe| stripe.timestamps).map(|times| times.0).min(),
            max_timestamp: stripes.iter().filter_map(|stripe| stripe.timestamps).map(|times| times.1).max(),
            meta_offset: 0,
        }
    }

    /// Appends `bytes` to the output and to its hash.
    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(bytes)?;
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }
}
