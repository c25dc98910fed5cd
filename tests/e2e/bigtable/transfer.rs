//! `push`, `pull`, `diff` and `new`, with the official emulator as Bigtable. What it holds is read by `cbt` and by Google's
//! client for Python.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::system::{KilledOnDrop, python, skipped};
use crate::harness::{Project, Ran};

const INSTANCE: &str = "projects/p/instances/i";
/// `cbt` retries forever without an answer.
const LIMIT: &str = "30";

/// A running emulator.
struct Bigtable {
    address: String,
    _process: KilledOnDrop,
}

impl Bigtable {
    /// Starts one; `None` where it is not installed.
    fn start() -> Option<Self> {
        let inside = Path::new("/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join("cbtemulator"));
        let Some(program) = places.find(|place| place.is_file()).or(inside.is_file().then(|| inside.to_owned())) else {
            skipped("cbtemulator is not here");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new::<PathBuf>(program);
        command.args(["-host", "127.0.0.1", "-port", &port.to_string()]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the emulator does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Self { address: format!("127.0.0.1:{port}"), _process: KilledOnDrop(process) })
    }

    fn command(&self, project: &Project, args: &[&str]) -> Command {
        let mut command = project.command(args);
        command.env("BIGTABLE_EMULATOR_HOST", &self.address);
        command
    }

    /// Runs tidetable, which must end with `code`; what it prints.
    fn ends(&self, project: &Project, code: i32, args: &[&str]) -> Ran {
        let ran = Ran::of(&mut self.command(project, args));
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    fn json(&self, project: &Project, args: &[&str]) -> Value {
        let ran = self.ends(project, 0, &[args, &["--output", "json"]].concat());
        serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.stdout))
    }

    /// The rows and cells that differ, which are none.
    fn is_equal(&self, project: &Project, table: &str, target: &str) -> Value {
        let found = self.json(project, &["diff", table, target]);
        assert_eq!(found["equal"], true, "{found}");
        found
    }

    /// Runs `cbt`, which must succeed in time; `None` without it.
    fn cbt(&self, args: &[&str]) -> Option<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("cbt").is_file()) {
            skipped("cbt is not here");
            return None;
        }
        let mut command = Command::new("timeout");
        command.args([LIMIT, "cbt", "-project", "p", "-instance", "i"]).args(args).stdin(Stdio::null());
        let ran = Ran::of(command.env("BIGTABLE_EMULATOR_HOST", &self.address));
        assert_eq!(ran.code, Some(0), "cbt {args:?}: {}", ran.stderr);
        Some(ran.stdout)
    }
}

#[test]
fn a_table_that_has_lost_its_newest_manifest_is_not_pushed() {
    let Some(bigtable) = Bigtable::start() else { return };
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    bigtable.ends(&project, 0, &["push", "T", "--to", INSTANCE, "--create", "--yes"]);
    project.write("two.csv", "meter,ts,kwh\n2,2024-01-01T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    project.lose_newest_manifest("T");

    for args in [&["push", "T", "--to", INSTANCE, "--yes"][..], &["diff", "T", INSTANCE]] {
        let refused = bigtable.ends(&project, 1, args);
        assert!(refused.stderr.contains("names version 2"), "{args:?}: {}", refused.stderr);
    }
}

#[test]
fn the_sample_goes_to_bigtable_and_comes_back() {
    let Some(bigtable) = Bigtable::start() else { return };
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    // Without --create nothing is made, without --yes it is only shown.
    let refused = bigtable.ends(&project, 2, &["push", "SENSOR", "--to", INSTANCE]);
    assert!(refused.stderr.contains("--create"), "{}", refused.stderr);
    let shown = bigtable.ends(&project, 0, &["push", "SENSOR", "--to", INSTANCE, "--create"]);
    assert!(shown.stdout.contains("creates family METER: maxversions=1"), "{}", shown.stdout);
    assert!(shown.stderr.contains("--yes"), "{}", shown.stderr);
    let pushed = bigtable.json(&project, &["push", "SENSOR", "--to", INSTANCE, "--create", "--yes"]);
    let cells = pushed["cells"].as_u64().unwrap();
    assert!(cells > 1000 && pushed["creates_table"] == true, "{pushed}");
    let found = bigtable.is_equal(&project, "SENSOR", INSTANCE);
    assert_eq!(found["cells_equal"], cells);
    // Again there is nothing to do.
    let again = bigtable.json(&project, &["push", "SENSOR", "--to", INSTANCE]);
    assert_eq!((&again["cells"], &again["requests"]), (&Value::from(0), &Value::from(0)));

    // Others read the same rows.
    let rows = project.json(&["read", "SENSOR"]);
    if let Some(count) = bigtable.cbt(&["count", "SENSOR"]) {
        assert_eq!(count.trim(), rows.len().to_string());
        let key = rows[0]["key"].as_str().unwrap();
        let row = bigtable.cbt(&["lookup", "SENSOR", key]).unwrap();
        for cell in rows[0]["cells"].as_array().unwrap() {
            assert!(row.contains(&format!("\"{}\"", cell["value"].as_str().unwrap())), "{cell}: {row}");
        }
    }
    if let Some(python) = python(&project, "google.cloud.bigtable.data") {
        let script = "import sys\nfrom google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery\n\
                      table = BigtableDataClient(project='p').get_table('i', 'SENSOR')\n\
                      rows = table.read_rows(ReadRowsQuery())\n\
                      print(len(rows), sum(len(row.cells) for row in rows))\n";
        let mut command = Command::new(python);
        let ran = Ran::of(command.args(["-c", script]).env("BIGTABLE_EMULATOR_HOST", &bigtable.address));
        assert_eq!(ran.stdout.trim(), format!("{} {cells}", rows.len()), "{}", ran.stderr);
    }

    // A delete and a new file are pushed as what they are.
    let key = rows[1]["key"].as_str().unwrap().to_owned();
    project.ok(&["delete", "SENSOR", "--row", &key, "--yes"]);
    let changed = bigtable.json(&project, &["push", "SENSOR", "--to", INSTANCE]);
    let deleted = rows[1]["cells"].as_array().unwrap().len();
    assert_eq!((changed["deleted"].as_u64(), changed["cells"].as_u64()), (Some(deleted as u64), Some(0)), "{changed}");
    bigtable.is_equal(&project, "SENSOR", INSTANCE);

    // A job is proposed for it, and what it loads is the same table.
    let source = format!("{INSTANCE}/tables/SENSOR");
    let back = Project::empty();
    bigtable.ends(&back, 0, &["new", "back", "--from", &source]);
    let pulled = bigtable.json(&back, &["pull", &source, "--into", "back"]);
    assert_eq!((pulled["rejected"].as_u64(), pulled["cells"].as_u64()), (Some(0), Some(cells - deleted as u64)));
    back.ok(&["run", "back"]);
    bigtable.is_equal(&back, "SENSOR", INSTANCE);
    // As does the job of the sample, with a pattern for what is pulled.
    let text = project.read("jobs/smart-meters/job.toml");
    let at = text.find("files = [").unwrap() + "files = [".len();
    let own = Project::new("smart-meters", &format!("{}\"pulled/*.parquet\"]\n#{}", &text[..at], &text[at..]));
    for query in ["sensor_day.sql", "sensor_rollup.sql"] {
        own.write(&format!("jobs/smart-meters/{query}"), project.read(&format!("jobs/smart-meters/{query}")));
    }
    bigtable.json(&own, &["pull", &source, "--into", "smart-meters"]);
    own.ok(&["run", "smart-meters"]);
    bigtable.is_equal(&own, "SENSOR", INSTANCE);
    // Cell by cell, too.
    let raw = Project::empty();
    bigtable.json(&raw, &["pull", &source, "--raw", "--into", "raw"]);
    raw.ok(&["run", "raw"]);
    bigtable.is_equal(&raw, "SENSOR", INSTANCE);
}

#[test]
fn what_differs_is_shown_and_written() {
    let Some(bigtable) = Bigtable::start() else { return };
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    bigtable.json(&project, &["push", "SENSOR", "--to", INSTANCE, "--create", "--yes"]);
    let rows = project.json(&["read", "SENSOR", "--limit", "2"]);
    let [one, two] = [0, 1].map(|at| rows[at]["key"].as_str().unwrap());
    if bigtable.cbt(&["set", "SENSOR", one, "METER:foreign=x@1000000"]).is_none() {
        return;
    }
    bigtable.cbt(&["deleterow", "SENSOR", two]).unwrap();
    let found = bigtable.ends(&project, 1, &["diff", "SENSOR", INSTANCE]);
    assert!(found.stdout.contains("METER:foreign") && found.stdout.contains("no cell"), "{}", found.stdout);
    assert!(found.stderr.contains("--compare"), "{}", found.stderr);
    let written = bigtable.json(&project, &["push", "SENSOR", "--to", INSTANCE, "--compare"]);
    assert_eq!(written["deleted"], 1, "{written}");
    bigtable.is_equal(&project, "SENSOR", INSTANCE);
}

#[test]
fn binary_cells_and_versions_come_as_they_are() {
    let Some(bigtable) = Bigtable::start() else { return };
    if bigtable.cbt(&["createtable", "B", "families=f:never,g.h:maxversions=2"]).is_none() {
        return;
    }
    for (key, cell) in [
        ("a\u{1}b", "f:q=one@1000"),
        ("a\u{1}b", "f:q=two@2000"),
        ("a\u{1}b", "f:=empty@0"),
        ("é#1", "g.h:\u{2}=\u{3}\u{4}@5000"),
    ] {
        bigtable.cbt(&["set", "B", key, cell]).unwrap();
    }
    let project = Project::empty();
    let source = format!("{INSTANCE}/tables/B");
    let pulled = bigtable.json(&project, &["pull", &source, "--raw", "--into", "b"]);
    assert_eq!((pulled["cells"].as_u64(), pulled["records"].as_u64()), (Some(4), Some(4)), "{pulled}");
    project.ok(&["run", "b"]);
    let found = bigtable.is_equal(&project, "B", INSTANCE);
    assert_eq!(found["cells_equal"], 4);
    bigtable.json(&project, &["push", "B", "--to", &format!("{INSTANCE}/tables/C"), "--create", "--yes"]);
    bigtable.is_equal(&project, "B", &format!("{INSTANCE}/tables/C"));
    // A job with another layout says which rows it cannot read.
    let other = "name = \"j\"\n[sources.s]\nfiles = [\"pulled/*.parquet\"]\ntime = \"ts\"\nmax_rejected = \"100%\"\n\
                 [sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\nq = \"text\"\n[tables.B]\nrow_key = \"{id}\"\n[tables.B.families.f]\n\
                 columns = [{ qualifier = \"q\", value = \"{q}\" }]\n";
    let other = Project::new("j", other);
    let pulled = bigtable.json(&other, &["pull", &source, "--into", "j"]);
    assert_eq!(pulled["rejected"], 2, "{pulled}");
    let rejected = other.read("pulled/rejected.jsonl");
    assert!(rejected.contains("the layout has no column g.h:"), "{rejected}");
}

#[test]
fn kinds_and_names_go_there_and_back() {
    let Some(bigtable) = Bigtable::start() else { return };
    let families = "families=a-b:never,a_b:never,a.b:never,sum:never:intsum";
    if bigtable.cbt(&["createtable", "t.x-1", families]).is_none() {
        return;
    }
    bigtable.cbt(&["createtable", "bare"]).unwrap();
    for cell in ["a-b:q=1@1000", "a_b:q=2@1000", "a.b:q=3@1000"] {
        bigtable.cbt(&["set", "t.x-1", "r", cell]).unwrap();
    }
    for value in ["sum:n=5@0", "sum:n=7@0"] {
        bigtable.cbt(&["addtocell", "t.x-1", "r", value]).unwrap();
    }
    let project = Project::empty();
    let pulled = bigtable.json(&project, &["pull", &format!("{INSTANCE}/tables/t.x-1"), "--raw", "--into", "j"]);
    assert_eq!((pulled["cells"].as_u64(), pulled["cells_written"].as_u64()), (Some(4), Some(4)), "{pulled}");
    project.ok(&["run", "j"]);
    assert_eq!(bigtable.is_equal(&project, "t.x-1", INSTANCE)["cells_equal"], 4);
    assert_eq!(project.sql("SELECT value_sum AS n FROM \"t.x-1\" WHERE value_sum IS NOT NULL")[0]["n"], 12);
    let copy = format!("{INSTANCE}/tables/t.y-2");
    bigtable.json(&project, &["push", "t.x-1", "--to", &copy, "--create", "--yes"]);
    // The kinds of families count, too.
    bigtable.is_equal(&project, "t.x-1", &copy);
    // A table without families has no cells, and leaves no job.
    let told = bigtable.ends(&project, 2, &["pull", &format!("{INSTANCE}/tables/bare"), "--raw", "--into", "bare"]);
    assert!(told.stderr.contains("no column families"), "{}", told.stderr);
    assert!(!project.path("jobs/bare").exists());
}

#[test]
fn a_pull_of_fewer_parts_leaves_nothing_of_the_others() {
    let Some(bigtable) = Bigtable::start() else { return };
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    let lines: String = (0..900).map(|meter| format!("{meter},2024-01-01T00:00:00Z,1.5\n")).collect();
    project.write("a.csv", format!("meter,ts,kwh\n{lines}"));
    project.ok(&["run", "j"]);
    bigtable.json(&project, &["push", "T", "--to", INSTANCE, "--create", "--yes"]);
    let (source, back) = (format!("{INSTANCE}/tables/T"), Project::empty());
    let args = ["pull", &source, "--raw", "--into", "back", "--prefix", "00", "--replace"];
    // The emulator cuts the table at some of its rows.
    bigtable.json(&back, &args[..5]);
    back.ok(&["run", "back"]);
    assert_eq!(bigtable.is_equal(&back, "T", INSTANCE)["cells_equal"], 900);
    bigtable.json(&back, &args);
    back.ok(&["run", "back"]);
    assert_eq!(back.json(&["read", "T"]).len(), 10);
}

#[test]
fn a_killed_pull_leaves_the_set_before() {
    let Some(bigtable) = Bigtable::start() else { return };
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    let (source, back) = (format!("{INSTANCE}/tables/T"), Project::empty());
    let args = ["pull", &source, "--raw", "--into", "back", "--quiet"];
    for round in 0..4_u64 {
        let lines: String = (0..900).map(|meter| format!("{meter},2024-01-01T00:00:00Z,{round}.5\n")).collect();
        project.write("a.csv", format!("meter,ts,kwh\n{lines}"));
        project.ok(&["run", "j"]);
        bigtable.json(&project, &["push", "T", "--to", INSTANCE, "--create", "--yes"]);
        if round > 0 {
            let child = KilledOnDrop(bigtable.command(&back, &args).stdout(Stdio::null()).spawn().unwrap());
            std::thread::sleep(Duration::from_millis(120 * round));
            drop(child);
            back.ok(&["run", "back"]);
            // All of one set, whichever it is.
            let rows = back.sql("SELECT DISTINCT CAST(value AS TEXT) AS v, count(*) AS n FROM cells.T GROUP BY v");
            assert_eq!((rows.len(), &rows[0]["n"]), (1, &Value::from(900)), "{rows:?}");
        }
        bigtable.ends(&back, 0, &args);
        back.ok(&["run", "back"]);
        bigtable.is_equal(&back, "T", INSTANCE);
    }
}

#[test]
fn a_killed_push_goes_on_and_ends_in_the_same_table() {
    kills(4);
}

/// As many kills as `TIDETABLE_KILLS` says.
#[test]
#[ignore = "takes minutes: `just prove-pushes`"]
fn many_kills_of_a_push() {
    kills(std::env::var("TIDETABLE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(200));
}

/// Pushes a table of sums and readings, killed at instants that grow until it ends by itself, then anew.
fn kills(most: u32) {
    let Some(bigtable) = Bigtable::start() else { return };
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"uint64\"\n\
               ts = \"timestamp\"\nn = \"int64\"\n[tables.T]\nrow_key = \"{id:05}\"\n\
               [tables.T.families.F]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{n}\" }]\n\
               [tables.T.families.SUM]\nkind = \"sum\"\n\
               columns = [{ qualifier = \"n\", value = \"{n}\", encoding = \"int64\", timestamp = 0 }]\n";
    let project = Project::new("j", job);
    let mut csv = "id,ts,n\n".to_owned();
    for id in 0..600 {
        for hour in 0..10 {
            csv.push_str(&format!("{id},2024-01-01T{hour:02}:00:00Z,{}\n", id * 7 + hour));
        }
    }
    project.write("a.csv", csv);
    project.ok(&["run", "j"]);
    let (mut killed, mut wait, mut number) = (0, 0, 0);
    while killed < most {
        let target = format!("{INSTANCE}/tables/K{number}");
        // A rate makes it last for some tenths of a second.
        let args = ["push", "T", "--to", &target, "--create", "--yes", "--rate", "4000/s", "--quiet"];
        let mut child = KilledOnDrop(bigtable.command(&project, &args).stdout(Stdio::null()).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(20 + wait));
        wait = (wait + 37) % 500;
        if child.0.try_wait().unwrap().is_none() {
            killed += 1;
            drop(child);
            if wait % 3 > 0 {
                continue;
            }
        }
        bigtable.ends(&project, 0, &args);
        let found = bigtable.is_equal(&project, "T", &target);
        assert_eq!(found["cells_equal"], 600 * 10 + 600, "{target} after {killed} kills");
        number += 1;
    }
}

#[test]
fn a_job_pushes_after_it_publishes() {
    let Some(bigtable) = Bigtable::start() else { return };
    let job = readings_job!(
        "*.csv",
        "",
        "[push.there]\ntable = \"T\"\nto = \"projects/p/instances/i\"\ncreate = true\npatience = \"1s\"\n[stages.push]\nretries = 1\nwait = \"1s\"\n"
    );
    let project = Project::new("j", job);
    project.write("a.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n2,2024-01-01T00:15:00Z,2.5\n");
    let planned = || {
        let plan = bigtable.ends(&project, 0, &["plan", "j", "--output", "csv"]).stdout;
        plan.lines().filter(|line| line.starts_with("push,")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(planned(), ["push,projects/p/instances/i,T,T changes,,"]);
    bigtable.ends(&project, 0, &["run", "j"]);
    assert!(planned().is_empty());
    bigtable.is_equal(&project, "T", INSTANCE);
    project.write("b.csv", "meter,ts,kwh\n1,2024-01-02T00:00:00Z,3.5\n");
    bigtable.ends(&project, 0, &["run", "j"]);
    bigtable.is_equal(&project, "T", INSTANCE);
    let pushes = project.sql("SELECT push, table_name, version, cells, error FROM runs.pushes ORDER BY run");
    assert_eq!(pushes.len(), 2, "{pushes:?}");
    assert_eq!((&pushes[0]["cells"], &pushes[1]["cells"]), (&Value::from(2), &Value::from(1)), "{pushes:?}");
    // Without a server the run is partial, and the next one goes on.
    drop(bigtable);
    project.write("c.csv", "meter,ts,kwh\n1,2024-01-03T00:00:00Z,4.5\n");
    let mut command = project.command(&["run", "j"]);
    command.env("BIGTABLE_EMULATOR_HOST", "127.0.0.1:1");
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    let pushes = project.sql("SELECT error FROM runs.pushes WHERE error IS NOT NULL");
    assert_eq!(pushes.len(), 1, "{pushes:?}");
}
