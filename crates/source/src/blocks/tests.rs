use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_avro::reader::read_header_info;
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroOcfFormat;
use tidetable_layout::FieldType;

use crate::blocks::avro::{header, put_long, take_long};
use crate::error::SourceError;
use crate::reject::Rejected;
use crate::spec::{ColumnSpec, SourceSpec};
use crate::storage::Storage;

fn batch(first: i64, rows: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new((first..first + rows).map(Some).collect::<Int64Array>());
    let v: ArrayRef = Arc::new((0..rows).map(|at| (at % 3 > 0).then_some(at as f64 / 2.0)).collect::<Float64Array>());
    let host: ArrayRef = Arc::new((0..rows).map(|at| Some(format!("h{}", at % 5))).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([("n", n, true), ("v", v, true), ("host", host, true)]).unwrap()
}

fn spec(file: &str, columns: &[(&str, FieldType)]) -> SourceSpec {
    let columns = columns.iter().map(|(name, kind)| ColumnSpec::new(*name, *kind)).collect();
    SourceSpec { files: vec![file.to_owned()], columns, ..SourceSpec::default() }
}

const ALL: [(&str, FieldType); 3] = [("host", FieldType::Text), ("n", FieldType::Int64), ("v", FieldType::Float64)];

struct Outcome {
    rows: usize,
    sum: i64,
    lines: Vec<u64>,
    rejected: Vec<String>,
}

fn read(name: &str, bytes: &[u8], spec: &SourceSpec) -> Result<Outcome, SourceError> {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join(name), bytes).unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let input = storage.discover(spec)?.remove(0);
    let mut reader = storage.open(spec, &input)?;
    let parser = reader.parser();
    let mut outcome = Outcome { rows: 0, sum: 0, lines: Vec::new(), rejected: Vec::new() };
    for chunk in &mut reader {
        let parsed = parser.parse(chunk?)?;
        outcome.rows += parsed.batch.num_rows();
        if let Some(numbers) = parsed.batch.column_by_name("n") {
            outcome.sum += arrow::compute::sum(numbers.as_primitive::<arrow::datatypes::Int64Type>()).unwrap_or(0);
        }
        outcome.lines.extend((0..parsed.batch.num_rows()).map(|row| parsed.origin.line(row)));
        outcome.rejected.extend(parsed.rejected.iter().map(Rejected::to_string));
    }
    assert_eq!((reader.content_hash(), reader.bytes_read()), (storage.hash(&input)?, input.size), "{name}");
    Ok(outcome)
}

fn error(name: &str, bytes: &[u8]) -> SourceError {
    match read(name, bytes, &spec(name, &ALL)) {
        Ok(outcome) => panic!("{name}: {} rows", outcome.rows),
        Err(error) => error,
    }
}

fn arrow_file(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// The blocks that arrow-avro writes, with another compression.
fn avro_file(batches: &[RecordBatch], codec: &str) -> Vec<u8> {
    let schema = Schema::clone(&batches[0].schema());
    let mut writer = WriterBuilder::new(schema).build::<_, AvroOcfFormat>(Vec::new()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let written = writer.into_inner();

    let found = read_header_info(written.as_slice()).unwrap();
    let mut file = header(&found.writer_schema().unwrap().json_string, codec, &found.sync());
    let mut rest = &written[found.header_len() as usize..];
    while !rest.is_empty() {
        let (count, size) = (take_long(&mut rest).unwrap(), take_long(&mut rest).unwrap() as usize);
        let data = &rest[..size];
        let stored = match codec {
            "null" => data.to_vec(),
            "deflate" => {
                let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packed, data).unwrap();
                packed.finish().unwrap()
            }
            "snappy" => {
                let mut checksum = flate2::Crc::new();
                checksum.update(data);
                let packed = snap::raw::Encoder::new().compress_vec(data).unwrap();
                [&packed[..], &checksum.sum().to_be_bytes()].concat()
            }
            _ => zstd::encode_all(data, 1).unwrap(),
        };
        put_long(&mut file, count);
        put_long(&mut file, stored.len() as i64);
        file.extend_from_slice(&stored);
        file.extend_from_slice(&found.sync());
        rest = &rest[size + 16..];
    }
    file
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn arrow_files_and_streams_are_read() {
    let batches = [batch(0, 10), batch(10, 0), batch(10, 300_000)];
    let files = [
        ("a.arrow", arrow_file(&batches, None)),
        ("a.feather", arrow_file(&batches, Some(CompressionType::LZ4_FRAME))),
        ("a.ipc", arrow_file(&batches, Some(CompressionType::ZSTD))),
        ("a.arrows", arrow_stream(&batches)),
        ("a.arrow.gz", gz(&arrow_file(&batches, None))),
        ("a.arrows.zst", zstd::encode_all(&arrow_stream(&batches)[..], 1).unwrap()),
    ];
    for (name, bytes) in files {
        let found = read(name, &bytes, &spec(name, &ALL)).unwrap();
        assert_eq!((found.rows, found.sum), (300_010, 300_010 * 300_009 / 2), "{name}");
        assert!(found.lines.iter().copied().eq(1..=300_010), "{name}");
    }
}

#[test]
fn dictionaries_are_text() {
    let hosts: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter_with_nullable([("host", Arc::new(hosts) as ArrayRef, true), ("n", n, true)])
        .unwrap();
    let found = read("a.arrow", &arrow_file(&[batch], None), &spec("a.arrow", &ALL[..2])).unwrap();
    assert_eq!((found.rows, found.sum), (3, 6));
}

/// An Avro file with a block without records in front of its only one, and behind it: `content` is its data, as stored.
fn with_empty_blocks(batch: RecordBatch, codec: &str, content: &[u8]) -> Vec<u8> {
    let file = avro_file(&[batch], codec);
    let header = read_header_info(file.as_slice()).unwrap();
    let (start, sync) = (header.header_len() as usize, header.sync());
    let mut empty = Vec::new();
    put_long(&mut empty, 0);
    put_long(&mut empty, content.len() as i64);
    empty.extend_from_slice(content);
    empty.extend_from_slice(&sync);
    [&file[..start], &empty, &file[start..], &empty, &empty, &file[start..]].concat()
}

#[test]
fn avro_blocks_without_records_end_no_file() {
    let frame = zstd::encode_all(&[][..], 1).unwrap();
    // As many frames without content as fill a chunk.
    let frames = frame.repeat((600 << 10) / frame.len());
    for (codec, content) in [("null", &[][..]), ("zstandard", &frames), ("deflate", &[3, 0])] {
        let file = with_empty_blocks(batch(0, 10), codec, content);
        assert_eq!(read("a.avro", &file, &spec("a.avro", &ALL)).unwrap().rows, 20, "{codec}");
    }
}

#[test]
fn bytes_behind_the_last_record_of_a_block_are_damage() {
    let damaged = error("a.avro", &with_empty_blocks(batch(0, 10), "null", &[0; 700 << 10])).to_string();
    assert!(damaged.contains("block 1 at byte") && damaged.contains("0 records"), "{damaged}");
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let file = avro_file(&[batch(0, 100), batch(100, 100), batch(200, 100)], codec);
        let sync = read_header_info(file.as_slice()).unwrap().sync();
        let marks = file.windows(16).enumerate().filter(|(_, bytes)| *bytes == sync);
        let second = marks.map(|(at, _)| at + 16).nth(1).unwrap();
        // 100 records become 99: both numbers have two bytes.
        let (mut count, mut lowered) = (Vec::new(), Vec::new());
        put_long(&mut count, 100);
        put_long(&mut lowered, 99);
        assert_eq!(file[second..second + 2], count[..]);
        let file = [&file[..second], &lowered, &file[second + 2..]].concat();
        let damaged = error("a.avro", &file).to_string();
        assert!(damaged.starts_with("a.avro, block 2 at byte "), "{codec}: {damaged}");
        assert!(damaged.contains("(record 101 and those") && damaged.contains("99 records"), "{codec}: {damaged}");
    }
}

#[test]
fn avro_files_are_read() {
    let batches = [batch(0, 10), batch(10, 50_000), batch(50_010, 1)];
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let found = read("a.avro", &avro_file(&batches, codec), &spec("a.avro", &ALL)).unwrap();
        assert_eq!((found.rows, found.sum), (50_011, 50_011 * 50_010 / 2), "{codec}");
        assert!(found.lines.iter().copied().eq(1..=50_011), "{codec}");
    }
    let found = read("a.avro.gz", &gz(&avro_file(&batches, "null")), &spec("a.avro.gz", &ALL)).unwrap();
    assert_eq!(found.rows, 50_011);
}

#[test]
fn rejects_have_the_number_of_their_record() {
    let columns = [("host", FieldType::Text), ("n", FieldType::UInt64)];
    let batches = [batch(1, 3), batch(-1, 3)];
    for (name, bytes) in [("a.arrow", arrow_file(&batches, None)), ("a.avro", avro_file(&batches, "null"))] {
        let mut spec = spec(name, &columns);
        spec.columns[1].name = "n".to_owned();
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(name), bytes).unwrap();
        let storage = Storage::new(root.path().to_owned(), None);
        let mut reader = storage.open(&spec, &storage.discover(&spec).unwrap()[0]).unwrap();
        let parser = reader.parser();
        let rejected: Vec<_> = (&mut reader).flat_map(|chunk| parser.parse(chunk.unwrap()).unwrap().rejected).collect();
        assert_eq!(rejected[0].to_string(), "line 4, n: \"-1\" is out of range for uint64", "{name}");
        assert!(rejected.len() == 1 && rejected[0].raw.contains("\"h0\""), "{name}: {rejected:?}");
    }
}

#[test]
fn files_that_are_cut_short_are_unfinished() {
    let batches = [batch(0, 100), batch(100, 100)];
    for (name, bytes) in [("a.arrow", arrow_file(&batches, None)), ("a.avro", avro_file(&batches, "null"))] {
        for end in (1..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
            match read(name, &bytes[..end], &spec(name, &ALL)) {
                Err(error) => assert_eq!(error.unfinished(), Some(name), "{end}: {error}"),
                // Behind a block of Avro, or in a string of a schema that the format allows, nothing is missing.
                Ok(found) => assert!(name == "a.avro" && found.rows < 200, "{end}"),
            }
        }
    }
}

#[test]
fn damaged_blocks_are_errors_with_their_place() {
    let batches = [batch(0, 100), batch(100, 100)];
    let mut avro = avro_file(&batches, "snappy");
    let at = avro.len() - 40;
    avro[at] ^= 0x55;
    let damaged = error("a.avro", &avro).to_string();
    assert!(damaged.starts_with("a.avro, block 2 at byte ") && damaged.contains("(record 101 and those"), "{damaged}");
    let at = avro.len() - 3;
    avro[at] ^= 0x55;
    assert!(error("a.avro", &avro).to_string().contains("the mark behind the block"));

    let whole = arrow_file(&batches, Some(CompressionType::ZSTD));
    for at in (8..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        // What is no error may be another value: these bytes have no checksum.
        let _ = read("a.arrow", &bytes, &spec("a.arrow", &ALL)).map_err(|error| {
            assert!(!matches!(error, SourceError::Panicked { .. }), "{at}: {error}");
        });
    }
    let whole = avro_file(&batches, "null");
    for at in (4..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        let _ = read("a.avro", &bytes, &spec("a.avro", &ALL)).map_err(|error| {
            assert!(!matches!(error, SourceError::Panicked { .. }), "{at}: {error}");
        });
    }
}

#[test]
fn other_files_are_called_by_their_names() {
    assert!(error("a.avro", b"ts,v\n1,2\n3,4\n").to_string().contains("this is text"));
    assert!(error("a.avro", &arrow_file(&[batch(0, 1)], None)).to_string().contains("this is Arrow IPC"));
    assert!(error("a.arrow", &avro_file(&[batch(0, 1)], "null")).to_string().contains("this is Avro"));
    assert!(error("a.arrow", b"PAR1\x15\x04\x15\x04").to_string().contains("this is Parquet"));
    let bzip2 = error(
        "a.avro",
        &header(r#"{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}"#, "bzip2", &[7; 16]),
    )
    .to_string();
    assert!(bzip2.contains("compressed by bzip2, which is not read"), "{bzip2}");
}

#[test]
fn a_stream_without_its_end_mark_is_noted() {
    let stream = arrow_stream(&[batch(0, 10), batch(10, 5)]);
    let cut = stream.strip_suffix(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]).unwrap();
    for (bytes, ends) in [(stream.as_slice(), 0), (cut, 1), (arrow_file(&[batch(0, 15)], None).as_slice(), 0)] {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.arrow"), bytes).unwrap();
        let (storage, spec) = (Storage::new(root.path().to_owned(), None), spec("a.arrow", &ALL));
        let mut reader = storage.open(&spec, &storage.discover(&spec).unwrap()[0]).unwrap();
        let parser = reader.parser();
        let (mut rows, mut counted, mut last) = (0, 0, 0);
        for chunk in &mut reader {
            let parsed = parser.parse(chunk.unwrap()).unwrap();
            rows += parsed.rows_read;
            counted += parsed.notes.unmarked_ends.count;
            last = last.max(parsed.notes.unmarked_ends.first_line);
        }
        assert_eq!((rows, counted, last), (15, ends, ends * 15));
    }
}
