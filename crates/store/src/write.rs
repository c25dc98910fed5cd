//! SST writer: one output file of a load or a compaction, with its metadata.

use std::io::Write;
use std::sync::Arc;

use tidetable_blobs::{BlobError, BlobWriter};
use tidetable_layout::StoredSchema;
use tidetable_layout::schema::Merge;
use tidetable_sstable::{EncodedStripe, Scalar, StripeMeta, WriteError, WriteOptions, Writer};

use crate::error::{Result, StoreError};
use crate::ids::ulid_text;
use crate::sst_store::SstStore;
use crate::version::{Sst, SstBounds};

/// Target size of an SST, bytes.
pub const SST_BYTES: u64 = 256 << 20;

/// An SST being written, invisible until [`SstFile::end`].
pub struct SstFile<'a> {
    store: &'a SstStore,
    schema: Arc<StoredSchema>,
    id: String,
    writer: Writer<Box<dyn BlobWriter>>,
    bytes: u64,
    largest: SstBounds,
    emptied: bool,
}

/// A stripe to write, with an upper bound on the bytes of its rows.
pub struct SizedStripe {
    /// The rows, encoded as a stripe of the file.
    pub stripe: EncodedStripe,
    /// Upper bound on the bytes of its largest row.
    pub largest_row: u64,
    /// Whether it may hold rows that an upsert emptied.
    pub emptied: bool,
}

impl<'a> SstFile<'a> {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn begin(store: &'a SstStore, schema: &Arc<StoredSchema>, options: &WriteOptions) -> Result<Self> {
        Self::begin_with(store, schema, options, None)
    }

    /// Begins a file with `more`, a name and a text, in its metadata.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_with(
        store: &'a SstStore,
        schema: &Arc<StoredSchema>,
        options: &WriteOptions,
        more: Option<(String, String)>,
    ) -> Result<Self> {
        let id = ulid_text(options.uid);
        let out = store.blobs().writer(&store.path(&id))?;

        let metadata = [("table".to_owned(), store.table().to_owned())].into_iter().chain(more).collect();
        let writer = Writer::new(out, Arc::clone(schema), options.clone(), metadata)
            .map_err(|source| write_error(store.table(), source))?;

        Ok(Self {
            store,
            schema: Arc::clone(schema),
            id,
            writer,
            bytes: 0,
            largest: SstBounds::default(),
            emptied: false,
        })
    }

    /// Whether it has reached its target size.
    pub fn is_full(&self) -> bool {
        self.bytes >= SST_BYTES
    }

    /// Whether the file stays within its target size with this stripe.
    pub fn takes(&self, stripe: &SizedStripe) -> bool {
        self.bytes == 0 || self.bytes + size(&stripe.stripe) <= SST_BYTES
    }

    /// Appends a stripe, whose keys follow those before it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, stripe: SizedStripe) -> Result<()> {
        let SizedStripe { stripe, largest_row, emptied } = stripe;
        self.emptied |= emptied;
        self.bytes += size(&stripe);
        self.largest = self.largest.max(SstBounds { row: largest_row, sum: largest_sum(&self.schema, stripe.meta()) });
        self.writer.push(stripe).map_err(|source| write_error(self.store.table(), source))
    }

    /// Finishes the file and makes it visible. `None` if it has no rows; then the file is dropped. The commit sets the
    /// sequence number.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(self) -> Result<Option<Sst>> {
        let (mut out, summary) = self.writer.finish().map_err(|source| write_error(self.store.table(), source))?;
        if summary.rows == 0 {
            return Ok(None);
        }

        let path = self.store.path(&self.id);
        out.flush().map_err(|source| StoreError::Blob(BlobError::Io { action: "write", path, source }))?;
        out.finish()?;

        Ok(Some(Sst {
            id: self.id,
            seqno: 0,
            level: 0,
            bytes: summary.bytes,
            checksum: format!("{:032x}", summary.checksum),
            rows: summary.rows,
            cells: summary.cells,
            first_key: summary.first_key,
            last_key: summary.last_key,
            min_timestamp: summary.min_timestamp,
            max_timestamp: summary.max_timestamp,
            multi_window: None,
            bounds: Some(self.largest),
            emptied: self.emptied,
        }))
    }
}

/// Greatest absolute value of the cells of sum families in a stripe, at most.
pub(crate) fn largest_sum(schema: &StoredSchema, stripe: &StripeMeta) -> u64 {
    let groups = schema.groups.iter().zip(&stripe.columns);
    let columns = groups.flat_map(|(group, found)| group.columns.iter().zip(found));
    let ranges = columns.filter(|(column, _)| column.merge == Merge::Sum).filter_map(|(_, found)| found.range);

    ranges.map(|(least, greatest)| magnitude(least).max(magnitude(greatest))).max().unwrap_or(0)
}

/// Absolute value of a cell of a sum family.
fn magnitude(value: Scalar) -> u64 {
    match value {
        Scalar::Int64(value) => value.unsigned_abs(),
        Scalar::UInt64(value) => value,
        // Sum families have integer values only.
        Scalar::Float64(_) | Scalar::Decimal(_) | Scalar::Timestamp(_) | Scalar::Date(_) => u64::MAX,
    }
}

/// Bytes of a stripe with its share of the index and the key filter, at most.
fn size(stripe: &EncodedStripe) -> u64 {
    let meta = stripe.meta();
    let columns: usize = meta.columns.iter().map(Vec::len).sum();
    let entry = 128 + meta.first_key.len() + meta.last_key.len() + 48 * columns;
    stripe.len() as u64 + entry as u64 + 2 * meta.rows
}

/// Converts a failure to encode or write an SST of `table`.
pub fn write_error(table: &str, source: WriteError) -> StoreError {
    match source {
        // I/O errors are not errors of the content.
        WriteError::Io(source) => {
            StoreError::Blob(BlobError::Io { action: "write an SST of", path: table.to_owned(), source })
        }
        source => StoreError::Write { table: table.to_owned(), source },
    }
}
