//! `tidetable new`: times whose parts are in several columns or in the digits of a number.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array};

use super::readings::{answer, notes, parquet, proposed, rows, times};
use crate::harness::Project;

#[test]
fn digits_of_a_number_are_a_time() {
    let project = Project::empty();
    let hour = |at: usize| format!("202401{:02}{:02}", 14 + (at + 22) / 24, (at + 22) % 24);
    let hours = "20 2024-01-14T22:00:00Z 2024-01-15T17:00:00Z";
    let cases = [
        ("a", rows("YYYYMMDDHH,T", 20, |at| format!("{},{at}.5", hour(at))), hours, "2024011422"),
        ("b", rows(&format!("{},0.5", hour(0)), 19, |at| format!("{},{at}.5", hour(at + 1))), hours, "2024011422"),
        (
            "c",
            rows("ERDAT,m", 20, |at| format!("202401{:02},{at}.5", at + 1)),
            "20 2024-01-01T00:00:00Z 2024-01-20T00:00:00Z",
            "20240101",
        ),
        (
            "d",
            rows("stamp,m", 20, |at| format!("202401{:02}220000,{at}.5", at + 1)),
            "20 2024-01-01T22:00:00Z 2024-01-20T22:00:00Z",
            "20240101220000",
        ),
        ("e", rows("code,m", 20, |at| format!("24011422{},{at}.5", at + 10)), "20 ", ""),
    ];
    for (job, text, wanted, first) in cases {
        if first.is_empty() {
            // Of one hour, they may be seconds.
            project.write("e.csv", text);
            let said = project.json(&["new", "e", "--from", "e.csv"]).remove(0);
            assert!(!notes(&said).contains("by their digits"), "{said}");
            continue;
        }
        let (said, found) = times(&project, job, "ts", text);
        assert_eq!(found, wanted, "{said}");
        assert!(notes(&said).contains(&format!("numbers such as {first} are read by their digits as times")), "{said}");
    }

    let days = Int32Array::from_iter_values((0..48).map(|at| 20_240_114 + at / 24));
    let clock = Int32Array::from_iter_values((0..48).map(|at| at % 24 * 100));
    let v = Int64Array::from_iter_values(0..48);
    parquet(
        &project,
        "f.parquet",
        vec![("date", Arc::new(days) as ArrayRef), ("hhmm", Arc::new(clock)), ("v", Arc::new(v))],
    );
    let (said, _) = proposed(&project, "f", "f.parquet", &[]);
    assert_eq!(
        answer(&project, "SELECT min(ts) AS a, max(ts) AS b, count(DISTINCT ts) AS n FROM F"),
        "2024-01-14T00:00:00Z 2024-01-15T23:00:00Z 48",
        "{said}"
    );

    let valid = Int64Array::from_iter_values((0..24).map(|at| 2_024_011_400 + at));
    let v = Int64Array::from_iter_values(0..24);
    parquet(&project, "g.parquet", vec![("time", Arc::new(valid) as ArrayRef), ("v", Arc::new(v))]);
    let (said, _) = proposed(&project, "g", "g.parquet", &[]);
    assert_eq!(
        answer(&project, "SELECT min(ts) AS a, max(ts) AS b FROM G"),
        "2024-01-14T00:00:00Z 2024-01-14T23:00:00Z",
        "{said}"
    );
}

#[test]
fn parts_of_a_time_are_put_together_however_they_are_written() {
    let project = Project::empty();
    let last = |text: String, job: &str| {
        let (said, found) = times(&project, job, "ts", text);
        assert!(!notes(&said).contains("says more"), "{said}");
        found
    };
    let two_days = "48 2024-02-01T00:00:00Z 2024-02-02T23:00:00Z";
    let (day, hour) = (|at: usize| 1 + at / 24, |at: usize| at % 24);
    let files = [
        ("a", rows("Year,Month,Day,Hour,T", 48, |at| format!("2024,02,{:02},{:02},{at}.5", day(at), hour(at)))),
        ("b", rows("YY,MM,DD,hh,mm,T", 48, |at| format!("2024,02,{:02},{:02},00,{at}.5", day(at), hour(at)))),
        (
            "c",
            rows("Station,Year,Month,Day,Time [UTC],T", 48, |at| {
                format!("Turku,2024,2,{},{:02}:00,{at}.5", day(at), hour(at))
            }),
        ),
        ("d", rows("YEAR,MONTH,DAY,HHMM,T", 48, |at| format!("2024,2,{},{:02}00,{at}.5", day(at), hour(at)))),
        ("e", rows("Year,DOY,HHMM,T", 48, |at| format!("2024,{},{},{at}.5", 31 + day(at), hour(at) * 100))),
        // Without a header.
        ("f", rows("2024-02-01,0,0.5", 47, |at| format!("2024-02-0{},{},{at}.5", day(at + 1), hour(at + 1)))),
        ("g", rows("2024,2,1,0,0.5", 47, |at| format!("2024,2,{},{},{at}.5", day(at + 1), hour(at + 1)))),
    ];
    for (job, text) in files {
        assert_eq!(last(text, job), two_days, "{job}: {}", project.read(&format!("jobs/{job}/job.toml")));
    }
    let minutes = rows("2024,02,01,00,00,0.5", 95, |at| {
        let half = at + 1;
        format!("2024,02,{:02},{:02},{:02},{at}.5", 1 + half / 48, half / 2 % 24, half % 2 * 30)
    });
    assert_eq!(last(minutes, "i"), "96 2024-02-01T00:00:00Z 2024-02-02T23:30:00Z");
    let days = rows("Year,Month,Day,T", 48, |at| format!("2024,{:02},{:02},{at}.5", 1 + at / 24, 1 + at % 24));
    assert_eq!(last(days, "h"), "48 2024-01-01T00:00:00Z 2024-02-24T00:00:00Z");
    let told = project.json(&["new", "g", "--from", "g.csv", "--force"]).remove(0);
    assert!(notes(&told).contains("column_1, column_2 and column_3 have no names"), "{told}");
    assert!(notes(&told).contains("column_4 has no name and is read as the hour"), "{told}");
}

#[test]
fn the_first_of_two_pairs_of_day_and_clock_is_the_time() {
    let project = Project::empty();
    let pair = |at: usize| format!("2024/01/01,00:00:{at:02}");
    let bare = rows(&format!("{0},{0},A,1000", pair(0)), 19, |at| format!("{0},{0},B,{1}", pair(at + 1), 1000 + at));
    let named = rows("d1,t1,d2,t2,v", 20, |at| format!("{},2024/01/01,00:10:{at:02},{at}", pair(at)));
    for (job, text) in [("a", bare), ("b", named)] {
        let (said, found) = times(&project, job, "ts", text);
        assert_eq!(found, "20 2024-01-01T00:00:00Z 2024-01-01T00:00:19Z", "{said}");
    }
}

#[test]
fn hours_of_a_clock_change_are_of_a_zone_that_has_it() {
    let project = Project::empty();
    let mut prices = Vec::new();
    for day in 28..31 {
        for hour in 1..25 {
            let names =
                if day == 29 && hour == 3 { vec!["3A".to_owned(), "3B".to_owned()] } else { vec![hour.to_string()] };
            prices.extend(names.iter().map(|name| format!("{day}/10/2023,{name},{hour}.5")));
        }
    }
    let (said, found) =
        times(&project, "a", "ts", rows("Delivery Date CET,Hour,Price", prices.len(), |at| prices[at].clone()));
    assert_eq!(found, "73 2023-10-27T23:00:00Z 2023-10-30T23:00:00Z", "{said}");
    assert!(notes(&said).contains("as the name of Delivery Date CET says (CET)"), "{said}");
}

#[test]
fn other_columns_decide_between_two_times() {
    let project = Project::empty();
    let spans = rows("created_ts,id,start_ts,mean", 24, |at| {
        format!("{},7,{},{at}.5", 1_705_269_610 + at * 3600, 1_705_266_000 + at * 3600)
    });
    project.write("a.csv", spans);
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert!(project.read("jobs/a/job.toml").contains("time = \"start_ts\""), "{said}");

    let both = rows("time_utc,time_ept,mw", 20, |at| format!("2024-01-01 05:{at:02},2024-01-01 00:{at:02},{at}.5"));
    project.write("b.csv", both);
    let (said, _) = proposed(&project, "b", "b.csv", &[]);
    assert!(notes(&said).contains("Also time_ept: `timezone` of a column says"), "{said}");

    let order = rows("start,end,v", 12, |at| format!("1/{}/2024 0:00,1/30/2024 1:00,{at}", at + 1));
    let (said, found) = times(&project, "c", "start", order);
    assert_eq!(found, "12 2024-01-01T00:00:00Z 2024-01-12T00:00:00Z", "{said}");
}
