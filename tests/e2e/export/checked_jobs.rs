//! What `check` passes, `run` does: random jobs, made of a small one by setting keys of the schema to values of every kind.
//!
//! `TIDETABLE_JOBS` asks for more jobs, `TIDETABLE_SEED` for others.

use serde_json::{Map, Value, json};
use tidetable_testkit::Seeded;

use crate::harness::Project;

/// Jobs that are made.
const JOBS: u64 = 60;

/// Most keys that are set in a job.
const CHANGES: u64 = 2;

/// Keys that are not set: of places outside of the project, and of waiting.
const LEFT_OUT: [&str; 5] = ["storage", "push", "hooks", "stages", "after"];

#[test]
fn what_check_passes_runs() {
    let setting = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (jobs, seed) = (setting("TIDETABLE_JOBS", JOBS), setting("TIDETABLE_SEED", 1));
    let schema: Value = serde_json::from_str(&Project::empty().ok(&["schema", "job"])).unwrap();
    let mut keys = Vec::new();
    keys_of(&schema, &[], &mut keys);
    assert!(keys.len() > 50, "{keys:?}");

    let told: Vec<Key> = keys.iter().filter(|key| !usual(key).is_empty()).cloned().collect();

    let mut passed = 0;
    let mut refused = Vec::new();
    for job in 0..jobs {
        let mut random = Seeded::part(seed, job);
        let mut text = base();
        for _ in 0..=random.below(CHANGES) {
            let pool = if random.below(10) == 0 { &keys } else { &told };
            let key = &pool[random.index(pool.len())];
            let value = value_of(key, &mut random);
            set(&mut text, &key.path, value);
        }
        let text = toml(&text);

        let project = Project::new("j", &text);
        project.write(
            "in/2026-03-28.csv",
            "meter,ts,kwh,price,note\n1,2026-03-28T22:30:00Z,0.5,1.50,a\n2,2026-03-28T23:30:00Z,7,,b\n",
        );
        project.write("in/2026-03-29.csv", "meter,ts,kwh,price,note\n1,2026-03-29T10:00:00Z,1,2.00,\n");
        project.write("more/2026-03-30.csv", "meter,ts,kwh,price,note\n3,2026-03-30T10:00:00Z,2,2.00,c\n");
        project.write("jobs/j/e.sql", "SELECT * FROM T ORDER BY meter, ts");
        let checked = project.run(&["check", "j"]);
        assert!(matches!(checked.code, Some(0 | 2)), "check of job {job} of seed {seed}: {}\n{text}", checked.stderr);
        if checked.code != Some(0) {
            continue;
        }
        passed += 1;
        let ran = project.run(&["run", "j"]);
        // What only the files tell is no mistake of the job: rows that broke a check, more rejected ones than are allowed, and
        // files that are not as the job says.
        let is_of_rows = ran.code == Some(3) || ran.stderr.contains("were rejected, more than max_rejected");
        let is_of_files = is_of_rows || ran.stderr.contains("error: in/2026-03-2");
        if !matches!(ran.code, Some(0 | 4)) && !is_of_files {
            refused.push(format!("job {job} of seed {seed}: {:?} {}\n{text}", ran.code, ran.stderr));
        }
    }
    assert!(refused.is_empty(), "{} of {passed} that passed:\n{}", refused.len(), refused.join("\n\n"));
    assert!(passed * 4 > jobs, "{passed} of {jobs} jobs pass: the values are too wild to tell anything");
}

/// The job that others are made of.
fn base() -> Value {
    json!({
        "name": "j",
        "sources": { "readings": {
            "files": ["in/*.csv"],
            "time": "ts",
            "columns": { "meter": "uint64", "ts": "timestamp", "kwh": "float64", "price": "decimal(10,2)", "note": "text" },
        } },
        "tables": { "T": {
            "row_key": "{meter:05}#{ts:%Y%m%d%H%M}",
            "families": { "M": { "columns": [
                { "each": "*", "except": ["meter", "ts"], "qualifier": "{column}", "value": "{value}" },
            ] } },
        } },
        "exports": { "E": { "per": "day", "name": "E/dt={day}", "query": { "sql": "select * from T order by meter, ts" } } },
        "checks": { "C": { "on": "E", "not_null": ["meter"] } },
    })
}

/// A key of the schema: where it stands, its types, and the words that it may be.
#[derive(Debug, Clone)]
struct Key {
    path: Vec<String>,
    words: Vec<String>,
}

/// The keys of the schema, with the names that the base job has.
fn keys_of(schema: &Value, path: &[String], found: &mut Vec<Key>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let path = [path, std::slice::from_ref(name)].concat();
        let words = below["enum"].as_array().into_iter().flatten();
        let words = words.filter_map(Value::as_str).map(str::to_owned).collect();
        found.push(Key { path: path.clone(), words });
        keys_of(below, &path, found);
    }
    if schema["additionalProperties"].is_object() {
        let names: &[&str] = match path.last().map(String::as_str) {
            Some("sources") => &["readings"],
            Some("tables") => &["T"],
            Some("families") => &["M"],
            Some("exports") => &["E"],
            Some("checks") => &["C"],
            Some("columns" | "range") => &["meter", "kwh", "price"],
            _ => &[],
        };
        for name in names {
            keys_of(&schema["additionalProperties"], &[path, &[(*name).to_owned()]].concat(), found);
        }
    }
    for below in schema["anyOf"].as_array().into_iter().flatten() {
        keys_of(below, path, found);
    }
}

/// Values that a key may have: right ones, and some that look so.
fn usual(key: &Key) -> Vec<Value> {
    match key.path.last().unwrap().as_str() {
        "name" if key.path.len() > 1 => texts(&[
            "E_{day:%Y%m%d}",
            "E/dt={day}",
            "E/y={day:%Y}/dt={day:%m-%d}",
            "E",
            "E_{month:%Y%m}",
            "E_{hour:%Y%m%d%H}",
        ]),
        "sql" => texts(&[
            "select * from T",
            "select meter, kwh from T order by meter",
            "select meter, count(*) as n, sum(kwh) as kwh, max(ts) as ts from T group by meter order by meter",
            "select cast(meter as int unsigned) as meter, cast(ts as time) as at, price from T",
            "select cast(ts as date) as dt, meter from T",
            "select meter as \"a b\", note as \"Note\", 0.0 / 0.0 as nan, null as nothing from T",
            "select * from cells.T",
            "select * from records.T where ts >= $from",
            "select array_agg(kwh) as list from T",
            "select interval '1 day' as i, 1 as n from T",
        ]),
        "query" => {
            vec![json!({ "file": "e.sql" }), json!({ "sql": "select * from cells.T" }), json!({ "sql": "select 1" })]
        }
        "file" => texts(&["e.sql", "metrics.prom", "nowhere.sql"]),
        "keys" | "not_null" | "unique" => vec![json!(["meter"]), json!(["meter", "ts"]), json!(["gone"]), json!([])],
        "unpivot" | "each" => vec![json!(["kwh", "price"]), json!(["gone"]), json!([])],
        "files" => vec![json!(["in/{day:%Y-%m-%d}.csv"]), json!(["in"]), json!(["in/*.csv", "more/*.csv"]), json!([])],
        "time" => texts(&["ts", "gone", "note"]),
        "timezone" => texts(&["Europe/Paris", "UTC", "America/New_York", "Mars/Olympus"]),
        "schedule" => texts(&["15 1 * * *", "@daily", "soon"]),
        "catch_up_window" | "delta_retention" | "snapshot_retention" => texts(&["7d", "36h", "1h", "59m", "0d"]),
        "row_key" => texts(&[
            "{meter}#{ts:%Y%m%d%H}",
            "{note}#{meter}#{ts:ms}",
            "{kwh}",
            "fixed",
            "{salt(meter,4)}#{meter}#{ts:%Y%m%d}",
        ]),
        "where" => texts(&["kwh > 0", "meter = 1", "gone > 1", "ts < timestamp '2026-03-29'"]),
        "gc" => texts(&["maxversions=1", "maxage=30d", "maxage=1000d", "never"]),
        "file_size" => texts(&["1KiB", "512MiB", "0"]),
        "max_rejected" => vec![json!("1%"), json!(0), json!(5), json!("101%")],
        "rejected_floor" | "skip" => vec![json!(0), json!(1), json!(-1)],
        "type" | "meter" | "kwh" | "price" => texts(&["float64", "text", "decimal(20,4)", "int64", "decimal(40,2)"]),
        // Others would not read the files, which only a run can tell.
        "format" if key.path[0] == "sources" => texts(&["csv"]),
        "preset" => Vec::new(),
        "delimiter" => texts(&[",", ";;", ""]),
        "quote" | "comment" | "escape" => texts(&[",", "\"", "#", "\\", ";;"]),
        "on" => texts(&["E", "T", "gone"]),
        "min" | "max" => vec![json!(0), json!(1e9), json!("2026-01-01"), json!(-1)],
        "delta" | "iceberg" | "header" => vec![json!(true), json!(true), json!(false)],
        "columns" => {
            vec![json!([{ "qualifier": "k", "value": "{kwh}" }]), json!([{ "qualifier": "{ts:%H%M}", "json": "*" }])]
        }
        _ => key.words.iter().map(|word| json!(word)).collect(),
    }
}

/// A value for a key: mostly a usual one, sometimes any.
fn value_of(key: &Key, random: &mut Seeded) -> Value {
    let usual = usual(key);
    let any = [
        json!(true),
        json!(0),
        json!(-3),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("é {day} \u{7f}"),
        json!([]),
        json!(["x"]),
        json!([{}]),
        json!({}),
        json!({ "x": 1 }),
    ];
    if usual.is_empty() || random.below(10) == 0 {
        return any[random.index(any.len())].clone();
    }
    usual[random.index(usual.len())].clone()
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

/// Sets a key below tables, which are made where something else stands.
fn set(job: &mut Value, path: &[String], value: Value) {
    let mut at = job;
    for name in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut().unwrap().entry(name.clone()).or_insert(Value::Null);
    }
    *at = value;
}

/// The job as TOML: a line for each key of the root, whose values are inline.
fn toml(job: &Value) -> String {
    let lines = job.as_object().unwrap().iter().map(|(key, value)| format!("{} = {}\n", quoted(key), inline(value)));
    lines.collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::String(text) => quoted(text),
        Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

/// A basic string of TOML, as JSON has it but for DEL, which must be escaped.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
