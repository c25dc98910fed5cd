//! Writing one Parquet file: the same rows always make the same bytes.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tidetable_store::BlobWriter;
use xxhash_rust::xxh3::Xxh3;

const CREATED_BY: &str = "tidetable";
const ROW_GROUP: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 3;

/// A file under way.
pub(crate) struct FileWriter {
    inner: ArrowWriter<Summing>,
}

/// A written file that is not visible yet.
pub(crate) struct WrittenFile {
    blob: Box<dyn BlobWriter>,
    pub(crate) bytes: u64,
    /// xxh3-128, hexadecimal.
    pub(crate) checksum: String,
}

impl FileWriter {
    /// `metadata` is kept in the file as it is.
    pub(crate) fn new(
        blob: Box<dyn BlobWriter>,
        schema: SchemaRef,
        sorting: Vec<SortingColumn>,
        metadata: &[(&str, &str)],
    ) -> Result<Self, ParquetError> {
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
            .set_key_value_metadata(Some(pairs.collect()))
            .build();
        let out = Summing { blob, hash: Xxh3::new(), bytes: 0 };
        Ok(Self { inner: ArrowWriter::try_new(out, schema, Some(properties))? })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.inner.write(batch)
    }

    /// Ends the file, which stays invisible until [`WrittenFile::publish`].
    pub(crate) fn finish(self) -> Result<WrittenFile, ParquetError> {
        let Summing { blob, hash, bytes } = self.inner.into_inner()?;
        Ok(WrittenFile { blob, bytes, checksum: hexadecimal(&hash) })
    }
}

impl WrittenFile {
    /// Gives the file its name, durably and at once.
    pub(crate) fn publish(self) -> tidetable_store::Result<()> {
        self.blob.finish()
    }
}

pub(crate) fn hexadecimal(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

/// Hashes what it passes on.
struct Summing {
    blob: Box<dyn BlobWriter>,
    hash: Xxh3,
    bytes: u64,
}

impl Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.blob.write(bytes)?;
        let (passed, _) = bytes.split_at(written.min(bytes.len()));
        self.hash.update(passed);
        self.bytes += passed.len() as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blob.flush()
    }
}
