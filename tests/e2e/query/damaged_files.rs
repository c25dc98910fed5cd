//! Inputs on which a library panics: an error of that file, and the failure of the run.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use crate::harness::Project;

const JOB: &str = readings_job!(
    "in/*.parquet",
    "",
    "[hooks]\nfailure = [\"sh\", \"-c\", \"echo $TIDETABLE_EXIT_CODE $TIDETABLE_ERROR > told\"]\n"
);

fn whole() -> Vec<u8> {
    let columns: [(&str, ArrayRef); 3] = [
        ("meter", Arc::new(Int64Array::from(vec![1, 2]))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1_577_872_800_000_000; 2]).with_timezone("UTC"))),
        ("kwh", Arc::new(Float64Array::from(vec![1.5, 2.5]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// A file whose footer has a schema of Arrow with an integer of 65 bits, on which its reader panics.
fn damaged() -> Vec<u8> {
    let whole = whole();
    let key = b"ARROW:schema";
    let after = whole.windows(key.len()).rposition(|window| window == key).unwrap() + key.len();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let start = after + whole[after..].windows(5).position(|window| window == b"/////").unwrap();
    let length = whole[start..].iter().take_while(|byte| is_base64(byte)).count();
    let schema = STANDARD.decode(&whole[start..start + length]).unwrap();
    let quietly = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = (0..schema.len()).filter(|at| schema[*at] == 64).find_map(|at| {
        let mut schema = schema.clone();
        schema[at] = 65;
        let mut bytes = whole.clone();
        bytes[start..start + length].copy_from_slice(STANDARD.encode(schema).as_bytes());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let read = std::panic::catch_unwind(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).is_ok());
        read.is_err().then_some(bytes)
    });
    std::panic::set_hook(quietly);
    found.expect("no damage makes the reader panic")
}

#[test]
fn a_file_on_which_a_library_panics_fails_its_run() {
    let project = Project::new("j", JOB);
    project.write("in/good.parquet", whole());
    project.ok(&["run", "j"]);
    project.write("in/bad.parquet", damaged());
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("in/bad.parquet: ") && told.contains("please report"), "{told}");
    assert!(!told.contains("thread '") && !told.contains("RUST_BACKTRACE"), "{told}");
    let runs = project.json(&["history"]);
    let outcomes: Vec<_> = runs.iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "ok"]);
    let hook = project.read("told");
    assert!(hook.starts_with("1 ") && hook.contains("in/bad.parquet"), "{hook}");
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 2);
    // The same file in other commands.
    for args in [
        &["plan", "j"][..],
        &["new", "k", "--from", "in/bad.parquet"],
        &["compare", "j"],
        &["sql", "-c", "select * from 'in/bad.parquet'"],
    ] {
        let ran = project.run(args);
        assert!(matches!(ran.code, Some(0..=2)) && !ran.stderr.contains("RUST_BACKTRACE"), "{args:?}: {}", ran.stderr);
    }
    assert!(project.fails(1, &["sql", "-c", "select * from 'in/bad.parquet'"]).contains("please report"));
    std::fs::remove_file(project.path("in/bad.parquet")).unwrap();
    project.ok(&["run", "j"]);
}
