//! Row views with maps, with and without options.

mod functions;

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_sql::{Session, SessionOptions};

use super::world::{DAY, START, World, column};
use super::{plan, run};

/// 2018-01-01 to 03. Meter 1 has three readings of `v` on two days, meter 2 one, meter 3 none.
const CSV: &str = "\
meter,ts,v,note
1,2018-01-01T00:00:00Z,10,first
1,2018-01-01T00:00:01Z,11,
1,2018-01-02T00:00:00Z,12,last
2,2018-01-01T00:00:02Z,20,
3,2018-01-03T00:00:00Z,,alone
";

/// Rows that span several windows. `A` has a version of `v` for each reading, and `ID` at 0; `B` has notes; `C` has a
/// column for each second of the day.
fn table() -> (Vec<SourceColumn>, TableSpec) {
    let columns = vec![
        SourceColumn::new("meter", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("v", FieldType::UInt64),
        SourceColumn::new("note", FieldType::Text),
    ];
    let family = |name: &str, columns| FamilySpec { name: name.to_owned(), columns, ..FamilySpec::default() };
    let spec = TableSpec {
        name: "T".to_owned(),
        row_key: "m{meter:02}".to_owned(),
        families: vec![
            family("B", vec![column("note", "{note}")]),
            family("A", vec![column("v", "{v}"), column("ID", "{meter}")]),
            family("C", vec![column("{ts:%S}", "{v}")]),
        ],
        ..TableSpec::default()
    };
    (columns, spec)
}

pub fn world() -> World {
    let (columns, spec) = table();
    World::with_table(columns, spec, &[], CSV)
}

/// A value as text; times as seconds since [`START`], or `0`.
fn show(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match array.data_type() {
        DataType::Binary => String::from_utf8_lossy(array.as_binary::<i32>().value(row)).into_owned(),
        DataType::Timestamp(..) => match array.as_primitive::<TimestampMicrosecondType>().value(row) {
            0 => "0".to_owned(),
            time => ((time - START) / 1_000_000).to_string() + "s",
        },
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let entry = |at| show(entries.column(0), at) + ":" + &show(entries.column(1), at);
            "{".to_owned() + &(0..entries.len()).map(entry).collect::<Vec<_>>().join(" ") + "}"
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            "[".to_owned() + &(0..items.len()).map(|at| show(&items, at)).collect::<Vec<_>>().join(" ") + "]"
        }
        DataType::Struct(_) => {
            let parts = array.as_struct().columns();
            parts.iter().map(|part| show(part, row)).collect::<Vec<_>>().join("=")
        }
        kind => panic!("{kind}"),
    }
}

async fn lines(session: &Session, query: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in run(session, query).await {
        for row in 0..batch.num_rows() {
            lines.push(batch.columns().iter().map(|column| show(column, row)).collect::<Vec<_>>().join(" | "));
        }
    }
    lines
}

async fn error(session: &Session, query: &str) -> String {
    match session.sql(query).await {
        Err(error) => error.to_string(),
        Ok(frame) => frame.collect().await.unwrap_err().to_string(),
    }
}

#[tokio::test]
async fn rows_have_a_map_of_newest_cells_for_each_family() {
    let world = world();
    let session = world.session();
    let expected = [
        "m01 | {ID:1 v:12} | {note:last} | {00:12 01:11}",
        "m02 | {ID:2 v:20} | {} | {02:20}",
        "m03 | {ID:3} | {note:alone} | {}",
    ];
    assert_eq!(lines(&session, "SELECT * FROM rows.T").await, expected);
    assert_eq!(lines(&session, "SELECT * FROM rows(T)").await, expected);
    assert_eq!(lines(&session, "SELECT * FROM Rows('T') AS r ORDER BY r._key").await, expected);
    assert_eq!(lines(&session, "SELECT * FROM T(with_history => FALSE)").await, expected);
    // With and without families: a row without cells of the selected families is still returned.
    assert_eq!(lines(&session, "SELECT B FROM rows.T").await, ["{note:last}", "{}", "{note:alone}"]);
    assert_eq!(lines(&session, "SELECT C, _key FROM rows.T").await[2], "{} | m03");
    assert_eq!(lines(&session, "SELECT _key FROM rows.T").await, ["m01", "m02", "m03"]);
    assert_eq!(lines(&session, "SELECT count(*) FROM rows.T").await, ["3"]);
    let cells = "SELECT T._key, rows.T.A['v'], A[b'ID'], A['none'], B['note'] FROM rows.T";
    assert_eq!(
        lines(&session, cells).await,
        ["m01 | 12 | 1 | null | last", "m02 | 20 | 2 | null | null", "m03 | null | 3 | null | alone"]
    );
    let filtered = "SELECT _key FROM rows.T WHERE A['v'] > '11' AND B['note'] IS NOT NULL";
    assert_eq!(lines(&session, filtered).await, ["m01"]);
    let typed = "SELECT sum(CAST(CAST(A['v'] AS STRING) AS INT64)) FROM rows.T";
    assert_eq!(lines(&session, typed).await, ["32"]);
    assert_eq!(lines(&session, "SELECT _key FROM rows.T WHERE _key >= 'm02' LIMIT 1").await, ["m02"]);
}

#[tokio::test]
async fn history_is_newest_first_and_bounds_are_exact() {
    let world = world();
    let session = world.session();
    let expected = [
        "m01 | {ID:[0=1] v:[86400s=12 1s=11 0s=10]} | {note:[86400s=last 0s=first]} | \
         {00:[86400s=12 0s=10] 01:[1s=11]}",
        "m02 | {ID:[0=2] v:[2s=20]} | {} | {02:[2s=20]}",
        "m03 | {ID:[0=3]} | {note:[172800s=alone]} | {}",
    ];
    assert_eq!(lines(&session, "SELECT * FROM T(with_history => TRUE)").await, expected);
    let shown = async |options: &str| {
        let query = format!("SELECT _key, A['v'] FROM rows(T, with_history => true, {options}) WHERE _key = 'm01'");
        lines(&session, &query).await.join(" / ")
    };
    let at = |second: u32| format!("TIMESTAMP '2018-01-01 00:00:{second:02}'");
    for (options, expected) in [
        (format!("after => {}", at(1)), "m01 | [86400s=12]"),
        (format!("after_or_equal => {}", at(1)), "m01 | [86400s=12 1s=11]"),
        (format!("before => {}", at(1)), "m01 | [0s=10]"),
        (format!("before_or_equal => {}", at(1)), "m01 | [1s=11 0s=10]"),
        (format!("after => {}, before => TIMESTAMP '2018-01-02'", at(0)), "m01 | [1s=11]"),
        (format!("after_or_equal => {}, before_or_equal => {}", at(1), at(1)), "m01 | [1s=11]"),
        (format!("after => {}, before => {}", at(1), at(1)), ""),
        ("latest_n => 2".to_owned(), "m01 | [86400s=12 1s=11]"),
        (format!("latest_n => 1, before_or_equal => {}", at(1)), "m01 | [1s=11]"),
        ("after => DATE '2018-01-01', latest_n => 9".to_owned(), "m01 | [86400s=12 1s=11]"),
        ("after => TIMESTAMP '2018-01-01T01:00:00+01:00'".to_owned(), "m01 | [86400s=12 1s=11]"),
        ("after => TIMESTAMP '2018-01-01' + INTERVAL '1 hour'".to_owned(), "m01 | [86400s=12]"),
        ("before => '1970-01-02T00:00:00Z'".to_owned(), "m01 | null"),
    ] {
        assert_eq!(shown(&options).await, expected, "{options}");
    }
    // Fields of a version by index and name, in both notations.
    let parts = "SELECT A['v'][1]['value'], A['v'][1].value AS again, A['v'][2].timestamp, array_length(A['v']), \
                 A['v'][9].value FROM T(with_history => true) WHERE _key = 'm01'";
    assert_eq!(lines(&session, parts).await, ["12 | 12 | 1s | 3 | null"]);
}

#[tokio::test]
async fn as_of_shows_the_newest_cells_at_that_time() {
    let world = world();
    let session = world.session();
    let shown =
        async |at: &str| lines(&session, &format!("SELECT * FROM T(as_of => TIMESTAMP '{at}')")).await.join(" / ");
    // Cells at 0 are visible at any time.
    assert_eq!(shown("1970-01-01").await, "m01 | {ID:1} | {} | {} / m02 | {ID:2} | {} | {} / m03 | {ID:3} | {} | {}");
    assert_eq!(
        shown("2018-01-01T00:00:01Z").await,
        "m01 | {ID:1 v:11} | {note:first} | {00:10 01:11} / m02 | {ID:2} | {} | {} / m03 | {ID:3} | {} | {}"
    );
    assert_eq!(
        shown("2018-01-02").await,
        "m01 | {ID:1 v:12} | {note:last} | {00:12 01:11} / m02 | {ID:2 v:20} | {} | {02:20} / m03 | {ID:3} | {} | {}"
    );
    assert_eq!(shown("1969-12-31").await, "");
    // A row is left out if it has no cells within the bounds, not if it has none in the selected families.
    let rows = |columns: &str| {
        format!(
            "SELECT {columns} FROM T(with_history => true, after => TIMESTAMP '2018-01-01T00:00:00Z', \
             before => TIMESTAMP '2018-01-02T00:00:00Z')"
        )
    };
    assert_eq!(lines(&session, &rows("_key")).await, ["m01", "m02"]);
    assert_eq!(lines(&session, &rows("count(*)")).await, ["2"]);
    assert_eq!(lines(&session, &rows("_key, B")).await, ["m01 | {}", "m02 | {}"]);
}

#[tokio::test]
async fn unpack_gives_a_row_for_each_timestamp() {
    let world = world();
    let session = world.session();
    let all = [
        "m01 | 86400s | {v:12} | {note:last} | {00:12}",
        "m01 | 1s | {v:11} | {} | {01:11}",
        "m01 | 0s | {v:10} | {note:first} | {00:10}",
        "m01 | 0 | {ID:1} | {} | {}",
        "m02 | 2s | {v:20} | {} | {02:20}",
        "m02 | 0 | {ID:2} | {} | {}",
        "m03 | 172800s | {} | {note:alone} | {}",
        "m03 | 0 | {ID:3} | {} | {}",
    ];
    assert_eq!(lines(&session.sequential(), "SELECT * FROM unpack(T)").await, all);
    assert_eq!(lines(&session, "SELECT * FROM UNPACK('T') ORDER BY _key, _timestamp DESC").await, all);
    let bounded = "SELECT * FROM unpack(T, after => TIMESTAMP '2018-01-01T00:00:01Z') AS u ORDER BY u._key";
    assert_eq!(lines(&session, bounded).await, [all[0], all[4], all[6]]);
    // Over a query: its history columns are expanded, the others repeat.
    let query = "SELECT * FROM UNPACK((SELECT A['v'] AS v, _key, B FROM T(with_history => TRUE, latest_n => 2))) \
                 WHERE _key <= 'm02' ORDER BY _key, _timestamp DESC";
    assert_eq!(
        lines(&session, query).await,
        [
            "86400s | 12 | m01 | {note:last}",
            "1s | 11 | m01 | {}",
            "0s | null | m01 | {note:first}",
            "2s | 20 | m02 | {}"
        ]
    );
    let plan = plan(&session, "SELECT * FROM unpack(T) WHERE _key = 'm02'").await;
    assert!(plan.contains("keys=[m02..m02\\x00]"), "{plan}");
    let count = "SELECT count(*), max(_timestamp) FROM unpack(T)";
    assert_eq!(lines(&session, count).await, ["8 | 172800s"]);
}

#[tokio::test]
async fn include_expired_shows_garbage_collected_cells() {
    let (columns, spec) = table();
    let rules = [("A", "maxversions=1"), ("B", "maxage=1d"), ("C", "maxversions=1")];
    // The last commit was at START, so notes before 2017-12-31 are expired.
    let csv = CSV.to_owned() + "1,2017-12-30T00:00:00Z,9,old\n4,2017-12-30T00:00:00Z,,old\n";
    let world = World::with_table(columns, spec, &rules, &csv);
    let session = world.session();
    let newest = "SELECT _key, A['v'], B FROM rows.T";
    let now = ["m01 | 12 | {note:last}", "m02 | 20 | {}", "m03 | null | {note:alone}", "m04 | null | {}"];
    assert_eq!(lines(&session, newest).await, now);
    let stored = "SELECT _key, A['v'], B FROM T(with_history => true, include_expired => true) WHERE _key <> 'm02'";
    assert_eq!(
        lines(&session, stored).await,
        [
            "m01 | [86400s=12 1s=11 0s=10 -172800s=9] | {note:[86400s=last 0s=first -172800s=old]}",
            "m03 | null | {note:[172800s=alone]}",
            "m04 | null | {note:[-172800s=old]}"
        ]
    );
    let history = "SELECT A['v'], B FROM T(with_history => true) WHERE _key = 'm01'";
    assert_eq!(lines(&session, history).await, ["[86400s=12] | {note:[86400s=last 0s=first]}"]);
    // GC rules apply first: cells that they hide are not visible at an earlier time either.
    let then = "SELECT A FROM T(as_of => TIMESTAMP '2018-01-01') WHERE _key = 'm01'";
    assert_eq!(lines(&session, then).await, ["{ID:1}"]);
    let then = then.replace(')', ", include_expired => true)");
    assert_eq!(lines(&session, &then).await, ["{ID:1 v:10}"]);
}

#[tokio::test]
async fn a_row_without_cells_does_not_exist() {
    let (columns, mut spec) = table();
    spec.families.retain(|family| family.name != "A");
    let csv = CSV.to_owned() + "4,2017-12-30T00:00:00Z,,old\n";
    let world = World::with_table(columns, spec, &[("B", "maxage=1d")], &csv);
    let session = world.session();
    for columns in ["_key", "_key, C", "_key, B", "_key, B, C"] {
        let keys: BTreeSet<String> =
            lines(&session, &format!("SELECT {columns} FROM rows.T")).await.into_iter().collect();
        assert!(keys.iter().all(|line| !line.starts_with("m04")) && keys.len() == 3, "{columns}: {keys:?}");
    }
    assert_eq!(lines(&session, "SELECT count(*) FROM T(include_expired => true)").await, ["4"]);
}

#[tokio::test]
async fn key_pushdown_changes_no_result() {
    let world = World::with_days(3);
    let session = world.session();
    let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
    for filter in [
        "_key = '0000000003#20180102'",
        "_key >= '0000000002' AND _key < '0000000004'",
        "CAST(_key AS STRING) LIKE '0000000005%'",
        "_key = '0000000001#20180101' OR _key = '0000000006#20180103'",
        "_key IN (b'0000000001#20180101', b'none')",
        "NOT _key = '0000000001#20180101'",
        "METER['0015'] = '301.0'",
    ] {
        for from in ["rows.SENSOR", "SENSOR(with_history => true)", "unpack(SENSOR)"] {
            // A history cannot be compared.
            let filter =
                if from.contains("history") { filter.replace("METER['0015'] =", "_key <") } else { filter.into() };
            let query = format!("SELECT * FROM {from} WHERE {filter} ORDER BY _key");
            let mut found = lines(&session, &query).await;
            let mut expected = lines(&plain, &query).await;
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{query}");
        }
    }
    let one = plan(&session, "SELECT METER['0015'] FROM rows.SENSOR WHERE _key = '0000000003#20180102'").await;
    for part in
        ["table=rows.SENSOR", "keys=[0000000003#20180102..0000000003#20180102\\x00]", "cells=newest", "timestamps=all"]
    {
        assert!(one.contains(part), "{part} is not in\n{one}");
    }
    let history = plan(
        &session,
        "SELECT * FROM SENSOR(with_history => true, latest_n => 2, before => TIMESTAMP '2018-01-02', \
         include_expired => true)",
    )
    .await;
    assert!(history.contains("cells=history of 2 with expired, timestamps=[..2018-01-02T00:00:00Z)"), "{history}");
    let ordered = plan(&session.sequential(), "SELECT _key FROM rows.SENSOR ORDER BY _key").await;
    assert!(!ordered.contains("SortExec"), "{ordered}");
    assert_eq!(lines(&session, "SELECT count(*) FROM rows.SENSOR").await, ["18"]);
    assert_eq!(lines(&session, "SELECT count(*) FROM (SELECT * FROM rows.SENSOR LIMIT 7)").await, ["7"]);
}

#[tokio::test]
async fn batches_are_bounded_and_cover_every_row() {
    let world = World::with_days(2);
    let session = world.session();
    let rows = run(&session, "SELECT * FROM rows.SENSOR").await;
    let state = session.context().state_ref();
    state.write().config_mut().options_mut().set("datafusion.execution.batch_size", "5").unwrap();
    let batches = run(&session, "SELECT * FROM rows.SENSOR").await;
    assert!(batches.iter().all(|batch| batch.num_rows() <= 5));
    let texts = |batches: &[arrow::array::RecordBatch]| -> Vec<String> {
        let mut texts: Vec<String> = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(|row| show(batch.column(0), row) + &show(batch.column(1), row)))
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&batches), texts(&rows));
    assert_eq!(texts(&rows).len(), 12);
}

#[tokio::test]
async fn wrong_options_are_refused() {
    let world = world();
    let session = world.session();
    for (from, told) in [
        ("rows(T, latest => 2)", "unknown option latest; the options are with_history, as_of"),
        ("T(latest_n => 2)", "needs with_history => true"),
        ("T(after => TIMESTAMP '2018-01-01')", "needs with_history => true"),
        ("T(with_history => true, as_of => TIMESTAMP '2018-01-01')", "before_or_equal"),
        ("T(with_history => true, latest_n => 0)", "1 or more"),
        ("T(with_history => 1)", "with_history takes true or false, not 1"),
        ("T(as_of => 5)", "as_of takes a timestamp"),
        ("T(with_history => true, with_history => true)", "twice"),
        ("T(with_history => true, before => '2018-01-01', before_or_equal => '2018-01-01')", "cannot both"),
        ("T(as_of => $from)", "as_of takes a constant, not $from"),
        ("T(as_of => now())", "constant"),
        ("rows(T, true)", "by name"),
        ("rows(with_history => true)", "takes the name of a table first"),
        ("rows()", "takes the name of a table first"),
        ("rows(NONE)", "there is no table NONE; there is T"),
        ("rows.NONE(with_history => true)", "there is no table NONE"),
        ("NONE(with_history => true)", "there is no table NONE"),
        ("unpack(NONE)", "there is no table NONE"),
        ("unpack(T, with_history => false)", "UNPACK needs the timestamps"),
        ("unpack((SELECT _key FROM rows.T))", "UNPACK needs the timestamps"),
        ("unpack((SELECT _key AS _timestamp, A FROM T(with_history => true)))", "another name"),
        ("cells.T(with_history => true)", "cells takes no options; write rows.T(..)"),
        ("records.T(with_history => true)", "records takes no options; write rows.T(..)"),
    ] {
        let error = error(&session, &format!("SELECT * FROM {from}")).await;
        assert!(error.contains(told), "{from}: {error}");
    }
    // DataFusion's table functions still work.
    assert_eq!(lines(&session, "SELECT count(*) FROM generate_series(1, 3)").await, ["3"]);
}

#[tokio::test]
async fn files_ask_nothing_of_the_store() {
    let world = world();
    let session = world.session();
    for query in [
        "SELECT 1",
        "SELECT * FROM 'a.csv', 'in/b', generate_series(1, 3)",
        "SELECT * FROM read_csv('readings'), READ_JSON(['a', 'b']), read_parquet('*')",
    ] {
        assert!(!session.asks_store(query).unwrap(), "{query}");
    }
    for query in
        ["SELECT * FROM T", "SELECT * FROM read_csv", "SELECT * FROM 'a.csv', cells.T", "SELECT * FROM \"T@1\""]
    {
        assert!(session.asks_store(query).unwrap(), "{query}");
    }
}

#[tokio::test]
async fn references_include_tables_of_views() {
    let world = world();
    let session = world.session();
    let rows = [("rows".to_owned(), "T".to_owned())];
    for query in [
        "SELECT * FROM rows.T",
        "SELECT * FROM T(with_history => true)",
        "SELECT * FROM rows(T) r JOIN unpack('T') u ON r._key = u._key",
        "WITH x AS (SELECT * FROM unpack((SELECT * FROM T(with_history => true)))) SELECT * FROM x",
        "EXPLAIN SELECT (SELECT max(_timestamp) FROM unpack(T)) FROM rows.T",
    ] {
        assert_eq!(session.references(query).unwrap(), rows, "{query}");
    }
    let both = session.references("SELECT * FROM T, T(with_history => true) AS h, cells.T").unwrap();
    assert_eq!(both.iter().map(|(schema, _)| schema.as_str()).collect::<Vec<_>>(), ["cells", "records", "rows"]);
    // A range of event time restricts records only.
    let restricted = session.restricted(START + DAY..START + 2 * DAY);
    assert_eq!(lines(&restricted, "SELECT count(*) FROM rows.T").await, ["3"]);
    assert_eq!(lines(&restricted, "SELECT count(*) FROM T(with_history => true)").await, ["3"]);
    let listed = "SELECT data_type FROM information_schema.columns WHERE table_schema = 'rows' AND column_name = 'A'";
    assert!(lines(&session, listed).await[0].starts_with("Map"), "{:?}", lines(&session, listed).await);
}
