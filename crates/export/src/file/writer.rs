//! Writes one file, deterministically: the same rows give the same bytes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter as IpcWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use tidetable_blobs::BlobWriter;
use xxhash_rust::xxh3::Xxh3;

use crate::file::bigtable::BigtableParquet;
use crate::file::bigtable_avro::BigtableAvro;
use crate::file::cbt::CbtCsv;
use crate::file::csv::CsvFile;
use crate::file::format::FileFormat;
use crate::file::spec::{FileSpec, parquet_properties};

const ROW_GROUP: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 3;

/// A file that is being written.
pub(crate) struct FileWriter {
    inner: Inner,
    /// Bytes that were passed on to the storage so far.
    bytes: Arc<AtomicU64>,
}

enum Inner {
    Parquet(Box<ArrowWriter<Summing>>),
    Csv(Box<CsvFile<Summing>>),
    Arrow(Box<IpcWriter<Summing>>),
    Bigtable(Box<BigtableParquet<Summing>>),
    BigtableAvro(Box<BigtableAvro<Summing>>),
    Cbt(Box<CbtCsv<Summing>>),
}

/// A complete file that is not visible yet.
pub(crate) struct WrittenFile {
    pub(crate) blob: Box<dyn BlobWriter>,
    pub(crate) bytes: u64,
    /// xxh3-128 of the file, 32 hexadecimal digits.
    pub(crate) checksum: String,
}

impl FileWriter {
    pub(crate) fn new(blob: Box<dyn BlobWriter>, spec: &FileSpec<'_>) -> Result<Self, ArrowError> {
        let bytes = Arc::new(AtomicU64::new(0));
        let out = Summing { blob, hash: Xxh3::new(), bytes: Arc::clone(&bytes) };
        let inner = match spec.format {
            FileFormat::Parquet => {
                let schema = spec.schema.clone();
                Inner::Parquet(Box::new(ArrowWriter::try_new(out, schema, Some(properties(spec)?))?))
            }
            FileFormat::Csv => Inner::Csv(Box::new(CsvFile::new(out, &spec.schema)?)),
            FileFormat::Arrow => {
                let pairs = spec.metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
                let schema = Schema::new_with_metadata(spec.schema.fields().clone(), pairs.collect());
                Inner::Arrow(Box::new(IpcWriter::try_new(out, &schema)?))
            }
            FileFormat::BigtableParquet => Inner::Bigtable(Box::new(BigtableParquet::new(out, spec)?)),
            FileFormat::BigtableAvro => Inner::BigtableAvro(Box::new(BigtableAvro::new(out)?)),
            FileFormat::CbtCsv => Inner::Cbt(Box::new(CbtCsv::new(out, spec.columns.clone())?)),
        };
        Ok(Self { inner, bytes })
    }

    /// Bytes of the file, approximately: buffered rows count uncompressed.
    pub(crate) fn bytes(&self) -> u64 {
        let waiting = match &self.inner {
            Inner::Parquet(writer) => writer.in_progress_size() as u64,
            _ => 0,
        };
        self.bytes.load(Ordering::Relaxed) + waiting
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match &mut self.inner {
            Inner::Parquet(writer) => Ok(writer.write(batch)?),
            Inner::Csv(writer) => writer.write(batch),
            Inner::Arrow(writer) => writer.write(batch),
            Inner::Bigtable(writer) => writer.write(batch),
            Inner::BigtableAvro(writer) => writer.write(batch),
            Inner::Cbt(writer) => writer.write(batch),
        }
    }

    /// Adds key-value metadata, if the format has a place for it.
    pub(crate) fn say(&mut self, key: &str, value: &str) {
        match &mut self.inner {
            Inner::Parquet(writer) => {
                writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
            }
            Inner::Arrow(writer) => writer.write_metadata(key, value),
            Inner::Csv(_) | Inner::Bigtable(_) | Inner::BigtableAvro(_) | Inner::Cbt(_) => {}
        }
    }

    /// Completes the file, which stays invisible until [`WrittenFile::publish`].
    pub(crate) fn finish(self) -> Result<WrittenFile, ArrowError> {
        let out = match self.inner {
            Inner::Parquet(writer) => writer.into_inner()?,
            Inner::Csv(writer) => writer.into_inner(),
            Inner::Arrow(writer) => writer.into_inner()?,
            Inner::Bigtable(writer) => writer.finish()?,
            Inner::BigtableAvro(writer) => writer.finish()?,
            Inner::Cbt(writer) => writer.finish()?,
        };
        let Summing { blob, hash, bytes } = out;
        Ok(WrittenFile { blob, bytes: bytes.load(Ordering::Relaxed), checksum: hexadecimal(&hash) })
    }
}

fn properties(spec: &FileSpec<'_>) -> Result<WriterProperties, ParquetError> {
    let properties = parquet_properties(spec.metadata)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_sorting_columns((!spec.sorting.is_empty()).then(|| spec.sorting.clone()));
    // Bloom filter: readers find a key without reading pages.
    let key = spec.sorting.first().and_then(|first| usize::try_from(first.column_idx).ok());
    let key = key.and_then(|at| spec.schema.fields().get(at));
    Ok(match key {
        Some(key) => properties.set_column_bloom_filter_enabled(ColumnPath::from(key.name().as_str()), true).build(),
        None => properties.build(),
    })
}

impl WrittenFile {
    /// Publishes the file durably and atomically.
    pub(crate) fn publish(self) -> tidetable_store::Result<()> {
        Ok(self.blob.finish()?)
    }

    /// Like [`Self::publish`], under another name.
    pub(crate) fn publish_as(self, path: &str) -> tidetable_store::Result<()> {
        Ok(self.blob.finish_as(path)?)
    }
}

pub(crate) fn hexadecimal(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

/// Hashes the bytes that pass through.
pub(crate) struct Summing {
    blob: Box<dyn BlobWriter>,
    hash: Xxh3,
    bytes: Arc<AtomicU64>,
}

impl Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.blob.write(bytes)?;
        let (passed, _) = bytes.split_at(written.min(bytes.len()));
        self.hash.update(passed);
        self.bytes.fetch_add(passed.len() as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blob.flush()
    }
}
