//! The JSON of commands: what stands in `docs/reference/json-output.md` is what they print. `INSTA_UPDATE=always` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{Project, json_lines, repository};

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = \"50%\"",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n"
);

/// Commands of which each object has the same keys, and what they are called with.
const COMMANDS: &[(&str, &[&str])] = &[
    ("tables", &["tables"]),
    ("status", &["status", "--now", "2020-01-04", "--fresh", "9d"]),
    ("history", &["history"]),
    ("lineage", &["lineage", "T"]),
    ("rejects", &["rejects", "j"]),
    ("plan", &["plan", "j", "--rebuild"]),
    ("check", &["check", "j"]),
    ("schedule --check", &["schedule", "--check", "--now", "2020-01-03T00:00:00Z"]),
    ("read", &["read", "T"]),
    ("read --keys-only", &["read", "T", "--keys-only"]),
    ("export", &["export", "T", "--to", "x.csv"]),
    ("sql \"SUMMARIZE ..\"", &["sql", "summarize T"]),
    ("verify", &["verify"]),
    ("compact --dry-run", &["compact", "T", "--full", "--dry-run"]),
    ("delete", &["delete", "T", "--row", "001#20200101", "--dry-run"]),
    ("drop-rows", &["drop-rows", "T", "--prefix", "001", "--dry-run"]),
    ("vacuum", &["vacuum", "--older-than", "0s"]),
    ("clean", &["clean", "--older-than", "0s", "--keep", "1"]),
];

/// Keys that hold a time, where they hold a text.
const TIMES: &[&str] =
    &["now", "started", "finished", "last_good", "data_until", "published_until", "time", "timestamp"];

/// Keys that hold a number where they hold anything; others without a value in the example hold a text.
const NUMBERS: &[&str] = &["version", "bytes"];

fn project() -> Project {
    let project = Project::new("j", &JOB.replacen("name = \"j\"", "name = \"j\"\nschedule = \"15 1 * * *\"", 1));
    for day in 1..=2 {
        let rows = (1..=3).map(|meter| format!("{meter},2020-01-{day:02}T06:00:00Z,{meter}.5\n")).collect::<String>();
        project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n{rows}"));
        project.run(&["run", "j", "--now", &format!("2020-01-{:02}T01:15:00Z", day + 1)]);
    }
    project.write("in/3.csv", "meter,ts,kwh\n1,2020-01-02T07:00:00Z,1\n1,soon,1\n");
    project.ok(&["run", "j", "--now", "2020-01-03T02:00:00Z"]);
    project
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_keys(command: &str, value: &Value) {
    let Some(object) = value.as_object() else {
        return value.as_array().into_iter().flatten().for_each(|item| check_keys(command, item));
    };
    for (key, value) in object {
        let snake = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        assert!(snake && !key.starts_with('_'), "{command}: {key} is not snake_case");
        if let Some(time) = value.as_str().filter(|_| TIMES.contains(&key.as_str())) {
            assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{command}: {key} is {time}");
        }
        assert!(!(TIMES.contains(&key.as_str()) && value.is_number()), "{command}: {key} is {value}");
        check_keys(command, value);
    }
}

#[test]
fn keys_are_those_of_the_reference() {
    let project = project();
    let mut page = String::from(
        "# JSON of commands\n\n`--output json` prints one object a line. Keys are stable: new ones may come, those that are here stay. \
         Times are RFC 3339. Bytes\nare text where they are UTF-8, else `{\"base64\": \"..\"}`. `run`, `history RUN`, `describe` and \
         `inspect` print what is stored: a record\nof a run, a manifest, a file. Rows of `sql` have the columns of the query.\n",
    );
    for (name, args) in COMMANDS {
        let objects = json_lines(&project.ok(&[args, &["--output", "json"][..]].concat()));
        assert!(!objects.is_empty(), "{name} prints nothing");
        let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let keys: Vec<&String> = objects[0].as_object().unwrap().keys().collect();
        for object in &objects {
            check_keys(name, object);
            assert_eq!(object.as_object().unwrap().keys().collect::<Vec<_>>(), keys, "{name}");
            for (key, value) in object.as_object().unwrap() {
                kinds.entry(key).or_default().insert(kind(value));
            }
        }
        page.push_str(&format!("\n## {name}\n\n| key | type |\n|---|---|\n"));
        for key in &keys {
            let kinds: Vec<&str> = kinds[key.as_str()].iter().copied().collect();
            let kinds = match kinds.as_slice() {
                ["null"] if NUMBERS.contains(&key.as_str()) => "null or number".to_owned(),
                ["null"] => "null or string".to_owned(),
                kinds => kinds.join(" or "),
            };
            page.push_str(&format!("| `{key}` | {kinds} |\n"));
        }
    }
    let path = repository().join("docs/reference/json-output.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/json-output.md is not what commands print: write it anew with INSTA_UPDATE=always"
    );
}
