use arrow::array::{Array, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use tidetable_layout::FieldType;

use crate::error::SourceError;
use crate::read::HeldContent;
use crate::reader_version::ReaderVersion;
use crate::reject::Rejected;
use crate::sample::Sample;
use crate::spec::{ColumnSpec, CsvOptions, Preset, SchemaMode, SourceSpec};
use crate::storage::Storage;
use crate::text_shape::TextShape;

/// The columns of the accepted events as text, one line an event, and the rejected ones.
fn read(text: &[u8], spec: &SourceSpec) -> Result<(Vec<String>, Vec<String>), SourceError> {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.jsonl"), text).unwrap();
    let mut found = Vec::new();
    for chunk_bytes in [1, 40, 1 << 20] {
        let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(chunk_bytes);
        let input = storage.discover(spec)?.remove(0);
        let mut reader = storage.open(spec, &input)?;
        let parser = reader.parser();
        let (mut batches, mut lines, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in &mut reader {
            let parsed = parser.parse(chunk?)?;
            lines.extend((0..parsed.batch.num_rows()).map(|row| parsed.origin.line(row)));
            rejected.extend(parsed.rejected.iter().map(Rejected::to_string));
            batches.push(parsed.batch);
        }
        assert_eq!((reader.content_hash(), reader.bytes_read()), (storage.hash(&input)?, input.size));
        let batch = concat_batches(parser.schema(), &batches).unwrap();
        let rows = (0..batch.num_rows()).map(|row| {
            let values = batch.columns().iter().map(|column| match column.is_null(row) {
                true => "null".to_owned(),
                false => match column.as_primitive_opt::<TimestampMicrosecondType>() {
                    Some(times) => times.value(row).to_string(),
                    None => arrow::util::display::array_value_to_string(column, row).unwrap(),
                },
            });
            format!("{}: {}", lines[row], values.collect::<Vec<_>>().join(" "))
        });
        found.push((rows.collect::<Vec<_>>(), rejected));
    }
    assert!(found.windows(2).all(|two| two[0] == two[1]), "{found:?}");
    Ok(found.remove(0))
}

fn spec(columns: &[(&str, FieldType)]) -> SourceSpec {
    let columns = columns.iter().map(|(name, kind)| ColumnSpec::new(*name, *kind)).collect();
    SourceSpec { files: vec!["*".to_owned()], columns, mode: SchemaMode::Evolve, ..SourceSpec::default() }
}

fn accepted(text: &str, spec: &SourceSpec) -> Vec<String> {
    let (rows, rejected) = read(text.as_bytes(), spec).unwrap();
    assert!(rejected.is_empty(), "{rejected:?}");
    rows
}

#[test]
fn values_are_what_they_are_written_as() {
    let spec = spec(&[
        ("ts", FieldType::Timestamp),
        ("n", FieldType::Int64),
        ("v", FieldType::Float64),
        ("price", FieldType::Decimal { precision: 10, scale: 2 }),
        ("ok", FieldType::Bool),
        ("s", FieldType::Text),
    ]);
    let text = "\u{feff}{\"ts\":\"2020-01-01T00:00:00Z\",\"n\":1,\"v\":1.50,\"price\":2.10,\"ok\":true,\"s\":\"a\\u00e9\\n\\\"\"}\r\n\
                \n  \t\n\
                { \"s\" : \"\" , \"v\":\"2.5\", \"ts\":\"2020-01-01 00:00:00\", \"n\":null, \"other\":{\"x\":[1,{}]} }\n\
                {\"s\":1.10,\"n\":9223372036854775807,\"v\":NaN}\n\
                {\"s\":{\"a\": [1]},\"v\":1e3}";
    assert_eq!(
        accepted(text, &spec),
        [
            "1: 1577836800000000 1 1.5 2.10 true aé\n\"",
            "4: 1577836800000000 null 2.5 null null ",
            "5: null 9223372036854775807 null null null 1.10",
            "6: null null 1000.0 null null {\"a\": [1]}",
        ]
    );
}

#[test]
fn rejects_have_line_and_byte() {
    let spec = spec(&[("n", FieldType::UInt64), ("v", FieldType::Float64)]);
    let text = b"{\"n\":1,\"v\":1}\n{\"n\":-1,\"v\":2}\n{\"n\":1.0}\n{\"n\":3,\"v\":Infinity}\n{\"n\":4,\"n\":5}\n[1,2]\n{\"n\":6}}\n\
        {\"n\":\n7}\n{\"n\":08}\n{\"n\":\"\\x\"}\n{\"n\":\"\xFF\"}\n{\"n\":9,\"v\":\"2\"}\nnull\n";
    let (rows, rejected) = read(text, &spec).unwrap();
    assert_eq!(rows, ["1: 1 1.0", "13: 9 2.0"]);
    assert_eq!(
        rejected,
        [
            "line 2, n: \"-1\" is out of range for uint64",
            "line 3, n: \"1.0\" is no uint64",
            "line 4, v: \"Infinity\" is not a finite number",
            "line 5: the key \"n\" is there twice",
            "line 6: not JSON at byte 1 of the line: a record is an object in braces",
            "line 7: not JSON at byte 8 of the line: text follows the object",
            "line 8: not JSON at byte 6 of the line: the line ends within the object; write each object on one line, as `jq -c` does",
            "line 9: not JSON at byte 1 of the line: a record is an object in braces",
            "line 10: not JSON at byte 6 of the line: a number begins with 0: write it in quotes",
            "line 11, n: not JSON at byte 7 of the line: an escape stands for no character",
            "line 12: not UTF-8",
            "line 14: not JSON at byte 1 of the line: a record is an object in braces",
        ]
    );
}

#[test]
fn names_lead_into_objects_and_arrays() {
    let spec = spec(&[("a.b", FieldType::Int64), ("a", FieldType::Text), ("at.0", FieldType::Float64)]);
    let text = "{\"a\":{\"b\":1},\"at\":[1.5,2]}\n{\"a.b\":2,\"a\":\"x\"}\n{\"a\":{\"b\":3},\"a.b\":4}\n{\"a\":[1,{\"b\":2}],\"at\":7}\n";
    assert_eq!(
        accepted(text, &spec),
        ["1: 1 {\"b\":1} 1.5", "2: 2 x null", "3: 4 {\"b\":3} null", "4: null [1,{\"b\":2}] null"]
    );
}

#[test]
fn null_markers_hold_for_numbers_and_nan_is_null() {
    let csv = CsvOptions { null: vec![String::new(), "-9999".to_owned(), "n/a".to_owned()], ..CsvOptions::default() };
    let mut spec = SourceSpec { csv, ..spec(&[("v", FieldType::Float64), ("s", FieldType::Text)]) };
    let text = "{\"v\":-9999.0,\"s\":\"n/a\"}\n{\"v\":\"n/a\",\"s\":null}\n{\"v\":NaN,\"s\":\"x\"}\n";
    assert_eq!(accepted(text, &spec), ["1: null n/a", "2: null null", "3: null x"]);
    spec.rejects_nan = true;
    assert_eq!(read(text.as_bytes(), &spec).unwrap().1, ["line 3, v: \"NaN\" is not a finite number"]);
}

#[test]
fn columns_that_no_record_has_follow_the_schema_mode() {
    let mut spec = spec(&[("n", FieldType::Int64), ("speed", FieldType::Float64)]);
    let text = "{\"n\":1,\"sped\":2}\n{\"n\":2}\n";
    assert_eq!(accepted(text, &spec), ["1: 1 null", "2: 2 null"]);
    spec.mode = SchemaMode::Freeze;
    let error = read(text.as_bytes(), &spec).unwrap_err().to_string();
    assert!(error.contains("no column \"speed\"; the file has n, sped; did you mean \"sped\"?"), "{error}");
    spec.mode = SchemaMode::Reject;
    let (rows, rejected) = read(text.as_bytes(), &spec).unwrap();
    assert_eq!((rows.len(), rejected.len()), (0, 2));
    assert!(rejected[1].contains("it lacks speed; has also sped"), "{rejected:?}");
    for empty in ["", "\n \n"] {
        assert_eq!(accepted(empty, &SourceSpec { mode: SchemaMode::Freeze, ..spec.clone() }), [""; 0]);
    }
}

#[test]
fn elements_of_lists_are_events() {
    let columns = [("host", FieldType::Text), ("samples.v", FieldType::Float64), ("samples.tags", FieldType::Text)];
    let mut each = SourceSpec { each: vec!["samples".to_owned()], ..spec(&columns) };
    let text = "{\"samples\":[{\"v\":1},{\"v\":\"x\"},{\"v\":2,\"tags\":[3]}],\"host\":\"a\"}\n\
                {\"host\":\"b\",\"samples\":[]}\n{\"host\":\"c\"}\n{\"host\":\"d\",\"samples\":{\"v\":4}}\n\
                {\"host\":\"e\",\"samples\":null}\n";
    let (rows, rejected) = read(text.as_bytes(), &each).unwrap();
    assert_eq!(rows, ["1: a 1.0 null", "1: a 2.0 [3]", "4: d 4.0 null"]);
    assert_eq!(
        rejected,
        [
            "line 1, samples.v: \"x\" is no float64",
            "line 3: there is no list \"samples\", which `each` names",
            "line 5: there is no list \"samples\", which `each` names",
        ]
    );
    each.each = vec!["sample".to_owned()];
    let error = read(text.as_bytes(), &each).unwrap_err().to_string();
    assert!(error.contains("no record has the list \"sample\" that `each` names"), "{error}");
}

#[test]
fn lists_inside_each_other_and_side_by_side_are_events() {
    let nested = SourceSpec {
        each: vec!["r.s".to_owned()],
        ..spec(&[("r.name", FieldType::Text), ("r.s.v", FieldType::Int64), ("all", FieldType::Int64)])
    };
    let text = "{\"r\":[{\"s\":[{\"v\":1},{\"v\":2}],\"name\":\"x\"},{\"name\":\"y\",\"s\":[]},{\"name\":\"z\",\"s\":[{\"v\":3}]}],\"all\":9}\n";
    assert_eq!(accepted(text, &nested), ["1: x 1 9", "1: x 2 9", "1: z 3 9"]);

    let columns =
        [("metric.__name__", FieldType::Text), ("values", FieldType::Float64), ("timestamps", FieldType::Int64)];
    let export = SourceSpec { preset: Some(Preset::VictoriaMetrics), ..spec(&columns) };
    let text = "{\"metric\":{\"__name__\":\"up\"},\"values\":[1,null,0.5],\"timestamps\":[10,20,30]}\n\
                {\"metric\":{\"__name__\":\"up\"},\"values\":[1],\"timestamps\":[10,20]}\n";
    let (rows, rejected) = read(text.as_bytes(), &export).unwrap();
    assert_eq!(rows, ["1: up 1.0 10", "1: up null 20", "1: up 0.5 30"]);
    assert_eq!(rejected, ["line 2: the lists of `each` have different lengths: 1 and 2"]);

    let pairs = SourceSpec {
        each: vec!["values".to_owned()],
        ..spec(&[("values.0", FieldType::Int64), ("values.1", FieldType::Float64)])
    };
    assert_eq!(
        accepted("{\"values\":[[1,\"0.5\"],[2,\"NaN\"]]}\n{\"values\":[]}\n", &pairs),
        ["1: 1 0.5", "1: 2 null"]
    );
}

#[test]
fn batches_of_opentelemetry_are_events() {
    let columns = [
        ("resource.service.name", FieldType::Text),
        ("name", FieldType::Text),
        ("attributes.cpu", FieldType::Text),
        ("value", FieldType::Float64),
    ];
    let otel = SourceSpec { preset: Some(Preset::Otel), ..spec(&columns) };
    let line = r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},"scopeMetrics":[{"metrics":[{"name":"load","gauge":{"dataPoints":[{"attributes":[{"key":"cpu","value":{"intValue":"0"}}],"timeUnixNano":"1","asInt":"5"},{"timeUnixNano":"2","asDouble":"much"}]}}]}]}]}"#;
    let (rows, rejected) = read(format!("{line}\n{{\"resourceMetrics\":[\n{line}\n").as_bytes(), &otel).unwrap();
    assert_eq!(rows, ["1: web load 0 5.0", "3: web load 0 5.0"]);
    assert_eq!(rejected.len(), 3, "{rejected:?}");
    assert_eq!(rejected[0], "line 1, value: \"much\" is no float64");
    assert!(rejected[1].starts_with("line 2: not JSON at byte 21 of the line"), "{rejected:?}");
}

#[test]
fn other_files_are_called_by_their_names() {
    let spec = spec(&[("n", FieldType::Int64)]);
    let error = |bytes: &[u8]| read(bytes, &spec).unwrap_err().to_string();
    assert!(error(b" [\n {\"n\":1}]").contains("jq -c '.[]' a.jsonl > NEW.jsonl"));
    assert!(error(b"PAR1\x15\x04\x15").contains("this is Parquet"));
    assert!(error(b"\x28\xB5\x2F\xFD\x00").contains("decompressing zstd"));
}

#[test]
fn a_file_grows_by_lines() {
    let root = tempfile::tempdir().unwrap();
    let spec = spec(&[("n", FieldType::Int64)]);
    let storage = Storage::new(root.path().to_owned(), None);
    let text = "{\"n\":1}\n{\"n\":\"x\"}\n{\"n\":3}\n";
    for size in 1..text.len() {
        let write = |bytes: &str| {
            std::fs::write(root.path().join("a.jsonl"), bytes).unwrap();
            storage.discover(&spec).unwrap().remove(0)
        };
        let before = write(&text[..size]);
        let hash = storage.hash(&before).unwrap();
        let held = HeldContent {
            size: size as u64,
            hash,
            reader: ReaderVersion::CURRENT,
            breaks: Vec::new(),
            shape: TextShape::default(),
        };
        let growth = storage.growth(&spec, &write(text), &[held]).unwrap().unwrap();
        let whole = text[..size].ends_with('\n') || text[size..].starts_with('\n');
        let next = if text[..size].ends_with('\n') { size } else { size + 1 };
        assert_eq!(growth.from, whole.then_some(next as u64), "{size}");
        assert_eq!(growth.new_break, None);
    }
}

fn sample(name: &str, text: &str) -> Sample {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join(name), text).unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let spec = SourceSpec { files: vec![name.to_owned()], ..SourceSpec::default() };
    storage.sample(&storage.discover(&spec).unwrap().remove(0), None).unwrap()
}

#[test]
fn declarations_are_proposed() {
    let columns = |sample: &Sample| {
        sample.spec.columns.iter().map(|column| format!("{} {}", column.name, column.kind)).collect::<Vec<_>>()
    };
    let flat: String = (0..9)
        .map(|at| format!("{{\"ts\":\"2020-01-01T00:0{at}:00Z\",\"at\":{{\"host\":\"h{at}\"}},\"v\":{at}.5}}\n"))
        .collect();
    let flat = sample("a.json", &flat);
    assert_eq!(columns(&flat), ["ts timestamp", "at.host text", "v decimal(10,1)"]);
    assert_eq!((flat.spec.mode, flat.rejected), (SchemaMode::Freeze, 0));

    let uneven = sample(
        "a.jsonl",
        "{\"ts\":1600000000,\"v\":1,\"tags\":[\"x\"]}\n{\"ts\":1600000060}\n{\"ts\":1600000120,\"v\":1}\n",
    );
    assert_eq!((uneven.spec.mode, uneven.left_out), (SchemaMode::Evolve, vec!["tags (List)".to_owned()]));

    let lists =
        sample("a.jsonl", "{\"host\":\"a\",\"s\":[{\"ts\":1600000000,\"v\":1.5},{\"ts\":1600000060,\"v\":2.5}]}\n");
    assert_eq!((columns(&lists)[1].as_str(), lists.spec.each.clone()), ("s.ts timestamp", vec!["s".to_owned()]));

    let export = "{\"metric\":{\"__name__\":\"up\",\"job\":\"x\"},\"values\":[1,0.5],\"timestamps\":[1600000000000,1600000060000]}\n";
    let export = sample("a.jsonl", export);
    assert_eq!(export.spec.preset, Some(Preset::VictoriaMetrics));
    assert_eq!(columns(&export)[3], "timestamps timestamp");
    assert_eq!(export.batches[0].column(2).as_primitive::<Float64Type>().values(), &[1.0, 0.5]);

    let batch = r#"{"resourceLogs":[{"resource":{},"scopeLogs":[{"logRecords":[{"timeUnixNano":"1600000000000000000","severityNumber":9},{"timeUnixNano":"1600000060000000000","severityNumber":10}]}]}]}"#;
    let batch = sample("a.jsonl", batch);
    assert_eq!((batch.spec.preset, columns(&batch)[0].as_str()), (Some(Preset::Otel), "timeUnixNano timestamp"));
    assert_eq!(batch.batches[0].column(1).as_primitive::<Int64Type>().values(), &[9, 10]);
}
