//! `tidetable new` on files that it refuses: the cause, and a step that works when it is followed.

use std::process::Command;

use super::readings::{answer, notes, proposed, rows};
use crate::harness::Project;

/// Runs the command at the end of a message.
fn follow(project: &Project, message: &str) {
    let command = message.trim().rsplit_once(": ").unwrap().1;
    let done = Command::new("sh").args(["-c", command]).current_dir(project.path("")).status().unwrap();
    assert!(done.success(), "{command}");
}

/// Proposes a job for a file that is refused with this cause, follows the step, and proposes one for the file that it makes. How
/// many rows are loaded.
fn rows_behind_step(project: &Project, job: &str, file: &str, text: &str, cause: &str) -> String {
    project.write(file, text);
    let error = project.fails(2, &["new", job, "--from", file]);
    assert!(error.contains(cause), "{cause}: {error}");
    follow(project, &error);
    let made = if file.ends_with(".json") { "NEW.jsonl" } else { "NEW.csv" };
    let (said, record) = proposed(project, job, made, &[]);
    assert_eq!(record["rows_rejected"], 0, "{said}");
    answer(project, &format!("SELECT count(*) AS n FROM {}", job.to_uppercase()))
}

fn row(at: usize) -> String {
    format!("2024-01-14 {:02}:{:02},{at}.5,{at}", at / 60, at % 60)
}

#[test]
fn rows_that_do_not_fit_lead_on() {
    let project = Project::empty();
    let footer = format!("{}Summary\nflows,bytes,packets\n3,60,9\n", rows("ts,bytes,n", 20, row));
    let found = rows_behind_step(&project, "a", "a.csv", &footer, "if the rows end there, leave out what follows");
    assert_eq!(found, "20");
    let long = format!("{}Summary\nflows,bytes,packets\n3,60,9\n", rows("ts,bytes,n", 300, row));
    let found = rows_behind_step(&project, "i", "i.csv", &long, "if the rows end there, leave out what follows");
    assert_eq!(found, "300");

    let short = rows("Datum;Wert;Bemerkung", 20, |at| {
        format!("{:02}.01.2024;{at},5{}", at + 1, if at % 5 == 1 { ";neu" } else { "" })
    });
    let found = rows_behind_step(&project, "b", "b.csv", &short, "if they lack their last values");
    assert_eq!(found, "20");
    assert_eq!(
        answer(&project, "SELECT count(\"Bemerkung\") AS n, max(\"Wert\") AS w FROM B").split(' ').next(),
        Some("4")
    );

    // A channel is added, early and late in the file.
    for (job, before) in [("c", 10), ("d", 60)] {
        let added = format!(
            "{}{}",
            rows("time,temp,rh", before, row),
            (0..140).fold(String::new(), |text, at| text + &row(before + at) + ",7.25\n")
        );
        let found = rows_behind_step(&project, job, &format!("{job}.csv"), &added, "if a column was added");
        assert_eq!(found, (before + 140).to_string());
        let query = format!("SELECT count(column_4) AS n FROM {}", job.to_uppercase());
        assert_eq!(answer(&project, &query), "140");
    }

    let mail = rows("time,v", 20, |at| format!("Sun, 14 Jan 2024 22:{at:02}:00 +0000,{at}.5"));
    assert_eq!(rows_behind_step(&project, "e", "e.csv", &mail, "the comma in 'Sun, 14 Jan 2024 22:00:00 +0000'"), "20");
    let german = rows("zeit,v", 20, |at| format!("14.01.2024, 22:{at:02},{at}"));
    assert_eq!(rows_behind_step(&project, "f", "f.csv", &german, "the comma in '14.01.2024, 22:00'"), "20");

    let quoted = rows("time, room, temp", 20, |at| format!("2024-01-01T00:{at:02}:00Z, \"Living, south\", {at}.5"));
    assert_eq!(rows_behind_step(&project, "j", "j.csv", &quoted, "a blank before a quote"), "20");

    let heart = rows("1704067200.00\n1.000000", 20, |at| format!("{}.25", 60 + at));
    let found = rows_behind_step(&project, "g", "g.csv", &heart, "the first line is a time, the second a rate");
    assert_eq!(found, "20");
    assert_eq!(answer(&project, "SELECT max(\"time\") AS t FROM G"), "2024-01-01T00:00:19Z");

    let text: String = (0..60).map(|at| format!("WR Windrichtung   in {at} m\n{}\n", "*".repeat(60))).collect();
    let table = rows("MM  DD  HH  t", 24, |at| format!(" 1   1   {at:2}   {at}.5"));
    let long = format!("{text}\n{}", table.replacen('\n', "\n***\n", 1));
    assert_eq!(rows_behind_step(&project, "h", "h.csv", &long, "runs of blanks separate the columns"), "24");
}

#[test]
fn rows_of_one_json_object_lead_on() {
    let project = Project::empty();
    let member = |at: usize| format!(r#""-N{at}":{{"ts":{},"v":{at}.5}}"#, 1_704_067_200 + at * 60);
    let members = |member: &dyn Fn(usize) -> String| (0..20).map(member).collect::<Vec<_>>().join(",");
    let keyed = format!("{{{}}}\n", members(&member));
    let found = rows_behind_step(&project, "a", "a.json", &keyed, "the members of the object are rows");
    assert_eq!(found, "20");

    let bar = |at: usize| format!(r#""2024-01-02 09:{at:02}:00":{{"1. open":"180.{at}","5. volume":"{at}"}}"#);
    let bars = format!(r#"{{"Meta Data":{{"z":"US"}},"Time Series (5min)":{{{}}}}}"#, members(&bar));
    let found = rows_behind_step(&project, "b", "b.json", &bars, "the members of `Time Series (5min)` are rows");
    assert_eq!(found, "20");
    assert_eq!(answer(&project, "SELECT max(\"time\") AS t FROM B"), "2024-01-02T09:19:00Z");

    let columns = format!(
        r#"{{"ts":{{{}}},"v":{{{}}}}}"#,
        members(&|at| format!("\"{at}\":{}", 1_704_067_200_000_u64 + at as u64 * 1000)),
        members(&|at| format!("\"{at}\":{at}.5"))
    );
    let found = rows_behind_step(&project, "c", "c.json", &columns, "the members of the object are columns");
    assert_eq!(found, "20");

    let list = |item: &dyn Fn(usize) -> String| format!("[{}]", members(item));
    let series = format!(
        r#"{{"unix_seconds":{},"types":[{{"name":"solar","data":{}}},{{"name":"wind","data":{}}}]}}"#,
        list(&|at| (1_704_067_200 + at * 900).to_string()),
        list(&|at| format!("{at}.5")),
        list(&|at| format!("{at}.25"))
    );
    let cause = "the values in `types.data` belong to the times in `unix_seconds`";
    assert_eq!(rows_behind_step(&project, "d", "d.json", &series, cause), "40");
    assert_eq!(answer(&project, "SELECT count(DISTINCT unix_seconds) AS a, count(DISTINCT name) AS b FROM D"), "20 2");
}

#[test]
fn a_few_odd_rows_are_rejected_by_the_run() {
    let project = Project::empty();
    let odd = |at: usize| if at % 400 == 7 { format!("{},door, open", row(at)) } else { format!("{},ok", row(at)) };
    let nul = rows("time,v,n", 20, |at| if at == 9 { "\0".repeat(64) } else { row(at) });
    for (job, text, rejected) in [("a", rows("time,v,n,note", 1000, odd), 3), ("b", nul, 1)] {
        project.write(&format!("{job}.csv"), text);
        let (said, record) = proposed(&project, job, &format!("{job}.csv"), &[]);
        assert_eq!(record["rows_rejected"], rejected, "{said}");
        assert!(notes(&said).contains("not fit and will be rejected (first: line "), "{said}");
    }

    // Lines of another table, which would make columns text, are no odd rows.
    let page = |at: usize| match at % 60 {
        50 => "Station report".to_owned(),
        51 => "Station,Flow,Temp".to_owned(),
        _ => row(at),
    };
    let sections = |at: usize| if at == 100 { "Trend: two\nExported\ntime,v,n".to_owned() } else { row(at % 100) };
    for text in [rows("time,v,n", 200, page), rows("time,v,n", 200, sections)] {
        project.write("c.csv", text);
        let said = project.fails(2, &["new", "c", "--from", "c.csv"]);
        assert!(said.contains("expected 3 columns, found 1"), "{said}");
    }
}

#[test]
fn a_file_with_another_delimiter_is_named_so() {
    let project = Project::empty();
    project.write("in/1.csv", rows("time,temp,rh", 20, row));
    project.write("in/2.csv", rows("time,temp,rh", 20, |at| row(at + 20)).replace(',', ";"));
    project.write("in/3.csv", rows("time,temp,rh", 20, |at| row(at + 40)));
    let (said, _) = proposed(&project, "a", "in/*.csv", &[]);
    let wanted = "its columns are separated by `;`, those of the others by `,`: read it by a source of its own";
    assert!(notes(&said).contains(wanted), "{said}");
}
