//! sqllogictest files: each query runs with and without pushdown.
//! `docs/decisions/0012-sqllogictest-without-its-crate.md` says why they are parsed here.
//!
//! ```text
//! # store: readings           the store of `stores` to query
//! query IT rowsort            types of the columns: I, R, T, B, D (date), P (timestamp), ? (others); `rowsort` if
//! SELECT ..                   the order of the rows is undefined
//! ----
//! 1 a                         one row per line, NULL and (empty) as words
//!
//! statement error words of the message
//! SELECT ..
//! ```
//!
//! `SLT_UPDATE=always` rewrites the expected rows; review them.

mod stores;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidetable_sql::{Session, SessionOptions};

/// A statement of a file with its expectation.
struct Case {
    /// Preceding comments and empty lines.
    before: String,
    /// Its first line.
    head: String,
    sql: String,
    /// Expected rows; empty for an expected error.
    rows: Vec<String>,
}

/// Result of a query: a letter for each column, and its rows.
type Answer = Result<(String, Vec<String>), String>;

fn cases(text: &str) -> Vec<Case> {
    let (mut found, mut before) = (Vec::new(), String::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            writeln!(before, "{line}").unwrap();
            continue;
        }
        assert!(line.starts_with("query ") || line.starts_with("statement error"), "{line}");
        let mut take = |ends: &str| -> Vec<String> {
            let mut taken = Vec::new();
            while let Some(next) = lines.next_if(|next| *next != ends && !next.is_empty()) {
                taken.push(next.to_owned());
            }
            taken
        };
        let sql = take("----").join("\n");
        let rows = take("").into_iter().skip(1).collect();
        found.push(Case { before: std::mem::take(&mut before), head: line.to_owned(), sql, rows });
    }
    found
}

fn letter(kind: &DataType) -> char {
    match kind {
        kind if kind.is_integer() => 'I',
        kind if kind.is_floating() || kind.is_decimal() => 'R',
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => 'T',
        DataType::Boolean => 'B',
        DataType::Date32 => 'D',
        DataType::Timestamp(..) => 'P',
        _ => '?',
    }
}

fn rows_of(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayFormatter<'_>| match column.value(row).to_string() {
                text if text.is_empty() => "(empty)".to_owned(),
                text => text,
            };
            rows.push(columns.iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    rows
}

async fn ask(session: &Session, case: &Case) -> Answer {
    let frame = session.sql(&case.sql).await.map_err(|error| error.to_string())?;
    let letters = frame.schema().fields().iter().map(|field| letter(field.data_type())).collect();
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let mut rows = rows_of(&batches);
    if case.head.ends_with(" rowsort") {
        rows.sort_unstable();
    }
    Ok((letters, rows))
}

/// Whether the answer is as expected.
fn is_right(case: &Case, answer: &Answer) -> bool {
    match (case.head.strip_prefix("statement error"), answer) {
        (Some(words), Err(told)) => told.contains(words.trim()),
        (None, Ok((letters, rows))) => case.head.split(' ').nth(1) == Some(letters) && case.rows == *rows,
        _ => false,
    }
}

/// Runs the cases of a file; returns failures, or rewrites the expectations.
async fn check(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let store = text.lines().find_map(|line| line.strip_prefix("# store: ")).unwrap();
    let world = stores::of(store);
    let open = |without_push_down| {
        let options = SessionOptions { target_partitions: Some(3), without_push_down, ..SessionOptions::default() };
        world.open(&options)
    };
    let (with, without) = (open(false), open(true));
    let update = std::env::var_os("SLT_UPDATE").is_some();
    let (mut wrong, mut written) = (Vec::new(), String::new());
    let cases = cases(&text);
    assert!(cases.len() > 2, "{}", path.display());
    for case in &cases {
        let (pushed, plain) = (ask(&with, case).await, ask(&without, case).await);
        for (how, answer) in [("", &pushed), (" without push-down", &plain)] {
            if !is_right(case, answer) {
                wrong.push(format!("{}{how}:\n{}\n{}\n{answer:#?}", path.display(), case.head, case.sql));
            }
        }
        write!(written, "{}", case.before).unwrap();
        match pushed {
            Ok((letters, rows)) => {
                let sorted = if case.head.ends_with(" rowsort") { " rowsort" } else { "" };
                writeln!(written, "query {letters}{sorted}\n{}\n----", case.sql).unwrap();
                rows.iter().for_each(|row| writeln!(written, "{row}").unwrap());
            }
            Err(_) => writeln!(written, "{}\n{}", case.head, case.sql).unwrap(),
        }
    }
    if update {
        std::fs::write(path, written).unwrap();
    }
    wrong
}

#[tokio::test]
async fn slt_files_give_the_expected_rows() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "slt"));
    paths.sort();
    assert_eq!(paths.len(), 15);
    let mut wrong = Vec::new();
    for path in &paths {
        wrong.extend(check(path).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
