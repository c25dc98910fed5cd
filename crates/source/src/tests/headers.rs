//! Headers inside a file, by which reading goes on.

use super::*;
use crate::spec::SchemaMode;

fn two_columns() -> SourceSpec {
    texts(
        &[("ts", FieldType::Timestamp), ("temp", FieldType::Float64), ("hum", FieldType::Float64)],
        CsvOptions::default(),
    )
}

/// `temp` and `hum` of a row.
type Values = [Option<f64>; 2];

/// The values of each row, and the rejected lines.
fn values(text: &str, spec: &SourceSpec, chunk_bytes: usize) -> Result<(Vec<Values>, Vec<u64>), SourceError> {
    let root = TempDir::new().unwrap();
    std::fs::write(root.path().join("a.csv"), text).unwrap();
    let outcome = read_all(&Storage::new(root.path().to_owned(), None).with_chunk_bytes(chunk_bytes), spec)?;
    let [temp, hum] = ["temp", "hum"].map(|name| floats(outcome.batch.column_by_name(name).unwrap()));
    let rows = temp.into_iter().zip(hum).map(|(temp, hum)| [temp, hum]).collect();
    Ok((rows, outcome.rejected.iter().map(|row| row.line).collect()))
}

#[test]
fn a_header_inside_a_file_rules_the_rows_below_it() {
    let rows = |order: [&str; 2]| {
        let row =
            |at: u32| order.map(|name| if name == "temp" { format!("2{at}") } else { format!("5{at}") }).join(",");
        (0..4).map(|at| format!("2021-04-01T00:0{at}:00Z,{}\n", row(at))).collect::<String>()
    };
    let (first, swapped) = (rows(["temp", "hum"]), rows(["hum", "temp"]));
    let wanted = |times: usize| {
        let once = (0..4).map(|at| [Some(f64::from(20 + at)), Some(f64::from(50 + at))]);
        once.collect::<Vec<_>>().repeat(times)
    };
    for (header, again) in [
        ("ts,temp,hum", "ts,hum,temp"),
        ("ts,temp,hum", " ts, hum ,temp\r"),
        ("\"ts\",\"temp\",\"hum\"", "\"ts\",\"hum\",\"temp\""),
        ("ts,temp,hum", "\u{feff}ts,hum,temp"),
    ] {
        let text = format!("{header}\n{first}{again}\n{swapped}{again}\n{swapped}{header}\n{first}");
        for chunk_bytes in [1, 40, 300, 1 << 20] {
            let found = values(&text, &two_columns(), chunk_bytes).unwrap();
            assert_eq!(found, (wanted(4), Vec::new()), "{again:?} {chunk_bytes}");
        }
    }

    // A quoted field is no header, whatever its lines are; neither is a row with such words.
    let spec = texts(&[("ts", FieldType::Timestamp), ("note", FieldType::Text)], CsvOptions::default());
    let time = "2021-04-01T00:00:00Z";
    let found = read(&format!("ts,note\n{time},\"\nnote,ts\n\"\n{time},ts\n{time},note\n"), &spec);
    assert_eq!(found.batch.num_rows(), 3);
    assert_eq!(strings(found.batch.column(1))[1..], [Some("ts".to_owned()), Some("note".to_owned())]);
    // Nor is a header with a stray quote, which is rejected as other rows are.
    let found = values(&format!("ts,temp,hum\n{time},1,2\nts,temp,\"x,hum\n{time},3,4\n"), &two_columns(), 1 << 20);
    let (rows, rejected) = found.unwrap();
    assert_eq!((rows.len(), rejected), (2, vec![3]));
}

#[test]
fn a_header_with_other_names_is_read_by_the_schema_mode() {
    let time = "2021-04-01T00:00:00Z";
    let text = format!("ts,temp,hum\n{time},1,2\nts,door,hum,temp\n{time},9,4,3\nts,temp\n{time},5\n");
    let error = values(&text, &two_columns(), 1 << 20).unwrap_err().to_string();
    assert!(
        error.starts_with("a.csv, line 5: this line is a header without column \"hum\": it has ts, temp;"),
        "{error}"
    );

    let more = text.split_once("ts,temp\n").unwrap().0;
    let found = values(more, &two_columns(), 1 << 20).unwrap();
    assert_eq!(found.0, [[Some(1.0), Some(2.0)], [Some(3.0), Some(4.0)]]);

    let evolve = SourceSpec { mode: SchemaMode::Evolve, ..two_columns() };
    assert_eq!(values(&text, &evolve, 1 << 20).unwrap().0[2], [Some(5.0), None]);
    let reject = SourceSpec { mode: SchemaMode::Reject, ..two_columns() };
    let text = format!("ts,temp,hum\n{time},1,2\nts,hum,temp\n{time},4,3\nts,temp\n{time},5\n");
    assert_eq!(values(&text, &reject, 1 << 20).unwrap().1, [6]);
}

#[test]
fn a_grown_file_goes_on_by_the_header_in_force() {
    let root = TempDir::new().unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let time = "2021-04-01T00:00:00Z";
    let before = format!("ts,temp,hum\n{time},1,2\nts,hum,temp\n{time},4,3\n");
    let write = |text: &str| {
        std::fs::write(root.path().join("a.csv"), text).unwrap();
        storage.discover(&two_columns()).unwrap().remove(0)
    };
    let input = write(&before);
    let held = crate::read::HeldContent {
        size: before.len() as u64,
        hash: storage.hash(&input).unwrap(),
        reader: crate::reader_version::ReaderVersion::CURRENT,
        breaks: Vec::new(),
        shape: crate::text_shape::TextShape::default(),
    };
    let input = write(&format!("{before}{time},6,5\n"));
    let growth = storage.growth(&two_columns(), &input, &[held]).unwrap().unwrap();
    assert_eq!(growth.from, Some(before.len() as u64));

    let mut reader = storage.open(&two_columns(), &input).unwrap();
    reader.cut_at(&[before.len() as u64]);
    let parser = reader.parser();
    let last = reader.map(Result::unwrap).last().unwrap();
    let batch = parser.parse(last).unwrap().batch;
    assert_eq!([1, 2].map(|column| floats(batch.column(column))), [[Some(5.0)], [Some(6.0)]]);
}
