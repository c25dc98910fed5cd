//! The JSON Schema of job files agrees with the repository and with the reader.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::system::python;
use crate::harness::{Project, json_lines, repository};

fn schema() -> Value {
    serde_json::from_str(&Project::empty().ok(&["schema", "job"])).unwrap()
}

#[test]
fn stored_schema_is_the_printed_schema() {
    let kept = fs::read_to_string(repository().join("jobs/job.schema.json")).unwrap();
    let printed = Project::empty().ok(&["schema", "job"]);
    assert!(kept == printed, "write it anew: tidetable schema job > jobs/job.schema.json");
    for job in fs::read_dir(repository().join("jobs")).unwrap() {
        let file = job.unwrap().path().join("job.toml");
        if let Ok(text) = fs::read_to_string(&file) {
            assert!(text.starts_with("#:schema ../job.schema.json\n"), "{}", file.display());
        }
    }
}

/// Every place of the schema where one of a few words stands: the keys that lead there, and the words.
fn choices(schema: &Value, path: &[String], found: &mut Vec<(Vec<String>, Vec<String>)>) {
    if !schema.is_object() {
        return;
    }
    if let Some(words) = schema["enum"].as_array() {
        found.push((path.to_vec(), words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()));
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        choices(below, &[path, std::slice::from_ref(key)].concat(), found);
    }
    for (step, below) in [("NAME", &schema["additionalProperties"]), ("0", &schema["items"])] {
        choices(below, &[path, &[step.to_owned()]].concat(), found);
    }
    for below in schema["anyOf"].as_array().into_iter().flatten() {
        choices(below, path, found);
    }
}

#[test]
fn schema_values_are_accepted_by_the_reader() {
    let project = Project::smart_meters();
    let text = project.read("jobs/smart-meters/job.toml");
    let mut found = Vec::new();
    choices(&schema(), &[], &mut found);
    assert!(found.len() >= 12, "{found:?}");
    for (path, words) in found {
        let key = path.last().unwrap();
        let line = format!("{key} = \"zzz\"\n");
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let wrong = match parts.as_slice() {
            [_] => text.replace("timezone =", &format!("{line}timezone =")),
            ["sources", _, "csv", _] => {
                text.replace("time = \"ts\"\n", &format!("time = \"ts\"\ncsv = {{ {key} = \"zzz\" }}\n"))
            }
            ["sources", _, "columns", ..] => {
                text.replace("kwh = \"float64\"", &format!("kwh = {{ type = \"float64\", {key} = \"zzz\" }}"))
            }
            ["sources", ..] => text.replace("time = \"ts\"\n", &format!("time = \"ts\"\n{line}")),
            ["tables", _, "families", _, "columns", ..] => {
                text.replace("value = \"{kwh}\"", &format!("value = \"{{kwh}}\", {key} = \"zzz\""))
            }
            ["tables", _, "families", ..] => text.replace("gc = ", &format!("{line}gc = ")),
            ["tables", ..] => text.replace("from = \"readings\"\n", &format!("from = \"readings\"\n{line}")),
            ["exports", ..] => text.replace("per = \"day\"\n", "").replace("query = ", &format!("{line}query = ")),
            ["checks", ..] => format!("{text}\n[checks.full]\non = \"SENSOR\"\nrows = {{ min = 1 }}\n{line}"),
            _ => panic!("{path:?}: say where this key goes"),
        };
        assert!(wrong.contains("zzz"), "{path:?}");
        project.write("jobs/smart-meters/job.toml", wrong);
        let said = json_lines(&project.fails(2, &["check", "smart-meters", "--log", "json"]));
        let about = said.iter().find(|said| said["message"] == format!("`{key}` cannot be `zzz`"));
        let help = about.unwrap_or_else(|| panic!("{path:?}: {said:?}"))["help"].as_str().unwrap();
        let listed: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        // A single choice is suggested.
        assert!(help == format!("write one of {}", listed.join(", ")) || words.len() == 1, "{path:?}: {help}");
    }
}

/// Validates jobs against the schema with Python's jsonschema. The last two have mistakes.
const VALIDATE: &str = r#"
import json, sys, tomllib, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for path in sys.argv[2:]:
    errors = sorted(error.message for error in validator.iter_errors(tomllib.load(open(path, "rb"))))
    print(json.dumps({"path": path, "errors": errors}))
"#;

#[test]
fn every_job_file_fits_the_schema() {
    let project = Project::smart_meters();
    let Some(python) = python(&project, "jsonschema") else { return };
    project.write("schema.json", schema().to_string());
    let text = project.read("jobs/smart-meters/job.toml");
    project.write("unknown.toml", text.replace("timezone =", "timezon ="));
    project.write("missing.toml", text.replace("row_key =", "# row_key ="));
    project.write("a.csv", "ts,host,v\n2020-01-01T00:00:00Z,a,1\n2020-01-01T00:01:00Z,a,2\n");
    project.ok(&["new", "new-one", "--from", "a.csv"]);
    let mut jobs: Vec<_> = fs::read_dir(repository().join("jobs"))
        .unwrap()
        .map(|job| job.unwrap().path().join("job.toml"))
        .filter(|path| path.exists())
        .collect();
    assert!(jobs.len() >= 5);
    jobs.extend(["jobs/new-one/job.toml", "unknown.toml", "missing.toml"].map(|path| project.path(path)));
    let output =
        Command::new(python).args(["-c", VALIDATE]).arg(project.path("schema.json")).args(&jobs).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = json_lines(&String::from_utf8(output.stdout).unwrap());
    let (right, wrong) = said.split_at(jobs.len() - 2);
    for job in right {
        assert_eq!(job["errors"], json!([]), "{job}");
    }
    assert!(wrong[0]["errors"][0].as_str().unwrap().contains("'timezon' was unexpected"), "{wrong:?}");
    assert!(wrong[1]["errors"][0].as_str().unwrap().contains("'row_key' is a required property"), "{wrong:?}");
}

/// Keys without a description, with the path to each.
fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, value) in properties {
            let path = format!("{path}.{name}");
            if value["description"].as_str().is_none_or(|text| text.len() < 10 || !text.ends_with('.')) {
                found.push(path.clone());
            }
            undescribed(value, &path, found);
        }
    }
    match schema {
        Value::Object(parts) => {
            let others = parts.iter().filter(|(key, _)| *key != "properties");
            others.for_each(|(_, part)| undescribed(part, path, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| undescribed(part, path, found)),
        _ => {}
    }
}

#[test]
fn every_key_has_a_description() {
    let mut found = Vec::new();
    undescribed(&schema(), "job", &mut found);
    assert!(found.is_empty(), "say what these are in job/keys.rs: {found:?}");
}
