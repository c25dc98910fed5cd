//! `tidetable new` on tables as markets, loggers and agencies export them: hours of days with a clock change, zones in headers,
//! a column for each time, and columns that blanks separate.

use super::loads;
use super::readings::{answer, notes, proposed};
use crate::harness::Project;

/// A header and rows.
fn table(header: &str, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(format!("{header}\n"), |text, row| text + &row + "\n")
}

/// The first and the last time of a table, and how many different ones there are.
fn span(project: &Project, table: &str) -> String {
    answer(project, &format!("SELECT min(ts) AS a, max(ts) AS b, count(DISTINCT ts) AS n FROM {table}"))
}

#[test]
fn hours_of_days_with_a_clock_change() {
    let project = Project::empty();
    let berlin = ["--timezone", "Europe/Berlin"];
    let day = |names: &[&str], day: &str| names.iter().map(|name| format!("{day},{name},1.5")).collect::<Vec<_>>();
    let names: Vec<String> = (1..25).map(|hour| hour.to_string()).collect();
    let plain: Vec<&str> = names.iter().map(String::as_str).collect();
    let long: Vec<&str> =
        plain.iter().flat_map(|name| if *name == "3" { vec!["3A", "3B"] } else { vec![*name] }).collect();
    let days = [day(&plain, "2023-10-28"), day(&long, "2023-10-29"), day(&plain, "2023-10-30")].concat();

    project.write("letters.csv", table("Date,Hour,price", days.clone()));
    let (said, _) = proposed(&project, "letters", "letters.csv", &berlin);
    assert_eq!(span(&project, "LETTERS"), "2023-10-27T23:00:00Z 2023-10-30T23:00:00Z 73", "{said}");
    // The local day of the change has 25 hours, of which the first ends at one o'clock.
    let of_day = "SELECT count(*) AS n FROM LETTERS WHERE ts > '2023-10-28T22:00:00Z' AND ts <= '2023-10-29T23:00:00Z'";
    assert_eq!(answer(&project, of_day), "25");
    let (said, _) = proposed(&project, "bare", "letters.csv", &[]);
    assert!(
        notes(&said).contains("Hour: an hour such as 3B is the second of a clock change, and falls on 3A"),
        "{said}"
    );

    let counted = |day: &str, hours: u32| (1..=hours).map(|hour| format!("{day},{hour:02},1.5")).collect::<Vec<_>>();
    let days = [counted("2023-03-25", 24), counted("2023-03-26", 23), counted("2023-10-29", 25)].concat();
    project.write("counted.csv", table("Date,Hour,price", days));
    let (said, _) = proposed(&project, "counted", "counted.csv", &berlin);
    assert_eq!(span(&project, "COUNTED"), "2023-03-25T00:00:00Z 2023-10-29T23:00:00Z 72", "{said}");
    let (said, _) = proposed(&project, "plain", "counted.csv", &[]);
    assert!(notes(&said).contains("Hour: hour 25 is that of a day with a clock change"), "{said}");
}

#[test]
fn a_day_beyond_31_counts_from_the_start_of_the_year() {
    let project = Project::empty();
    let rows = (1..=366).map(|day| format!("2024,{day},{}.5", day % 40));
    project.write("a.csv", table("Year,Day,level", rows));
    loads(&project, "a", "a.csv", 366);
    assert_eq!(span(&project, "A"), "2024-01-01T00:00:00Z 2024-12-31T00:00:00Z 366");
}

#[test]
fn a_zone_in_the_header_is_that_of_its_times() {
    let project = Project::empty();
    let zones = [
        ("Time (CET)", "Etc/GMT-1", "2024-06-30T23:00:00Z"),
        ("Time [UTC+2]", "Etc/GMT-2", "2024-06-30T22:00:00Z"),
        ("ts_utc", "UTC", "2024-07-01T00:00:00Z"),
        ("Local Time (Europe/Berlin)", "Europe/Berlin", "2024-06-30T22:00:00Z"),
        ("Date Time; GMT-05:00", "Etc/GMT+5", "2024-07-01T05:00:00Z"),
    ];
    for (at, (name, zone, first)) in zones.into_iter().enumerate() {
        let (job, file) = (format!("z{at}"), format!("z{at}.csv"));
        project
            .write(&file, table(&format!("{name},v"), (0..20).map(|hour| format!("2024-07-01 {hour:02}:00,{hour}.5"))));
        let (said, _) = proposed(&project, &job, &file, &[]);
        let told = notes(&said);
        assert!(
            told.contains(&format!("Times without an offset are read in {zone}, as the name of {name} says")),
            "{told}"
        );
        assert!(project.read(&format!("jobs/{job}/job.toml")).contains(&format!("timezone = \"{zone}\"")), "{told}");
        let days = answer(&project, &format!("SELECT min(\"timestamp\") AS a FROM cells.Z{at}"));
        assert!(days.starts_with(first.trim_end_matches('Z')), "{name}: {days}");
    }

    for (at, name) in ["Time (CST)", "MTU (CET/CEST)", "Time (UTC+05:30)"].into_iter().enumerate() {
        let (job, file) = (format!("u{at}"), format!("u{at}.csv"));
        project
            .write(&file, table(&format!("{name},v"), (0..20).map(|hour| format!("2024-07-01 {hour:02}:00,{hour}.5"))));
        let (said, _) = proposed(&project, &job, &file, &[]);
        assert!(notes(&said).contains("taken as UTC; --timezone says otherwise. The header says "), "{said}");
    }
    // What is given counts.
    let (said, _) = proposed(&project, "given", "z0.csv", &["--timezone", "Europe/Paris"]);
    assert!(!notes(&said).contains("as the name of"), "{said}");
}

#[test]
fn a_column_for_each_time_is_a_wide_table() {
    let project = Project::empty();
    let quarters: Vec<String> = (0..96).map(|at| format!("{:02}:{:02}", at / 4, at % 4 * 15)).collect();
    let hours: Vec<String> = (0..24).map(|at| format!("2024-03-01T{at:02}:00:00Z")).collect();
    let days: Vec<String> = (1..31).map(|day| format!("{day:02}.01.2024")).collect();
    for (job, first, names, key) in
        [("a", "date", quarters, "2024-03-"), ("b", "meter", hours, "M"), ("c", "meter", days, "M")]
    {
        let values = |row: usize| (0..names.len()).map(|at| format!(",{}.5", (at + row * 7) % 40)).collect::<String>();
        let rows = (10..30).map(|row| format!("{key}{row}{}", values(row)));
        let file = format!("{job}.csv");
        project.write(&file, table(&format!("{first},{}", names.join(",")), rows));
        let told = notes(&project.json(&["new", job, "--from", &file]).remove(0));
        let (start, end) = (&names[0], &names[names.len() - 1]);
        let wanted = format!("{} columns are named by times, {start} to {end}: this is a wide table.", names.len());
        assert!(told.contains(&wanted), "{told}");
        assert!(told.contains("on columns(* exclude ("), "{told}");
    }
}

/// Runs the command that a message ends with.
fn follow(project: &Project, said: &str) {
    let command = said.trim().rsplit("first: ").next().unwrap();
    let done = std::process::Command::new("sh").args(["-c", command]).current_dir(project.path("")).status().unwrap();
    assert!(done.success(), "{said}");
}

#[test]
fn columns_that_blanks_separate() {
    let project = Project::empty();
    let single = (0..24).map(|hour| format!("2024-03-01 {hour:02}:00 {hour}.5"));
    project.write("single.txt", table("date time temp", single));
    loads(&project, "single", "single.txt", 24);
    assert!(project.read("jobs/single/job.toml").contains("delimiter = \" \""));

    let runs = (0..24).map(|hour| format!(" 2024-03-01  {hour:02}:00  {:>6}", format!("{hour}.5")));
    let places = (0..24).map(|hour| {
        let wind = if hour % 4 == 0 { String::new() } else { format!("{}", hour * 3) };
        format!("A{:<6} 2024-03-01 {hour:02}:00 {:>6} {wind:>5}", hour % 3, format!("{hour}.5"))
    });
    let wide = (0..24).map(|hour| format!("{}  2024-03-01 {hour:02}:00   {hour}.5", ["old mill", "weir"][hour % 2]));
    for (job, text) in [
        ("runs", table(" date        time    temp", runs)),
        ("places", table("STATION DATE       TIME    TEMP  WIND", places)),
        ("wide", table("site  measured at   temp", wide)),
    ] {
        let file = format!("{job}.dat");
        project.write(&file, text);
        let said = project.fails(2, &["new", job, "--from", &file]);
        assert!(said.contains("runs of blanks separate the columns"), "{said}");
        follow(&project, &said);
        let (made, _) = proposed(&project, job, "NEW.csv", &[]);
        let found = answer(&project, &format!("SELECT count(*) AS n FROM {}", job.to_uppercase()));
        assert_eq!(found, "24", "{made}");
    }
    let found = answer(&project, "SELECT count(*) AS a, count(\"WIND\") AS b, sum(\"WIND\") AS c FROM PLACES");
    assert!(found.starts_with("24 18 648"), "{found}");
}

#[test]
fn text_is_read_by_its_content_whatever_loggers_call_it() {
    let project = Project::empty();
    for (at, ending) in ["dat", "tab", "asc", "rdb"].into_iter().enumerate() {
        let mark = [",", "\t", ";", "\t"][at];
        let rows = (0..24).map(|hour| format!("2024-03-01T{hour:02}:00:00Z{mark}{hour}.5"));
        let file = format!("a.{ending}");
        project.write(&file, table(&format!("ts{mark}v"), rows));
        loads(&project, ending, &file, 24);
    }
}
