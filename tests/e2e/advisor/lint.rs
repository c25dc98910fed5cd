//! `tidetable lint`: findings, exit codes and formats.

use serde_json::Value;

use crate::harness::{Project, json_lines};

const JOB: &str = "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
                   columns = { user = \"text\", ts = \"timestamp\", level = \"uint64\" }\n\n\
                   [tables.T]\nrow_key = \"BATTERY#{ts:ms}\"\n\n[tables.T.families.STATUS]\ngc = \"maxversions=1\"\n\
                   columns = [{ qualifier = \"LEVEL\", value = \"{level}\" }]\n";

/// Two users write at one instant: in a key without the user one of them is lost.
const ROWS: &str = "user,ts,level\nCorrie,2015-03-01T12:45:01Z,98\nJo,2015-03-01T12:45:01Z,71\n";

fn project(job: &str) -> Project {
    let project = Project::new("j", job);
    project.write("in/1.csv", ROWS);
    project
}

fn rules(findings: &[Value]) -> Vec<(&str, &str)> {
    findings.iter().map(|it| (it["rule"].as_str().unwrap(), it["severity"].as_str().unwrap())).collect()
}

#[test]
fn findings_have_a_line_and_the_line_as_it_should_be() {
    let project = project(JOB);
    let findings = json_lines(&project.ok(&["lint", "j", "--output", "json"]));
    assert_eq!(rules(&findings), [("K1", "error")]);
    let finding = &findings[0];
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"]),
        (&"jobs/j/job.toml".into(), &8.into(), &20.into())
    );
    assert_eq!(finding["change"], "row_key = \"BATTERY#{user}#{ts:ms}\"");
    let mended = JOB.replace("BATTERY#{ts:ms}", "BATTERY#{user}#{ts:ms}");
    project.write("jobs/j/job.toml", mended);
    assert_eq!(project.ok(&["lint", "j", "--deny", "warn"]), "");
}

#[test]
fn denied_findings_exit_with_3_and_stand_on_standard_output() {
    let project = project(JOB);
    assert_eq!(project.run(&["lint", "j"]).code, Some(0));
    for severity in ["error", "warn"] {
        let ran = project.run(&["lint", "j", "--deny", severity]);
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stdout.starts_with("error[K1] T: "), "{}", ran.stdout);
        assert!(ran.stderr.contains("1 finding of severity"), "{}", ran.stderr);
        assert!(!ran.stdout.contains("of severity"), "{}", ran.stdout);
    }
    // A salt is a warning: errors alone are not in the way of it.
    project.write("jobs/j/job.toml", JOB.replace("{ts:ms}", "{salt(ts, 3)}#{ts:ms}"));
    assert_eq!(project.run(&["lint", "j", "--deny", "error"]).code, Some(0));
    assert_eq!(project.run(&["lint", "j", "--deny", "warn"]).code, Some(3));
}

#[test]
fn data_shows_what_is_lost() {
    let project = project(JOB);
    let findings = json_lines(&project.ok(&["lint", "j", "--data", "--output", "json"]));
    assert_eq!(rules(&findings), [("K15", "error"), ("K1", "error")]);
    assert_eq!(findings[0]["keys"], serde_json::json!(["BATTERY#1425213901000"]));
    assert_eq!((&findings[0]["measured"], &findings[0]["limit"]), (&1.0.into(), &0.0.into()));
    project.write("jobs/j/job.toml", JOB.replace("{ts:ms}", "{user}#{ts:ms}"));
    assert_eq!(project.ok(&["lint", "j", "--data", "--deny", "warn"]), "");
    // Nothing was loaded by it.
    assert!(!project.path("data").exists());
}

#[test]
fn queries_that_read_all_rows_are_found() {
    let project = project(&JOB.replace("{ts:ms}", "{user}#{ts:ms}"));
    let lint = ["lint", "j", "--data", "--queries", "q.toml", "--output", "json"];
    project.write("q.toml", "[query.of_user]\nper_second = 1\nwhere = \"user = $user\"\nmust = \"range\"\n");
    assert_eq!(project.ok(&lint), "");
    project.write("q.toml", "[query.low]\nper_second = 1\nwhere = \"level < 80\"\nmust = \"range\"\n");
    let findings = json_lines(&project.ok(&lint));
    assert_eq!(rules(&findings), [("Q1", "error")]);
    assert!(findings[0]["message"].as_str().unwrap().contains("`low`"), "{}", findings[0]);
    assert_eq!(project.run(&["lint", "j", "--queries", "q.toml"]).code, Some(2), "queries need data");
}

#[test]
fn rejected_values_are_shown_with_the_form_that_takes_them() {
    let project = project(&JOB.replace("BATTERY#{ts:ms}", "{user}#{ts:ms}"));
    project.write("in/1.csv", ROWS.replace("Jo", "Jo#2"));
    let findings = json_lines(&project.ok(&["lint", "j", "--data", "--output", "json"]));
    assert_eq!(rules(&findings), [("K14", "error")]);
    assert_eq!(findings[0]["change"], "row_key = \"{user:percent}#{ts:ms}\"");
    assert!(findings[0]["keys"][0].as_str().unwrap().starts_with("Jo#2,"), "{}", findings[0]);
}

#[test]
fn a_reason_in_the_job_file_silences_a_rule() {
    let silenced = JOB.replace("[tables.T.families", "[tables.T.lint]\nK1 = \"a row a day\"\n\n[tables.T.families");
    let project = project(&silenced);
    let ran = project.run(&["lint", "j", "--deny", "warn"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 finding silenced"), "{}", ran.stderr);
    project.write("jobs/j/job.toml", silenced.replace("\"a row a day\"", "\" \""));
    let ran = project.run(&["lint", "j"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`K1` is silenced without a reason"), "{}", ran.stderr);
    project.write("jobs/j/job.toml", silenced.replace("K1 =", "K0 ="));
    let findings = json_lines(&project.ok(&["lint", "j", "--output", "json"]));
    assert_eq!(rules(&findings), [("K1", "error"), ("A1", "warn")]);
}

#[test]
fn sarif_is_one_document_and_only_for_findings() {
    let project = project(JOB);
    let log: Value = serde_json::from_str(&project.ok(&["lint", "j", "--output", "sarif"])).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"K1".into(), &"error".into()));
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&8.into(), &20.into()));
    for args in [&["check", "j"][..], &["sql", "select 1"], &["lint", "--rules"]] {
        let ran = project.run(&[args, &["--output", "sarif"]].concat());
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains("tidetable lint JOB"), "{}", ran.stderr);
    }
}

#[test]
fn a_job_that_cannot_be_linted_says_why() {
    let project = project(JOB);
    assert_eq!(project.run(&["lint", "k"]).code, Some(2));
    assert_eq!(project.run(&["lint"]).code, Some(2));
    // A gate must not pass because nothing was looked at.
    project.write("in/1.csv", "user,ts,level\nJo,soon,71\n");
    project.write("jobs/j/job.toml", JOB.replace("time = \"ts\"", "time = \"ts\"\nmax_rejected = \"100%\""));
    let ran = project.run(&["lint", "j", "--data", "--deny", "error"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 rows were read, 1 of them rejected"), "{}", ran.stderr);
    project.write("in/1.csv", "user,ts\n");
    let ran = project.run(&["lint", "j", "--data"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("level"), "{}", ran.stderr);
}

#[test]
fn a_rule_is_explained() {
    let project = project(JOB);
    let shown = project.ok(&["lint", "--explain", "k1"]);
    assert!(shown.starts_with("error[K1]: the row key begins with a time"), "{shown}");
    assert!(
        shown.contains("why: Rows are kept in the order of their keys") && shown.contains("silences it"),
        "{shown}"
    );
    let found = json_lines(&project.ok(&["lint", "--explain", "W2", "--output", "json"]));
    assert_eq!((found.len(), &found[0]["rule"]), (1, &"W2".into()));
    let message = project.fails(2, &["lint", "--explain", "K99"]);
    assert!(message.contains("lint --rules"), "{message}");
    project.fails(2, &["lint", "j", "--explain", "K1"]);
}
