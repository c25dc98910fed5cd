//! Rows and cells that queries see, as Google's emulator of Bigtable counts them for the same cells.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::Project;
use crate::harness::system::{python_script, skipped};

/// Where Google's packages put the emulator, which is on no path.
const EMULATORS: [&str; 2] = [
    "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator",
    "/google-cloud-sdk/platform/bigtable-emulator/cbtemulator",
];

const JOB: &str = "name = \"j\"\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.readings.columns]\n\
                   meter = \"uint64\"\nts = \"timestamp\"\nkwh = \"float64\"\n\
                   [tables.DAYS]\nrow_key = \"{meter:06}#{ts:%Y%m%d}\"\n[tables.DAYS.families.M]\n\
                   columns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }, { qualifier = \"ID\", value = \"{meter}\" }]\n\
                   [tables.EVENTS]\nrow_key = \"{ts:%Y%m%d}#{meter:06}#{ts:%H%M}\"\n[tables.EVENTS.families.M]\n\
                   columns = [{ qualifier = \"kwh\", value = \"{kwh}\" }]\n";

/// A point, a range, several ranges, and all rows.
const QUERIES: &str = "[query.point]\nwhere = \"meter = 7 and ts >= $a and ts < $a + interval '1 day'\"\nparams = { a = [2021-03-02T00:00:00Z] }\n\
                       [query.range]\nwhere = \"meter = 7\"\n\
                       [query.ranges]\nwhere = \"meter in (3, 7, 9)\"\n\
                       [query.all]\nwhere = \"kwh > 3\"\n";

fn emulator() -> Option<PathBuf> {
    let own = std::env::var_os("BIGTABLE_EMULATOR").map(PathBuf::from);
    let found = own.into_iter().chain(EMULATORS.map(PathBuf::from)).find(|path| path.is_file());
    let has_cbt =
        std::env::var_os("PATH").is_some_and(|paths| std::env::split_paths(&paths).any(|it| it.join("cbt").is_file()));
    if found.is_none() || !has_cbt {
        skipped(
            "cbt and the emulator of Bigtable are not installed: packages google-cloud-cli-cbt and google-cloud-cli-bigtable-emulator",
        );
    }
    found.filter(|_| has_cbt)
}

/// The cells of a table as JSON lines, for the script that writes them into the emulator.
fn dump(project: &Project, table: &str) -> String {
    let cells =
        format!("select row_key as key, family, qualifier, cast(timestamp as bigint) as at, value from cells.{table}");
    project.ok(&["sql", "-c", &cells, "--output", "json"])
}

#[test]
fn cells_seen_are_those_of_the_emulator() {
    let Some(emulator) = emulator() else { return };
    let project = Project::new("j", JOB);
    let mut lines = String::from("meter,ts,kwh\n");
    for (meter, hour) in (1..=10).flat_map(|meter| (0..72).map(move |hour| (meter, hour))) {
        lines.push_str(&format!(
            "{meter},2021-03-{:02}T{:02}:00:00Z,{}.5\n",
            1 + hour / 24,
            hour % 24,
            (meter * hour) % 7
        ));
    }
    project.write("in/a.csv", lines);
    project.write("q.toml", QUERIES);
    let found = project.json(&["compare", "j", "--queries", "q.toml"]);
    project.run_job("j");
    for layout in &found {
        let name = layout["layout"].as_str().unwrap();
        project.write("cells.jsonl", dump(&project, name));
        project.write("asked.json", layout["queries"].to_string());
        let said = check(&project, &emulator, name);
        let Some(said) = said else { return };
        assert_eq!(said, "4 queries\n", "{name}");
    }
}

/// Loads the cells and asks each query by `cbt`.
fn check(project: &Project, emulator: &Path, table: &str) -> Option<String> {
    let folder = project.path("");
    let args = [emulator.as_os_str(), folder.as_os_str(), OsStr::new(table)];
    python_script(project, "json", "advisor/emulator.py", args)
}

/// What is compared is not nothing.
#[test]
fn queries_of_the_emulator_see_different_numbers() {
    let project = Project::new("j", JOB);
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n7,2021-03-02T00:00:00Z,1\n7,2021-03-03T00:00:00Z,4\n3,2021-03-02T00:00:00Z,5\n",
    );
    project.write("q.toml", QUERIES);
    let found = project.json(&["compare", "j", "--layouts", "DAYS", "--queries", "q.toml"]).remove(0);
    let seen = |name: &str| -> Vec<Option<u64>> {
        found["queries"].as_array().unwrap().iter().map(|query: &Value| query[name]["p50"].as_u64()).collect()
    };
    assert_eq!(seen("rows_seen"), [Some(1), Some(2), Some(3), Some(3)]);
    assert_eq!(seen("cells_seen"), [Some(2), Some(4), Some(6), Some(6)]);
}
