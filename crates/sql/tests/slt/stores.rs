//! The stores that `.slt` files query.

use std::collections::BTreeMap;

use tidetable_blobs::Blobs;
use tidetable_ingest::LoadStats;
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec};
use tidetable_record::{
    AttemptRecord, CheckRecord, ExportRecord, InputRecord, InputState, LoadRecord, Outcome, PartState, RunRecord,
    RunRequest, Severity,
};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_store::published::{Part, Published, file_checksum};

use crate::views;
use crate::world::{START, World, column};

/// The store of this name.
pub(super) fn of(name: &str) -> World {
    match name {
        "readings" => readings(),
        "versions" => views::world(),
        "sketches" => sketches(),
        "floats" => floats(),
        "extremes" => extremes(),
        _ => panic!("no store {name}"),
    }
}

/// Three days of six meters, two published parts, and two runs.
fn readings() -> World {
    let world = World::with_days(3);
    let store = world.store();
    let blobs = store.blobs().as_ref();
    publish(blobs);
    runs(blobs);
    world
}

fn publish(blobs: &dyn Blobs) {
    let mut parts = BTreeMap::new();
    for (day, rows) in [("2018-01-01", "1,14250\n2,23850\n"), ("2018-01-02", "1,14250\n3,\n")] {
        let (folder, text) = (format!("DAY_{}", day.replace('-', "")), format!("meter,kwh\n{rows}"));
        let path = format!("exports/{folder}/part-0.csv");
        blobs.replace(&path, text.as_bytes()).unwrap();
        let checksum = file_checksum(blobs, &path).unwrap();
        let (file, bytes) = ("part-0.csv".to_owned(), text.len() as u64);
        let part = Part { folder, file, rows: 2, bytes, checksum, ..Part::default() };
        parts.insert(day.to_owned(), part);
    }
    let columns = [("meter", "UInt64"), ("kwh", "Float64")];
    let mut list = Published {
        columns: columns.map(|(name, kind)| (name.to_owned(), kind.to_owned())).into(),
        parts,
        ..Published::load(blobs, "DAY").unwrap()
    };
    list.save(blobs).unwrap();
}

fn runs(blobs: &dyn Blobs) {
    let text = str::to_owned;
    let part = ExportRecord {
        export: text("DAY"),
        label: text("2018-01-01"),
        part: text("DAY_20180101"),
        reason: text("missing"),
        state: PartState::Published,
        rows: 2,
        bytes: 30,
        error: None,
    };
    let failed = ExportRecord {
        label: text("2018-01-02"),
        part: text("DAY_20180102"),
        state: PartState::Failed,
        error: Some(text("no room")),
        ..part.clone()
    };
    let input = InputRecord::new("a.csv", InputState::New);
    let stats = LoadStats { rows_read: 1728, rows_accepted: 1728, cells: 1746, ..LoadStats::default() };
    let load = LoadRecord {
        table: text("SENSOR"),
        source: text("readings"),
        version: 1,
        inputs: vec![input],
        stats,
        ..LoadRecord::default()
    };
    let check = CheckRecord {
        check: text("complete"),
        on: text("DAY"),
        label: text("2018-01-01"),
        rule: text("not_null kwh"),
        severity: Severity::Warn,
        measured: 1,
        passed: false,
    };
    let attempt = AttemptRecord {
        stage: text("publish"),
        name: text("DAY_20180101"),
        attempt: 1,
        failed: START + 1_000_000,
        error: text("no room"),
        wait: 30,
    };
    let first = RunRecord {
        format: 2,
        run: text("01A"),
        job: text("j"),
        now: START,
        started: START,
        finished: Some(START + 2_500_000),
        outcome: Outcome::Partial,
        loads: vec![load],
        exports: vec![part, failed],
        checks: vec![check],
        attempts: vec![attempt],
        ..RunRecord::default()
    };
    let asked = RunRequest { from: "2018-01-02".parse().ok(), force: true, ..RunRequest::default() };
    let second = RunRecord {
        format: 2,
        run: text("01B"),
        job: text("j"),
        now: START + 5_000_000,
        started: START + 5_000_000,
        finished: Some(START + 6_000_000),
        outcome: Outcome::Failed,
        error: Some(text("no network")),
        asked,
        continues: Some(text("01A")),
        ..RunRecord::default()
    };
    first.save(blobs).unwrap();
    second.save(blobs).unwrap();
}

/// Distinct visitors of pages, one sketch per page.
fn sketches() -> World {
    let columns = vec![
        SourceColumn::new("page", FieldType::Text),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("visitor", FieldType::Text),
    ];
    let spec = TableSpec {
        name: "PAGES".to_owned(),
        row_key: "{page}".to_owned(),
        families: vec![FamilySpec {
            name: "V".to_owned(),
            columns: vec![column("visitors", "{visitor}")],
            kind: Merge::Hll,
        }],
        ..TableSpec::default()
    };
    let csv = "page,ts,visitor\na,2018-01-01T00:00:00Z,x\na,2018-01-01T00:00:00Z,y\na,2018-01-01T00:00:00Z,x\nb,2018-01-01T00:00:00Z,x\n";
    World::with_table(columns, spec, &[], csv)
}

/// The first and the last times, and the least and greatest numbers of their types.
fn extremes() -> World {
    let columns = vec![
        SourceColumn::new("id", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("v", FieldType::Int64),
        SourceColumn::new("u", FieldType::UInt64),
        SourceColumn::new("p", FieldType::Decimal { precision: 10, scale: 2 }),
    ];
    let spec = TableSpec {
        name: "T".to_owned(),
        row_key: "{id}#{ts:%Y%m%d}".to_owned(),
        families: vec![FamilySpec {
            name: "F".to_owned(),
            columns: vec![column("v", "{v}"), column("u", "{u}"), column("p", "{p}")],
            ..FamilySpec::default()
        }],
        ..TableSpec::default()
    };
    let csv = "id,ts,v,u,p\n\
               1,1970-01-01T00:00:00Z,9223372036854775807,18446744073709551615,0.01\n\
               1,2016-01-01T00:10:00Z,1,1,0.02\n\
               1,2016-01-01T00:20:30.500Z,-5,2,0.02\n\
               2,2261-04-12T00:00:00Z,10,3,1.00\n\
               2,2262-01-01T12:00:00Z,9223372036854775807,5,1.00\n\
               3,2020-10-25T00:30:00Z,0,0,2.01\n\
               3,2020-10-25T01:30:00Z,0,0,-2.01\n\
               3,2262-04-11T23:47:16.854Z,-9223372036854775808,7,2.00\n";
    World::with_table(columns, spec, &[], csv)
}

/// A probe with temperatures and costs: one table of readings, one of hot days.
fn floats() -> World {
    let columns = vec![
        SourceColumn::new("probe", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("t", FieldType::Float64),
        SourceColumn::new("price", FieldType::Decimal { precision: 6, scale: 2 }),
    ];
    let spec = TableSpec {
        name: "PROBE".to_owned(),
        row_key: "{probe}#{ts}".to_owned(),
        families: vec![FamilySpec {
            name: "T".to_owned(),
            columns: vec![column("t", "{t}"), column("price", "{price}")],
            ..FamilySpec::default()
        }],
        ..TableSpec::default()
    };
    let values = [
        "17.4,17.40",
        "-0.0,0.00",
        "0,0.10",
        "1e300,1.25",
        "0.1,0.10",
        "0.30000000000000004,0.30",
        ",0.30",
        "-5.25,2.50",
    ];
    let rows = values.iter().enumerate().map(|(at, values)| format!("{},2018-01-01T00:00:00Z,{values}\n", at + 1));
    let csv = format!("probe,ts,t,price\n{}", rows.collect::<String>());
    World::with_table(columns, spec, &[], &csv)
}
