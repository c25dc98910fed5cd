//! The crate through its public names.

mod growth;
mod headers;
mod typed;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use chrono_tz::Europe;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;
use tidetable_layout::FieldType;

use crate::content_hash::ContentHash;
use crate::error::SourceError;
use crate::format::Format;
use crate::reject::Rejected;
use crate::spec::{ColumnSpec, CsvOptions, MaxRejected, SourceSpec};
use crate::storage::{InputFile, Storage};

const MINUTE: i64 = 60_000_000;

struct Outcome {
    batch: RecordBatch,
    rejected: Vec<Rejected>,
    lines: Vec<u64>,
    raws: Vec<String>,
}

impl Outcome {
    fn rejects(&self) -> Vec<String> {
        self.rejected.iter().map(Rejected::to_string).collect()
    }
}

pub(crate) fn spec() -> SourceSpec {
    SourceSpec {
        name: "readings".to_owned(),
        files: vec!["*".to_owned()],
        columns: vec![
            ColumnSpec::new("meter", FieldType::UInt64),
            ColumnSpec::new("ts", FieldType::Timestamp),
            ColumnSpec::new("kwh", FieldType::Float64),
        ],
        time: "ts".to_owned(),
        ..SourceSpec::default()
    }
}

fn texts(columns: &[(&str, FieldType)], csv: CsvOptions) -> SourceSpec {
    let columns = columns.iter().map(|(name, kind)| ColumnSpec::new(*name, *kind)).collect();
    SourceSpec { columns, csv, ..spec() }
}

fn read_all(storage: &Storage, spec: &SourceSpec) -> Result<Outcome, SourceError> {
    let input = storage.discover(spec)?.remove(0);
    let mut reader = storage.open(spec, &input)?;
    let parser = reader.parser();
    let (mut batches, mut rejected, mut lines, mut raws) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, chunk) in (0u64..).zip(&mut reader) {
        let parsed = parser.parse(chunk?)?;
        assert_eq!(parsed.index, index);
        assert_eq!(parsed.rows_read as usize, parsed.batch.num_rows() + parsed.rejected.len());
        for row in 0..parsed.batch.num_rows() {
            lines.push(parsed.origin.line(row));
            raws.push(parsed.origin.raw(row));
        }
        rejected.extend(parsed.rejected);
        batches.push(parsed.batch);
    }
    assert_eq!(reader.bytes_read(), input.size);
    assert_eq!(reader.content_hash(), storage.hash(&input)?);
    let batch = concat_batches(parser.schema(), &batches).unwrap();
    Ok(Outcome { batch, rejected, lines, raws })
}

fn read_named(name: &str, bytes: &[u8], spec: &SourceSpec) -> Result<Outcome, SourceError> {
    let root = TempDir::new().unwrap();
    std::fs::write(root.path().join(name), bytes).unwrap();
    read_all(&Storage::new(root.path().to_owned(), None), spec)
}

fn read(text: &str, spec: &SourceSpec) -> Outcome {
    read_named("a.csv", text.as_bytes(), spec).unwrap()
}

fn strings(array: &ArrayRef) -> Vec<Option<String>> {
    array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

fn floats(array: &ArrayRef) -> Vec<Option<f64>> {
    array.as_primitive::<Float64Type>().iter().collect()
}

#[test]
fn rows_become_typed_columns() {
    let outcome = read(
        "\u{feff}ts,room,meter,kwh\n2017-07-26T00:15:00Z,x,987654,12.34\r\n2017-07-26 00:30:00,,+0000987654, 13.45 \n\n1970-01-01T00:00:00.000001Z,y,18446744073709551615,-1e-3",
        &spec(),
    );
    assert_eq!(outcome.rejected, []);
    let start = 1_501_027_200_000_000;
    let ts: Vec<_> = outcome.batch.column(1).as_primitive::<TimestampMicrosecondType>().values().to_vec();
    assert_eq!(ts, [start + 15 * MINUTE, start + 30 * MINUTE, 1]);
    assert_eq!(outcome.batch.column(0).as_primitive::<UInt64Type>().values().to_vec(), [987_654, 987_654, u64::MAX]);
    assert_eq!(floats(outcome.batch.column(2)), [Some(12.34), Some(13.45), Some(-0.001)]);
    assert_eq!(outcome.lines, [2, 3, 5]);
    assert_eq!(outcome.raws[0], "2017-07-26T00:15:00Z,x,987654,12.34");
    assert_eq!(outcome.batch.schema().field(1).data_type(), &FieldType::Timestamp.arrow());
    assert_eq!(spec().schema().time, 1);
}

#[test]
fn broken_rows_are_rejected_with_a_reason() {
    let mut bytes =
        b"meter,ts,kwh\n1,2017-07-26T00:15:00Z\nx1,2017-07-26T00:15:00Z,1\n1,2017-02-30T00:00:00Z,1\n".to_vec();
    bytes.extend(b"1,2017-07-26T00:15:00Z,nan\n99999999999999999999,2017-07-26T00:15:00Z,1\n");
    bytes.extend(b"1,2017-07-26T00:15:00Z,\xFF\n\n2,2017-07-26T00:15:00Z,2\n1,2017-07-26T00:15:00Z,1,9\n");
    let outcome = read_named("a.csv", &bytes, &spec()).unwrap();
    assert_eq!(
        outcome.rejects(),
        [
            "line 2: expected 3 columns, found 2",
            "line 3, meter: \"x1\" is no uint64",
            "line 4, ts: \"2017-02-30T00:00:00Z\" is no time of the form RFC 3339, such as 2026-01-31T18:30:00Z",
            "line 5, kwh: \"nan\" is not a finite number",
            "line 6, meter: \"99999999999999999999\" is out of range for uint64",
            "line 7: not UTF-8",
            "line 10: expected 3 columns, found 4",
        ]
    );
    assert_eq!(outcome.lines, [9]);
    assert_eq!(outcome.rejected[5].raw, "1,2017-07-26T00:15:00Z,\u{fffd}");
    assert!(MaxRejected::default().exceeded(7, 8));
}

#[test]
fn quotes_hold_delimiters_line_ends_and_quotes() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::UInt64)], CsvOptions::default());
    let outcome = read("\"a\",b\n\"x,\r\ny\"\"z\"\"\",\"7\"\r\n\"\",\"\"\n,\"8\"\nin\"ner,9\n\"NUL\0\",10\n", &spec);
    let expected = [Some("x,\r\ny\"z\""), Some(""), None, Some("in\"ner"), Some("NUL\0")];
    assert_eq!(strings(outcome.batch.column(0)), expected.map(|text| text.map(str::to_owned)));
    let numbers: Vec<_> = outcome.batch.column(1).as_primitive::<UInt64Type>().iter().collect();
    assert_eq!(numbers, [Some(7), None, Some(8), Some(9), Some(10)]);
    assert_eq!(outcome.lines, [2, 4, 5, 6, 7]);
    assert_eq!(outcome.raws[0], "\"x,\r\ny\"\"z\"\"\",\"7\"");
}

#[test]
fn returns_in_quotes_stay_where_returns_end_lines() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::UInt64)], CsvOptions::default());
    let outcome = read("a,b\r\"x\ry\",1\r\"p\"\"\rq\",2\r\"u\rv\",bad\rz,3\r", &spec);
    let expected = ["x\ry", "p\"\rq", "z"].map(|text| Some(text.to_owned()));
    assert_eq!(strings(outcome.batch.column(0)), expected);
    assert_eq!(outcome.lines, [2, 4, 8]);
    assert_eq!((outcome.raws[0].as_str(), outcome.rejected[0].raw.as_str()), ("\"x\ry\",1", "\"u\rv\",bad"));
}

#[test]
fn one_ragged_line_does_not_decide_which_columns_a_path_gives() {
    let columns = [("a", FieldType::UInt64), ("b", FieldType::UInt64), ("site", FieldType::Text)];
    let csv = CsvOptions { header: false, ..CsvOptions::default() };
    let spec = SourceSpec { files: vec!["**/*".to_owned()], ..texts(&columns, csv) };
    for (text, rejected) in [("1,2,3\n3,4\n5,6\n", 1), ("1\n3,4\n5,6\n", 1), ("3,4\n5,6\n", 0)] {
        let root = TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("site=A")).unwrap();
        std::fs::write(root.path().join("site=A/a.csv"), text).unwrap();
        let outcome = read_all(&Storage::new(root.path().to_owned(), None), &spec).unwrap();
        assert_eq!(strings(outcome.batch.column(2)), vec![Some("A".to_owned()); 2], "{text}");
        assert_eq!(outcome.rejected.len(), rejected, "{text}");
    }
    // A file that has all columns needs none of its path.
    let root = TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("site=A")).unwrap();
    std::fs::write(root.path().join("site=A/a.csv"), "1,2\n3,4,B\n5,6,C\n").unwrap();
    let outcome = read_all(&Storage::new(root.path().to_owned(), None), &spec).unwrap();
    assert_eq!(strings(outcome.batch.column(2)), [Some("B".to_owned()), Some("C".to_owned())]);
}

#[test]
fn an_open_quote_costs_its_record_and_no_more() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::UInt64)], CsvOptions::default());
    let outcome = read("a,b\n\"x\",1\n\"open,2\ny,3\nz,4\n", &spec);
    assert_eq!(
        outcome.rejects(),
        ["line 3: the quote opened on line 3 is never closed; reading goes on with the line after it"]
    );
    assert_eq!(outcome.rejected[0].raw, "\"open,2");
    assert_eq!(outcome.lines, [2, 4, 5]);
}

#[test]
fn empty_files_have_no_rows_and_headers_are_checked() {
    for empty in ["", "\u{feff}", "\n\r\n"] {
        assert_eq!(read(empty, &spec()).batch.num_rows(), 0, "{empty:?}");
    }
    assert_eq!(read("meter,ts,kwh", &spec()).batch.num_rows(), 0);
    let missing = read_named("a.csv", b"Meter,ts,room\n", &spec()).err().unwrap();
    assert_eq!(
        missing.to_string(),
        "a.csv: no column \"meter\"; the file has Meter, ts, room; did you mean \"Meter\"?"
    );
    let far = read_named("a.csv", b"meter,ts,room\n", &spec()).err().unwrap();
    assert!(
        far.to_string().contains("; correct `columns` or the file, or move a file of another kind out of the pattern"),
        "{far}"
    );
    for delimiter in [';', '\t', '|'] {
        let header = format!("meter{delimiter}\"ts\"{delimiter}kwh\n");
        let other = read_named("a.csv", header.as_bytes(), &spec()).err().unwrap().to_string();
        assert!(other.contains(&format!("its delimiter is {delimiter:?}: set csv.delimiter")), "{other}");
    }
    let twice = read_named("a.csv", b"meter,ts,kwh,ts\n", &spec()).err().unwrap();
    assert!(matches!(twice, SourceError::DuplicateColumn { .. }));
    assert!(matches!(read_named("a.csv", b"meter,\"ts\n", &spec()), Err(SourceError::HeaderQuote { .. })));
}

#[test]
fn blank_lines_and_repeated_headers_are_no_rows() {
    let holds = |name: &str, text: &str, format: Format| {
        let root = TempDir::new().unwrap();
        std::fs::write(root.path().join(name), text).unwrap();
        let storage = Storage::new(root.path().to_owned(), None);
        let spec = SourceSpec { files: vec![name.to_owned()], format: Some(format), ..spec() };
        storage.holds_rows(&spec, &storage.discover(&spec).unwrap()[0]).unwrap()
    };
    for text in ["", "\n", "meter,ts,kwh", "meter,ts,kwh\n\n", "meter,ts,kwh\nmeter,ts,kwh\n"] {
        assert!(!holds("a.csv", text, Format::Csv), "{text:?}");
    }
    for text in ["", " ", " \n", "\t\n\r\n"] {
        assert!(!holds("a.jsonl", text, Format::Json), "{text:?}");
    }
    // Rejected rows are rows.
    assert!(holds("a.csv", "meter,ts,kwh\nx,y,z\n", Format::Csv));
    assert!(holds("a.jsonl", "no json\n", Format::Json));
}

#[test]
fn dialects() {
    let csv = CsvOptions {
        delimiter: b';',
        header: false,
        null: ["", "NA", "?", "-999"].map(str::to_owned).to_vec(),
        comment: Some(b'#'),
        decimal_comma: true,
        ..CsvOptions::default()
    };
    let price = FieldType::Decimal { precision: 10, scale: 2 };
    let columns = [("a", FieldType::Float64), ("b", price), ("c", FieldType::Bool), ("d", FieldType::Text)];
    let outcome =
        read("# made by \"hand\n1,5;600,6;TRUE;x\n#\nNA; ? ;f;?\n-999;-999;no;NA \n1.5;1;1;y\n", &texts(&columns, csv));
    assert_eq!(floats(outcome.batch.column(0)), [Some(1.5), None, None]);
    let prices = outcome.batch.column(1).as_primitive::<Decimal128Type>();
    assert_eq!(prices.iter().collect::<Vec<_>>(), [Some(60060), None, None]);
    assert_eq!(outcome.batch.column(2).as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false), Some(false)]);
    assert_eq!(strings(outcome.batch.column(3)), [Some("x".to_owned()), None, Some("NA ".to_owned())]);
    assert_eq!(outcome.rejects(), ["line 6, a: \"1.5\" is no float64"]);
    assert_eq!(outcome.lines, [2, 4, 5]);
}

#[test]
fn clock_changes_of_a_zone() {
    let mut spec = spec();
    spec.columns[1].format = Some("%d/%m/%Y %H:%M".to_owned());
    spec.columns[1].timezone = Some(Europe::Paris);
    let outcome = read("meter,ts,kwh\n1,28/03/2021 02:30,1\n2,31/10/2021 02:30,1\n", &spec);
    assert_eq!(
        outcome.rejects(),
        ["line 2, ts: \"28/03/2021 02:30\" does not exist in Europe/Paris: the clocks go forward over it"]
    );
    let ts = outcome.batch.column(1).as_primitive::<TimestampMicrosecondType>().value(0);
    assert_eq!(ts, 1_635_640_200_000_000);
}

#[test]
fn compressed_files() {
    let text = "meter,ts,kwh\n1,2017-07-26T00:15:00Z,2\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("a.csv.gz", &gzip), ("a.csv", &gzip), ("a.csv.zst", &zstd), ("a.txt", &zstd)] {
        assert_eq!(read_named(name, bytes, &spec()).unwrap().batch.num_rows(), 1, "{name}");
    }
    let cut = read_named("a.csv.gz", &gzip[..gzip.len() - 9], &spec());
    assert!(matches!(cut, Err(SourceError::Compression { codec: "gzip", .. })));
    let cut = read_named("a.csv", &zstd[..zstd.len() - 5], &spec());
    assert!(matches!(cut, Err(SourceError::Compression { codec: "zstd", .. })));
    assert!(matches!(read_named("a.csv.gz", text.as_bytes(), &spec()), Err(SourceError::NotCompressed { .. })));
    let twice = [gzip, zstd::encode_all(&b""[..], 1).unwrap()];
    assert!(read_named("a.csv", &twice.concat(), &spec()).is_err());
}

/// A cell may have 100 MiB, quoted or not.
#[test]
fn cells_of_a_hundred_mebibytes_are_read() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::UInt64)], CsvOptions::default());
    let large = "x".repeat(100 << 20);
    for text in [format!("a,b\ny,1\n{large},2\nz,3\n"), format!("a,b\ny,1\n\"{large}\",2\nz,3\n")] {
        let outcome = read(&text, &spec);
        let lengths: Vec<usize> = outcome.batch.column(0).as_string::<i32>().iter().flatten().map(str::len).collect();
        assert_eq!((lengths, outcome.rejected.len()), (vec![1, 100 << 20, 1], 0));
    }
}

#[test]
fn chunk_size_changes_nothing() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::UInt64)], CsvOptions::default());
    let text = "\u{feff}\na,b\nx,1\r\n\"two\nlines \"\"\"\"\",2\n\n,x\ny,3,4\n\"open,4\nlast,5";
    let root = TempDir::new().unwrap();
    std::fs::write(root.path().join("a.csv"), text).unwrap();
    let whole = read(text, &spec);
    assert_eq!((whole.lines.as_slice(), whole.rejected.len()), (&[3, 4, 10][..], 3));
    for size in 1..text.len() + 2 {
        let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(size);
        let outcome = read_all(&storage, &spec).unwrap();
        assert_eq!(outcome.batch, whole.batch, "{size}");
        assert_eq!(
            (outcome.rejected, outcome.lines, outcome.raws),
            (whole.rejected.clone(), whole.lines.clone(), whole.raws.clone())
        );
    }
}

#[test]
fn files_are_found_in_order_and_once() {
    let root = TempDir::new().unwrap();
    for name in ["in/b/2017-07-26.csv", "in/a/2017-07-27.csv", "in/.hidden.csv", "in/x.parquet", "in/x.bin"] {
        std::fs::create_dir_all(root.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(root.path().join(name), "a").unwrap();
    }
    let storage = Storage::new(root.path().to_owned(), None);
    let find = |files: &[&str]| {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        storage.discover(&SourceSpec { files, ..spec() })
    };
    let paths = |files: &[&str]| find(files).unwrap().into_iter().map(|input| input.path).collect::<Vec<_>>();
    assert_eq!(
        paths(&["in/x.p*", "in/*/*.csv", "**/*.csv"]),
        ["in/x.parquet", "in/a/2017-07-27.csv", "in/b/2017-07-26.csv"]
    );
    let inputs = find(&["./in/*/{day:%F}.csv"]).unwrap();
    assert_eq!(inputs[0].day, chrono::NaiveDate::from_ymd_opt(2017, 7, 27));
    let absolute = root.path().join("in/b/*.csv").display().to_string();
    assert_eq!(find(&[&absolute]).unwrap(), find(&[&format!("file://{absolute}")]).unwrap());
    let some = SourceSpec { files: vec!["out/*.csv".to_owned(), "in/a/*.csv".to_owned()], ..spec() };
    let some = storage.find(&some).unwrap();
    assert_eq!((some.files.len(), some.unmatched), (1, vec!["out/*.csv".to_owned()]));
    let none = find(&["in/a/*.csv", "out/*.csv"]).unwrap_err();
    assert!(none.to_string().contains("\"out/*.csv\""), "{none}");
    assert!(matches!(find(&["in/x.bin"]), Err(SourceError::UnknownFormat { .. })));
    assert!(matches!(find(&["s3://bucket/*.csv"]), Err(SourceError::NoRuntime { .. })));
}

#[test]
fn objects_are_read_as_files_are() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let put = |key: &str, bytes: Vec<u8>| {
        runtime.block_on(store.put(&key.into(), bytes.into())).unwrap();
    };
    let rows = "1,2017-07-26T00:15:00Z,2\n".repeat(500_000);
    put("in/2017-07-26.csv", format!("meter,ts,kwh\n{rows}").into_bytes());
    put("in/deep/2017-07-26.csv", Vec::new());
    put("in/a.parquet", parquet_bytes(&outcome_batch(), 10));
    let storage = Storage::new(".".into(), Some(runtime.handle().clone())).with_store("memory://", Arc::clone(&store));
    let spec = |file: &str| SourceSpec { files: vec![format!("memory:///{file}")], ..spec() };
    let csv = spec("in/{day:%Y-%m-%d}.csv");
    let found = storage.discover(&csv).unwrap();
    assert_eq!((found.len(), found[0].path.as_str()), (1, "memory:///in/2017-07-26.csv"));
    assert_eq!(read_all(&storage, &csv).unwrap().batch.num_rows(), 500_000);
    assert_eq!(read_all(&storage, &spec("in/a.parquet")).unwrap().batch.num_rows(), 2);
    assert!(matches!(storage.discover(&spec("in/b.csv")), Err(SourceError::NoMatch { .. })));
    put("in/2017-07-26.csv", b"meter,ts,kwh\n".to_vec());
    assert!(storage.hash(&found[0]).is_err(), "the object has changed");
    assert!(matches!(
        storage.discover(&SourceSpec { files: vec!["ftp://x/y.csv".to_owned()], ..csv }),
        Err(SourceError::Location(_))
    ));
}

#[test]
fn hashing_ends_with_the_piece_after_which_nobody_wants_more() {
    let root = TempDir::new().unwrap();
    let whole = parquet_bytes(&outcome_batch(), 10);
    std::fs::write(root.path().join("a.parquet"), &whole).unwrap();
    // No blocks of it are on the disk.
    std::fs::File::create(root.path().join("a.csv")).unwrap().set_len(64 << 20).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let wanted = |most: usize| {
        let asked = Arc::clone(&asked);
        asked.store(0, Ordering::Relaxed);
        let storage = Storage::new(root.path().into(), None);
        storage.with_stop_check(move || asked.fetch_add(1, Ordering::Relaxed) < most)
    };
    let found = |file: &str| {
        let spec = SourceSpec { files: vec![file.to_owned()], ..spec() };
        (Storage::new(root.path().into(), None).discover(&spec).unwrap().remove(0), spec)
    };
    let (text, _) = found("a.csv");
    assert!(matches!(wanted(3).hash(&text), Err(SourceError::Io { .. })));
    assert_eq!(asked.load(Ordering::Relaxed), 4, "pieces");
    let (parquet, spec) = found("a.parquet");
    let read =
        |storage: Storage| storage.open(&spec, &parquet).unwrap().collect::<Result<Vec<_>, _>>().map(|all| all.len());
    assert!(read(wanted(0)).is_err(), "the hash of a Parquet file, which comes at its end");
    assert_eq!(read(wanted(2)).unwrap(), 1);
}

fn parquet_bytes(batch: &RecordBatch, group: usize) -> Vec<u8> {
    let properties =
        ::parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut bytes = Vec::new();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn outcome_batch() -> RecordBatch {
    use arrow::array::{Float32Array, Int32Array, StringArray, TimestampMillisecondArray};
    let columns: [(&str, ArrayRef); 4] = [
        ("kwh", Arc::new(Float32Array::from(vec![Some(1.5), None, Some(f32::INFINITY)]))),
        ("room", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![1, -1, 2]))),
        ("meter", Arc::new(Int32Array::from(vec![7, 8, 9]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn read_parquet(batch: &RecordBatch, group: usize, spec: &SourceSpec) -> Result<Outcome, SourceError> {
    read_named("a.parquet", &parquet_bytes(batch, group), spec)
}

/// The reader of Arrow's schema, which a footer holds in base64, panics on some damage.
#[test]
fn no_damage_of_a_footer_passes_the_boundary() {
    let whole = parquet_bytes(&outcome_batch(), 10);
    let key = b"ARROW:schema";
    let start = whole.windows(key.len()).rposition(|window| window == key).unwrap();
    let mut panicked = 0;
    for at in start..whole.len() - 8 {
        for byte in [b'A', 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            if let Err(error) = read_named("a.parquet", &damaged, &spec()) {
                assert!(error.to_string().starts_with("a.parquet: "), "{at}: {error}");
                panicked += usize::from(matches!(error, SourceError::Panicked { .. }));
            }
        }
    }
    assert!(panicked > 0, "no damage makes the reader panic any more: is the boundary still needed?");
}

#[test]
fn parquet_types_become_the_declared_ones() {
    let outcome = read_parquet(&outcome_batch(), 2, &spec()).unwrap();
    assert_eq!(floats(outcome.batch.column(2)), [Some(1.5), None]);
    assert_eq!(outcome.batch.column(0).as_primitive::<UInt64Type>().values().to_vec(), [7, 8]);
    assert_eq!(outcome.batch.column(1).as_primitive::<TimestampMicrosecondType>().values().to_vec(), [1000, -1000]);
    assert_eq!(outcome.rejects(), ["line 3, kwh: \"inf\" is not a finite number"]);
    assert_eq!(outcome.lines, [1, 2]);
    assert_eq!(outcome.raws[1], "{\"kwh\": null, \"ts\": \"1969-12-31T23:59:59.999\", \"meter\": 8}");
}

#[test]
fn floats_become_decimals_by_their_shortest_digits() {
    use arrow::array::{Float32Array, Float64Array, TimestampMillisecondArray};

    let columns: [(&str, ArrayRef); 3] = [
        ("single", Arc::new(Float32Array::from(vec![0.1, 1e7, f32::NAN, 2.5]))),
        ("double", Arc::new(Float64Array::from(vec![Some(-3.21), Some(1e-2), None, Some(0.125)]))),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![1, 2, 3, 4]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let price = FieldType::Decimal { precision: 10, scale: 2 };
    let spec = texts(&[("single", price), ("double", price), ("ts", FieldType::Timestamp)], CsvOptions::default());
    let outcome = read_parquet(&batch, 100, &spec).unwrap();
    let decimals = |column: usize| {
        let values = outcome.batch.column(column).as_primitive::<Decimal128Type>();
        values.iter().collect::<Vec<_>>()
    };
    assert_eq!(decimals(0), [Some(10), Some(1_000_000_000), None]);
    assert_eq!(decimals(1), [Some(-321), Some(1), None]);
    assert_eq!(outcome.rejects(), ["line 4, double: \"0.125\" has more than 2 digits after the point"]);
}

#[test]
fn parquet_values_that_do_not_fit_reject_their_row() {
    use arrow::array::{
        Decimal128Array, DictionaryArray, Int64Array, LargeStringArray, StringViewArray, TimestampNanosecondArray,
    };
    use arrow::datatypes::Int32Type;
    let words: DictionaryArray<Int32Type> = ["x", "y", "x", "z"].into_iter().collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("count", Arc::new(Int64Array::from(vec![1, -2, 3, 1 << 60]))),
        ("price", Arc::new(Decimal128Array::from(vec![15, 20, 35, 999_999]).with_precision_and_scale(9, 1).unwrap())),
        ("word", Arc::new(words)),
        ("wide", Arc::new(StringViewArray::from(vec![Some("a"), None, Some(""), Some("d")]))),
        ("number", Arc::new(LargeStringArray::from(vec!["1", "2", "", "x"]))),
        ("ts", Arc::new(TimestampNanosecondArray::from(vec![1_616_898_600_000_000_000, 1999, -1, 0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let declare = |columns: &[(&str, FieldType)]| texts(columns, CsvOptions::default());
    let price = FieldType::Decimal { precision: 6, scale: 2 };
    let mut spec = declare(&[
        ("word", FieldType::Text),
        ("count", FieldType::UInt64),
        ("price", price),
        ("wide", FieldType::Text),
        ("number", FieldType::Int64),
        ("ts", FieldType::Timestamp),
    ]);
    let outcome = read_parquet(&batch, 100, &spec).unwrap();
    assert_eq!(
        outcome.rejects(),
        [
            "line 2, count: \"-2\" is out of range for uint64",
            "line 4, price: \"99999.9\" is out of range for decimal(6,2)"
        ]
    );
    assert_eq!(outcome.lines, [1, 3]);
    assert_eq!(strings(outcome.batch.column(0)), [Some("x".to_owned()), Some("x".to_owned())]);
    assert_eq!(strings(outcome.batch.column(3)), [Some("a".to_owned()), Some(String::new())]);
    assert_eq!(outcome.batch.column(2).as_primitive::<Decimal128Type>().values().to_vec(), [150, 350]);
    assert_eq!(outcome.batch.column(4).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!(
        outcome.batch.column(5).as_primitive::<TimestampMicrosecondType>().values().to_vec(),
        [1_616_898_600_000_000, -1]
    );
    assert_eq!(outcome.batch.column(0).data_type(), &DataType::Utf8);

    // 2021-03-28 02:30 is skipped in Paris.
    spec.columns[5].timezone = Some(Europe::Paris);
    let outcome = read_parquet(&batch, 100, &spec).unwrap();
    assert!(outcome.rejects()[0].contains("does not exist in Europe/Paris"), "{:?}", outcome.rejects());

    let floats = read_parquet(&batch, 100, &declare(&[("count", FieldType::Float64)])).unwrap();
    assert_eq!((floats.batch.num_rows(), floats.rejected.len()), (4, 0));
    let hopeless = read_parquet(&batch, 100, &declare(&[("ts", FieldType::Bool)])).err().unwrap();
    assert!(matches!(hopeless, SourceError::ColumnType { .. }), "{hopeless}");
    let missing = read_parquet(&batch, 100, &declare(&[("counts", FieldType::Int64)])).err().unwrap();
    assert!(missing.to_string().contains("did you mean \"count\"?"), "{missing}");
    assert!(matches!(read_named("a.parquet", b"PAR1", &spec), Err(SourceError::ParquetUnfinished { .. })));
}

#[test]
fn large_row_groups_are_sliced() {
    let rows = 300_000u64;
    let meters: ArrayRef = Arc::new(arrow::array::UInt64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter([("meter", meters)]).unwrap();
    let spec = texts(&[("meter", FieldType::UInt64)], CsvOptions::default());
    let outcome = read_parquet(&batch, 200_000, &spec).unwrap();
    assert_eq!(outcome.batch, RecordBatch::try_new(outcome.batch.schema(), batch.columns().to_vec()).unwrap());
    assert_eq!(outcome.lines.last(), Some(&rows));
}

#[test]
fn specs_are_checked() {
    let twice = SourceSpec { columns: vec![ColumnSpec::new("a", FieldType::Text); 2], ..spec() };
    assert!(matches!(twice.check(), Err(SourceError::DeclaredTwice { .. })));
    let csv = |delimiter, quote, comment| {
        let csv = CsvOptions { delimiter, quote, comment, ..CsvOptions::default() };
        SourceSpec { csv, ..spec() }.check()
    };
    assert!(csv(b';', None, Some(b'#')).is_ok());
    for wrong in
        [csv(0xA7, None, None), csv(b'\n', None, None), csv(b'"', Some(b'"'), None), csv(b',', None, Some(b','))]
    {
        assert!(matches!(wrong, Err(SourceError::CsvOption { .. })));
    }
    let mut formats = spec();
    formats.columns[1].format = Some("%Y-%m %H".to_owned());
    assert_eq!(
        formats.check().unwrap_err().to_string(),
        "column \"ts\": format \"%Y-%m %H\": it must give a day (year, month and day), or a year, quarter or month without a \
         time of day, or %s"
    );
    assert_eq!(MaxRejected::parse("0.1%").unwrap(), MaxRejected::default());
    assert_eq!(MaxRejected::parse("100").unwrap(), MaxRejected::Count(100));
    assert!(MaxRejected::parse("a few").is_err() && MaxRejected::parse("101%").is_err());
    assert!(!MaxRejected::Percent(0.1).exceeded(1, 1000) && MaxRejected::Percent(0.1).exceeded(2, 1000));
    let hash = ContentHash(0xAB);
    assert_eq!(hash.to_string().parse::<ContentHash>().unwrap(), hash);
    assert!("+0000000000000000000000000000001".parse::<ContentHash>().is_err());
}
