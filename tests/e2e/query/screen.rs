//! What a person sees in a terminal of 80 columns or less: whole times and keys, no line that is too long.

use std::fs;
use std::time::Duration;

use tidetable_bucket_server::{Options, Server};

use crate::harness::system::{on_terminal, shown_on_terminal};
use crate::harness::{Project, flip_bit, json_lines};

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
        (vec!["status"], vec!["last", "good", "failed", "rejected", "meters-by-night"]),
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

/// Whether each cell of a column holds a number, or nothing.
fn is_numeric(cells: &[&str]) -> bool {
    let mut shown = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).peekable();
    shown.peek().is_some() && shown.all(|cell| cell.parse::<f64>().is_ok())
}

#[test]
fn numbers_stand_right_and_text_left() {
    let project = project();
    let mut numeric = 0;
    for args in [&["history"][..], &["tables"], &["report", "meters-by-night"], &["describe", "T"], &["lineage", "T"]] {
        let shown = on_terminal(&project, 200, args, "");
        for table in shown.split('┌').skip(1) {
            let rows: Vec<Vec<&str>> = table
                .lines()
                .filter_map(|line| line.strip_prefix("│ ")?.strip_suffix(" │"))
                .map(|line| line.split(" ┆ ").collect())
                .collect();
            for (column, heading) in rows[0].iter().enumerate() {
                let cells: Vec<&str> = rows[1..].iter().map(|row| row[column]).collect();
                let is_right = is_numeric(&cells);
                numeric += usize::from(is_right);
                for cell in cells.iter().filter(|cell| !cell.trim().is_empty()) {
                    let edge = if is_right { cell.trim_start().len() } else { cell.trim_end().len() };
                    let moved = if is_right { cell.ends_with(' ') } else { cell.starts_with(' ') };
                    assert!(edge > 0 && !moved, "{args:?}, {heading}:\n{shown}");
                }
            }
        }
    }
    assert!(numeric > 15, "{numeric}");
}

#[test]
fn a_file_that_is_slow_to_come_is_said_to_be_read() {
    let delay = Duration::from_millis(500);
    let server = Server::start(Options { delay, ..Options::default() }).unwrap();
    let project = Project::empty();
    let storage = format!(
        "[root]\nurl = \"s3://tidetable/prod\"\n[root.storage]\nendpoint = \"{}\"\nallow_http = true\nregion = \"us-east-1\"\n\
         access_key_id = \"AKIATESTONLY\"\nsecret_access_key = {{ file = \"key\" }}\n",
        server.endpoint()
    );
    project.write("tidetable.toml", storage);
    project.write("key", "hush");
    let rows = "select value as meter, timestamp '2020-01-01' as ts, 1.5 as kwh from generate_series(1, 50)";
    project.ok(&["sql", "-c", rows, "-O", "s3://tidetable/in/a.csv"]);
    let shown = on_terminal(&project, 80, &["new", "k", "--from", "s3://tidetable/in/a.csv"], "");
    assert!(shown.contains("reading s3://tidetable/in/a.csv"), "{shown}");
}

/// A root whose name is longer than a line.
const LONG_ROOT: &str =
    "a-root-with-a-name-that-is-longer/than-a-line-of-a-terminal-with-80-columns/of-the-northern-plant";

/// What a command shows on a terminal of 80 columns, without what the progress showed before.
fn shown(project: &Project, args: &[&str]) -> String {
    let (shown, _) = shown_on_terminal(project, 80, &[args, &["--root", LONG_ROOT]].concat(), "");
    let lines = shown.lines().map(|line| line.rsplit("\u{1b}[2K").next().unwrap_or_default());
    lines.filter(|line| !line.contains('\u{1b}')).collect::<Vec<_>>().join("\n")
}

/// Asserts that lines fit 80 columns, except for a path, which stands alone, and that commands have the root.
fn assert_fits_or_is_path(args: &[&str], shown: &str) {
    for line in shown.lines() {
        let is_path = !line.trim_start().trim_end_matches(" \\").contains(' ') && line.contains('/');
        assert!(line.chars().count() <= 80 || is_path, "{args:?}: {line}\n{shown}");
    }
    // In a table, whatever is longer than its column is broken.
    let lines: String = shown.lines().filter(|line| !line.starts_with('│')).map(|line| format!("{line}\n")).collect();
    let joined = lines.replace(" \\\n", " ");
    for command in joined.split("`tidetable ").skip(1).chain(joined.split("\n  tidetable ").skip(1)) {
        let words: Vec<&str> = command.split_whitespace().take(2).collect();
        assert_eq!(words, ["--root", LONG_ROOT], "{args:?}:\n{shown}");
    }
}

#[test]
fn every_command_fits_80_columns_whatever_it_finds() {
    let (job, table, export) = ("meters-of-the-northern-plant", "READINGS_OF_THE_NORTHERN_PLANT", "READINGS_BY_DAY");
    let text = JOB.replace("\"j\"", &format!("\"{job}\"")).replace("from T", &format!("from {table}"));
    let text = text.replace("tables.T", &format!("tables.{table}")).replace("BY_DAY", export);
    let project = Project::new(job, &text);
    for day in 1..=4 {
        let rows = format!("meter,ts,kwh\n7,2020-01-0{day}T00:00:00Z,1.5\nnone,2020-01-0{day}T00:00:00Z,1.5\n");
        project.write(&format!("in/readings-of-the-northern-plant-{day}.csv"), rows);
    }
    let places = ["vault", "restored", "copied"].map(|name| project.path(&format!("{LONG_ROOT}-{name}")));
    let [vault, restored, copied] = places.each_ref().map(|path| path.to_str().unwrap());
    let check = |commands: &[&[&str]]| {
        for args in commands {
            assert_fits_or_is_path(args, &shown(&project, args));
        }
    };

    // More rows are rejected than the source allows, then as many as it does.
    check(&[&["run", job], &["status"], &["history"], &["rejects", job]]);
    project.write(&format!("jobs/{job}/job.toml"), text.replace("max_rejected = 2", "max_rejected = 9"));
    let first = shown(&project, &["run", job]);
    assert!(first.contains("published ") && first.contains("Try next"), "{first}");
    assert_fits_or_is_path(&["run"], &first);
    fs::create_dir_all(places[0].parent().unwrap()).unwrap();
    check(&[
        &["plan", job, "--force"],
        &["check", job],
        &["lint", job],
        &["compare", job],
        &["report", job],
        &["status", job],
        &["history", "--run", "last"],
        &["rejects", job],
        &["lineage", table],
        &["tables"],
        &["describe", table],
        &["heatmap", table],
        &["backup", vault],
        &["backup", vault, "--list"],
        &["backup", vault, "--verify"],
        &["restore", vault, restored],
        &["copy", LONG_ROOT, copied],
        &["verify", "--all"],
        &["doctor"],
        &["vacuum", "--older-than", "0s"],
        &["clean", "--older-than", "0s"],
        &["compact", table],
        &["delete", table, "--row", "007#20200101", "--dry-run"],
        &["repair", table],
        &["cache"],
        &["retry", "last"],
        &["retry", "01NONE"],
        &["lineage", "nothing-of-this-name"],
        &[
            "sql",
            "-c",
            &format!("select kwh, 'a text that makes the line long' as t, nothing from {table} where meter > 1"),
        ],
    ]);

    // Damage of each kind.
    let list = |folder: &str| {
        let mut found: Vec<_> =
            fs::read_dir(project.path(LONG_ROOT).join(folder)).unwrap().map(|file| file.unwrap().path()).collect();
        found.sort();
        found
    };
    project.ok(&["run", job, "--rebuild", "--root", LONG_ROOT]);
    flip_bit(&list(&format!("tables/{table}/sst"))[0]);
    fs::write(&list("runs")[0], "{").unwrap();
    fs::remove_dir_all(&list("exports")[1]).unwrap();
    check(&[
        &["run", job],
        &["status"],
        &["history"],
        &["report", job],
        &["verify", "--all"],
        &["repair", table],
        &["doctor"],
        &["backup", vault],
        &["doctor", "--fix"],
        &["repair", table, "--yes"],
        &["run", job],
    ]);
    fs::write(project.path(LONG_ROOT).join(format!("exports/{export}.json")), "{").unwrap();
    check(&[
        &["run", job],
        &["clean", "--older-than", "0s"],
        &["doctor"],
        &["doctor", "--fix"],
        &["run", job, "--adopt"],
    ]);
    let manifests = list(&format!("tables/{table}/manifest"));
    fs::remove_file(manifests.last().unwrap()).unwrap();
    check(&[&["run", job], &["status"], &["verify"], &["vacuum"], &["doctor"], &["doctor", "--fix"]]);
}

#[test]
fn next_steps_are_suggested_once() {
    let project = project();
    let again = on_terminal(&project, 80, &["run", "meters-by-night"], "");
    assert!(!again.contains("Try next"), "{again}");
    project.write("in/b.csv", "meter,ts,kwh\n7,2020-01-10T00:00:00Z,1.5\n");
    let more = on_terminal(&project, 80, &["run", "meters-by-night"], "");
    assert!(more.contains("published") && !more.contains("Try next"), "{more}");
    let first = on_terminal(&project, 80, &["run", "meters-by-night", "--root", "other"], "");
    assert!(first.contains("  tidetable --root other read T --limit 1"), "{first}");
}

#[test]
fn a_warning_is_a_sentence_on_a_terminal() {
    let project = project();
    project.write("data/runs/01AAAAAAAAAAAAAAAAAAAAAAAA.json", "{");
    let shown = on_terminal(&project, 80, &["report", "meters-by-night"], "");
    assert!(shown.contains("warning: runs/01AAAAAAAAAAAAAAAAAAAAAAAA.json"), "{shown}");
    assert!(!shown.contains("WARN") && !shown.contains("tidetable_store"), "{shown}");
    // Also in a log, beside those of the run.
    let log = project.messages(&["report", "meters-by-night"]);
    assert!(log.contains("warning: runs/01AAAAAAAAAAAAAAAAAAAAAAAA.json") && !log.contains("WARN"), "{log}");
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
    let twice = project.ok(&["sql", "-c", "select kwh + 1, kwh + 1 from T limit 1", "--output", "csv"]);
    assert_eq!(twice.lines().next(), Some("kwh + 1,kwh + 1_1"));
    // Those of subqueries and CTEs, too; a query that refers to DataFusion's names still finds them.
    for (query, heading) in [
        (
            "select * from (select count(*), 1, sum( kwh ), meter / 2 from T group by meter) limit 1",
            "count(*),1,sum( kwh ),meter / 2",
        ),
        ("with a as (select max(kwh), -1 from T), b as (select * from a) select *, 'x' from b", "max(kwh),-1,'x'"),
        ("select * from (select 1 union all select 2) limit 1", "1"),
        ("select * from (select 1, 1, 1)", "1,1_1,1_2"),
        ("select * from (select cast(kwh as int), kwh from T) as t(a, b) limit 1", "a,b"),
        (
            "select 1+1, 1+1, 2 = any([1, 2]), array_has([1, 2], 2)",
            "1+1,1+1_1,\"2 = any([1, 2])\",\"array_has([1, 2], 2)\"",
        ),
        ("select \"Int64(1)\" + 1 as n, \"Int64(2)\" from (select 1, 2)", "n,Int64(2)"),
        ("select \"count(*)\" + 1 from (select count(*) from T)", "\"\"\"count(*)\"\" + 1\""),
        ("select * from (select sum(kwh) from T) natural join (select sum(kwh) from T as u)", "sum(T.kwh),sum(u.kwh)"),
    ] {
        let rows = project.ok(&["sql", "-c", query, "--output", "csv"]);
        assert_eq!(rows.lines().next(), Some(heading), "{query}");
    }
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
fn hints_at_the_prompt_name_its_words() {
    let project = project();
    let columns: Vec<String> = (0..40).map(|at| format!("{at} as a_wide_column_{at}")).collect();
    let keys = format!(
        ".maxrows 1\nselect * from T;\nselect {} from T;\n\\\\o rows.xyz\n.mode none\n\\\\x maybe\n\
         .nothing\nselect * from NOTHING;\nexit\n",
        columns.join(", ")
    );
    let prompt = on_terminal(&project, 80, &["sql"], &keys);
    assert!(prompt.contains("\\rows 0 shows all") && prompt.contains("\\x"), "{prompt}");
    assert!(prompt.contains("rows.xyz") && prompt.contains(".mode"), "{prompt}");
    assert!(!prompt.contains(" --"), "{prompt}");
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

#[test]
fn usage_errors_fit_a_screen() {
    let project = Project::empty();
    for args in [
        &["run", "j", "--day", "2020-99-99"][..],
        &["run", "j", "--memory", "much"],
        &["sql", "--output", "jsonl", "-c", "select 1"],
        &["lint", "--explain", "none"],
    ] {
        let (shown, code) = shown_on_terminal(&project, 80, args, "");
        assert_eq!(code, Some(2), "{args:?}: {shown}");
        assert_fits(&shown, 80);
        assert!(shown.starts_with("error: "), "{shown}");
    }
}
