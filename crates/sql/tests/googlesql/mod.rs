//! The functions and examples that GoogleSQL for Bigtable documents, with data of our own: `tests/data/googlesql.tsv`.

mod table;

use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidetable_sql::Session;

use super::world;

/// A value as the file has it.
fn show(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".to_owned();
    }
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    match array.data_type() {
        DataType::Binary => format!("b'{}'", array.as_binary::<i32>().value(row).escape_ascii()),
        DataType::BinaryView => format!("b'{}'", array.as_binary_view().value(row).escape_ascii()),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => format!("{:?}", array.as_primitive::<Float32Type>().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            list((0..items.len()).map(|at| show(&items, at)).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            list((0..entries.len()).map(|at| show(&entries, at)).collect())
        }
        DataType::Struct(_) => list(array.as_struct().columns().iter().map(|part| show(part, row)).collect()),
        _ => ArrayFormatter::try_new(array, &FormatOptions::new()).unwrap().value(row).to_string(),
    }
}

async fn answer(session: &Session, query: &str, is_google: bool) -> Result<String, String> {
    let frame = match is_google {
        true => session.sql_with_parameters(query, &[]).await,
        false => session.sql(query).await,
    };
    let batches = frame.map_err(|error| error.to_string())?.collect().await.map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values: Vec<String> = batch.columns().iter().map(|column| show(column, row)).collect();
            rows.push(values.join(" | "));
        }
    }
    Ok(rows.join(" / "))
}

#[tokio::test]
async fn documented_queries_are_answered_in_each_dialect() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/googlesql.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let world = table::world();
    let rows = world.session().with_rows();
    let (google, strict) = (rows.with_googlesql(false), rows.with_googlesql(true));

    let (mut asked, mut failures) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [dialect, query, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let sessions: &[(&str, &Session)] = match dialect {
            "both" => &[("sql", &rows), ("serve", &google)],
            "sql" => &[("sql", &rows)],
            "serve" => &[("serve", &google)],
            "strict" => &[("strict", &strict)],
            other => panic!("{other}"),
        };
        for (name, session) in sessions {
            asked += 1;
            let found = answer(session, query, *name != "sql").await;
            let is_right = match (expected.strip_prefix("error:"), &found) {
                (Some(words), Err(told)) => told.contains(words.trim()),
                (None, Ok(found)) => found == expected,
                _ => false,
            };
            if !is_right {
                failures.push(format!("{name}: {query}\n    expected {expected}\n    found    {found:?}"));
            }
        }
    }
    assert!(asked >= 300, "{asked}");
    assert!(failures.is_empty(), "{} of {asked}:\n{}", failures.len(), failures.join("\n"));
}
