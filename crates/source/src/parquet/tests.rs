use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type, TimestampMicrosecondType};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type as PhysicalInt64, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tidetable_layout::FieldType;

use crate::format::Format;
use crate::read::ParsedChunk;
use crate::reader_version::ReaderVersion;
use crate::reject::Rejected;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::storage::Storage;

fn written(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name.to_owned(), array, true)),
    )
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn spec(columns: &[(&str, FieldType)]) -> SourceSpec {
    let columns = columns.iter().map(|(name, kind)| ColumnSpec::new(*name, *kind)).collect();
    SourceSpec { files: vec!["a.parquet".to_owned()], columns, ..SourceSpec::default() }
}

fn read(bytes: &[u8], spec: &SourceSpec, reader: ReaderVersion) -> ParsedChunk {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.parquet"), bytes).unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let mut input = storage.discover(spec).unwrap().remove(0);
    input.reader = reader;
    let mut opened = storage.open(spec, &input).unwrap();
    let parser = opened.parser();
    let chunk = opened.next().unwrap().unwrap();
    parser.parse(chunk).unwrap()
}

fn now(bytes: &[u8], spec: &SourceSpec) -> ParsedChunk {
    read(bytes, spec, ReaderVersion::CURRENT)
}

fn floats(parsed: &ParsedChunk, column: usize) -> Vec<Option<f64>> {
    parsed.batch.column(column).as_primitive::<Float64Type>().iter().collect()
}

/// INT96 of days since 1970 and nanoseconds; `None` is null.
fn int96_file(values: &[Option<(i32, u64)>]) -> Vec<u8> {
    let schema = parse_message_type("message schema { optional int96 until; }").unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let stored: Vec<Int96> = values
        .iter()
        .flatten()
        .map(|(days, nanos)| {
            let mut value = Int96::new();
            value.set_data(*nanos as u32, (*nanos >> 32) as u32, (2_440_588 + days).cast_unsigned());
            value
        })
        .collect();
    column.typed::<Int96Type>().write_batch(&stored, Some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn int96_keeps_the_years_1_to_9999() {
    // 9999-12-31, null, 0001-01-01, a nanosecond, and a year that no 64-bit timestamp has.
    let values = [Some((2_932_896, 0)), None, Some((-719_162, 0)), Some((0, 1_001)), Some((213_503_982, 0))];
    let parsed = now(&int96_file(&values), &spec(&[("until", FieldType::Timestamp)]));
    let times: Vec<_> = parsed.batch.column(0).as_primitive::<TimestampMicrosecondType>().iter().collect();
    assert_eq!(times, [Some(253_402_214_400_000_000), None, Some(-62_135_596_800_000_000), Some(1)]);
    assert_eq!((parsed.times.cut, parsed.rejected.len(), parsed.rejected[0].line), (1, 1, 5));
    let old = read(&int96_file(&values[..1]), &spec(&[("until", FieldType::Timestamp)]), ReaderVersion::FIRST);
    let times: Vec<_> = old.batch.column(0).as_primitive::<TimestampMicrosecondType>().iter().collect();
    assert_ne!(times, [Some(253_402_214_400_000_000)], "an input that was loaded stays as it is");
}

#[test]
fn nan_is_null_and_infinity_is_rejected() {
    let temp: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), None, Some(f64::INFINITY)]));
    let hum: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 2.5, 3.5, f32::NAN]));
    let bytes = written(vec![("temp", temp), ("hum", hum)]);
    let mut spec = spec(&[("temp", FieldType::Float64), ("hum", FieldType::Float64)]);
    let parsed = now(&bytes, &spec);
    assert_eq!(floats(&parsed, 0), [Some(1.5), None, None]);
    assert_eq!(floats(&parsed, 1), [None, Some(2.5), Some(3.5)]);
    assert_eq!((parsed.times.nan, parsed.rejected.len(), parsed.rejected[0].line), (2, 1, 4));
    assert_eq!(read(&bytes, &spec, ReaderVersion::FIRST).rejected.len(), 3);
    spec.rejects_nan = true;
    let rejects: Vec<String> = now(&bytes, &spec).rejected.iter().map(Rejected::to_string).collect();
    assert_eq!(rejects[0], "line 1, hum: \"NaN\" is not a finite number");
    assert_eq!(rejects.len(), 3);
}

#[test]
fn null_markers_hold_for_numbers() {
    let flow: ArrayRef = Arc::new(Float64Array::from(vec![-9999.0, 0.25, -9999.9]));
    let single: ArrayRef = Arc::new(Float32Array::from(vec![-9999.9, 0.25, -9999.0]));
    let count: ArrayRef = Arc::new(Int64Array::from(vec![-9999, 1, 2]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["-9999", "b", "c"]));
    let bytes = written(vec![("flow", flow), ("single", single), ("count", count), ("name", name)]);
    let kinds = [
        ("flow", FieldType::Float64),
        ("single", FieldType::Float64),
        ("count", FieldType::UInt64),
        ("name", FieldType::Text),
    ];
    let csv =
        CsvOptions { null: vec![String::new(), "-9999".to_owned(), "-9999.9".to_owned()], ..CsvOptions::default() };
    let spec = SourceSpec { csv, ..spec(&kinds) };
    let parsed = now(&bytes, &spec);
    assert!(parsed.rejected.is_empty(), "{:?}", parsed.rejected);
    assert_eq!(floats(&parsed, 0), [None, Some(0.25), None]);
    assert_eq!(floats(&parsed, 1), [None, Some(0.25), None]);
    assert_eq!(parsed.batch.column(2).null_count(), 1);
    assert_eq!(parsed.batch.column(3).as_string::<i32>().value(0), "-9999");
    let old = read(&bytes, &spec, ReaderVersion::FIRST);
    assert_eq!(floats(&old, 0), [Some(0.25), Some(-9999.9)]);
}

#[test]
fn fields_of_structs_are_columns() {
    let host: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), Some("c")]));
    let port: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let fields =
        Fields::from(vec![Field::new("host", DataType::Utf8, true), Field::new("port", DataType::Int64, true)]);
    let nulls = arrow::buffer::NullBuffer::from(vec![true, true, false]);
    let resource = StructArray::try_new(fields, vec![host, port], Some(nulls)).unwrap();
    let bytes = written(vec![("resource", Arc::new(resource)), ("v", Arc::new(Int64Array::from(vec![1, 2, 3])))]);
    let kinds = [("resource.port", FieldType::Int64), ("v", FieldType::Int64), ("resource.host", FieldType::Text)];
    let parsed = now(&bytes, &spec(&kinds));
    let ports: Vec<_> = parsed.batch.column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(ports, [Some(1), None, None]);
    let hosts: Vec<_> = parsed.batch.column(2).as_string::<i32>().iter().collect();
    assert_eq!(hosts, [Some("a"), Some("b"), None]);
}

#[test]
fn bytes_are_text_or_digits() {
    let name: ArrayRef = Arc::new(BinaryArray::from(vec![&b"M0"[..], b"\xFF"]));
    let fixed: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_iter([[0x01, 0xAB], [0xFF, 0x00]].into_iter()).unwrap());
    let bytes = written(vec![("name", name), ("fixed", fixed)]);
    let parsed = now(&bytes, &spec(&[("fixed", FieldType::Text)]));
    let texts: Vec<_> = parsed.batch.column(0).as_string::<i32>().iter().flatten().collect();
    assert_eq!(texts, ["01ab", "ff00"]);
    let parsed = now(&bytes, &spec(&[("name", FieldType::Text)]));
    assert_eq!((parsed.batch.num_rows(), parsed.rejected.len()), (1, 1));

    let schema = parse_message_type("message schema { required fixed_len_byte_array(16) id (UUID); }").unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let id: Vec<u8> = (0..16).collect();
    let value = parquet::data_type::FixedLenByteArray::from(id);
    column.typed::<parquet::data_type::FixedLenByteArrayType>().write_batch(&[value], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let parsed = now(&bytes, &spec(&[("id", FieldType::Text)]));
    assert_eq!(parsed.batch.column(0).as_string::<i32>().value(0), "00010203-0405-0607-0809-0a0b0c0d0e0f");
}

#[test]
fn compressed_files_are_read_as_plain_ones() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let bytes = written(vec![("v", values)]);
    let root = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(root.path().join("a.parquet.gz"), &packed).unwrap();
    std::fs::write(root.path().join("b.pq.zst"), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    std::fs::write(root.path().join("cut.parquet.gz"), &packed[..packed.len() / 2]).unwrap();
    std::fs::write(root.path().join("plain.parquet.gz"), &bytes).unwrap();

    let storage = Storage::new(root.path().to_owned(), None);
    let spec = SourceSpec { files: vec!["*".to_owned()], ..spec(&[("v", FieldType::Int64)]) };
    let found = storage.discover(&spec).unwrap();
    assert_eq!(found.len(), 4);
    for input in &found[..2] {
        let mut opened = storage.open(&spec, input).unwrap();
        let parser = opened.parser();
        let parsed = parser.parse(opened.next().unwrap().unwrap()).unwrap();
        assert_eq!(parsed.batch.num_rows(), 3, "{}", input.path);
        assert!(opened.next().is_none());
        assert_eq!((opened.content_hash(), opened.bytes_read()), (storage.hash(input).unwrap(), input.size));
    }
    let cut = storage.open(&spec, &found[2]).err().unwrap();
    assert_eq!(cut.unfinished(), Some("cut.parquet.gz"), "{cut}");
    let plain = storage.open(&spec, &found[3]).err().unwrap().to_string();
    assert!(plain.contains("the ending says gzip") || plain.contains("this is Parquet"), "{plain}");
}

/// A row group with a key and these values in each row, without Arrow's schema; a dictionary may take `dictionary` bytes.
fn dump_of_values(values: &ArrayRef, times: usize, dictionary: usize) -> Vec<u8> {
    let rows = values.len();
    let (micros, families) = (Int64Array::from(vec![1000; rows]), StringArray::from(vec!["m"; rows]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"q"[..]; rows]));
    let cells: Vec<(&str, ArrayRef)> = vec![
        ("family", Arc::new(families)),
        ("qualifier", Arc::clone(&bytes)),
        ("timestamp", Arc::new(micros)),
        ("value", Arc::clone(values)),
    ];
    let fields: Fields =
        cells.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let structs = StructArray::new(fields, cells.into_iter().map(|(_, array)| array).collect(), None);
    let item = Field::new("element", structs.data_type().clone(), false);
    let lists = ListArray::new(item.into(), OffsetBuffer::from_repeated_length(1, rows), Arc::new(structs), None);
    let columns: Vec<(&str, ArrayRef)> = vec![("key", bytes), ("cells", Arc::new(lists))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();

    let properties = WriterProperties::builder().set_dictionary_page_size_limit(dictionary).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    for _ in 0..times {
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// The rows of each chunk of a dump.
fn rows_of_chunks(bytes: &[u8]) -> Vec<usize> {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.parquet"), bytes).unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let spec = SourceSpec {
        files: vec!["a.parquet".to_owned()],
        format: Some(Format::BigtableParquet),
        columns: vec![ColumnSpec::new("row_key", FieldType::Text), ColumnSpec::new("value", FieldType::Text)],
        ..SourceSpec::default()
    };
    let reader = storage.open(&spec, &storage.discover(&spec).unwrap()[0]).unwrap();
    let parser = reader.parser();
    let chunks = reader.map(Result::unwrap).enumerate();
    let rows = chunks.map(|(at, chunk)| {
        let rows = chunk.rows_at_most();
        if at == 0 {
            assert_eq!(parser.parse(chunk).unwrap().batch.num_rows(), rows);
        }
        rows
    });
    rows.collect()
}

/// As Google's template writes it: the items of a list are the repeated group itself.
#[test]
fn cells_in_lists_of_two_levels_are_read() {
    let schema = "message BigtableRow { required binary key; required group cells (LIST) { repeated group array { \
        required binary family (STRING); required binary qualifier; required int64 timestamp; required binary value; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    // Of two rows the first has two cells, and the second none.
    let [defined, repeated] = [[1, 1, 0], [0, 1, 0]];
    let bytes_of = |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();
    for texts in [&["a", "b"][..], &["m", "m"], &["q", "r"], &[], &["v", "w"]] {
        let mut column = group.next_column().unwrap().unwrap();
        match texts {
            [] => column.typed::<PhysicalInt64>().write_batch(&[1000, 2000], Some(&defined), Some(&repeated)).unwrap(),
            ["a", "b"] => column.typed::<ByteArrayType>().write_batch(&bytes_of(texts), None, None).unwrap(),
            _ => {
                column.typed::<ByteArrayType>().write_batch(&bytes_of(texts), Some(&defined), Some(&repeated)).unwrap()
            }
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();

    let mut spec = spec(&[
        ("row_key", FieldType::Text),
        ("qualifier", FieldType::Text),
        ("timestamp", FieldType::Timestamp),
        ("value", FieldType::Text),
    ]);
    spec.format = Some(Format::BigtableParquet);
    let parsed = now(&bytes, &spec);
    let texts = |column: usize| parsed.batch.column(column).as_string::<i32>().iter().flatten().collect::<Vec<_>>();
    assert_eq!((texts(0), texts(1), texts(3)), (vec!["61", "61"], vec!["71", "72"], vec!["76", "77"]));
    let times = parsed.batch.column(2).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.values().as_ref(), [1000, 2000]);
}

/// More than the 2 GiB to which Arrow's offsets reach, of which the footer says nothing.
#[test]
fn values_of_a_dictionary_do_not_overflow() {
    const MIB: usize = 1 << 20;
    let value = vec![7; MIB];
    let values: ArrayRef = Arc::new(BinaryArray::from(vec![&value[..]; 50]));
    let bytes = dump_of_values(&values, 42, 4 * MIB);
    assert!(bytes.len() < 4 * MIB, "{}", bytes.len());
    let rows = rows_of_chunks(&bytes);
    assert_eq!((rows.iter().sum::<usize>(), rows.iter().max()), (2100, Some(&3)));
}

#[test]
fn large_rows_among_small_ones_are_chunks_of_their_own() {
    let large = vec![7; 3 << 20];
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(
        (0..2000).map(|row| if row % 500 == 499 { &large[..] } else { &b"small"[..] }),
    ));
    let rows = rows_of_chunks(&dump_of_values(&values, 1, 0));
    assert_eq!(rows, [999, 500, 500, 1]);
}
