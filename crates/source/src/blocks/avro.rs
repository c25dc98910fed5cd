//! Avro object container files: a schema, then blocks of records, each with a mark behind it.
//!
//! The reader thread finds the blocks; any thread decodes some of them as one, which arrow-avro does several times faster
//! than one by one.

use std::io::{Cursor, Read};
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow_avro::compression::CompressionCodec;
use arrow_avro::reader::{ReaderBuilder, read_header_info};
use bytes::Bytes;
use tidetable_layout::varint::{put_varint, take_varint, unzigzag, zigzag};

use crate::blocks::input::BlockInput;
use crate::columnar::{ColumnarPlan, Parsed};
use crate::error::SourceError;
use crate::format::{Foreign, Format};
use crate::panics::catch;

const MARK: &[u8] = b"Obj\x01";
/// Bytes of the mark behind a block.
const SYNC: usize = 16;
/// Bytes in which a schema is looked for first.
const HEADER_BYTES: usize = 64 << 10;
/// Stored bytes of blocks that are decoded together.
const CHUNK_BYTES: usize = 512 << 10;
/// Bytes of the largest block without its compression: a damaged length must not take all memory.
const LARGEST_BLOCK: u64 = 1 << 30;

/// The blocks of a file behind its header, found one by one.
#[derive(Debug)]
pub(crate) struct AvroBlocks {
    schema: SchemaRef,
    decoding: Decoding,
    sync: [u8; SYNC],
    count: u64,
}

/// How the blocks of one file are decoded.
#[derive(Debug, Clone)]
pub(crate) struct Decoding {
    codec: Option<CompressionCodec>,
    /// The start of a file with the same schema, whose blocks are not compressed.
    header: Bytes,
}

/// Consecutive blocks of a file that are decoded together.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// Their data as stored, one behind the other.
    data: Bytes,
    blocks: Vec<Block>,
    pub records: usize,
}

#[derive(Debug, Clone)]
struct Block {
    /// Its number in the file, from 1, and its offset in bytes.
    number: u64,
    offset: u64,
    /// Where its data ends in that of all blocks.
    end: usize,
    records: usize,
}

/// A block as it is stored, with its lengths and its mark.
struct StoredBlock {
    bytes: Vec<u8>,
    data: Range<usize>,
    records: usize,
}

impl StoredBlock {
    fn data(&self) -> &[u8] {
        self.bytes.get(self.data.clone()).unwrap_or_default()
    }
}

/// How the records of one file are read.
#[derive(Debug)]
pub(crate) struct AvroPlan {
    path: String,
    columns: ColumnarPlan,
    decoding: Decoding,
}

impl AvroBlocks {
    /// Reads the schema.
    ///
    /// # Errors
    /// [`SourceError::Foreign`], [`SourceError::BlockUnfinished`], [`SourceError::DamagedBlock`],
    /// [`SourceError::AvroCodec`], and those of reading.
    pub fn open(input: &mut BlockInput) -> Result<Self, SourceError> {
        let mut wanted = HEADER_BYTES;
        let mut is_there = input.wants(wanted)?;
        if !MARK.starts_with(input.at_hand().get(..MARK.len()).unwrap_or(input.at_hand()))
            && let Some(format) = Foreign::instead_of_blocks(input.at_hand(), Format::Avro)
        {
            return Err(SourceError::Foreign { path: input.path().to_owned(), format });
        }

        let header = loop {
            match catch(|| read_header_info(Cursor::new(input.at_hand()))) {
                Ok(Ok(header)) => break header,
                _ if is_there => {
                    wanted = wanted.saturating_mul(2);
                    is_there = input.wants(wanted)?;
                }
                Ok(Err(_)) if input.at_hand().starts_with(MARK) || input.at_hand().len() < MARK.len() => {
                    return Err(unfinished(input));
                }
                Ok(Err(error)) => return Err(input.damaged(0, 1, error)),
                Err(panicked) => return Err(input.damaged(0, 1, panicked.message)),
            }
        };

        let codec = header.compression().map_err(|error| input.damaged(0, 1, error))?;
        if let Some(other @ (CompressionCodec::Bzip2 | CompressionCodec::Xz)) = codec {
            return Err(SourceError::AvroCodec {
                path: input.path().to_owned(),
                codec: format!("{other:?}").to_lowercase(),
            });
        }
        let written = header.writer_schema().map_err(|error| input.damaged(0, 1, error))?;
        let plain = self::header(&written.json_string, "null", &header.sync());
        let schema = catch(|| Ok::<_, ArrowError>(ReaderBuilder::new().build(Cursor::new(plain.as_slice()))?.schema()));
        let schema = match schema {
            Ok(Ok(schema)) => schema,
            Ok(Err(error)) => return Err(input.damaged(0, 1, error)),
            Err(panicked) => return Err(input.damaged(0, 1, panicked.message)),
        };

        let length = usize::try_from(header.header_len()).unwrap_or_default();
        input.take(length);
        Ok(Self { schema, decoding: Decoding { codec, header: plain.into() }, sync: header.sync(), count: 0 })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn decoding(&self) -> Decoding {
        self.decoding.clone()
    }

    /// The next blocks, of about half a megabyte; `None` at the end. `records` were before them.
    ///
    /// # Errors
    /// [`SourceError::BlockUnfinished`], [`SourceError::DamagedBlock`], and those of reading.
    pub fn next(&mut self, input: &mut BlockInput, records: u64) -> Result<Option<Blocks>, SourceError> {
        let mut found = Blocks { data: Bytes::new(), blocks: Vec::new(), records: 0 };
        let mut data = Vec::new();
        while data.len() < CHUNK_BYTES && input.wants(1)? {
            self.count += 1;
            let record = records + found.records as u64 + 1;
            let offset = input.offset();
            let block = self.take_block(input, record)?;

            // One without records must not fill a chunk: a chunk without records is the end of the file.
            if block.records == 0 {
                let empty = self.decoding.check_empty(block.data());
                empty.map_err(|problem| input.damaged(self.count, record, problem))?;
                continue;
            }
            data.extend_from_slice(block.data());
            found.blocks.push(Block { number: self.count, offset, end: data.len(), records: block.records });
            found.records = found.records.saturating_add(block.records);
        }

        found.data = data.into();
        Ok(Some(found).filter(|found| !found.blocks.is_empty()))
    }

    /// The first records; `None` if there are none.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn first_rows(&mut self, input: &mut BlockInput) -> Result<Option<RecordBatch>, SourceError> {
        let Some(blocks) = self.next(input, 0)? else { return Ok(None) };
        let decoded = self.decoding.decode(&blocks, 0..1);
        decoded.map(Some).map_err(|problem| input.damaged(1, 1, problem))
    }

    /// Takes a block with its mark off the input; `record` is the number of its first record, from 1.
    fn take_block(&self, input: &mut BlockInput, record: u64) -> Result<StoredBlock, SourceError> {
        input.wants(20)?;
        let mut rest = input.at_hand();
        let (Some(records), Some(size)) = (take_long(&mut rest), take_long(&mut rest)) else {
            return Err(unfinished(input));
        };
        let start = input.at_hand().len() - rest.len();
        let (Ok(records), Ok(size)) = (usize::try_from(records), usize::try_from(size)) else {
            return Err(input.damaged(self.count, record, "a block has a negative length"));
        };

        let end = start.saturating_add(size);
        if !input.wants(end.saturating_add(SYNC))? {
            return Err(unfinished(input));
        }
        if input.at_hand().get(end..end + SYNC) != Some(&self.sync) {
            return Err(input.damaged(self.count, record, "the mark behind the block is not that of the file"));
        }
        Ok(StoredBlock { bytes: input.take(end + SYNC), data: start..end, records })
    }
}

impl AvroPlan {
    pub fn new(path: String, columns: ColumnarPlan, decoding: Decoding) -> Self {
        Self { path, columns, decoding }
    }

    /// The declared columns of the records of some blocks; `first_record` is the number of the first, from 1.
    ///
    /// # Errors
    /// [`SourceError::DamagedBlock`], and those of [`ColumnarPlan::parse`].
    pub fn parse(&self, blocks: &Blocks, first_record: u64) -> Result<Parsed, SourceError> {
        let batch = match self.decoding.decode(blocks, 0..blocks.blocks.len()) {
            Ok(batch) => batch,
            Err(problem) => return Err(self.damage(blocks, first_record, problem)),
        };
        self.columns.parse(batch, first_record, &|_| Ok(Vec::new()))
    }

    /// The error of the first block that does not decode.
    fn damage(&self, blocks: &Blocks, first_record: u64, problem: String) -> SourceError {
        let mut record = first_record;
        let mut found = None;
        for (at, block) in blocks.blocks.iter().enumerate() {
            if let Err(problem) = self.decoding.decode(blocks, at..at + 1) {
                found = Some((block, problem));
                break;
            }
            record += block.records as u64;
        }

        let (path, first) = (self.path.clone(), blocks.blocks.first());
        match found.or_else(|| first.map(|block| (block, problem))) {
            Some((Block { number, offset, .. }, problem)) => {
                SourceError::DamagedBlock { path, block: *number, byte: *offset, record, problem }
            }
            None => SourceError::Changed { path },
        }
    }
}

impl Decoding {
    /// Decodes the records of some of `blocks`, or says what is wrong with them.
    fn decode(&self, blocks: &Blocks, which: Range<usize>) -> Result<RecordBatch, String> {
        let start =
            which.start.checked_sub(1).and_then(|before| blocks.blocks.get(before)).map_or(0, |block| block.end);
        let which = blocks.blocks.get(which).unwrap_or_default();
        let records = which.iter().map(|block| block.records).sum();
        let mut data = Vec::new();
        let mut at = start;
        for block in which {
            let stored = blocks.data.get(at..block.end).unwrap_or_default();
            self.decompress(stored, &mut data)?;
            at = block.end;
        }

        // A record takes at least a bit: otherwise a damaged number of records could take all memory.
        if records > data.len().saturating_mul(8).saturating_add(8) {
            return Err(format!("{records} records in {} bytes", data.len()));
        }

        let mut file = self.header.to_vec();
        let sync = file.get(file.len().saturating_sub(SYNC)..).unwrap_or_default().to_vec();
        // Twice as many as there are: if bytes follow the last record, the reader takes them for more, and else finds the
        // end. It would wait for ever for a block to end of which it has all records.
        put_long(&mut file, records as i64 * 2);
        put_long(&mut file, data.len() as i64);
        file.append(&mut data);
        file.extend_from_slice(&sync);

        let read = catch(|| {
            let mut reader = ReaderBuilder::new().with_batch_size(records).build(Cursor::new(file.as_slice()))?;
            let batch =
                reader.next().unwrap_or_else(|| Err(ArrowError::ParseError("its records are missing".to_owned())))?;
            if batch.num_rows() == records && reader.next().is_some() {
                return Err(ArrowError::ParseError(format!("bytes follow the last of its {records} records")));
            }
            Ok(batch)
        });
        let batch = read.map_err(|panicked| panicked.message)?.map_err(|error| error.to_string())?;
        match batch.num_rows() == records {
            true => Ok(batch),
            false => Err(format!("{} of {records} records are there", batch.num_rows())),
        }
    }

    /// Appends the content of a block to `content`, or says what is wrong with its compression.
    fn decompress(&self, stored: &[u8], content: &mut Vec<u8>) -> Result<(), String> {
        match self.codec {
            None => content.extend_from_slice(stored),
            Some(CompressionCodec::Deflate) => read_all(flate2::read::DeflateDecoder::new(stored), content)?,
            Some(CompressionCodec::ZStandard) => {
                read_all(zstd::Decoder::new(stored).map_err(|error| error.to_string())?, content)?;
            }
            Some(CompressionCodec::Snappy) => unpack_snappy(stored, content)?,
            // Refused when the file was opened.
            Some(CompressionCodec::Bzip2 | CompressionCodec::Xz) => {
                return Err("its compression is not read".to_owned());
            }
        }
        Ok(())
    }

    /// Checks that a block without records has no content.
    fn check_empty(&self, stored: &[u8]) -> Result<(), String> {
        let mut content = Vec::new();
        if !stored.is_empty() {
            self.decompress(stored, &mut content)?;
        }
        if content.is_empty() { Ok(()) } else { Err("bytes follow the last of its 0 records".to_owned()) }
    }
}

fn read_all(decoder: impl Read, content: &mut Vec<u8>) -> Result<(), String> {
    decoder.take(LARGEST_BLOCK).read_to_end(content).map(drop).map_err(|error| error.to_string())
}

/// Avro's blocks of snappy end with the CRC-32 of their content, big-endian.
fn unpack_snappy(stored: &[u8], content: &mut Vec<u8>) -> Result<(), String> {
    let Some((data, checksum)) = stored.split_last_chunk() else {
        return Err("its checksum is missing".to_owned());
    };
    let length = snap::raw::decompress_len(data).map_err(|error| error.to_string())?;
    if length as u64 > LARGEST_BLOCK {
        return Err(format!("a block of {length} bytes is too large"));
    }

    let mut plain = snap::raw::Decoder::new().decompress_vec(data).map_err(|error| error.to_string())?;
    let mut found = flate2::Crc::new();
    found.update(&plain);
    content.append(&mut plain);
    if found.sum() == u32::from_be_bytes(*checksum) { Ok(()) } else { Err("its checksum does not fit".to_owned()) }
}

/// The header of a file with this schema and codec.
pub(super) fn header(schema: &str, codec: &str, sync: &[u8; SYNC]) -> Vec<u8> {
    let mut header = MARK.to_vec();
    put_long(&mut header, 2);
    for (key, value) in [("avro.schema", schema), ("avro.codec", codec)] {
        for text in [key, value] {
            put_long(&mut header, text.len() as i64);
            header.extend_from_slice(text.as_bytes());
        }
    }
    put_long(&mut header, 0);
    header.extend_from_slice(sync);
    header
}

/// Takes a long off the front of `input`; `None` if it does not end there.
pub(super) fn take_long(input: &mut &[u8]) -> Option<i64> {
    take_varint(input).map(unzigzag)
}

pub(super) fn put_long(into: &mut Vec<u8>, value: i64) {
    put_varint(into, zigzag(value));
}

fn unfinished(input: &BlockInput) -> SourceError {
    SourceError::BlockUnfinished { path: input.path().to_owned(), format: Format::Avro.name() }
}
