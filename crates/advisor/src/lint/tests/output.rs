//! SARIF, with the fields that its schema requires.

use serde_json::Value;

use super::prices;
use super::*;

/// Strings, integers and objects that `log.runs[].results[]` must have, by the SARIF 2.1.0 schema and by what code review tools
/// need to show a result at its line.
#[test]
fn sarif_has_the_fields_that_its_schema_requires() {
    let mut seen = 0;
    for fixture in fixtures() {
        let (_dir, job) = load(&fixture.trips.text());
        let report = lint(&job, fixture.trips.data.as_ref(), &prices());
        let log = sarif(&report, "jobs/case/job.toml");
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(log["runs"].as_array().unwrap().len(), 1);
        assert_eq!(run["tool"]["driver"]["name"], "tidetable");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert!(rules.iter().all(|rule| text(&rule["id"]) && text(&rule["shortDescription"]["text"])));
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), report.findings.len() + report.silenced.len());
        let lines: Vec<&str> = job.text.lines().collect();
        for result in results {
            seen += 1;
            assert!(text(&result["message"]["text"]));
            assert!(["note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "jobs/case/job.toml");
            assert_region(&place["region"], &lines);
            for fix in result["fixes"].as_array().into_iter().flatten() {
                let change = &fix["artifactChanges"][0];
                assert_eq!(change["artifactLocation"]["uri"], "jobs/case/job.toml");
                assert_region(&change["replacements"][0]["deletedRegion"], &lines);
                assert!(text(&change["replacements"][0]["insertedContent"]["text"]));
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

fn text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Lines and columns count from 1 and lie in the file; the end is not before the start.
fn assert_region(region: &Value, lines: &[&str]) {
    let number =
        |key: &str| usize::try_from(region[key].as_u64().unwrap_or_else(|| panic!("{key}: {region}"))).unwrap();
    let (line, column, end_line, end_column) =
        (number("startLine"), number("startColumn"), number("endLine"), number("endColumn"));
    assert!((line, column) <= (end_line, end_column) && line >= 1 && column >= 1, "{region}");
    assert!(end_column <= lines[end_line - 1].chars().count() + 1, "{region}");
}

#[test]
fn silenced_findings_are_suppressions() {
    let (_dir, job) = load(
        "name = \"case\"\n[sources.s]\nfiles = [\"s.csv\"]\ntime = \"ts\"\ncolumns = { ts = \"timestamp\", user = \"text\" }\n\
         [tables.A]\nrow_key = \"{ts:ms}\"\nfamilies.F.columns = [{ qualifier = \"U\", value = \"{user}\" }]\nlint.K1 = \"few\"\n",
    );
    let log = sarif(&lint(&job, None, &prices()), "job.toml");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let silenced = results.iter().find(|result| result["ruleId"] == "K1").unwrap();
    assert_eq!(silenced["suppressions"][0]["justification"], "few");
}
