//! Filters on cells evaluated in the scan against the same query without pushdown.

use tidetable_layout::schema::{MessageField, ProtoType};
use tidetable_layout::spec::{ColumnSpec, MessageSpec, PackedSpec};
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_sql::SessionOptions;

use super::{csv, family, rows, spec, worlds};
use crate::run;
use crate::world::World;

const HOUR: i64 = 3_600_000_000;

const FILTERS: [&str; 16] = [
    "TRUE",
    "family = 'M'",
    "family <> 'M'",
    "qualifier = 'ID'",
    "family = 'M' AND qualifier IN ('050000', 'kwh', 'all')",
    "qualifier < '12'",
    "timestamp >= '2018-01-02' AND timestamp < '2018-01-03'",
    "timestamp > '2018-01-02T05:00:00Z' OR qualifier = 'ID'",
    "timestamp = '1970-01-01'",
    "timestamp > '2019-01-01'",
    "extract(hour FROM timestamp) = 5 AND qualifier LIKE '0%'",
    "qualifier LIKE 'k%' AND timestamp < '2018-01-02' AND value > '5'",
    "family = 'N' AND TRY_CAST(CAST(qualifier AS VARCHAR) AS BIGINT) > 100000",
    "row_key >= '000003' AND qualifier >= '1' AND timestamp >= '2018-01-02'",
    "CAST(timestamp AS DATE) = '2018-01-02' AND family < 'N'",
    "concat(family, ':', CAST(qualifier AS VARCHAR)) = 'M:kwh'",
];

const COLUMNS: [&str; 5] =
    ["*", "count(*), min(timestamp), max(value)", "row_key, timestamp", "qualifier", "family, value"];

/// A table whose family `M` holds one packed cell, of an event or of a row.
fn packed(key: &str, packed: PackedSpec) -> World {
    let field = |name: &str, number, kind| MessageField { name: name.to_owned(), number, kind };
    let message = MessageSpec {
        name: "Reading".to_owned(),
        fields: vec![field("ts", 1, ProtoType::Timestamp), field("kwh", 2, ProtoType::Double)],
        list: ("ReadingList".to_owned(), 1),
        ..MessageSpec::default()
    };
    let column = ColumnSpec { qualifier: "all".to_owned(), packed, ..ColumnSpec::default() };
    let mut table = TableSpec { messages: vec![message], ..spec(key, vec![family("M", &[])]) };
    table.families[0].columns.push(column);
    let columns = vec![
        SourceColumn::new("meter", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("kwh", FieldType::Float64),
    ];
    let text: String =
        csv(5, 3, HOUR, false, 7).lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n").collect();
    World::with_table(columns, table, &[], &text)
}

#[tokio::test]
async fn filters_on_cells_in_the_scan_equal_those_of_datafusion() {
    let mut worlds = worlds();
    worlds.push(("a message an event", packed("{meter:06}#{ts:ms}", PackedSpec::Message("Reading".to_owned()))));
    worlds.push(("a message a row", packed("{meter:06}#{ts:%Y%m%d}", PackedSpec::Repeated("Reading".to_owned()))));
    let mut found = 0;
    for (at, (name, world)) in worlds.into_iter().enumerate() {
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let session = world.session();
        for (nth, filter) in FILTERS.iter().enumerate() {
            let query = format!("SELECT {} FROM cells.T WHERE {filter}", COLUMNS[(at + nth) % COLUMNS.len()]);
            let expected = rows(&run(&plain, &query).await);
            found += usize::from(expected.len() > 1);
            assert_eq!(rows(&run(&session, &query).await), expected, "{name}: {query}");
        }
    }
    assert!(found > 100, "{found} queries with rows");
}

#[tokio::test]
async fn filters_on_cells_skip_columns_and_stripes() {
    let table = spec("{meter:06}#{ts:ms}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]);
    let world = World::with_table(super::columns(), table, &[], &csv(7, 4, HOUR, false, 1));
    let session = world.session();
    let plan = super::plan(&session, "SELECT value FROM cells.T WHERE qualifier = 'kwh' AND timestamp > '2018-01-02'");
    let plan = plan.await;
    assert!(!plan.contains("FilterExec") && plan.contains("filter=qualifier@2"), "{plan}");
}

#[tokio::test]
async fn filters_on_qualifiers_see_only_those_of_the_rows() {
    // Qualifiers of one row are numbers, of another text, in one stripe.
    let columns = vec![
        SourceColumn::new("meter", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("name", FieldType::Text),
        SourceColumn::new("v", FieldType::Int64),
    ];
    let text =
        "meter,ts,name,v\n1,2018-01-01T00:00:00Z,01,7\n1,2018-01-01T00:00:00Z,02,8\n2,2018-01-01T00:00:00Z,temp,9\n";
    let world =
        World::with_table(columns, spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("{name}", "{v}")])]), &[], text);
    let query = "SELECT value FROM cells.T WHERE row_key = '000001#20180101' AND CAST(CAST(qualifier AS VARCHAR) AS BIGINT) > 1";
    assert_eq!(rows(&run(&world.session(), query).await), ["38"]);
}
