//! What a person sees in a terminal of 80 columns or less: whole times and keys, no line that is too long.

use crate::harness::system::on_terminal;
use crate::harness::{Project, json_lines};

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = 2",
    "[exports.BY_DAY]\nper = \"day\"\nname = \"BY_DAY_{day:%Y%m%d}\"\nquery = { sql = \"select meter, kwh from T\" }\n"
);

fn project() -> Project {
    let project = Project::new("meters-by-night", &JOB.replace("\"j\"", "\"meters-by-night\""));
    let mut rows = String::from("meter,ts,kwh\n");
    for day in 1..=9 {
        rows.push_str(&format!("7,2020-01-0{day}T00:00:00Z,1.5\n7,2020-01-0{day}T00:15:00Z,1.5\n"));
    }
    rows.push_str("a meter that is no number and has a long name,2020-01-01T00:00:00Z,1.5\n");
    project.write("in/a.csv", rows);
    project.ok(&["run", "meters-by-night"]);
    project
}

fn assert_fits(shown: &str, columns: usize) {
    assert!(shown.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{shown}");
}

#[test]
fn reports_fit_80_columns_with_whole_headers() {
    let project = project();
    let vault = project.path("vault").display().to_string();
    project.ok(&["backup", &vault]);
    for (args, whole) in [
        (vec!["history"], vec!["outcome", "started", "rejected"]),
        (vec!["status"], vec!["last", "failed", "meters-by-night"]),
        (vec!["report", "meters-by-night"], vec!["published", "2020-01-09"]),
        (vec!["rejects", "meters-by-night"], vec!["reason: ", "raw: a meter that is no number", "meter"]),
        (vec!["backup", &vault, "--list"], vec!["taken", "bytes"]),
        (vec!["lineage", "T"], vec!["into name", "2020-01-09"]),
        (vec!["tables"], vec!["BY_DAY", "parts"]),
    ] {
        let shown = on_terminal(&project, 80, &args, "");
        assert_fits(&shown, 80);
        for wanted in whole {
            assert!(shown.contains(wanted), "{args:?}, {wanted}:\n{shown}");
        }
    }
}

#[test]
fn a_short_run_id_finds_its_run() {
    let project = project();
    let shown = on_terminal(&project, 80, &["history"], "");
    let row = shown.lines().find(|line| line.contains("meters-by-night")).unwrap();
    let run = row.split(['│', '┆']).nth(1).unwrap().trim();
    let known = json_lines(&project.ok(&["history", "--output", "json"]));
    assert!(run.len() < known[0]["run"].as_str().unwrap().len());
    assert_eq!(json_lines(&project.ok(&["history", "--run", run, "--output", "json"]))[0]["run"], known[0]["run"]);
}

#[test]
fn times_and_keys_are_never_cut() {
    let project = project();
    let query = "select row_key, timestamp, repeat('text ', 30) as text, value from cells.T order by 1, 2";
    for columns in [30, 40, 60, 80, 120] {
        let shown = on_terminal(&project, columns, &["sql", "-c", query], "");
        assert_fits(&shown, columns as usize);
        assert!(!shown.contains("T00:0…") && !shown.contains("T0…"), "{columns}:\n{shown}");
        if columns >= 60 {
            assert!(shown.contains("2020-01-09T00:15:00Z"), "{columns}:\n{shown}");
        }
        let read = on_terminal(&project, columns, &["read", "T"], "");
        assert_fits(&read, columns as usize);
    }
}

#[test]
fn headings_read_as_the_query_wrote_them() {
    let project = project();
    let query = "select 1, sum(kwh), max(ts) - min(ts), interval '2 days 12 hours', meter from T group by meter";
    let row = &json_lines(&project.ok(&["sql", "-c", query, "--output", "json"]))[0];
    assert_eq!(row["1"], 1);
    assert_eq!(row["sum(kwh)"], 27.0);
    assert_eq!(row["max(ts) - min(ts)"], "8 days 00:15:00");
    assert_eq!(row["interval '2 days 12 hours'"], "2 days 12:00:00");
    // Two columns with one text keep the names they have.
    let twice = project.ok(&["sql", "-c", "select kwh + 1, kwh + 1 from T limit 1", "--output", "csv"]);
    assert_eq!(twice.lines().next().unwrap().split(',').count(), 2);
    // Rows that are left out leave the columns.
    let none = project.ok(&["sql", "-c", "select meter, sum(kwh) from T group by meter limit 0"]);
    assert!(none.contains("meter") && none.contains("sum(kwh)"), "{none}");
}

#[test]
fn an_export_is_one_line_of_the_list_of_tables() {
    let project = project();
    let rows = json_lines(&project.ok(&["sql", "-c", "show tables", "--output", "json"]));
    let names: Vec<_> =
        rows.iter().map(|row| (row["schema"].as_str().unwrap(), row["name"].as_str().unwrap())).collect();
    assert_eq!(&names[..3], [("records", "T"), ("exports", "BY_DAY"), ("runs", "runs")]);
    assert_eq!((rows[1]["parts"].as_i64(), &rows[0]["also"]), (Some(9), &"cells.T, rows.T".into()));
    let prompt = on_terminal(&project, 80, &["sql"], ".tables\n.maxrows 1\nselect * from T;\nexit\n");
    assert!(prompt.contains("BY_DAY") && !prompt.contains("information_schema"), "{prompt}");
    assert!(prompt.contains("there are more: \\rows 0 shows all"), "{prompt}");
}

#[test]
fn unknown_files_and_functions_are_told_with_what_is_near() {
    let project = project();
    project.write("data.xyz", "a\n1\n");
    let form = project.fails(2, &["sql", "-c", "select * from 'data.xyz'"]);
    assert!(form.contains(".parquet") && form.contains("read_csv('data.xyz')"), "{form}");
    let missing = project.fails(2, &["sql", "-c", "select * from 'none.csv'"]);
    assert!(missing.contains("there is no file or directory none.csv"), "{missing}");
    let far = project.fails(2, &["sql", "-c", "select approx_top_sum(kwh) from T"]);
    assert!(!far.to_lowercase().contains("did you mean"), "{far}");
    let near = project.fails(2, &["sql", "-c", "select approx_distnct(kwh) from T"]);
    assert!(near.contains("Did you mean 'approx_distinct'"), "{near}");
}
