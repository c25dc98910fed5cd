//! `tidetable new`: times of which the file says only a part, or what could be a part of them.

use super::readings::{answer, notes, rows, times};
use crate::harness::Project;

#[test]
fn durations_are_no_times_of_day() {
    let project = Project::empty();
    let kept =
        [("a", "Date,Duration,km"), ("b", "Date,Moving Time,km"), ("c", "Date,Sunrise,Tmax"), ("d", "Date,Dauer,km")];
    for (job, header) in kept {
        let text = rows(header, 20, |at| format!("2024-01-{:02},00:{}:10,{at}.5", at + 1, 20 + at));
        let (said, found) = times(&project, job, "\"Date\"", text);
        assert_eq!(found, "20 2024-01-01T00:00:00Z 2024-01-20T00:00:00Z", "{said}");
        assert!(!notes(&said).contains("not stored") && !notes(&said).contains("time of day"), "{said}");
    }
    let peak = rows("Date,Peak Time,kW", 20, |at| format!("2024-01-{:02},08:{}:00,{at}.5", at + 1, 20 + at));
    let (said, found) = times(&project, "e", "\"Date\"", peak);
    assert_eq!(found, "20 2024-01-01T00:00:00Z 2024-01-20T00:00:00Z", "{said}");
    assert!(notes(&said).contains("if Peak Time ('08:20:00') is the time of day"), "{said}");

    let run = rows("Date,Type,Time,km", 20, |at| format!("2024-01-{:02},Run,01:{}:30,{at}.5", at + 1, 20 + at));
    let (said, found) = times(&project, "f", "ts", run);
    assert_eq!(found, "20 2024-01-01T01:20:30Z 2024-01-20T01:39:30Z", "{said}");
    assert!(notes(&said).contains("Time ('01:20:30') is read as the time of day of Date"), "{said}");
}

/// What a row begins with, by its number.
type Written<'a> = &'a dyn Fn(usize) -> String;

#[test]
fn a_year_goes_with_its_months_quarters_and_halves() {
    let project = Project::empty();
    let cases: [(&str, &str, Written<'_>, &str); 4] = [
        ("a", "id,year,period,v", &|at| format!("X,{},M{:02}", 2022 + at / 12, at % 12 + 1), "2023-12-01"),
        ("b", "id,year,period,v", &|at| format!("X,{},Q{:02}", 2022 + at / 4, at % 4 + 1), "2027-10-01"),
        ("c", "id,year,half,v", &|at| format!("X,{},H{}", 2012 + at / 2, at % 2 + 1), "2023-07-01"),
        ("d", "id,Jahr,Monat,v", &|at| format!("X,{},{}", 2022 + at / 12, GERMAN[at % 12]), "2023-12-01"),
    ];
    for (job, header, row, last) in cases {
        let (said, found) = times(&project, job, "ts", rows(header, 24, |at| format!("{},{at}.5", row(at))));
        assert!(found.starts_with("24 20") && found.ends_with(&format!(" {last}T00:00:00Z")), "{found} {said}");
    }

    // The thirteenth month is the average of the year.
    let averages = rows("id,year,period,v", 26, |at| format!("X,{},M{:02},{at}.5", 2022 + at / 13, at % 13 + 1));
    let (said, found) = times(&project, "e", "ts", averages);
    assert_eq!(found, "24 2022-01-01T00:00:00Z 2023-12-01T00:00:00Z", "{said}");
    assert!(notes(&said).contains("period: 'M13' is of a whole year"), "{said}");

    let weeks = rows("year,week,v", 20, |at| format!("2022,{},{at}.5", at + 1));
    let (said, found) = times(&project, "f", "ts", weeks);
    assert_eq!(found, "20 2022-01-01T00:00:00Z 2022-01-01T00:00:00Z", "{said}");
    assert!(notes(&said).contains("week says more") && !notes(&said).contains("not stored"), "{said}");
}

const GERMAN: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

#[test]
fn milliseconds_of_their_own_are_of_the_time() {
    let project = Project::empty();
    let pair = rows("Date,Time,ms,v", 20, |at| format!("2024/01/31,13:05:{:02},{:03},{at}.5", at / 4, at % 4 * 250));
    let (said, found) = times(&project, "a", "ts", pair);
    assert_eq!(found, "20 2024-01-31T13:05:00Z 2024-01-31T13:05:04.750Z", "{said}");
    let one = rows("DateTime,Millitm,Tag,v", 20, |at| {
        format!("01/31/2024 01:00:{:02} PM,{},T{},{at}.5", at / 4, at % 4 * 250, at % 2)
    });
    let (said, found) = times(&project, "b", "ts", one);
    assert_eq!(found, "20 2024-01-31T13:00:00Z 2024-01-31T13:00:04.750Z", "{said}");

    // A latency goes up and down.
    let latency = rows("ts,ms,v", 20, |at| format!("2024-01-31 13:00:{:02},{},{at}.5", at / 4, at * 37 % 100));
    let (said, found) = times(&project, "c", "ts", latency);
    assert!(found.ends_with(" 2024-01-31T13:00:04Z"), "{said}");
    assert!(notes(&said).contains("ms is not of the time"), "{said}");

    let halves = rows("settlementDate,settlementPeriod,v", 96, |at| {
        format!("2024-03-{:02},{},{at}.5", 10 + at / 48, at % 48 + 1)
    });
    let (said, _) = times(&project, "d", "\"settlementDate\"", halves);
    assert!(notes(&said).contains("if it numbers each half-hour"), "{said}");
}

#[test]
fn counts_from_other_epochs_are_read() {
    let project = Project::empty();
    let ticks = rows("Ticks,v", 20, |at| format!("{},{at}.5", 638_400_000_000_000_000 + at * 600_000_000));
    let (said, found) = times(&project, "a", "ts", ticks);
    assert_eq!(found, "20 2024-01-04T21:20:00Z 2024-01-04T21:39:00Z", "{said}");
    let days = rows("MJD,v", 20, |at| format!("{:.6},{at}.5", 60_310.0 + at as f64 / 96.0));
    let (said, found) = times(&project, "b", "ts", days);
    assert_eq!(found, "20 2024-01-01T00:00:00Z 2024-01-01T04:45:00Z", "{said}");

    let seconds = rows("t,v", 15, |at| format!("{},{at}.5", 1_709_251_200 + at));
    let (said, found) = times(&project, "c", "t", seconds);
    assert_eq!(found, "15 2024-03-01T00:00:00Z 2024-03-01T00:00:14Z", "{said}");
    assert!(notes(&said).contains("fit both seconds since 1970 (`s`) and %y%m%d%H%M"), "{said}");

    let offset = project.run(&["new", "d", "--from", "c.csv", "--timezone", "-05:00", "--stdout"]);
    assert_eq!(offset.code, Some(0), "{}", offset.stderr);
}

#[test]
fn what_looks_like_numbers_or_times_is_told() {
    let project = Project::empty();
    let ids = rows("time,mac,fw,flow,Verbrauch", 24, |at| {
        format!(
            "2024-01-01T{:02}:00:00Z,{},{},-999,{at}",
            at,
            ["1E10", "2E05"][at % 2],
            ["1.9", "1.10", "1.11"][at % 3]
        )
    });
    let (said, found) = times(&project, "a", "time", ids);
    assert!(found.starts_with("24 "), "{said}");
    assert_eq!(answer(&project, "SELECT min(mac) AS a, max(fw) AS b FROM A"), "1E10 1.9");
    for part in [
        "mac: values such as '1E10' look like identifiers",
        "'1.9' and '1.10' look like versions",
        "every value is -999",
    ] {
        assert!(notes(&said).contains(part), "{part}: {said}");
    }
    let forms = rows("date,v", 20, |at| match at % 3 {
        0 => format!("2024-01-{:02},{at}", at + 1),
        _ => format!("{:02}.01.2024,{at}", at + 1),
    });
    let (said, _) = times(&project, "b", "date", forms);
    assert!(notes(&said).contains("two forms, such as '2024-01-01' and '02.01.2024'"), "{said}");
    let points = rows("Zeit;Verbrauch", 20, |at| format!("{:02}.01.2024 00:00;{}.100", at + 1, at + 1));
    let (said, _) = times(&project, "c", "\"Zeit\"", points);
    assert!(notes(&said).contains("the point of '1.100' precedes a fraction"), "{said}");
}
