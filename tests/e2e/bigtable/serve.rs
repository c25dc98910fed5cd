//! `tidetable serve`, asked by the clients that people have: `cbt`, Google's client for Python, and the official emulator as a
//! second answer to the same questions.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::system::{KilledOnDrop, python, python_script, run_script, signal, skipped, status_at_the_end};
use crate::harness::{Project, Ran};

/// `cbt` retries forever without an answer.
const LIMIT: &str = "30";
/// What the client for Python needs.
const CLIENT: &str = "google.cloud.bigtable.data";

/// A running server.
pub(super) struct Served {
    process: KilledOnDrop,
    pub(super) address: String,
}

impl Served {
    pub(super) fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = project.command(&[&["serve", "--bind", "127.0.0.1:0"], args].concat());
        let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("export BIGTABLE_EMULATOR_HOST=");
        let address = address.unwrap_or_else(|| panic!("the server does not start: {line}")).to_owned();
        Self { process: KilledOnDrop(child), address }
    }

    /// Runs `cbt`, which must end in time; without `cbt` here nothing.
    fn cbt(&self, args: &[&str]) -> Option<Ran> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("cbt").is_file()) {
            skipped("cbt is not here");
            return None;
        }
        let mut command = Command::new("timeout");
        command.args([LIMIT, "cbt", "-project", "p", "-instance", "i"]).args(args).stdin(Stdio::null());
        command.env("BIGTABLE_EMULATOR_HOST", &self.address);
        Some(Ran::of(&mut command))
    }
}

/// The emulator, where it is installed.
fn emulator() -> Option<PathBuf> {
    let inside = Path::new("/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join("cbtemulator")).chain([inside.to_owned()]);
    places.find(|place| place.is_file())
}

/// Cells of several families, versions and encodings, with rows that lack some.
fn several_families() -> Project {
    let job = r#"
name = "j"
[sources.readings]
files = ["readings.csv"]
time = "ts"
[sources.readings.columns]
device = "text"
ts = "timestamp"
temp = { type = "float64" }
status = { type = "text" }
count = { type = "int64" }
[tables.T]
row_key = "{device}#{ts:%Y%m%d}"
[tables.T.families.a]
columns = [{ qualifier = "device", value = "{device}" }]
[tables.T.families.h]
columns = [{ qualifier = "{ts:%H}", value = "{status}" }]
[tables.T.families.m]
columns = [
  { qualifier = "temp", value = "{temp}" },
  { qualifier = "count", value = "{count}", encoding = "int64" },
]
"#;
    let project = Project::new("j", job);
    let mut csv = "device,ts,temp,status,count\n".to_owned();
    let words = ["ok", "low", "off", "a\tb"];
    let mut state = 7_u64;
    for device in ["a", "ab", "b", "b1", "c"] {
        for step in 0..60_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (random, day, hour) = (state >> 33, 1 + step / 20, step % 20 / 2);
            let minute = step % 2 * 30;
            let temp = if random % 4 == 0 { String::new() } else { format!("{}.5", random % 30) };
            let status = if random % 3 == 0 { "" } else { words[random as usize % 4] };
            let count = random % 5;
            csv.push_str(&format!("{device},2024-01-0{day}T{hour:02}:{minute:02}:00Z,{temp},{status},{count}\n"));
        }
    }
    project.write("readings.csv", csv);
    project.ok(&["run", "j"]);
    project
}

#[test]
fn cbt_reads_a_store() {
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    let served = Served::start(&project, &[]);
    let Some(tables) = served.cbt(&["ls"]) else { return };
    assert_eq!((tables.code, tables.stdout.trim()), (Some(0), "SENSOR"), "{}", tables.stderr);
    let cbt = |args: &[&str]| {
        let ran = served.cbt(args).unwrap();
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let families = cbt(&["ls", "SENSOR"]);
    assert!(families.contains("METER") && families.contains("versions() > 1"), "{families}");

    let rows = project.json(&["read", "SENSOR", "--keys-only"]);
    assert_eq!(cbt(&["count", "SENSOR"]).trim(), rows.len().to_string());
    let key = rows[0]["key"].as_str().unwrap();
    let row = &project.json(&["read", "SENSOR", "--row", key])[0];
    let cells = row["cells"].as_array().unwrap();
    let shown = cbt(&["lookup", "SENSOR", key]);
    assert_eq!(shown.matches("METER:").count(), cells.len());
    for cell in cells {
        let value = cell["value"].as_str().unwrap();
        assert!(shown.contains(&format!("\"{value}\"")), "{value}: {shown}");
    }
    let shown_rows = |args: &[&str]| cbt(args).lines().filter(|line| line.starts_with("-----")).count();
    assert_eq!(shown_rows(&["read", "SENSOR", "count=2"]), 2);
    let prefix = key.split('#').next().unwrap();
    let of_meter = rows.iter().filter(|row| row["key"].as_str().unwrap().starts_with(prefix)).count();
    assert_eq!(shown_rows(&["read", "SENSOR", &format!("prefix={prefix}")]), of_meter);
    let last = rows.last().unwrap()["key"].as_str().unwrap();
    assert!(cbt(&["read", "SENSOR", "count=1", "reversed=true"]).contains(last));

    let refused = served.cbt(&["set", "SENSOR", "row", "METER:ID=1"]).unwrap();
    assert!(refused.code != Some(0) && refused.stderr.contains("read-only"), "{}", refused.stderr);
    let unknown = served.cbt(&["read", "NONE"]).unwrap();
    assert!(unknown.code != Some(0) && unknown.stderr.contains("SENSOR"), "{}", unknown.stderr);
}

#[test]
fn the_client_for_python_reads_a_store() {
    let project = several_families();
    let served = Served::start(&project, &[]);
    let expected = project.ok(&["read", "T", "--output", "json"]);
    project.write("expected.json", expected);
    let path = project.path("expected.json");
    let args = [served.address.as_str(), path.to_str().unwrap()];
    python_script(&project, CLIENT, "bigtable/serve_check.py", args);
}

#[test]
fn chunks_are_merged_as_the_official_vectors_say() {
    let project = Project::empty();
    let vectors = crate::harness::repository().join("tests/data/bigtable/readrows.json");
    python_script(&project, CLIENT, "bigtable/vectors_check.py", [vectors]);
}

#[test]
fn filters_answer_as_those_of_the_emulator() {
    let Some(emulator) = emulator() else { return skipped("the Bigtable emulator is not here") };
    let project = several_families();
    if python(&project, CLIENT).is_none() {
        return;
    }
    let served = Served::start(&project, &[]);
    let args = [served.address.as_str(), emulator.to_str().unwrap(), "500"];
    python_script(&project, CLIENT, "bigtable/filters_check.py", args);
}

#[test]
fn filters_that_multiply_cells_take_no_memory() {
    let project = several_families();
    let served = Served::start(&project, &[]);
    let rows = project.json(&["read", "T"]);
    let cells: usize = rows.iter().map(|row| row["cells"].as_array().unwrap().len()).sum();
    let args = [served.address.clone(), served.process.0.id().to_string(), cells.to_string()];
    let Some(said) = python_script(&project, CLIENT, "bigtable/memory_check.py", args) else { return };
    let resident: Vec<u64> = said.split_whitespace().map(|kib| kib.parse().unwrap()).collect();
    assert!(resident[1] < resident[0] + (64 << 10), "from {} to {} KiB", resident[0], resident[1]);
}

#[test]
fn a_row_that_does_not_fit_is_refused() {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    let readings: String = (0..70_000)
        .map(|at| {
            format!(
                "1,2024-01-01T{:02}:{:02}:{:02}.{:03}Z,1.5\n",
                at / 3_600_000,
                at / 60_000 % 60,
                at / 1_000 % 60,
                at % 1_000
            )
        })
        .collect();
    project.write("one.csv", format!("meter,ts,kwh\n{readings}2,2024-01-01T00:00:00Z,2.5\n"));
    project.ok(&["run", "j"]);
    assert!(project.fails(2, &["serve", "--request-memory", "1000"]).contains("write a unit"));
    assert!(project.fails(2, &["serve", "--request-memory", "1KiB"]).contains("1MiB at least"));
    for (args, wanted) in [(&["--request-memory", "1MiB"][..], "refused"), (&[], "whole")] {
        let served = Served::start(&project, args);
        let args = [served.address.as_str(), wanted];
        python_script(&project, CLIENT, "bigtable/large_row_check.py", args);
    }
}

#[test]
fn newer_versions_are_read_where_that_is_asked() {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    let (pinned, following) = (Served::start(&project, &[]), Served::start(&project, &["--follow"]));
    project.write("two.csv", "meter,ts,kwh\n2,2024-01-01T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    let Some(one) = pinned.cbt(&["count", "T"]) else { return };
    assert_eq!((one.stdout.trim(), following.cbt(&["count", "T"]).unwrap().stdout.trim()), ("1", "2"));
}

#[test]
fn a_table_that_has_lost_its_newest_manifest_is_not_served() {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project.write("two.csv", "meter,ts,kwh\n2,2024-01-01T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    project.lose_newest_manifest("T");

    for args in [&[][..], &["--follow"]] {
        let served = Served::start(&project, args);
        let Some(refused) = served.cbt(&["read", "T"]) else { return };
        assert!(refused.code != Some(0) && refused.stderr.contains("names version 2"), "{args:?}: {}", refused.stderr);
    }
}

#[test]
fn signals_end_a_server_at_once() {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    for name in ["-INT", "-TERM"] {
        let mut served = Served::start(&project, &[]);
        signal(served.process.0.id(), name);
        assert_eq!(status_at_the_end(&mut served.process.0).code(), Some(0), "{name}");
        // The pins of its versions are gone.
        let pins = project.path("data/tables/T/pin");
        assert!(!pins.exists() || std::fs::read_dir(pins).unwrap().next().is_none());
    }
}

#[test]
fn wrong_addresses_are_told() {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    let told = project.fails(2, &["serve"]);
    assert!(told.contains("data"), "{told}");
    project.ok(&["run", "j"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = project.fails(1, &["serve", "--bind", &address]);
    assert!(told.contains(&address) && told.contains("--bind"), "{told}");
    for wrong in ["nowhere", "127.0.0.1", "no.such.host.invalid:1"] {
        let told = project.fails(1, &["serve", "--bind", wrong]);
        assert!(told.contains(wrong) && told.contains("--bind"), "{told}");
    }
}

#[test]
fn scans_over_several_responses_are_read_by_clients() {
    // 300 rows of 96 cells, and one of 30,000: some megabytes, of which a response holds a part.
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"in.csv\"]\ntime = \"ts\"\n[sources.s.columns]\ndevice = \"text\"\n\
               ts = \"timestamp\"\nv = \"int64\"\n[tables.T]\nrow_key = \"{device}\"\n[tables.T.families.m]\n\
               columns = [{ qualifier = \"value of the device\", value = \"{v}\" }]\n";
    let project = Project::new("j", job);
    let Some(python) = python(&project, CLIENT) else { return };

    let (rows, cells) = (301, 300 * 96 + 30_000);
    let mut csv = "device,ts,v\n".to_owned();
    for row in 0..rows {
        let readings = if row == 150 { 30_000 } else { 96 };
        for at in 0..readings {
            let (day, hour, minute, second) = (1 + at / 86_400, at / 3_600 % 24, at / 60 % 60, at % 60);
            csv.push_str(&format!("device-{row:04},2020-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z,{at}\n"));
        }
    }
    project.write("in.csv", csv);
    project.ok(&["run", "j"]);

    let served = Served::start(&project, &[]);
    let counts = [rows.to_string(), cells.to_string()];
    run_script(&python, "bigtable/scan_check.py", [served.address.as_str(), &counts[0], &counts[1]]);
}
