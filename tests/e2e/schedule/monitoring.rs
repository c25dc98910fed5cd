//! The rules, units and scripts of `docs/guide/alerts.md` are accepted by the programs that read them.

use std::process::Command;

use crate::harness::{Project, repository};

/// Series of a good night, of a failed one and of stale data, with the alerts that must fire. Times are minutes from the
/// epoch, where the clock of the tests starts.
const CASES: &str = r#"
rule_files: [rules.yml]
evaluation_interval: 1h
tests:
  - interval: 1h
    input_series:
      - series: 'tidetable_run_exit_code{job="meters"}'
        values: '0x100'
      - series: 'tidetable_last_success_timestamp_seconds{job="meters"}'
        values: '0+3600x100'
      - series: 'tidetable_export_newest_day_timestamp_seconds{job="meters",export="DAY"}'
        values: '0+3600x100'
      - series: 'tidetable_table_rows{job="meters",table="T",state="rejected"}'
        values: '0x100'
      - series: 'tidetable_checks_failed{job="meters",severity="error"}'
        values: '0x100'
    alert_rule_test:
      - { eval_time: 80h, alertname: TidetableRunFailed, exp_alerts: [] }
      - { eval_time: 80h, alertname: TidetableNoGoodRun, exp_alerts: [] }
      - { eval_time: 80h, alertname: TidetableStaleExport, exp_alerts: [] }
      - { eval_time: 80h, alertname: TidetableRejectedRows, exp_alerts: [] }
      - { eval_time: 80h, alertname: TidetableChecksFailed, exp_alerts: [] }
      - { eval_time: 80h, alertname: TidetableNoMetrics, exp_alerts: [] }
  - interval: 1h
    input_series:
      - series: 'tidetable_run_exit_code{job="meters"}'
        values: '4x100'
      - series: 'tidetable_last_success_timestamp_seconds{job="meters"}'
        values: '0x100'
      - series: 'tidetable_export_newest_day_timestamp_seconds{job="meters",export="DAY"}'
        values: '0x100'
      - series: 'tidetable_table_rows{job="meters",table="T",state="rejected"}'
        values: '3x100'
      - series: 'tidetable_checks_failed{job="meters",severity="error"}'
        values: '2x100'
    promql_expr_test:
      - expr: count by (alertname) (ALERTS{alertstate="firing"})
        eval_time: 80h
        exp_samples:
          - { labels: '{alertname="TidetableRunFailed"}', value: 1 }
          - { labels: '{alertname="TidetableNoGoodRun"}', value: 1 }
          - { labels: '{alertname="TidetableStaleExport"}', value: 1 }
          - { labels: '{alertname="TidetableRejectedRows"}', value: 1 }
          - { labels: '{alertname="TidetableChecksFailed"}', value: 1 }
  - interval: 1h
    input_series: []
    promql_expr_test:
      - expr: count by (alertname) (ALERTS{alertstate="firing"})
        eval_time: 80h
        exp_samples:
          - { labels: '{alertname="TidetableNoMetrics"}', value: 1 }
"#;

/// The block of the page after the comment `mark`.
fn block(mark: &str) -> String {
    let page = std::fs::read_to_string(repository().join("docs/guide/alerts.md")).unwrap();
    let (_, rest) = page.split_once(mark).unwrap_or_else(|| panic!("{mark} is not in the page"));
    let (_, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Runs a program of another package; `None`, with the reason printed, where it is missing.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn ran(project: &Project, program: &str, args: &[&str]) -> Option<(bool, String)> {
    match Command::new(program).args(args).current_dir(project.path("")).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("");
            Some((output.status.success(), said))
        }
        Err(error) => {
            eprintln!("skipped: {program} does not run: {error}");
            None
        }
    }
}

#[test]
fn alert_rules_fire_when_they_should() {
    let project = Project::smart_meters();
    project.write("rules.yml", block("<!-- rules -->"));
    project.write("cases.yml", CASES);
    let Some((ok, said)) = ran(&project, "promtool", &["test", "rules", "cases.yml"]) else { return };
    assert!(ok, "{said}");
    // A rule that is never true is found.
    project.write("rules.yml", block("<!-- rules -->").replace("exit_code != 0", "exit_code > 1000"));
    let Some((ok, said)) = ran(&project, "promtool", &["test", "rules", "cases.yml"]) else { return };
    assert!(!ok, "{said}");
}

#[test]
fn metrics_have_the_names_of_the_rules() {
    let project = Project::smart_meters();
    let job = project.read("jobs/smart-meters/job.toml");
    project.write("jobs/smart-meters/job.toml", format!("{job}\n[metrics]\nfile = \"m.prom\"\n"));
    project.ok(&["run", "smart-meters"]);
    let metrics = project.read("m.prom");
    let rules = block("<!-- rules -->");
    let names = rules.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| word.starts_with("tidetable_"));
    // Jobs without checks have no figure of them.
    for name in names.filter(|name| *name != "tidetable_checks_failed") {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    if let Some((ok, said)) = ran(&project, "sh", &["-c", "promtool check metrics <m.prom || ! command -v promtool"]) {
        assert!(ok, "{said}");
    }
}

#[test]
fn a_refused_run_is_in_the_metrics() {
    let project = Project::smart_meters();
    let job = project.read("jobs/smart-meters/job.toml") + "\n[metrics]\nfile = \"m.prom\"\n";
    project.write("jobs/smart-meters/job.toml", &job);
    project.ok(&["run", "smart-meters"]);
    let good = project.read("m.prom");
    assert!(good.contains("tidetable_run_exit_code{job=\"smart-meters\"} 0\n"), "{good}");

    let is_refused = |what: &str| {
        project.fails(2, &["run", "smart-meters"]);
        let metrics = project.read("m.prom");
        assert!(metrics.contains("tidetable_run_exit_code{job=\"smart-meters\"} 2\n"), "{what}: {metrics}");
        assert!(metrics.contains("outcome=\"failed\"} 1\n"), "{what}: {metrics}");
        // What the last run found and did, and when one last ended well.
        let of_data = |text: &str| {
            let is_ending = |line: &&str| line.contains("tidetable_run_");
            text.lines().filter(|line| !is_ending(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of_data(&metrics), of_data(&good), "{what}");
        project.write("m.prom", &good);
    };
    project.write("jobs/smart-meters/job.toml", format!("wrong = 1\n{job}"));
    is_refused("a mistake");
    project.write("jobs/smart-meters/job.toml", format!("wrong = \n{job}"));
    is_refused("no TOML");
    project.write("jobs/smart-meters/job.toml", &job);
    std::fs::remove_dir_all(project.path("data")).unwrap();
    is_refused("a lost root");
}

#[test]
fn units_are_accepted_by_systemd() {
    let project = Project::smart_meters();
    let printed = project.ok(&["schedule", "--format", "systemd"]);
    let mut units = Vec::new();
    for part in printed.split("# ").filter(|part| part.contains("[Unit]")) {
        let (name, text) = part.split_once('\n').unwrap();
        let name = name.rsplit('/').next().unwrap().trim().to_owned();
        project.write(&name, text.lines().take_while(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"));
        units.push(name);
    }
    project.write("alert@.service", block("<!-- unit alert@.service -->"));
    let drop_in = format!("{}.d/alert.conf", units.iter().find(|name| name.ends_with(".service")).unwrap());
    project.write(&drop_in, block("<!-- unit tidetable-smart-meters.service.d/alert.conf -->"));
    let mut args = vec!["verify", "--man=no"];
    args.extend(units.iter().map(String::as_str));
    let Some((ok, said)) = ran(&project, "systemd-analyze", &args) else { return };
    assert!(ok, "{said}\n{printed}");
}
