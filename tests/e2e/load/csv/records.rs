//! Where records end: stray quotes, line ends, repeated headers, escapes, and files that grow while they are read.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::harness::inputs::append;
use crate::harness::system::measured;
use crate::harness::{Project, gz};

/// A job of CSV files with the columns ts, note, pipe and kwh in any order.
fn job(more: &str) -> Project {
    let job = format!(
        r#"name = "h"
[sources.r]
files = ["in/*.csv"]
time = "ts"
{more}
[sources.r.columns]
ts = "timestamp"
note = "text"
pipe = "text"
kwh = "int64"
[tables.H]
row_key = "{{pipe}}#{{ts:ms}}"
[tables.H.families.D]
columns = [
  {{ qualifier = "kwh", value = "{{kwh}}" }},
  {{ qualifier = "note", value = "{{note}}" }},
]
"#
    );
    Project::new("h", &job)
}

/// Minute `at` of April 2021.
fn time(at: usize) -> String {
    let (day, hour, minute) = (at / 1440 + 1, at / 60 % 24, at % 60);
    format!("2021-04-{day:02}T{hour:02}:{minute:02}:00Z")
}

/// Lines `rows`, whose note is `stray` at the lines `at`.
fn notes(rows: std::ops::Range<usize>, stray: &str, at: &[usize]) -> String {
    let mut text = String::new();
    for row in rows {
        let note = if at.contains(&row) { stray } else { "ok" };
        writeln!(text, "{},{note},P{},{row}", time(row), row % 2).unwrap();
    }
    text
}

/// Records and the sum of kwh.
fn totals(project: &Project) -> (u64, u64) {
    let row = project.sql("select count(*) as n, sum(kwh) as total from H").remove(0);
    let total = match &row["total"] {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_u64().unwrap_or_default(),
    };
    (row["n"].as_u64().unwrap(), total)
}

fn rejected_lines(project: &Project, record: &Value) -> Vec<u64> {
    if record["rejected"].is_null() {
        return Vec::new();
    }
    project.rejected(record).iter().map(|row| row["line"].as_u64().unwrap()).collect()
}

fn sum(rows: impl Iterator<Item = usize>) -> u64 {
    rows.map(|row| row as u64).sum()
}

#[test]
fn stray_quotes_cost_their_lines_whatever_is_appended() {
    // The quote of the appended line ends a field with text behind it, or one without: as if the field went on.
    for later in ["\"5 in", "5 in\""] {
        let project = job("max_rejected = \"1%\"");
        project.write("in/a.csv", format!("ts,note,pipe,kwh\n{}", notes(0..2000, "\"5 in", &[400])));
        let record = project.run_job("h");
        assert_eq!(rejected_lines(&project, &record), [402]);
        assert_eq!(totals(&project), (1999, sum(0..2000) - 400));

        append(&project, "in/a.csv", &notes(2000..2100, later, &[2050]));
        let record = project.run_job("h");
        assert_eq!(record["loads"][0]["inputs"][0]["state"], "grown");
        let own = usize::from(later.starts_with('"'));
        assert_eq!(rejected_lines(&project, &record), if own == 1 { vec![2052] } else { vec![] });
        let expected = (2099 - own as u64, sum(0..2100) - 400 - 2050 * own as u64);
        assert_eq!(totals(&project), expected, "{later}");

        // Nor when another input has the windows rebuilt.
        project.write("in/b.csv", format!("ts,note,pipe,kwh\n{},ok,Q,1\n", time(3)));
        project.run_job("h");
        project.write("in/b.csv", format!("ts,note,pipe,kwh\n{},ok,Q,2\n{},ok,Q,3\n", time(3), time(1500)));
        project.run_job("h");
        assert_eq!(totals(&project), (expected.0 + 2, expected.1 + 5), "{later}");
        append(&project, "in/a.csv", &notes(2100..2110, later, &[2105]));
        project.run_job("h");
        assert_eq!(totals(&project).0, expected.0 + 2 + 10 - own as u64, "{later}");
    }
}

#[test]
fn record_over_several_lines_that_was_cut_is_read_once_it_is_whole() {
    let project = job("max_rejected = 10");
    let head = format!("ts,note,pipe,kwh\n{}", notes(0..5, "", &[]));
    project.write("in/a.csv", format!("{head}{},\"first line\nsecond", time(5)));
    project.run_job("h");
    append(&project, "in/a.csv", &format!(" line\",P1,5\n{}", notes(6..8, "", &[])));
    let said = project.messages(&["run", "h"]);
    assert!(said.contains("records over several lines: 1"), "{said}");
    assert_eq!(totals(&project), (8, sum(0..8)));
}

#[test]
fn quotes_are_stray_for_any_delimiter_and_column() {
    for (delimiter, count) in [(',', 1), (';', 2), ('\t', 3), ('|', 4)] {
        for columns in ["ts,pipe,kwh,note", "note,ts,pipe,kwh", "ts,note,pipe,kwh"] {
            let stray: Vec<usize> = (1..=count).map(|at| at * 30).collect();
            let project = job(&format!("max_rejected = 10\ncsv = {{ delimiter = {:?} }}", delimiter.to_string()));
            let mut text = columns.replace(',', &delimiter.to_string()) + "\n";
            for row in 0..200 {
                let value = |column: &str| match column {
                    "ts" => time(row),
                    "note" if stray.contains(&row) => "\"5 in".to_owned(),
                    "note" => "ok".to_owned(),
                    "pipe" => format!("P{}", row % 2),
                    _ => row.to_string(),
                };
                let values: Vec<String> = columns.split(',').map(value).collect();
                text += &(values.join(&delimiter.to_string()) + "\n");
            }
            project.write("in/a.csv", text);
            let record = project.run_job("h");
            let expected: Vec<u64> = stray.iter().map(|row| *row as u64 + 2).collect();
            assert_eq!(rejected_lines(&project, &record), expected, "{columns} {delimiter}");
            assert_eq!(totals(&project).0, 200 - count as u64);
        }
    }
}

#[test]
fn max_rejected_counts_the_lines_that_a_reject_takes_away() {
    let text = format!(
        "ts,note,pipe,kwh\n{}{},\"one\ntwo\nthree\",P0,many\n{}",
        notes(0..5, "", &[]),
        time(5),
        notes(6..9, "", &[])
    );
    let project = job("max_rejected = 2");
    project.write("in/a.csv", &text);
    // The rejected record takes three lines away.
    assert!(project.fails(1, &["run", "h"]).contains("3 of 11 lines of source r were rejected"));

    let project = job("max_rejected = 3");
    project.write("in/a.csv", &text);
    let record = project.run_job("h");
    assert_eq!(record["loads"][0]["more_lines_rejected"], 2);
    let rejected = project.rejected(&record);
    assert_eq!(rejected[0]["raw"], format!("{},\"one\ntwo\nthree\",P0,many", time(5)));
    assert_eq!(totals(&project).0, 8);

    // A long one, too: the log is what it is repaired from.
    let long = format!("{},\"{}\",P0,many", time(5), "0123456789abcde\n".repeat(1000));
    let project = job("max_rejected = 1100");
    project.write("in/a.csv", format!("ts,note,pipe,kwh\n{}{long}\n", notes(0..5, "", &[])));
    let record = project.run_job("h");
    assert_eq!(project.rejected(&record)[0]["raw"], long);
}

#[test]
fn lines_end_as_people_end_them() {
    let ends = ["\n", "\r\n", "\r\r\n", "\r"];
    for end in ends {
        let project = job("");
        // The last column is text, whose values must not end with a CR.
        let mut text = format!("ts,kwh,note,pipe{end}");
        for row in 0..48 {
            write!(text, "{},{row},ok,M{}{end}", time(row), row % 2).unwrap();
        }
        project.write("in/a.csv", &text);
        project.ok(&["run", "h"]);
        assert_eq!(totals(&project), (48, sum(0..48)), "{end:?}");
        let pipes = project.csv("select distinct pipe from H order by pipe");
        assert_eq!(pipes, "pipe\nM0\nM1\n", "{end:?}");

        let project = Project::empty();
        project.write("a.csv", &text);
        project.ok(&["new", "x", "--from", "a.csv"]);
        project.ok(&["run", "x"]);
        assert_eq!(project.csv("select count(*), sum(kwh) from X where pipe = 'M0'").lines().nth(1), Some("24,552"));
    }

    let project = job("");
    let lines = ["ts,note,pipe,kwh\r\n", "2021-04-01T00:00:00Z,a,P,1\r\r\n", "2021-04-01T00:01:00Z,b\rc,P,2\n"];
    project.write("in/a.csv", lines.concat());
    let said = project.messages(&["run", "h"]);
    assert!(said.contains("carriage return (CR)") && said.contains("in/a.csv, line 3"), "{said}");
    assert_eq!(project.sql("select note from H order by ts")[1]["note"], "b\rc");

    let project = job("");
    project.write("in/a.csv", "ts,note,pipe,kwh\r2021-04-01T00:00:00Z,a,P,1\r2021-04-01T00:01:00Z,b,P,2\n");
    let said = project.run(&["run", "h"]);
    assert_ne!(said.code, Some(0));
    assert!(said.stderr.contains("in/a.csv") && said.stderr.contains("(CR)"), "{}", said.stderr);
    let project = Project::empty();
    project.write("a.csv", "ts,note,pipe,kwh\r2021-04-01T00:00:00Z,a,P,1\r2021-04-01T00:01:00Z,b,P,2\n");
    let said = project.run(&["new", "x", "--from", "a.csv"]);
    assert_ne!(said.code, Some(0));
    assert!(said.stderr.contains("(CR)"), "{}", said.stderr);
}

#[test]
fn new_tells_doubled_quotes_from_escaped_ones() {
    let rows = |note: &dyn Fn(usize) -> String| {
        let lines = (0..40).map(|row| format!("{},h{},{},{row}\n", time(row), row % 2, note(row)));
        format!("ts,host,msg,v\n{}", lines.collect::<String>())
    };
    let cases: [(String, &str, usize); 4] = [
        (rows(&|row| format!("\"disk \\\"sd{}\\\" slow\"", row % 3)), "disk \"sd0\" slow", 14),
        (rows(&|_| "\"said \\\"stop\\\", then went\"".to_owned()), "said \"stop\", then went", 40),
        (rows(&|_| "\"said \"\"stop\"\", then went\"".to_owned()), "said \"stop\", then went", 40),
        (rows(&|_| "\"C:\\data\\\"".to_owned()), "C:\\data\\", 40),
    ];
    for (text, value, count) in cases {
        let project = Project::empty();
        project.write("a.csv", &text);
        project.ok(&["new", "x", "--from", "a.csv"]);
        project.ok(&["run", "x"]);
        let found = project.sql("select msg, count(*) as n from X group by msg order by msg");
        assert_eq!((&found[0]["msg"], found[0]["n"].as_u64()), (&Value::from(value), Some(count as u64)));
    }
}

#[test]
fn escapes_and_lines_before_the_header_are_keys() {
    let project = job("csv = { escape = \"\\\\\", skip = 2 }");
    project.write(
        "in/a.csv",
        "Station 9, \"all of it\nexported today\nts,note,pipe,kwh\n2021-04-01T00:00:00Z,\"a \\\"b\\\", \\\\ and \\c\",P,1\n",
    );
    project.ok(&["run", "h"]);
    assert_eq!(project.sql("select note from H")[0]["note"], "a \"b\", \\ and \\c");
    append(&project, "in/a.csv", "2021-04-01T00:01:00Z,\"two\nlines\",P,2\nno,row,P,3\n");
    project.write("jobs/h/job.toml", project.read("jobs/h/job.toml").replace("time =", "max_rejected = 5\ntime ="));
    let record = project.run_job("h");
    assert_eq!(rejected_lines(&project, &record), [7]);
}

#[test]
fn repeated_headers_are_skipped_and_counted() {
    let mut text = String::new();
    for day in 1..4 {
        text += "\u{feff}ts,meter,kwh\r\n";
        for row in 0..96 {
            write!(text, "2021-04-{day:02} {:02}:{:02},M{},{row}.5\r\n", row / 4, row % 4 * 15, row % 3).unwrap();
        }
    }
    let project = Project::empty();
    project.write("a.csv", text);
    let told = project.run(&["new", "x", "--from", "a.csv"]);
    let told = told.stdout + &told.stderr;
    assert!(told.contains("Repeated headers, skipped: 2") && told.contains("line 98"), "{told}");
    let said = project.messages(&["run", "x"]);
    assert!(said.contains("repeated headers, skipped: 2") && said.contains("line 98"), "{said}");
    assert_eq!(project.csv("select count(*), sum(kwh) from X").lines().nth(1), Some("288,13824.0"));
}

#[test]
fn line_of_units_is_one_reject() {
    for rows in [20, 300, 3000] {
        let lines = (0..rows).map(|row| format!("{},M{},{row}.5,{}\n", time(row), row % 3, row % 50));
        let project = Project::empty();
        project.write("a.csv", format!("ts,meter,power,level\nUTC,,kW,%\n{}", lines.collect::<String>()));
        project.ok(&["new", "x", "--from", "a.csv"]);
        let record = project.run_job("x");
        assert_eq!(rejected_lines(&project, &record), [2], "{rows}");
        let kind = project.sql("select arrow_typeof(power) as kind, count(*) as n from X group by 1");
        assert_eq!((kind.len(), kind[0]["n"].as_u64()), (1, Some(rows as u64)));
        assert_ne!(kind[0]["kind"], "Utf8");
    }
}

#[test]
fn file_that_grows_while_it_is_read_is_loaded_up_to_its_last_whole_line() {
    let project = job("max_rejected = \"1%\"");
    let line = |row: usize| format!("{},ok,P{},{row}\n", time(row), row % 7);
    let all: String = (0..30_000).map(line).collect();
    let (first, more) = all.split_at(all.len() / 3);
    project.write("in/a.csv", format!("ts,note,pipe,kwh\n{first}"));
    let (stop, path) = (AtomicBool::new(false), project.path("in/a.csv"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            for piece in more.as_bytes().chunks(997) {
                file.write_all(piece).unwrap();
                if !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..3 {
            project.ok(&["run", "h"]);
            let (count, total) = totals(&project);
            assert!(count >= 9_000, "{count}");
            // A writer that rests for a whole run leaves its last line as it is then: that one may lack digits of its value.
            let (without_last, all) = ((count - 1) * (count - 2) / 2, count * (count - 1) / 2);
            assert!((without_last..=all).contains(&total), "{count}: {total}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    project.ok(&["run", "h"]);
    assert_eq!(totals(&project), (30_000, sum(0..30_000)));
}

#[test]
fn last_line_is_replaced_when_it_is_completed() {
    let project = job("max_rejected = 2");
    let text = format!("ts,note,pipe,kwh\n{}{},ok,P", notes(0..3, "", &[]), time(3));
    project.write("in/a.csv", format!("{text},12"));
    project.ok(&["run", "h"]);
    assert_eq!(totals(&project), (4, 15));
    // Another value under another key.
    project.write("in/a.csv", format!("{text}1,1234\n{}", notes(4..5, "", &[])));
    project.ok(&["run", "h"]);
    assert_eq!(totals(&project).0, 5);
    project.write("in/a.csv", format!("{text}1,1234\n{}{},ok,P,7", notes(4..5, "", &[]), time(6)));
    project.ok(&["run", "h"]);
    append(&project, "in/a.csv", "77");
    project.ok(&["run", "h"]);
    assert_eq!(totals(&project), (6, 3 + 1234 + 4 + 777));
    append(&project, "in/a.csv", "\n");
    project.ok(&["run", "h"]);
    assert_eq!(totals(&project), (6, 3 + 1234 + 4 + 777));
}

#[test]
fn open_quotes_take_no_more_memory_and_hardly_more_time_than_a_clean_file() {
    let project = Project::new("j", readings_job!("*.csv*", "max_rejected = 100", ""));
    let run = |name: &str, bytes: &[u8], rejected: u64| {
        let root = name.split('.').next().unwrap();
        project.write(name, bytes);
        let ran = measured(&mut project.command(&["run", "j", "--memory", "64MiB", "--root", root]));
        assert_eq!(ran.status.code(), Some(0), "{name}: {}", ran.said);
        std::fs::remove_file(project.path(name)).unwrap();
        let record = &project.json(&["history", "--limit", "1", "--root", root])[0];
        assert_eq!(record["rejected"], rejected, "{name}: {record}");
        ran
    };
    // 100 MB of wide rows, with a quote in each of some lines.
    let note = "x".repeat(400);
    let file = |has_quote: &dyn Fn(usize) -> bool| {
        let mut text = "meter,ts,kwh,note\n".to_owned();
        for row in 0..230_000 {
            let (day, minute) = (row / 1_440 % 28 + 1, row % 1_440);
            let quote = if has_quote(row) { "\"" } else { "" };
            let time = format!("2024-01-{day:02}T{:02}:{:02}:00Z", minute / 60, minute % 60);
            writeln!(text, "{},{time},1.5,{quote}{note}", row / 40_320).unwrap();
        }
        text.into_bytes()
    };
    let clean = run("clean.csv", &file(&|_| false), 0);
    let open = file(&|row| row == 5);
    for (name, bytes, rejected) in [
        ("open.csv", open.clone(), 1),
        ("packed.csv.gz", gz(open), 1),
        ("often.csv", file(&|row| row % 5_000 == 5), 46),
    ] {
        let ran = run(name, &bytes, rejected);
        assert!(ran.most <= clean.most + 64, "{name}: {} MiB, clean {}", ran.most, clean.most);
        assert!(ran.ticks <= 2 * clean.ticks + 100, "{name}: {} ticks, clean {}", ran.ticks, clean.ticks);
    }
}
