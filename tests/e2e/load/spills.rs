//! Loads that take more than their memory: windows are spilled to a temporary file, and hold what they would have held.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::harness::Project;
use crate::harness::system::{Mount, mount};

const READINGS: u64 = 150_000;
const METERS: u64 = 20_000;
/// The tables of [`project`].
pub const TABLES: [&str; 8] = ["DAYS", "TALL", "MINUTES", "FLEET", "VERSIONS", "BLOBS", "SUMS", "LAST"];

/// A table for each kind of layout.
const JOB: &str = r#"
name = "j"

[sources.s]
files = ["in/*.csv"]
time = "ts"
columns = { meter = "uint64", site = "text", ts = "timestamp", v = "float64", note = "text" }

[tables.DAYS]
row_key = "{meter:08}#{ts:%Y%m%d}"
[tables.DAYS.families.R]
columns = [{ qualifier = "ID", value = "{meter}" }, { qualifier = "{ts:%H%M%S}", value = "{v}" }]

[tables.TALL]
row_key = "{site}/{meter}#{ts:ms}"
[tables.TALL.families.R]
columns = [{ qualifier = "V", value = "{v}" }, { qualifier = "NOTE", value = "{note}" }]

[tables.MINUTES]
row_key = "{ts:%Y%m%d%H%M}#{meter:06}"
[tables.MINUTES.families.R]
columns = [{ qualifier = "V", value = "{v}" }, { qualifier = "NOTE", value = "{note}" }]

[tables.FLEET]
row_key = "{ts:%Y%m%d%H%M}#{site}#{meter}"
window = "none"
[tables.FLEET.families.R]
columns = [{ qualifier = "V", value = "{v}" }]

[tables.VERSIONS]
row_key = "{site}#{meter}"
window = "month"
[tables.VERSIONS.families.R]
columns = [{ qualifier = "V", value = "{v}", timestamp = "ts" }]

[messages.Reading]
fields = { ts = 1, v = 2, note = 3 }

[tables.BLOBS]
row_key = "{meter}#{ts:%Y%m%d}"
[tables.BLOBS.families.R]
columns = [{ qualifier = "blob", repeated = "Reading" }]

[tables.SUMS]
row_key = "{site}"
[tables.SUMS.families.R]
kind = "sum"
columns = [{ qualifier = "{meter}", value = "{meter}", timestamp = 0 }]

[tables.LAST]
row_key = "{site}#{meter}"
window = "none"
upsert = "row"
[tables.LAST.families.R]
columns = [
  { qualifier = "V", value = "{v}", timestamp = "ts" },
  { qualifier = "NOTE", value = "{note}", timestamp = "ts" },
]
"#;

/// Readings of two days in no order, some of them twice with other values, some without a note.
pub fn readings() -> String {
    let mut text = String::from("meter,site,ts,v,note\n");
    let mut state = 42u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..READINGS {
        let (meter, minute, value) = (draw(METERS), draw(2 * 1440), draw(1_000_000));
        let (day, hour, minute) = (22 + minute / 1440, minute / 60 % 24, minute % 60);
        let note = if value % 3 == 0 { format!("note {}", value % 1000) } else { String::new() };
        let _ = writeln!(
            text,
            "{meter},s{},2025-11-{day}T{hour:02}:{minute:02}:00Z,{}.{},{note}",
            meter % 17,
            value / 1000,
            value % 1000
        );
    }
    text
}

/// A job with these readings, which [`readings`] makes.
pub fn project(text: &str) -> Project {
    let project = Project::new("j", JOB);
    project.write("in/a.csv", text);
    project
}

/// What a record says of the load of a table.
pub fn load<'a>(record: &'a Value, table: &str) -> &'a Value {
    record["loads"].as_array().unwrap().iter().find(|load| load["table"] == table).unwrap()
}

#[test]
fn a_load_beyond_its_memory_holds_the_same_cells_in_one_sst_a_window() {
    let text = readings();
    let [small, large] = ["16MiB", "2GiB"].map(|memory| {
        let project = project(&text);
        let record: Value =
            serde_json::from_str(&project.ok(&["run", "j", "--memory", memory, "--output", "json"])).unwrap();
        (project, record)
    });

    for table in TABLES {
        let [spilled, whole] = [&small.1, &large.1].map(|record| load(record, table));
        assert!(spilled["bytes_spilled"].as_u64() > Some(1 << 20), "{table}: {spilled}");
        assert_eq!(whole["bytes_spilled"], 0, "{table}: {whole}");
        for count in ["rows_read", "rows_accepted", "rows_empty", "rows_written", "cells", "overwritten"] {
            assert_eq!(spilled[count], whole[count], "{table}: {count}");
        }
        assert_eq!(spilled["ssts"].as_array().map(Vec::len), whole["ssts"].as_array().map(Vec::len), "{table}");

        let [spilled, whole] = [&small.0, &large.0].map(|project| project.ok(&["read", table, "--output", "csv"]));
        assert!(spilled == whole, "{table}: other cells");
    }
    // The temporary files have no names.
    assert_eq!(small.0.files("data/tables").len(), large.0.files("data/tables").len());
    small.0.ok(&["verify"]);
}

#[test]
fn a_full_disk_for_temporary_files_loses_nothing() {
    let project = project(&readings());
    let folder = project.path("small");
    std::fs::create_dir(&folder).unwrap();
    if !mount(&["-t", "tmpfs", "-o", "size=512k", "tmpfs"], &folder) {
        return;
    }
    let mounted = Mount(folder);

    let said = project.fails(1, &["run", "j", "--memory", "16MiB", "--temp-dir", "small"]);
    for part in ["cannot write a temporary file in", "small", "nothing was committed", "--temp-dir"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(project.files("data/tables").is_empty());
    assert_eq!(std::fs::read_dir(&mounted.0).unwrap().count(), 0);

    let record = project.ok(&["run", "j", "--memory", "16MiB", "--output", "json"]);
    let record: Value = serde_json::from_str(&record).unwrap();
    let rows = &load(&record, "LAST")["rows_written"];
    assert_eq!(project.csv("select count(*) as n from LAST"), format!("n\n{rows}\n"));
}

#[test]
fn temporary_files_need_a_folder() {
    let project = project("meter,site,ts,v,note\n1,s,2025-11-22T00:00:00Z,1.5,\n");
    let said = project.fails(2, &["run", "j", "--temp-dir", "nowhere"]);
    assert!(said.contains("--temp-dir") && said.contains("nowhere") && said.contains("can be written"), "{said}");
    std::fs::create_dir(project.path("somewhere")).unwrap();
    let record = project.ok(&["run", "j", "--temp-dir", "somewhere", "--output", "json"]);
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(load(&record, "TALL")["bytes_spilled"], json!(0));
    assert!(project.files("somewhere").is_empty());
}

#[test]
fn deletes_hide_cells_of_keys_that_are_numbers() {
    let readings = |value: u32| {
        let rows = (1..5).map(|meter| format!("{meter},s,2025-11-22T00:0{meter}:00Z,{value}.5,\n"));
        format!("meter,site,ts,v,note\n{}", rows.collect::<String>())
    };
    let project = project(&readings(1));
    project.ok(&["run", "j"]);
    project.ok(&["delete", "MINUTES", "--row", "202511220002#000002", "--yes"]);
    let shown = || project.csv("select meter, v from MINUTES order by meter");
    assert_eq!(shown(), "meter,v\n1,1.5\n3,1.5\n4,1.5\n");

    // A changed input is surveyed, and its window rebuilt: what was deleted stays so.
    project.write("in/a.csv", readings(2));
    project.ok(&["run", "j"]);
    assert_eq!(shown(), "meter,v\n1,2.5\n3,2.5\n4,2.5\n");
    project.ok(&["run", "j", "--rebuild", "--memory", "16MiB"]);
    assert_eq!(shown(), "meter,v\n1,2.5\n3,2.5\n4,2.5\n");
}
