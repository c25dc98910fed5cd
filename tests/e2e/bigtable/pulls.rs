//! What a pull brings is the input of its job, no more and no less. The table that is pulled is one of another project,
//! which `serve` answers for.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::serve::Served;
use crate::harness::system::KilledOnDrop;
use crate::harness::{Project, Ran};

const INSTANCE: &str = "projects/p/instances/i";

/// A project whose tables are pulled, with a server that follows them.
struct Source {
    project: Project,
    served: Served,
}

impl Source {
    /// A table of a row for each line of `csv`.
    fn new(job: &str, csv: &str) -> Self {
        let project = Project::new("j", job);
        project.write("a.csv", csv);
        project.ok(&["run", "j"]);
        let served = Served::start(&project, &["--follow"]);
        Self { project, served }
    }

    /// Replaces the rows.
    fn holds(&self, csv: &str) {
        self.project.write("a.csv", csv);
        self.project.ok(&["run", "j"]);
    }

    /// Replaces the layout.
    fn is_laid_out(&self, job: &str) {
        self.project.write("jobs/j/job.toml", job);
        self.project.ok(&["run", "j", "--rebuild"]);
    }

    fn run(&self, project: &Project, args: &[&str]) -> Ran {
        Ran::of(project.command(args).env("BIGTABLE_EMULATOR_HOST", &self.served.address))
    }

    /// Runs a command against the server, which must end with `code`; what it tells.
    fn ends(&self, project: &Project, code: i32, args: &[&str]) -> String {
        let ran = self.run(project, args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout + &ran.stderr
    }

    fn json(&self, project: &Project, args: &[&str]) -> Value {
        let ran = self.run(project, &[args, &["--output", "json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        serde_json::from_str(ran.stdout.trim()).unwrap()
    }

    /// Compares a table of `project` with the one that is served; the number of equal cells.
    fn equal_cells(&self, project: &Project, table: &str) -> u64 {
        let found = self.json(project, &["diff", table, &format!("{INSTANCE}/tables/{table}")]);
        assert_eq!(found["equal"], true, "{found}");
        found["cells_equal"].as_u64().unwrap()
    }
}

fn table(id: &str) -> String {
    format!("{INSTANCE}/tables/{id}")
}

/// A job of a table T with a row for each id, and `more` at its end.
fn job(families: &str) -> String {
    format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"a.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\n\
         v = \"int64\"\n[tables.T]\nrow_key = \"{{id}}\"\ngranularity = \"micros\"\n{families}"
    )
}

const ONE: &str = "[tables.T.families.f]\ncolumns = [{ qualifier = \"v\", value = \"{v}\" }]\n";

/// Rows k000, k001 and so on, an hour apart.
fn rows(number: usize) -> String {
    let line = |at: usize| format!("k{at:03},2024-01-{:02}T{:02}:00:00Z,{at}\n", 1 + at / 24, at % 24);
    "id,ts,v\n".to_owned() + &(0..number).map(line).collect::<String>()
}

/// The newest version of T.
fn version(project: &Project) -> u64 {
    project.json(&["describe", "T"])[0]["number"].as_u64().unwrap()
}

/// Runs the job, which must change nothing.
fn changes_nothing(project: &Project) {
    let before = version(project);
    project.ok(&["run", "j"]);
    assert_eq!(version(project), before);
}

/// The list of a pull.
fn list(project: &Project, directory: &str) -> Value {
    serde_json::from_str(&project.read(&format!("{directory}/pull.json"))).unwrap()
}

#[test]
fn another_selection_takes_the_place_of_the_one_before() {
    let source = Source::new(&job(ONE), &rows(40));
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 40);
    // It is refused, says what is there, and changes nothing.
    let told = source.ends(&project, 2, &["pull", &table("T"), "--raw", "--into", "j", "--prefix", "k00"]);
    assert!(told.contains("all cells of projects/") && told.contains("--replace"), "{told}");
    changes_nothing(&project);
    let args = ["pull", &table("T"), "--raw", "--into", "j", "--prefix", "k00", "--replace"];
    source.json(&project, &args);
    project.ok(&["run", "j"]);
    assert_eq!(project.json(&["read", "T"]).len(), 10);
    // The same selection again is no other.
    source.holds(&rows(5));
    let pulled = source.json(&project, &args[..7]);
    assert_eq!((&pulled["cells"], &pulled["files"]), (&Value::from(5), &Value::from(1)));
    project.ok(&["run", "j"]);
    assert_eq!(project.json(&["read", "T"]).len(), 5);
    // One that finds nothing leaves nothing.
    source.holds("id,ts,v\nz,2024-01-01T00:00:00Z,1\n");
    source.json(&project, &args[..7]);
    project.ok(&["run", "j"]);
    assert!(project.json(&["read", "T"]).is_empty());
}

#[test]
fn a_part_that_the_list_no_longer_names_goes_with_the_same_commit() {
    let source = Source::new(&job(ONE), &rows(40));
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j", "--end", "k020"]);
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "k", "--start", "k020"]);
    // Both as one pull of two parts.
    let part = list(&project, "pulled/k")["files"]["part-00000.parquet"].as_str().unwrap().to_owned();
    fs::rename(project.path(&format!("pulled/k/{part}")), project.path("pulled/j/other.bytes")).unwrap();
    let one = list(&project, "pulled/j");
    let mut two = one.clone();
    two["files"]["part-00001.parquet"] = Value::from("other.bytes");
    project.write("pulled/j/pull.json", two.to_string());
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 40);

    // What no list names is not read, as if a pull had been killed.
    project.write("pulled/j/pull-dead/part-00000.parquet", "cut off");
    project.write("pulled/j/pull.next.json", two.to_string());
    project.write("pulled/j/part-00002.parquet", "of an earlier build");
    changes_nothing(&project);

    // The other part goes, and the plan foresees it.
    project.write("pulled/j/pull.json", one.to_string());
    let plan = project.ok(&["plan", "j", "--output", "csv"]);
    assert!(plan.contains("pulled/j/part-00001.parquet"), "{plan}");
    let before = version(&project);
    let told = project.messages(&["run", "j"]);
    assert!(told.contains("part-00001.parquet is no longer part of the pull"), "{told}");
    assert_eq!((project.json(&["read", "T"]).len(), version(&project)), (20, before + 1));
    // A file that is listed and was removed keeps its cells, as any other input.
    let part = one["files"]["part-00000.parquet"].as_str().unwrap().to_owned();
    fs::remove_file(project.path(&format!("pulled/j/{part}"))).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(project.json(&["read", "T"]).len(), 20);
    // A pull removes what is left of others.
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j", "--end", "k020"]);
    let left = |name: &str| project.path(&format!("pulled/j/{name}")).exists();
    assert!(!left("pull-dead") && !left("pull.next.json") && !left("part-00002.parquet"));
}

#[test]
fn files_of_earlier_builds_stay_the_input_until_the_next_pull() {
    let source = Source::new(&job(ONE), &rows(6));
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    // As an earlier build left it: files beside a list that names none, and one of a pull before.
    let part = list(&project, "pulled/j")["files"]["part-00000.parquet"].as_str().unwrap().to_owned();
    fs::rename(project.path(&format!("pulled/j/{part}")), project.path("pulled/j/part-00000.parquet")).unwrap();
    let selection = "PullSelection { range: KeyRange { start: [], end: None }, families: [], from: None, to: None, versions: None, \
                     sample: None }";
    let old = format!(
        "{{\"source\":\"{} {selection}\",\"raw\":true,\"parts\":[{{\"start\":\"\",\"end\":\"\",\"counts\":{{\"rows\":6}}}}],\"finished\":true}}",
        table("T")
    );
    project.write("pulled/j/pull.json", old);
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 6);
    // The same selection is known again, the name of the input too, and the content is the same.
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    assert!(!project.path("pulled/j/part-00000.parquet").exists());
    changes_nothing(&project);
    source.ends(&project, 2, &["pull", &table("T"), "--raw", "--into", "j", "--start", "k003"]);
}

#[test]
fn cells_within_a_millisecond_stay_apart() {
    let times: String = (1..=5).map(|micro| format!("k,2024-01-01T00:00:00.00000{micro}Z,{micro}\n")).collect();
    let source = Source::new(&job(ONE), &format!("id,ts,v\n{times}"));
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 5);
    let back = Project::empty();
    source.ends(&back, 0, &["new", "back", "--from", &table("T")]);
    assert!(back.read("jobs/back/job.toml").contains("granularity = \"micros\""));
    let pulled = source.json(&back, &["pull", &table("T"), "--into", "back"]);
    assert_eq!((&pulled["cells_written"], &pulled["cells_rejected"]), (&Value::from(5), &Value::from(0)));
    back.ok(&["run", "back"]);
    assert_eq!(source.equal_cells(&back, "T"), 5);
    // A job of milliseconds takes none of them, and says so.
    let millis = back.read("jobs/back/job.toml").replace("granularity = \"micros\"\n", "");
    let other = Project::new("back", &millis);
    let said = source.ends(&other, 1, &["pull", &table("T"), "--into", "back"]);
    assert!(said.contains("1 of 1 rows") && said.contains("max_rejected = 0.1%"), "{said}");
    assert!(!other.path("pulled/back/pull.json").exists());
    assert!(other.read("pulled/back/rejected.jsonl").contains("granularity"));
    // Nor with a limit that allows it.
    let all = millis.replacen("time = \"ts\"\n", "time = \"ts\"\nmax_rejected = \"100%\"\n", 1);
    let other = Project::new("back", &all);
    let pulled = source.json(&other, &["pull", &table("T"), "--into", "back"]);
    assert_eq!((&pulled["cells_written"], &pulled["cells_rejected"]), (&Value::from(0), &Value::from(5)));
    assert!(other.read("pulled/back/rejected.jsonl").contains("granularity"), "{pulled}");
}

#[test]
fn a_killed_pull_leaves_the_set_before_or_brings_its_own() {
    let rows =
        |round: u32| -> String { (0..3_000).map(|row| format!("k{row:04},2024-01-01T00:00:00Z,{round}\n")).collect() };
    let source = Source::new(&job(ONE), &format!("id,ts,v\n{}", rows(0)));
    let project = Project::empty();
    let args = ["pull", &table("T"), "--raw", "--into", "j", "--quiet"];
    source.ends(&project, 0, &args);
    project.ok(&["run", "j"]);

    // Killed later and later, until one ends by itself.
    let (mut round, mut kills) = (0, 0);
    loop {
        round += 1;
        assert!(round < 100, "no pull ends");
        source.holds(&format!("id,ts,v\n{}", rows(round)));
        let mut command = project.command(&args);
        command.env("BIGTABLE_EMULATOR_HOST", &source.served.address).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = KilledOnDrop(command.spawn().unwrap());
        std::thread::sleep(Duration::from_millis(40 * u64::from(round)));
        let has_ended = child.0.try_wait().unwrap().is_some();
        drop(child);

        project.ok(&["run", "j"]);
        let sets = project.sql("SELECT DISTINCT CAST(value AS TEXT) AS v, count(*) AS n FROM cells.T GROUP BY v");
        assert_eq!((sets.len(), &sets[0]["n"]), (1, &Value::from(3_000)), "round {round}: {sets:?}");
        if has_ended {
            assert_eq!(sets[0]["v"], round.to_string());
            break;
        }
        kills += 1;
    }
    assert!(kills > 0);
}

#[test]
fn a_pull_that_cannot_write_its_job_leaves_none() {
    let source = Source::new(&job(ONE), &rows(5));
    let project = Project::empty();
    let mut command = Command::new("sh");
    let binary = project.command(&[]).get_program().to_owned();
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(binary);
    command.args(["pull", &table("T"), "--raw", "--into", "j"]).current_dir(project.path(""));
    let told = Ran::of(command.env("BIGTABLE_EMULATOR_HOST", &source.served.address));
    assert_eq!(told.code, Some(1), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("File too large"), "{}", told.stderr);
    assert!(!project.path("jobs/j/job.toml").exists());
    // With room it goes on.
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 5);
}

#[test]
fn a_proposal_has_seen_all_parts_of_a_table() {
    // The service cuts no table as small as this; only keys of the later half have another form.
    let rows: String = (0..4_000)
        .map(|row| match row {
            0..2_000 => format!("m{row:04}#2024,2024-01-01T00:00:00Z,{row}\n"),
            _ => format!("m{row:04}#north,2024-01-01T00:00:00Z,{row}\n"),
        })
        .collect();
    let source = Source::new(&job(ONE), &format!("id,ts,v\n{rows}"));
    let back = Project::empty();
    source.ends(&back, 0, &["new", "back", "--from", &table("T")]);
    source.json(&back, &["pull", &table("T"), "--into", "back"]);
    back.ok(&["run", "back"]);
    assert_eq!(source.equal_cells(&back, "T"), 4_000);
}

#[test]
fn a_raw_job_follows_the_families_of_its_table() {
    const TWO: &str = "[tables.T.families.f]\ncolumns = [{ qualifier = \"v\", value = \"{v}\" }]\n\
                       [tables.T.families.\"g.h\"]\ncolumns = [{ qualifier = \"w\", value = \"{v}\" }]\n";
    const OTHER: &str =
        "[tables.T.families.\"g.h\"]\nkind = \"sum\"\ncolumns = [{ qualifier = \"w\", value = \"{v}\" }]\n";
    let source = Source::new(&job(ONE), &rows(4));
    let project = Project::empty();
    let args = ["pull", &table("T"), "--raw", "--into", "j"];
    source.json(&project, &args);
    project.ok(&["run", "j"]);
    // What was added to the job file stays.
    let added =
        "\n[exports.E]\nname = \"E\"\nper = \"query\"\nquery = { sql = \"SELECT count(*) AS n FROM cells.T\" }\n";
    project.write("jobs/j/job.toml", project.read("jobs/j/job.toml") + added);
    for (families, cells) in [(TWO, 8), (OTHER, 4), (TWO, 8), (ONE, 4)] {
        source.is_laid_out(&job(families));
        let pulled = source.json(&project, &args);
        assert_eq!((&pulled["cells"], &pulled["cells_written"]), (&Value::from(cells), &Value::from(cells)));
        project.ok(&["run", "j"]);
        assert_eq!(source.equal_cells(&project, "T"), cells, "{families}");
        assert!(project.read("jobs/j/job.toml").contains(added), "{families}");
    }
    // A family that the job does not load is no family without cells.
    source.is_laid_out(&job(TWO));
    let before = project.read("jobs/j/job.toml");
    source.json(&project, &args);
    project.write("jobs/j/job.toml", before);
    let told = project.fails(2, &["run", "j"]);
    assert!(told.contains("g.h") && told.contains("value_g_h"), "{told}");
}

#[test]
fn the_source_is_not_written_over() {
    let source = Source::new(&job(ONE), &rows(4));
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    for args in [&["push", "T", "--to", INSTANCE][..], &["push", "T", "--to", &table("T"), "--compare"]] {
        let told = source.ends(&project, 2, args);
        assert!(told.contains("were pulled from") && told.contains("--to-source"), "{told}");
    }
    // With the option it is tried: what is served is read-only.
    let told = source.ends(&project, 1, &["push", "T", "--to", INSTANCE, "--to-source", "--patience", "1s"]);
    assert!(told.contains("read-only"), "{told}");
    // Another table is no source.
    let told = source.ends(&project, 2, &["push", "T", "--to", &table("U")]);
    assert!(told.contains("--create"), "{told}");

    source.holds(&rows(5));
    let told = source.ends(&project, 1, &["diff", "T", INSTANCE]);
    assert!(
        told.contains(&format!("tidetable pull {} --raw --into j", table("T"))) && !told.contains("push"),
        "{told}"
    );

    // In jobs, too: before anything is loaded. Derived tables have the sources of what they read.
    let raw = project.read("jobs/j/job.toml");
    let derived = "[tables.D]\nfrom = { query = { sql = \"SELECT row_key, qualifier, timestamp, value_f FROM T\" }, time = \
                   \"timestamp\" }\nrow_key = \"{row_key}\"\n[tables.D.families.f]\ncolumns = [{ qualifier = \"q\", value = \
                   \"{value_f}\" }]\n";
    for (more, refused) in [
        (format!("[push.back]\ntable = \"T\"\nto = \"{INSTANCE}\"\n"), true),
        (format!("{derived}[push.back]\ntable = \"D\"\nto = \"{}\"\n", table("T")), true),
        (format!("[push.back]\ntable = \"T\"\nto = \"{INSTANCE}\"\nto_source = true\n"), false),
        (format!("[push.there]\ntable = \"T\"\nto = \"{}\"\n", table("U")), false),
    ] {
        project.write("jobs/j/job.toml", format!("{raw}\n{more}"));
        let code = if refused { 2 } else { 0 };
        let told = source.ends(&project, code, &["plan", "j"]);
        assert_eq!(told.contains("to_source"), refused, "{more}{told}");
    }
}

#[test]
fn selections_that_hold_nothing_and_other_tables_are_errors() {
    let source = Source::new(&job(ONE), &rows(40));
    source
        .project
        .write("jobs/k/job.toml", job(ONE).replace("name = \"j\"", "name = \"k\"").replace("tables.T", "tables.U"));
    source.project.ok(&["run", "k"]);
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    let name = table("T");
    let written = || (list(&project, "pulled/j"), project.read("jobs/j/job.toml"));
    let before = written();
    for (args, said) in [
        (&["--start", "k2", "--end", "k1"][..], "--end"),
        (&["--start", "k2", "--end", "k2"], "--end"),
        (&["--end", ""], "--end"),
        (&["--from", "2024-01-02", "--to", "2024-01-01"], "--to"),
        (&["--from", "2024-01-02", "--to", "2024-01-02"], "--to"),
        (&["--to", "1970-01-01"], "--to"),
        (&["--family", "f", "--family", "none"], "it has f"),
    ] {
        for more in [&["--raw"][..], &[]] {
            let args = [&["pull", &name, "--into", "j", "--replace"], args, more].concat();
            let told = source.ends(&project, 2, &args);
            assert!(told.contains(said), "{args:?}: {told}");
        }
    }
    for command in ["diff", "push"] {
        let to: &[&str] = if command == "diff" { &[INSTANCE] } else { &["--to", INSTANCE] };
        let told = source.ends(&project, 2, &[&[command, "T"], to, &["--start", "b", "--end", "a"]].concat());
        assert!(told.contains("--end"), "{told}");
    }
    // Another table into the job, with its directory and without.
    let told = source.ends(&project, 2, &["pull", &table("U"), "--raw", "--into", "j"]);
    assert!(told.contains(&table("T")) && told.contains("--replace"), "{told}");
    let told = source.ends(&project, 2, &["pull", &table("U"), "--into", "j"]);
    assert!(told.contains(&table("T")) && told.contains("--replace"), "{told}");
    assert_eq!(written(), before);
    fs::remove_dir_all(project.path("pulled")).unwrap();
    source.ends(&project, 2, &["pull", &table("U"), "--raw", "--into", "j"]);
    source.holds(&rows(3));
    source.json(&project, &["pull", &table("U"), "--raw", "--into", "j", "--replace"]);
    project.ok(&["run", "j"]);
    assert_eq!(project.json(&["read", "T"]).len(), 40);
}

#[test]
fn aggregates_stay_aggregates() {
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"a.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\n\
               v = \"int64\"\nw = \"text\"\n[tables.T]\nrow_key = \"{id}\"\n\
               [tables.T.families.sum]\nkind = \"sum\"\ncolumns = [{ qualifier = \"n\", value = \"{v}\", timestamp = 0 }]\n\
               [tables.T.families.min]\nkind = \"min\"\ncolumns = [{ qualifier = \"n\", value = \"{v}\", timestamp = 0 }]\n\
               [tables.T.families.max]\nkind = \"max\"\ncolumns = [{ qualifier = \"{ts:%Y-%m}\", value = \"{v}\", timestamp = 0 }]\n\
               [tables.T.families.hll]\nkind = \"hll\"\ncolumns = [{ qualifier = \"n\", value = \"{w}\", timestamp = 0 }]\n";
    let csv = "id,ts,v,w\na,2024-01-01T00:00:00Z,5,x\na,2024-01-02T00:00:00Z,-7,y\nb,2024-02-01T00:00:00Z,9,x\n";
    let source = Source::new(job, csv);
    let project = Project::empty();
    source.json(&project, &["pull", &table("T"), "--raw", "--into", "j"]);
    project.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&project, "T"), 8);
    let text = project.read("jobs/j/job.toml");
    for kind in ["sum", "min", "max", "hll"] {
        assert!(text.contains(&format!("[tables.T.families.\"{kind}\"]\nkind = \"{kind}\"\n")), "{text}");
    }
    let sums = project.sql("SELECT value_sum AS v FROM T WHERE value_sum IS NOT NULL ORDER BY v");
    assert_eq!(sums.iter().map(|row| row["v"].as_i64().unwrap()).collect::<Vec<_>>(), [-2, 9]);
    let distinct = project.sql("SELECT hll_estimate(value) AS n FROM cells.T WHERE family = 'hll' ORDER BY row_key");
    assert_eq!(distinct.iter().map(|row| row["n"].as_i64().unwrap()).collect::<Vec<_>>(), [2, 1]);

    // A proposal keeps the kinds, too.
    let back = Project::empty();
    source.ends(&back, 0, &["new", "back", "--from", &table("T")]);
    let text = back.read("jobs/back/job.toml");
    assert!(["sum", "min", "max", "hll"].iter().all(|kind| text.contains(&format!("kind = \"{kind}\""))), "{text}");
    source.json(&back, &["pull", &table("T"), "--into", "back"]);
    back.ok(&["run", "back"]);
    assert_eq!(source.equal_cells(&back, "T"), 8);

    // Equal cells that merge in another way are no equal tables.
    let plain = project.read("jobs/j/job.toml").replace("kind = \"hll\"\n", "");
    project.write("jobs/j/job.toml", plain);
    project.ok(&["run", "j", "--rebuild"]);
    let told = source.ends(&project, 1, &["diff", "T", INSTANCE]);
    assert!(told.contains("family hll is newest here and hll there"), "{told}");
}

#[test]
fn a_sum_of_a_row_is_added_once() {
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"a.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\n\
               v = \"int64\"\nw = \"text\"\n[tables.T]\nrow_key = \"{id}#{ts:%Y%m%d}\"\n\
               [tables.T.families.f]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{w}\" }]\n\
               [tables.T.families.sum]\nkind = \"sum\"\ncolumns = [{ qualifier = \"n\", value = \"{v}\", timestamp = 0 }]\n";
    let csv = "id,ts,v,w\na,2024-01-01T00:00:00Z,5,x\na,2024-01-01T01:00:00Z,7,y\nb,2024-01-01T01:00:00Z,9,x\n";
    let source = Source::new(job, csv);
    let pulled = Project::new("j", &job.replace("a.csv", "pulled/*.parquet"));
    let found = source.json(&pulled, &["pull", &table("T"), "--into", "j"]);
    assert_eq!((&found["cells"], &found["cells_written"]), (&Value::from(5), &Value::from(5)));
    pulled.ok(&["run", "j"]);
    assert_eq!(source.equal_cells(&pulled, "T"), 5);
}

#[test]
fn names_come_as_they_are() {
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"a.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\n\
               v = \"int64\"\nq = \"text\"\n[tables.\"a.b-c\"]\nrow_key = \"{id:hex}\"\n\
               [tables.\"a.b-c\".families.\"a-b\"]\ncolumns = [{ qualifier = \"{q:hex}\", value = \"{v}\" }]\n\
               [tables.\"a.b-c\".families.a_b]\ncolumns = [{ qualifier = \"{{}}\\\"\", value = \"{v}\" }]\n\
               [tables.\"a.b-c\".families.\"a.b\"]\ncolumns = [{ qualifier = \"v\", value = \"{v}\" }]\n";
    let csv = "id,ts,v,q\n61ff,2024-01-01T00:00:00Z,1,00\n62,2024-01-01T00:00:00Z,2,ff225c0a\n62,2024-01-02T00:00:00Z,3,\"\"\n";
    let source = Source::new(job, csv);
    let (id, project) = ("a.b-c", Project::empty());
    // A name that no job can have leaves no file.
    source.ends(&project, 2, &["pull", &table(id), "--raw", "--into", "a b"]);
    assert!(!project.path("jobs/a b").exists());
    let pulled = source.json(&project, &["pull", &table(id), "--raw", "--into", "j", "--dir", "p [1]"]);
    assert_eq!(pulled["cells_written"], pulled["cells"]);
    project.ok(&["run", "j"]);
    assert_eq!(Value::from(source.equal_cells(&project, id)), pulled["cells"]);
    let rows = project.sql("SELECT DISTINCT family FROM cells.\"a.b-c\" ORDER BY family");
    assert_eq!(rows.iter().map(|row| row["family"].as_str().unwrap()).collect::<Vec<_>>(), ["a-b", "a.b", "a_b"]);

    // Qualifiers of any bytes are data of a proposal.
    source.holds("id,ts,v,q\n61,2024-01-01T00:00:00Z,1,00\n62,2024-01-01T00:00:00Z,2,ff225c0a\n");
    let back = Project::empty();
    let told = source.ends(&back, 0, &["new", "back", "--from", &table(id)]);
    assert!(told.contains("from \"a.b-c\" limit 5"), "{told}");
    source.json(&back, &["pull", &table(id), "--into", "back"]);
    back.ok(&["run", "back"]);
    assert_eq!(source.equal_cells(&back, id), 6);
}
