//! `tidetable new` on files with a few broken lines, and the first runs of what it proposed.

use serde_json::{Value, json};

use super::readings::{answer, notes, proposed, rows};
use crate::harness::{Project, json_lines};

/// A file of `rows` readings of five meters, with `broken` in place of one line.
fn file(rows: usize, broken: &str) -> String {
    let readings = (0..rows).map(|row| match row {
        _ if row == rows / 2 => broken.to_owned(),
        _ => format!("2020-06-{:02} {:02}:00,INV-{:02},{row}.5", 1 + row / 5 / 24, row / 5 % 24, row % 5),
    });
    format!("ts,inverter,watts\n{}\n", readings.collect::<Vec<_>>().join("\n"))
}

#[test]
fn broken_lines_are_rejected() {
    let project = Project::empty();
    project.write("solar.csv", file(2400, "not-a-time,INV-05,abc"));
    let said = project.json(&["new", "solar", "--from", "solar.csv"]).remove(0);
    assert_eq!(said["row_key"], "{inverter}#{ts:%Y%m%d}");
    let notes: Vec<&str> = said["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notes.contains(&"ts, line 1202: 'not-a-time' is no time; its row will be rejected."), "{notes:?}");
    assert!(notes.contains(&"watts, line 1202: 'abc' is no number; its row will be rejected."), "{notes:?}");
    let job = project.read("jobs/solar/job.toml");
    assert!(
        job.contains("max_rejected = \"0.1%\"\n") && job.contains("# watts, line 1202: 'abc' is no number"),
        "{job}"
    );
    let ran = project.run_job("solar");
    assert_eq!(ran["rows_rejected"], 1);
    assert_eq!(project.sql("SELECT max(watts) AS most FROM SOLAR")[0]["most"].as_f64(), Some(2399.5));
    // A short file tolerates one row, and so does its job.
    project.write("short.csv", file(150, "2020-06-01 00:00,INV-05,7 W"));
    let said = project.ok(&["new", "short", "--from", "short.csv"]);
    assert!(said.contains("note: watts, line 77: '7 W' is no number; its row will be rejected.\n"), "{said}");
    assert!(project.read("jobs/short/job.toml").contains("max_rejected = \"1%\" # 1 of 150 rows do not fit\n"));
    assert_eq!(project.run_job("short")["rows_rejected"], 1);
    let quiet = project.ok(&["new", "short", "--from", "short.csv", "--force", "-q"]);
    assert!(quiet.contains("wrote ") && !quiet.contains("note:"), "{quiet}");
}

#[test]
fn a_reference_table_is_rebuilt_with_an_event_time() {
    let project = Project::empty();
    project.write("solar.csv", file(240, "not-a-time,INV-05,1.5"));
    project.ok(&["new", "solar", "--from", "solar.csv", "--timezone", "Europe/Paris"]);
    let timed = project.read("jobs/solar/job.toml");
    // As if no column held times.
    let names = file(240, "x,INV-05,1.5").replace("2020-06-", "name ").replace(":00", "");
    project.write("solar.csv", names);
    project.ok(&["new", "solar", "--from", "solar.csv", "--timezone", "Europe/Paris", "--force"]);
    assert!(project.read("jobs/solar/job.toml").contains("to_timestamp_seconds(0)"));
    project.ok(&["run", "solar"]);
    project.write("solar.csv", file(240, "not-a-time,INV-05,1.5"));
    project.write("jobs/solar/job.toml", timed);
    let refused = project.run(&["run", "solar"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("--rebuild"), "{}", refused.stderr);
    let rebuilt = project.run(&["run", "solar", "--rebuild", "--output", "json"]);
    assert_eq!(rebuilt.code, Some(0), "{}", rebuilt.stderr);
    // The run before was refused, not killed.
    assert!(json_lines(&rebuilt.stdout)[0]["continues"].is_string(), "{}", rebuilt.stdout);
    assert!(!rebuilt.stderr.contains("did not finish"), "{}", rebuilt.stderr);
    let days = project.sql("SELECT count(DISTINCT CAST(ts AS DATE)) AS days, count(*) AS n FROM SOLAR");
    assert_eq!((&days[0]["n"], days[0]["days"].as_u64() > Some(1)), (&json!(239), true));
}

#[test]
fn rows_that_begin_like_comments_are_loaded() {
    let project = Project::empty();
    let row =
        |at: usize| format!("{}pump,2024-02-01 00:00:{at:02},{at}.5", if at.is_multiple_of(3) { "#" } else { "" });
    project.write("a.csv", format!("# exported by logger 3\n{}", rows("tag,time,value", 60, row)));
    let (said, record) = proposed(&project, "a", "a.csv", &[]);
    assert_eq!(record["rows_rejected"], 0);
    assert!(notes(&said).contains("The line before the header is left out"), "{}", notes(&said));
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(*) FILTER (WHERE tag = '#pump') AS b FROM A"), "60 20");

    // A job whose comments would be rows is told so.
    project.write(
        "jobs/b/job.toml",
        "name = \"b\"\n[sources.r]\nfiles = [\"a.csv\"]\ntime = \"time\"\ncsv = { comment = \"#\" }\n\
         columns = { tag = \"text\", time = { format = \"%Y-%m-%d %H:%M:%S\" }, value = \"float64\" }\n\
         [tables.B]\nrow_key = \"{tag}#{time:ms}\"\n[tables.B.families.D]\n\
         columns = [{ qualifier = \"value\", value = \"{value}\" }]\n",
    );
    let record = project.run_job("b");
    let told = record["notes"].to_string();
    assert!(told.contains("`csv.comment`, and are not read: 20 (first: a.csv, line 3)"), "{told}");
}

#[test]
fn null_markers_hold_for_the_columns_that_have_them() {
    let project = Project::empty();
    let text = rows("time,country,wind", 60, |at| {
        let wind = if at % 7 == 3 { "NA".to_owned() } else { format!("{at}.5") };
        format!("2024-01-01 00:{at:02},{},{wind}", ["NA", "DE", "FR"][at % 3])
    });
    project.write("a.csv", text);
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert!(notes(&said).contains("country: 'NA' is there 20 times and stays a value"), "{}", notes(&said));
    let job = project.read("jobs/a/job.toml");
    assert!(job.contains("wind = { type = \"decimal(10,1)\", null = [\"\", \"NA\"] }"), "{job}");
    assert!(!job.contains("csv = {"), "{job}");
    let counted = "SELECT count(*) FILTER (WHERE country = 'NA') AS a, count(wind) AS b, count(*) AS c FROM A";
    assert_eq!(answer(&project, counted), "20 51 60");

    // Another marker of the column changes its values, so its table is refused until it is rebuilt.
    project.write("jobs/a/job.toml", job.replace("[\"\", \"NA\"]", "[\"\", \"NA\", \"0.5\"]"));
    project.fails(2, &["run", "a"]);
    project.ok(&["run", "a", "--rebuild"]);
    assert_eq!(answer(&project, counted), "20 50 60");
}

#[test]
fn what_can_be_read_in_two_ways_is_told() {
    let project = Project::empty();
    let german = rows("Zeit;Leistung;Summe;Temp", 48, |at| {
        let clock = if at % 24 == 0 { String::new() } else { format!(" {:02}:00:00", at % 24) };
        let temp = if at % 9 == 5 { "-999".to_owned() } else { format!("{at},5") };
        format!("{}.02.2024{clock};{at}9,9;2.{:03};{temp}", 13 + at / 24, at + 100)
    });
    project.write("a.csv", german);
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    for told in [
        "Summe: the point of '2.100' separates thousands",
        "Temp: -999 is there 5 times, far from the others (0,5 to 47,5)",
        "Zeit: days without a time of day are read as their midnight (`%?` in `format`): 2, the first is '13.02.2024' in line 2",
    ] {
        assert!(notes(&said).contains(told), "{told}: {}", notes(&said));
    }
    let ends = "SELECT count(*) AS a, min(\"Summe\") AS b, min(\"Zeit\") AS c, max(\"Zeit\") AS d FROM A";
    assert_eq!(answer(&project, ends), "48 2100 2024-02-13T00:00:00Z 2024-02-14T23:00:00Z");

    let doubled = rows("time,km,km,tmp", 20, |at| format!("2024-01-01 00:{at:02},{at}.5,{at}500.0,\"+00{at:02},5\""));
    project.write("b.csv", doubled);
    let (said, _) = proposed(&project, "b", "b.csv", &[]);
    for told in
        ["the later ones with their number behind: km_2", "tmp: values such as '+0000,5' look like a code and a flag"]
    {
        assert!(notes(&said).contains(told), "{told}: {}", notes(&said));
    }
    assert_eq!(answer(&project, "SELECT max(km) AS a, max(km_2) AS b, min(tmp) AS c FROM B"), "19.5 19500.0 +0000,5");

    let years = rows("Year,country,v", 30, |at| format!("{}.0,{},{at}", 1990 + at / 2, ["DE", "NL"][at % 2]));
    project.write("c.csv", years);
    proposed(&project, "c", "c.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS a, max(ts) AS b FROM C"), "30 2004-01-01T00:00:00Z");
    project.write("d.csv", "Date,Time,Temp\n01/20/24,12:00a,45.2\n01/20/24,12:30a,53.9\n01/20/24, 1:00p,51.1\n");
    proposed(&project, "d", "d.csv", &[]);
    assert_eq!(
        answer(&project, "SELECT min(ts) AS a, max(ts) AS z FROM D"),
        "2024-01-20T00:00:00Z 2024-01-20T13:00:00Z"
    );
}

#[test]
fn a_header_longer_than_its_rows_gives_their_names() {
    let project = Project::empty();
    let text = rows("Id,Year,Rate,", 30, |at| format!("{},{},9.{at}", ["A", "B"][at % 2], 1990 + at / 2));
    project.write("a.csv", format!("Rates of unemployment\n\n{text}"));
    let (said, record) = proposed(&project, "a", "a.csv", &[]);
    assert!(notes(&said).contains("The header has more fields than the rows"), "{}", notes(&said));
    assert_eq!(record["rows_rejected"], 0);
    assert_eq!(answer(&project, "SELECT count(\"Rate\") AS a, max(ts) AS b FROM A"), "30 2004-01-01T00:00:00Z");
}
