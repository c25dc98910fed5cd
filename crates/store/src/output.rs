//! An SST that is being written.

use std::io::Write;
use std::sync::Arc;

use tidetable_layout::StoredSchema;
use tidetable_sstable::{EncodedStripe, WriteError, WriteOptions, Writer};

use crate::blobs::BlobWriter;
use crate::error::{Result, StoreError};
use crate::ids::ulid_text;
use crate::table::Table;
use crate::version::Sst;

/// Bytes after which a new SST is begun.
pub(crate) const SST_BYTES: u64 = 256 << 20;

/// An SST that is being written. Nothing of it is there until [`SstFile::end`].
pub(crate) struct SstFile<'a> {
    table: &'a Table,
    id: String,
    writer: Writer<Box<dyn BlobWriter>>,
    bytes: u64,
}

impl<'a> SstFile<'a> {
    pub(crate) fn begin(table: &'a Table, schema: &Arc<StoredSchema>, options: &WriteOptions) -> Result<Self> {
        Self::begin_with(table, schema, options, None)
    }

    /// Begins a file that also says `more` (name, text) of itself.
    pub(crate) fn begin_with(
        table: &'a Table,
        schema: &Arc<StoredSchema>,
        options: &WriteOptions,
        more: Option<(String, String)>,
    ) -> Result<Self> {
        let id = ulid_text(options.uid);
        let out = table.blobs().writer(&table.sst_path(&id))?;
        let metadata = [("table".to_owned(), table.name().to_owned())].into_iter().chain(more).collect();
        let writer = Writer::new(out, Arc::clone(schema), options.clone(), metadata)
            .map_err(|source| write_error(table, source))?;
        Ok(Self { table, id, writer, bytes: 0 })
    }

    /// Whether it has grown enough.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= SST_BYTES
    }

    /// Whether the whole file stays within the limit with this stripe.
    pub(crate) fn takes(&self, stripe: &EncodedStripe) -> bool {
        self.bytes == 0 || self.bytes + size(stripe) <= SST_BYTES
    }

    pub(crate) fn push(&mut self, stripe: EncodedStripe) -> Result<()> {
        self.bytes += size(&stripe);
        self.writer.push(stripe).map_err(|source| write_error(self.table, source))
    }

    /// `None` if it would hold no row; then the file is dropped. The order is the commit's to set.
    pub(crate) fn end(self) -> Result<Option<Sst>> {
        let (mut out, summary) = self.writer.finish().map_err(|source| write_error(self.table, source))?;
        if summary.rows == 0 {
            return Ok(None);
        }
        let path = self.table.sst_path(&self.id);
        out.flush().map_err(|source| StoreError::Io { action: "write", path, source })?;
        out.finish()?;
        Ok(Some(Sst {
            id: self.id,
            order: 0,
            level: 0,
            bytes: summary.bytes,
            checksum: format!("{:032x}", summary.checksum),
            rows: summary.rows,
            cells: summary.cells,
            first_key: summary.first_key,
            last_key: summary.last_key,
            min_timestamp: summary.min_timestamp,
            max_timestamp: summary.max_timestamp,
            joined: None,
        }))
    }
}

/// Bytes of a stripe with its share of the index and the filter, at most.
fn size(stripe: &EncodedStripe) -> u64 {
    let meta = stripe.meta();
    let columns: usize = meta.columns.iter().map(Vec::len).sum();
    let entry = 128 + meta.first_key.len() + meta.last_key.len() + 48 * columns;
    stripe.len() as u64 + entry as u64 + 2 * meta.rows
}

/// A failure to encode or write an SST of `table`.
pub(crate) fn write_error(table: &Table, source: WriteError) -> StoreError {
    StoreError::Write { table: table.name().to_owned(), source }
}
