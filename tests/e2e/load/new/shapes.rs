//! `tidetable new` on files of many shapes: the proposed row key and export, and the number of loaded rows.

use std::fs;

use serde_json::Value;

use super::loads;
use crate::harness::{Project, gz, repository};

/// What a part of the export covers: `day`, `month` or `query`.
fn per(project: &Project, job: &str) -> String {
    let text = project.read(&format!("jobs/{job}/job.toml"));
    let line = text.lines().find_map(|line| line.strip_prefix("per = \"")).unwrap();
    line.trim_end_matches('"').to_owned()
}

/// Proposes and loads each file: name, rows, text, the row key it should get, and what a part of its export covers.
fn shapes(cases: &[(&str, usize, String, &str, &str)]) {
    let project = Project::empty();
    for (at, (name, rows, text, row_key, covers)) in cases.iter().enumerate() {
        project.write(name, text);
        let job = format!("shape-{at}");
        let said = loads(&project, &job, name, *rows);
        assert_eq!(
            (&said["row_key"], per(&project, &job).as_str()),
            (&Value::from(*row_key), *covers),
            "{name}: {said}"
        );
    }
}

/// A header and rows, of a number each.
fn table(header: &str, rows: std::ops::Range<usize>, row: impl Fn(usize) -> String) -> String {
    rows.fold(format!("{header}\n"), |text, number| text + &row(number) + "\n")
}

#[test]
fn days_months_quarters_and_years_are_event_times() {
    let month = |at: usize| (1 + at / 12, 1 + at % 12);
    let names = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    shapes(&[
        (
            "sunspots.csv",
            60,
            table("Month,Sunspots", 0..60, |at| {
                format!("{}-{:02},{}.{}", 1748 + month(at).0, month(at).1, at * 7 % 90, at % 10)
            }),
            "{Month:%Y%m%d}",
            "query",
        ),
        (
            "temperature.csv",
            60,
            table("date,temp", 0..60, |at| format!("{}-{}-1995,{at}.5", names[at / 28].get(..3).unwrap(), 1 + at % 28)),
            "{date:%Y%m%d}",
            "month",
        ),
        (
            "co2.csv",
            40,
            table("Year,Mean", 0..40, |at| format!("{},{}.{:02}", 1959 + at, 315 + at, at)),
            "{ts:%Y%m%d}",
            "query",
        ),
        (
            "gdp.csv",
            40,
            table("quarter,gdp", 0..40, |at| format!("{}Q{},{at}", 1980 + at / 4, 1 + at % 4)),
            "{quarter:%Y%m%d}",
            "query",
        ),
        (
            "macro.csv",
            40,
            table("year,quarter,gdp", 0..40, |at| format!("{},{},{at}", 1959 + at / 4, 1 + at % 4)),
            "{ts:%Y%m%d}",
            "query",
        ),
        (
            "flights.csv",
            36,
            table("year,month,passengers", 0..36, |at| format!("{},{},{}", 1949 + at / 12, names[at % 12], 112 + at)),
            "{ts:%Y%m%d}",
            "query",
        ),
    ]);
}

#[test]
fn measurements_are_not_entities() {
    let kinds = ["drizzle", "rain", "sun", "snow", "fog"];
    let day = |at: usize| format!("2012-{:02}-{:02}", 1 + at / 28, 1 + at % 28);
    shapes(&[
        (
            "weather.csv",
            84,
            table("date,precipitation,temp_max,wind,weather", 0..84, |at| {
                format!("{},{}.{},{}.5,{},{}", day(at), at % 12, at % 10, at % 30, at % 7, kinds[at * 3 % 5])
            }),
            "{date:%Y%m%d}",
            "month",
        ),
        (
            "wind.csv",
            60,
            table("time,direction,speed", 0..60, |at| {
                format!("2020-01-01 00:{at:02}:00,{},{at}", ["N", "NE", "E"][at % 3])
            }),
            "{time:ms}",
            "day",
        ),
        // Needed to distinguish rows, and named so.
        (
            "stocks.csv",
            84,
            table("Date,Ticker,Close", 0..84, |at| format!("{},{},{at}.25", day(at / 2), ["AAPL", "MSFT"][at % 2])),
            "{Ticker}#{Date:%Y%m%d}",
            "month",
        ),
        (
            "kinds.csv",
            84,
            table("day,kind,count", 0..84, |at| format!("{},{},{at}", day(at / 3), kinds[at % 3])),
            "{kind}#{day:%Y%m%d}",
            "day",
        ),
    ]);
}

#[test]
fn loads_common_file_shapes() {
    shapes(&[
        (
            "sensors wide.csv",
            90,
            table(
                &std::iter::once("ts".to_owned())
                    .chain((1..41).map(|at| format!("s{at}")))
                    .collect::<Vec<_>>()
                    .join(","),
                0..90,
                |at| {
                    let values = (0..40).map(|sensor| {
                        format!(",{}", if (at + sensor) % 11 == 0 { String::new() } else { at.to_string() })
                    });
                    format!("2020-03-01T{:02}:{:02}:00Z{}", at / 60, at % 60, values.collect::<String>())
                },
            ),
            "{ts:ms}",
            "day",
        ),
        (
            "log.csv",
            40,
            table("time,level,message", 0..40, |at| {
                format!("2021-05-05 10:00:{at:02}.123456789,{},done {at}", ["INFO", "WARN"][at % 2])
            }),
            "{time:us}",
            "day",
        ),
        (
            "köln.csv",
            40,
            "\u{feff}".to_owned()
                + &table("\"Datum/Zeit\";\"Messstelle\";\"Wert (°C)\"", 0..40, |at| {
                    format!("{:02}.02.2021 {:02}:00;\"M{}\";{},{}", 13 + at / 24, at % 24, 1 + at % 2, at % 5, at % 10)
                }),
            "{Messstelle}#{Datum/Zeit:%Y%m%d}",
            "day",
        ),
        (
            "Devices.csv",
            40,
            table("TimeStamp,DeviceId,Value,Status", 0..40, |at| {
                format!("{},{},{}.5,{}", 1_600_000_000 + at / 2 * 60, 1 + at % 2, at, ["OK", "FAIL"][at / 20])
            }),
            "{DeviceId:010}#{TimeStamp:ms}",
            "day",
        ),
        (
            "before.csv",
            48,
            table("time,temp,hum", 0..48, |at| {
                format!("1969-12-{} {:02}:30:00,{at},{}", 30 + at / 24, at % 24, at % 9)
            }),
            "{time:%Y%m%dT%H%M%S}",
            "day",
        ),
    ]);
}

#[test]
fn reference_table_has_no_event_time() {
    shapes(&[
        (
            "countries.csv",
            3,
            "code,name,population,area\nDE,Germany,83,357.5\nFR,France,67,551.25\nLU,Luxembourg,,2.5\n".into(),
            "{code}",
            "query",
        ),
        // A year that few rows differ in is no event time.
        (
            "cars.csv",
            40,
            table("model,year,mileage", 0..40, |at| {
                format!("{},{},{at}.5", ["a", "b", "c"][at % 3], 1999 + at % 2 * 9)
            }),
            "{model}#{mileage}",
            "query",
        ),
        ("devices.csv", 3, "id,model,floor\n7,x,-1\n42,x,2\n100,y,2\n".into(), "{id:010}", "query"),
        (
            "iris.csv",
            4,
            "length,width,species\n5.1,3.5,setosa\n4.9,3.0,setosa\n5.1,3.25,setosa\n6.3,3.5,virginica\n".into(),
            "{species}#{width}",
            "query",
        ),
    ]);
}

#[test]
fn loads_archives_and_days_before_1970() {
    let project = Project::empty();
    for ending in ["csv.zip", "csv.gz"] {
        let archive = repository().join("tests/data/prices.csv.zip");
        let name = format!("prices.{ending}");
        match ending {
            "csv.zip" => project.write(&name, fs::read(archive).unwrap()),
            _ => {
                let text = table("date,close", 0..56, |at| format!("1968-0{}-{:02},{at}.50", 1 + at / 28, 1 + at % 28));
                project.write(&name, gz(text));
            }
        }
        let job = ending.replace('.', "-");
        let said = loads(&project, &job, &name, 56);
        let table = said["table"].as_str().unwrap();
        assert_eq!((&said["row_key"], per(&project, &job).as_str()), (&"{date:%Y%m%d}".into(), "month"));
        assert!(said["notes"].to_string().contains("Times before 1970 are in the row key alone"), "{said}");
        let first = project.sql(&format!("SELECT min(date) AS first, count(*) AS n FROM {table}"));
        assert_eq!((&first[0]["first"], &first[0]["n"]), (&"1968-01-01T00:00:00Z".into(), &56.into()));
        let part = project.sql(&format!("SELECT count(*) AS n FROM exports.{table}_MONTH_196802"));
        assert_eq!(part[0]["n"], 28);
        let cell =
            &project.sql(&format!("SELECT row_key, cast(timestamp AS bigint) AS t FROM cells.{table} LIMIT 1"))[0];
        assert_eq!((&cell["row_key"], &cell["t"]), (&"19680101".into(), &0.into()));
    }
    project.write("two.csv.zip", b"PK\x03\x04");
    assert!(project.fails(2, &["new", "two", "--from", "two.csv.zip"]).contains("two.csv.zip: "));
}

#[test]
fn replaced_rows_are_reported() {
    let project = Project::empty();
    let text = table("ts,host,v", 0..200, |at| format!("2020-01-01T{:02}:{:02}:00Z,a,{at}", at / 60, at % 60));
    project.write("a.csv", format!("{text}2020-01-01T00:07:00Z,a,99\n"));
    let said = project.json(&["new", "a", "--from", "a.csv"]).remove(0);
    assert_eq!(said["row_key"], "{host}#{ts:ms}");
    let note = said["notes"].to_string();
    assert!(note.contains("1 row has the key and time of an earlier row"), "{note}");
    assert!(note.contains("rows 8 and 201 (host a, ts 2020-01-01T00:07:00Z)"), "{note}");
    project.ok(&["run", "a"]);
    assert_eq!(project.sql("SELECT count(*) AS n FROM A")[0]["n"], 200);
    project.write("b.csv", format!("{text}2020-01-01T00:07:00Z,a,7\n"));
    let said = project.ok(&["new", "b", "--from", "b.csv"]);
    assert!(said.contains("1 row is a copy of an earlier row in every column"), "{said}");
}

#[test]
fn repeated_local_hour_is_loaded_and_reported() {
    let project = Project::empty();
    // Half hours of the night when Paris leaves summer time, as its clocks show them.
    let text = table("Date,Time,kwh", 0..60, |at| {
        let shown = if at >= 6 { at - 2 } else { at };
        format!("2021-{}-{:02},{:02}:{:02},{at}.5", 10, 31, shown / 2 % 24, shown % 2 * 30)
    });
    project.write("a.csv", text.lines().take(51).collect::<Vec<_>>().join("\n"));
    let said = project.json(&["new", "a", "--from", "a.csv", "--timezone", "Europe/Paris"]).remove(0);
    assert!(said["notes"].to_string().contains("2 rows have the key and time of an earlier row"), "{said}");
    let record = project.run_job("a");
    assert_eq!((&record["rows_rejected"], &record["loads"][0]["repeated_times"]), (&0.into(), &4.into()), "{record}");
    assert_eq!(project.sql("SELECT count(*) AS n FROM A")[0]["n"], 48);
    // In spring an hour is missing from local time: a file that has it is in another time zone.
    project.write(
        "b.csv",
        table("Date,Time,kwh", 0..48, |at| format!("2021-03-28,{:02}:{:02},{at}.5", at / 2, at % 2 * 30)),
    );
    let said = project.ok(&["new", "b", "--from", "b.csv", "--timezone", "Europe/Paris"]);
    assert!(said.contains("2 rows have a local time that a clock change skips"), "{said}");
}
