//! Tests of the rules: each has a job that trips it, and a twin one step inside that does not.

pub(crate) mod cases;
pub(crate) mod data;
pub(crate) mod fixtures;
pub(crate) mod guides;
pub(crate) mod output;

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;
use tidetable_job::{Job, Project};

use super::*;
use crate::cost::Prices;
use fixtures::{Case, fixtures};

/// The job of a case in a project of its own.
pub(crate) fn load(text: &str) -> (TempDir, Job) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
    fs::create_dir_all(dir.path().join("jobs/case")).unwrap();
    fs::write(dir.path().join("jobs/case/job.toml"), text).unwrap();
    let project = Project::find(dir.path()).unwrap();
    let job = Job::load(&project, "case").unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    (dir, job)
}

/// The limits of this release.
pub(crate) fn prices() -> Prices {
    Prices::load(None).unwrap()
}

fn report(case: &Case) -> Report {
    let (_dir, job) = load(&case.text());
    lint(&job, case.data.as_ref(), &prices())
}

/// The findings of a rule.
pub(crate) fn of_rule<'r>(report: &'r Report, id: &str) -> Vec<&'r Finding> {
    report.findings.iter().filter(|finding| finding.rule.id == id).collect()
}

#[test]
fn every_rule_has_a_fixture() {
    let known: BTreeSet<&str> = fixtures().iter().map(|fixture| fixture.rule).collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules, known);
    assert_eq!(rules.len(), RULES.len(), "an id is used twice");
}

#[test]
fn fixtures_trip_their_rules_and_twins_do_not() {
    for fixture in fixtures() {
        let found = report(&fixture.trips);
        let graves: Vec<Severity> = of_rule(&found, fixture.rule).iter().map(|finding| finding.severity).collect();
        assert_eq!(graves, [fixture.severity], "{}: {}", fixture.rule, fixture.trips.text());
        let twin = report(&fixture.twin);
        let same = of_rule(&twin, fixture.rule).into_iter().any(|finding| finding.severity == fixture.severity);
        assert!(!same, "{} twin: {:?}\n{}", fixture.rule, of_rule(&twin, fixture.rule), fixture.twin.text());
    }
}

#[test]
fn no_finding_is_graver_than_its_rule() {
    for fixture in fixtures() {
        for finding in report(&fixture.trips).findings {
            assert!(finding.severity <= finding.rule.severity, "{}", finding.rule.id);
        }
    }
}

#[test]
fn fixtures_reach_every_severity_that_a_rule_names() {
    for rule in RULES {
        let graves: Vec<Severity> =
            fixtures().iter().filter(|fixture| fixture.rule == rule.id).map(|fixture| fixture.severity).collect();
        assert!(graves.contains(&rule.severity), "{} has no fixture of its own severity", rule.id);
    }
}

/// The changed line is a job file that loads, and the rule is silent about it.
#[test]
fn changed_lines_are_right() {
    let mut changed = 0;
    for fixture in fixtures() {
        let (_dir, job) = load(&fixture.trips.text());
        let found = lint(&job, fixture.trips.data.as_ref(), &prices());
        for finding in of_rule(&found, fixture.rule) {
            let Some(change) = &finding.change else { continue };
            let lines: Vec<&str> = job.text.lines().collect();
            let now = &lines[change.place.line - 1..change.place.end_line];
            assert_eq!(now.join("\n"), change.before, "{}", fixture.rule);
            let (_dir, mended) = load(&change.applied(&job.text));
            // Facts of the old keys say nothing about the new ones.
            let left = lint(&mended, None, &prices());
            let left = of_rule(&left, fixture.rule).into_iter().find(|left| left.severity == finding.severity);
            assert!(left.is_none(), "{}: {left:?}\n{}", fixture.rule, mended.text);
            changed += 1;
        }
    }
    assert!(changed >= 10, "{changed}");
}

#[test]
fn a_reason_silences_a_rule_for_a_table_or_a_job() {
    let (_dir, job) = load(
        "name = \"case\"\n[lint]\nK3 = \"joins another system by its hash\"\n[sources.s]\nfiles = [\"s.csv\"]\ntime = \"ts\"\n\
         columns = { ts = \"timestamp\", user = \"text\" }\n[tables.A]\nrow_key = \"{ts:ms}#{user:hash}\"\n\
         families.F.columns = [{ qualifier = \"U\", value = \"{user}\" }]\nlint = { K1 = \"ten rows a day\" }\n\
         [tables.B]\nrow_key = \"{ts:ms}\"\nfamilies.F.columns = [{ qualifier = \"U\", value = \"{user}\" }]\n",
    );
    let report = lint(&job, None, &prices());
    let silenced: Vec<_> = report
        .silenced
        .iter()
        .map(|finding| (finding.rule.id, finding.table.as_deref(), finding.silenced.as_deref().unwrap()))
        .collect();
    assert_eq!(silenced, [("K1", Some("A"), "ten rows a day"), ("K3", Some("A"), "joins another system by its hash")]);
    let left = of_rule(&report, "K1");
    assert_eq!(left.iter().map(|finding| finding.table.as_deref()).collect::<Vec<_>>(), [Some("B")]);
}

#[test]
fn findings_stand_at_their_place() {
    let (_dir, job) = load(
        "name = \"case\"\n[sources.s]\nfiles = [\"s.csv\"]\ntime = \"ts\"\ncolumns = { ts = \"timestamp\", user = \"text\" }\n\
         [tables.A]\nrow_key = \"é#{ts:ms}#{user}\"\nfamilies.F.columns = [{ qualifier = \"U\", value = \"{user}\" }]\n",
    );
    let report = lint(&job, None, &prices());
    let finding = of_rule(&report, "K1")[0];
    assert_eq!(finding.place, Place { line: 7, column: 14, end_line: 7, end_column: 21 });
    let change = finding.change.as_ref().unwrap();
    assert_eq!(change.after, "row_key = \"é#{user}#{ts:ms}\"");
    assert_eq!(change.applied(&job.text), job.text.replace("{ts:ms}#{user}", "{user}#{ts:ms}"));
}

#[test]
fn examples_are_short_and_steer_no_terminal() {
    let long = "k".repeat(101);
    let keys = ["a\x1b[2Jb".to_owned(), long, "c".to_owned(), "d".to_owned()];
    let found = found::Found::new(Severity::Info, 0..0, "").keys(keys);
    assert_eq!(found.keys, ["a\\u{1b}[2Jb".to_owned(), format!("{}…", "k".repeat(100)), "c".to_owned()]);
    assert_eq!(crate::facts::shown(b"a\xffb"), "a\\xffb");
}

#[test]
fn a_key_with_escapes_has_a_finding_without_a_change() {
    let (_dir, job) = load(
        "name = \"case\"\n[sources.s]\nfiles = [\"s.csv\"]\ntime = \"ts\"\ncolumns = { ts = \"timestamp\", user = \"text\" }\n\
         [tables.A]\nrow_key = \"{ts:ms}\\u0023{user}\"\nfamilies.F.columns = [{ qualifier = \"U\", value = \"{user}\" }]\n",
    );
    let report = lint(&job, None, &prices());
    let finding = of_rule(&report, "K1")[0];
    assert_eq!(finding.place, Place { line: 7, column: 11, end_line: 7, end_column: 32 });
    assert!(finding.change.is_none());
}

#[test]
fn limits_of_another_file_hold() {
    let columns = "[tables.T.families.A]\ncolumns = [{ qualifier = \"v\", value = \"{value}\" }]\n\n\
                   [tables.T.families.B]\ncolumns = [{ qualifier = \"v\", value = \"{value}\" }]\n";
    let text = format!(
        "name = \"case\"\n\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
         columns = {{ user = \"text\", ts = \"timestamp\", value = \"float64\" }}\n\n\
         [tables.T]\nrow_key = \"{{user}}#{{ts:ms}}\"\n\n{columns}"
    );
    let (_dir, job) = load(&text);
    let mut own = prices();
    assert!(of_rule(&lint(&job, None, &own), "C1").is_empty());
    own.limits.families = 1;
    assert_eq!(of_rule(&lint(&job, None, &own), "C1")[0].measure.unwrap().limit, 1.0);
}
