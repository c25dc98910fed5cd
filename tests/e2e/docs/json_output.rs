//! The JSON of each command has the keys that `docs/reference/json-output.md` lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{Project, flip_bit, json_lines, repository};

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = \"50%\"",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n\
     [checks.low]\non = \"E\"\nrange = { kwh = { max = 99 } }\n"
);

/// Keys without a value in this test: of transient errors, huge rows and rare requests.
const NEVER: &[&str] = &[
    "asked.parts",
    "attempts[].",
    "compactions[].",
    "continues",
    // Of damaged files.
    "damage[].",
    // Of the cache of a bucket.
    "directory",
    // Of runs on a cluster.
    "executors[].",
    "exports[].error",
    "loads[].largest_row",
    "loads[].largest_row.",
    "loads[].rejected",
    // Of pushes into Bigtable.
    "pushed[].",
    "pushes[].",
    "sealed[].",
    "table",
    "table.families[].columns[].message",
];

/// Commands whose objects are of a build with a feature, and need Bigtable's emulator.
const OF_BIGTABLE: [&str; 3] = ["push", "pull", "diff"];

/// The keys of objects, as paths with their types.
type Keys = BTreeMap<String, String>;

/// The keys of the reference, and those that were printed.
struct Reference {
    /// By command, the place of its keys.
    commands: BTreeMap<String, usize>,
    objects: Vec<Keys>,
    printed: BTreeSet<String>,
    seen: BTreeSet<(usize, String)>,
}

impl Reference {
    fn read() -> Self {
        let page = fs::read_to_string(repository().join("docs/reference/json-output.md")).unwrap();
        let (mut commands, mut objects) = (BTreeMap::new(), Vec::<Keys>::new());
        for line in page.lines() {
            if let Some(names) = line.strip_prefix("## ") {
                commands.extend(names.split(", ").map(|name| (name.trim_matches('`').to_owned(), objects.len())));
                objects.push(Keys::new());
            } else if let (Some(keys), Some(row)) = (objects.last_mut(), line.strip_prefix("| `")) {
                let mut columns = row.splitn(3, " | ");
                let path = columns.next().unwrap().trim_end_matches('`').to_owned();
                keys.insert(path, columns.next().unwrap().to_owned());
            }
        }
        Self { commands, objects, printed: BTreeSet::new(), seen: BTreeSet::new() }
    }

    /// Runs a command, whatever it ends with: the objects that it prints, each with the keys and types of the reference.
    fn check(&mut self, command: &str, project: &Project, args: &[&str]) -> Vec<Value> {
        let ran = project.run(&[args, &["--output", "json"]].concat());
        let found = json_lines(&ran.stdout);
        assert!(!found.is_empty(), "{command} prints nothing: {}", ran.stderr);
        let at = *self.commands.get(command).unwrap_or_else(|| panic!("{command} is not in the reference"));
        found.iter().for_each(|object| self.object(at, "", object));
        self.printed.insert(command.to_owned());
        found
    }

    fn object(&mut self, at: usize, before: &str, object: &Value) {
        let inside = |path: &String| path.strip_prefix(before).filter(|key| !key.contains('.')).map(str::to_owned);
        let keys: BTreeSet<String> = self.objects[at].keys().filter_map(inside).collect();
        let printed: BTreeSet<String> =
            object.as_object().unwrap_or_else(|| panic!("{before}: {object}")).keys().cloned().collect();
        assert_eq!(printed, keys, "{before}: {object}");
        for key in keys {
            let path = format!("{before}{key}");
            let kind = self.objects[at][&path].clone();
            self.value(at, &path, &kind, &object[&key]);
        }
    }

    fn value(&mut self, at: usize, path: &str, kind: &str, value: &Value) {
        if let Some(kind) = kind.strip_prefix("null or ") {
            if !value.is_null() {
                self.value(at, path, kind, value);
            }
            return;
        }
        self.seen.insert((at, path.to_owned()));
        if let Some(kind) = kind.strip_prefix("list of ") {
            let items = value.as_array().unwrap_or_else(|| panic!("{path}: {value}"));
            return items.iter().for_each(|item| self.value(at, &format!("{path}[]"), kind, item));
        }
        if let Some(kind) = kind.strip_prefix("named ") {
            for (name, value) in value.as_object().unwrap_or_else(|| panic!("{path}: {value}")) {
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{path}: {name}");
                self.value(at, path, kind, value);
            }
            return;
        }
        let text = value.as_str();
        let holds = match kind {
            "object" => return self.object(at, &format!("{path}."), value),
            "string" => text.is_some(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            // Microseconds since the epoch would be more.
            "integer" => value.as_i64().is_some_and(|number| number.abs() < 100_000_000_000_000),
            "time" => {
                text.is_some_and(|text| text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok())
            }
            "day" => text.is_some_and(|text| text.parse::<chrono::NaiveDate>().is_ok()),
            "bytes" => text.is_some() || value["base64"].is_string(),
            other => panic!("{path} has the type {other}"),
        };
        assert!(holds, "{path} is no {kind}: {value}");
    }

    /// Every command printed something, and every key had a value.
    fn is_complete(&self) {
        let all = self.commands.keys().filter(|command| !OF_BIGTABLE.contains(&command.as_str()));
        let all: BTreeSet<String> = all.cloned().collect();
        assert_eq!(self.printed, all);
        let is_rare =
            |key: &str| NEVER.iter().any(|rare| key == *rare || (rare.ends_with('.') && key.starts_with(rare)));
        let is_here = |at: &usize| self.commands.iter().any(|(command, of)| of == at && all.contains(command));
        let keys = self.objects.iter().enumerate().filter(|(at, _)| is_here(at));
        let keys = keys.flat_map(|(at, keys)| keys.keys().map(move |key| (at, key.clone())));
        let unseen: Vec<(usize, String)> = keys.filter(|key| !self.seen.contains(key) && !is_rare(&key.1)).collect();
        assert!(unseen.is_empty(), "never seen: {unseen:?}");
    }
}

fn project() -> Project {
    let job = JOB.replacen("name = \"j\"", "name = \"j\"\nschedule = \"15 1 * * *\"\ncatch_up = \"all\"", 1);
    let job = job.replace("max_rejected", "derive = { twice = \"kwh * 2\" }\nmax_rejected");
    let job = job.replace("value = \"{kwh}\"", "value = \"{kwh}\", timestamp = \"ts\"");
    let job = job.replace("[tables.T.families.M]", "[tables.T.families.M]\ngc = \"maxversions=1 or maxage=99999d\"");
    let project = Project::new("j", &job);
    for day in 1..=2 {
        let rows = (1..=3).map(|meter| format!("{meter},2020-01-{day:02}T06:00:00Z,{meter}.5\n")).collect::<String>();
        project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n{rows}"));
        project.run(&["run", "j", "--now", &format!("2020-01-{:02}T01:15:00Z", day + 1)]);
    }
    // With a record over two lines, a repeated header and a CR in a value.
    let head = "meter,ts,kwh,note\n";
    let rows = ["1,2020-01-02T07:00:00Z,1,\"a\nb\"\n", head, "2,2020-01-02T07:00:00Z,,c\rd\n", "1,soon,1,\n"];
    project.write("in/3.csv", format!("{head}{}note,meter,ts,kwh\n", rows.concat()));
    project.write("in/copy.csv", project.read("in/1.csv"));
    project.ok(&["run", "j", "--now", "2020-01-03T02:00:00Z"]);
    project
}

#[test]
fn commands_print_the_keys_of_the_reference() {
    let (project, mut reference) = (project(), Reference::read());
    let mut check = |command: &str, args: &[&str]| reference.check(command, &project, args);
    check("history --run", &["history", "--run", "last"]);
    check("new", &["new", "k", "--from", "in/1.csv"]);
    fs::remove_dir_all(project.path("jobs/k")).unwrap();
    check("new --stdout", &["new", "k", "--from", "in/1.csv", "--stdout"]);
    check("check", &["check", "j"]);
    // Three meters at one instant, in a key without them: a change, a key and a number against a limit.
    let salted = JOB.replace("name = \"j\"", "name = \"salted\"").replace("{meter:03}#", "{salt(ts, 3)}#");
    project.write(
        "jobs/salted/job.toml",
        salted.replace("[tables.T]", "[tables.SALTED]").replace("[tables.T.", "[tables.SALTED."),
    );
    check("lint", &["lint", "salted", "--data"]);
    check("compare", &["compare", "salted"]);
    fs::remove_dir_all(project.path("jobs/salted")).unwrap();
    check("lint --rules", &["lint", "--rules"]);
    check("check --data", &["check", "j", "--data"]);
    check("schedule --check", &["schedule", "--check", "--now", "2020-01-05T00:00:00Z"]);
    let catch_up = ["run", "j", "--catch-up", "--dry-run", "--now", "2020-01-05T00:00:00Z"];
    check("run --catch-up --dry-run", &catch_up);
    check("rejects", &["rejects", "j"]);
    check("replay", &["replay", "last"]);
    for command in ["plan", "run --dry-run"] {
        check(command, &[&command.split(' ').collect::<Vec<_>>()[..], &["j", "--rebuild"]].concat());
    }
    let sst = fs::read_dir(project.path("data/tables/T/sst")).unwrap().next().unwrap().unwrap();
    check("inspect", &["inspect", sst.path().to_str().unwrap()]);
    check("read", &["read", "T"]);
    check("read --keys-only", &["read", "T", "--keys-only"]);
    check("export", &["export", "T", "--to", "x.csv"]);
    check("sql \"SUMMARIZE ..\"", &["sql", "summarize T"]);
    check("sql \"SHOW TABLES\"", &["sql", "show tables"]);
    check("tables", &["tables"]);
    let queries =
        "[scale]\nrows_per_second = 1e9\n[query.day]\nper_second = 1\nwhere = \"meter = $meter\"\nmust = \"point\"\n";
    project.write("q.toml", queries);
    check("compare", &["compare", "j", "--queries", "q.toml"]);
    check("compare", &["compare", "j", "--sample", "99%"]);
    check("heatmap", &["heatmap", "T"]);
    check("heatmap", &["heatmap", "T", "--metric", "reads:day", "--queries", "q.toml"]);
    check("advise", &["advise", "j", "--queries", "q.toml"]);
    check(
        "delete",
        &[
            "delete",
            "T",
            "--row",
            "003#20200101",
            "--column",
            "M:0600",
            "--from",
            "2020-01-01",
            "--to",
            "2020-01-02",
            "--yes",
        ],
    );
    check("delete", &["delete", "T", "--row", "002#20200101", "--column", "M", "--yes"]);
    check("drop-rows", &["drop-rows", "T", "--prefix", "001#20200101", "--yes"]);
    // A window that cannot be rebuilt, and then can be.
    let (second, third) = (project.read("in/2.csv"), project.read("in/3.csv"));
    fs::remove_file(project.path("in/2.csv")).unwrap();
    project.write("in/3.csv", third.replace("T07:", "T08:"));
    check("run", &["run", "j"]);
    check("status", &["status"]);
    project.write("in/2.csv", second);
    project.run(&["run", "j"]);
    // A month later January is settled, and its days share a file.
    project.write("in/later.csv", "meter,ts,kwh\n1,2020-02-20T07:00:00Z,1\n");
    project.ok(&["run", "j"]);
    // Another file, in a later run, gives a cell another value, has two readings of one minute, and one instant twice.
    let again = "meter,ts,kwh\n1,2020-02-20T07:00:00Z,2\n1,2020-02-20T08:00:00Z,2\n1,2020-02-20T08:00:20Z,3\n\
                 1,2020-02-20T08:00:20Z,4\n";
    project.write("in/later_again.csv", again);
    check("run", &["run", "j"]);
    check("compact --dry-run", &["compact", "T", "--full", "--dry-run"]);
    check("compact", &["compact", "T", "--full"]);
    check("vacuum", &["vacuum", "--older-than", "0s", "--yes"]);
    check("describe", &["describe", "T"]);

    // A day whose check fails.
    project.write("in/4.csv", "meter,ts,kwh\n1,2020-01-04T07:00:00Z,100\n1,2020-01-05T07:00:00Z,1\n");
    let failed = check("run", &["run", "j", "--from", "2020-01-01", "--to", "2020-01-09"]).remove(0);
    check("retry", &["retry", failed["run"].as_str().unwrap()]);
    check("history --run", &["history", "--run", failed["run"].as_str().unwrap()]);
    // And a run that fails.
    project.write("in/5.csv", "other\n1\n");
    project.fails(1, &["run", "j"]);
    check("history --run", &["history", "--run", "last"]);
    check("history", &["history"]);
    check("status", &["status", "--now", "2020-01-04", "--fresh", "9d"]);
    check("lineage", &["lineage", "T"]);
    check("report", &["report", "j"]);
    check("clean", &["clean", "--older-than", "0s", "--keep", "1"]);

    check("copy", &["copy", "data", "copied"]);
    check("cache", &["cache"]);
    check("backup", &["backup", "vault"]);
    check("backup --list", &["backup", "vault", "--list"]);
    check("restore", &["restore", "vault", "restored"]);
    let object = project.files("vault").into_keys().find(|file| file.contains("/objects/")).unwrap();
    flip_bit(project.path(&object));
    check("backup --verify", &["backup", "vault", "--verify"]);

    let table = check("describe", &["describe", "T"]).remove(0);
    let sst = table["windows"][0]["ssts"][0]["id"].as_str().unwrap();
    flip_bit(project.path(&format!("data/tables/T/sst/{sst}.sst")));
    project.write("data/runs/00000000000000000000000000.json", "{");
    check("verify", &["verify", "--all"]);
    check("doctor", &["doctor"]);
    check("doctor", &["doctor", "--fix"]);
    check("repair", &["repair", "T", "--yes"]);
    fs::remove_dir_all(project.path("jobs/j")).unwrap();
    check("drop", &["drop", "T", "--yes"]);
    reference.is_complete();
}
