//! The worked cases of the guides: rejected keys trip their rules, chosen ones do not err. And the jobs of the repository.

use std::path::Path;

use super::prices;
use super::*;

const SOURCE: &str = r#"name = "case"
[sources.rows]
files = ["rows.csv"]
time = "ts"

[sources.rows.columns]
ts = "timestamp"
value = "float64"
user = "text"
game = "text"
player = "text"
garden = "text"
symbol = "text"
exchange = "text"
device = "text"
machine = "text"
host = "text"
kind = "text"
tenant = "text"
domain = "text"
region = "text"
continent = "text"
country = "text"
city = "text"
meter = "uint64"
balloon = "uint64"
number = "uint64"
id = "uint64"
week = "text"
email = "text"
"#;

fn findings(row_key: &str, more: &str) -> Report {
    let (_dir, job) = load(&format!(
        "{SOURCE}\n[tables.T]\nrow_key = \"{row_key}\"\n{more}\n[tables.T.families.F]\ncolumns = [{{ qualifier = \"V\", value = \"{{value}}\" }}]\n"
    ));
    lint(&job, None, &prices())
}

/// Keys that the guides reject, with the rule that says so without looking at data.
const REJECTED: &[(&str, &str)] = &[
    ("{ts:%Y%m%d}#{meter:010}", "K1"),
    ("BATTERY#{ts:%Y%m%d%H%M%S%3f}", "K1"),
    ("BATTERY#{salt(ts, 3)}#{ts:%Y%m%d%H%M%S%3f}", "K9"),
    ("{symbol}", "R4"),
    ("{device}#memusage", "R4"),
    ("{ts:ms}", "K1"),
    ("{number}", "K4"),
    ("{machine:hash}#{ts:ms}", "K3"),
    ("{id:be}#{ts:ms}", "K17"),
    ("{email}#{ts:ms}", "K13"),
    ("{region}#{balloon}#pressure#{week}", "K12"),
    ("LoL#{ts:%Y%m%d}", "K1"),
    ("{machine}#{ts:ms-reversed}", "K10"),
    ("{kind}#{tenant}#{ts:%Y%m%d}", "K16"),
    ("{user}#{number:05}", "C8"),
];

/// Keys that the guides choose.
const CHOSEN: &[&str] = &[
    "{meter:010}#{ts:%Y%m%d}",
    "{host}#{ts:ms}",
    "{exchange:<6}#{symbol:<5}#{ts:ms}",
    "{region}#{balloon}#pressure#{ts:%G-W%V}",
    "{region}#{balloon}#{ts:%Y-%m-%d-%H%M}",
    "{region}#{balloon}#{ts:%G-W%V}",
    "BATTERY#{user}#{ts:%Y%m%d%H%M%S%3f}",
    "BATTERY#{salt(ts, 3)}#{ts:%Y%m%d%H%M%S%3f}",
    "{game}#{player}#{ts:%Y%m%d}",
    "{garden}#{ts:%Y%m%d}",
    "{garden}#{ts:%Y%m01}",
    "{symbol}#{ts:%Y%m%d}",
    "{device}#memusage#{ts:ms}",
    "{machine}#{ts:ms}",
    "{machine}#{ts:ms-reversed}",
    "{id:reversed}",
    "{kind}#{device}#{ts:%Y%m%d}",
    "{tenant}#{kind}#{device}#{ts:%Y%m%d}",
    "{continent}#{country}#{city}",
    "{domain:domain}",
    "{number:02}",
];

#[test]
fn rejected_keys_trip_their_rules() {
    for (key, rule) in REJECTED {
        let report = findings(key, "");
        assert!(!of_rule(&report, rule).is_empty(), "{key} does not trip {rule}");
    }
}

#[test]
fn chosen_keys_do_not_err() {
    for key in CHOSEN {
        let report = findings(key, "");
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors: Vec<_> = errors.map(|finding| (finding.rule.id, &finding.message)).collect();
        assert!(errors.is_empty(), "{key}: {errors:?}");
    }
}

/// Errors of the jobs of the repository, each the point of its sample.
const MEANT: &[(&str, &str, &str)] = &[("schema-patterns", "FRIENDS_AS_ROWS", "K4")];

#[test]
fn jobs_of_the_repository_have_no_errors_but_those_they_show() {
    let project = Project::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let mut errors = Vec::new();
    for name in project.jobs() {
        let job = Job::load(&project, &name).unwrap();
        for finding in lint(&job, None, &prices()).findings {
            if finding.severity == Severity::Error {
                errors.push((name.clone(), finding.table.unwrap_or_default(), finding.rule.id));
            }
        }
    }
    let meant: Vec<_> =
        MEANT.iter().map(|(job, table, rule)| ((*job).to_owned(), (*table).to_owned(), *rule)).collect();
    assert_eq!(errors, meant);
}

#[test]
fn the_point_of_each_sample_is_said() {
    let project = Project::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let job = Job::load(&project, "schema-patterns").unwrap();
    let report = lint(&job, None, &prices());
    for (table, rule) in [
        ("BATTERY_SALTED", "K9"),
        ("SHARE_PRICE_VERSIONS", "R4"),
        ("MACHINE_NEWEST_FIRST", "K10"),
        ("FRIENDS_AS_ROWS", "C8"),
        ("WEEK_NEW_COLUMNS", "K12"),
        ("WEEK_NEW_CELLS", "K12"),
        ("RETENTION", "R4"),
    ] {
        let found = of_rule(&report, rule);
        assert!(found.iter().any(|finding| finding.table.as_deref() == Some(table)), "{rule} of {table}");
    }
}
