//! `tidetable new` on times as programs and countries write them: a row for each form.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal256Array, Float64Array, StringArray};
use arrow::datatypes::i256;

use super::readings::{answer, notes, parquet, proposed, rows, times};
use crate::harness::Project;

/// What writes a form, and the time in it by its hour, from 22 on, and minute.
type Form<'a> = (&'a str, &'a dyn Fn(usize, usize) -> String);

#[test]
fn times_are_read_in_the_forms_of_programs() {
    let project = Project::empty();
    // Half-hours from 22:00 on the 14th of January 2024; `h` and `m` are those of the clock.
    let day = |h: usize| 14 + h / 24;
    let forms: [Form<'_>; 20] = [
        ("SAS", &|h, m| format!("{}JAN2024:{:02}:{m:02}:00", day(h), h % 24)),
        ("Stata", &|h, m| format!("{}jan2024 {:02}:{m:02}:00", day(h), h % 24)),
        ("Oracle", &|h, m| {
            let half = if h % 24 < 12 { "AM" } else { "PM" };
            format!("{}-JAN-24 {:02}.{m:02}.00.000000000 {half}", day(h), (h + 11) % 12 + 1)
        }),
        ("DB2", &|h, m| format!("2024-01-{}-{:02}.{m:02}.00.000000", day(h), h % 24)),
        ("dashes", &|h, m| format!("{}-01-24 {:02}:{m:02}", day(h), h % 24)),
        ("year first", &|h, m| format!("24-01-{} {:02}:{m:02}", day(h), h % 24)),
        ("Finland", &|h, m| format!("{}.01.2024 {:02}.{m:02}", day(h), h % 24)),
        ("Finland short", &|h, m| format!("{}.1.2024 {}.{m:02}", day(h), h % 24)),
        ("web server", &|h, m| format!("[{}/Jan/2024:{:02}:{m:02}:00 +0000]", day(h), h % 24)),
        ("Java", &|h, m| format!("2024-01-{}T{:02}:{m:02}:00Z[Europe/London]", day(h), h % 24)),
        ("Java offset", &|h, m| format!("2024-01-{}T{:02}:{m:02}+00:00[Europe/London]", day(h), h % 24)),
        ("GMT+0", &|h, m| format!("2024-01-{} {:02}:{m:02}:00 GMT+0", day(h), h % 24)),
        ("UTC+00:00", &|h, m| format!("{}/01/2024 {:02}:{m:02}:00 UTC+00:00", day(h), h % 24)),
        ("Sweden", &|h, m| format!("2024-01-{} kl. {:02}:{m:02}", day(h), h % 24)),
        ("Germany", &|h, m| format!("{}.01.2024 {:02}:{m:02} Uhr", day(h), h % 24)),
        ("Hungary", &|h, m| format!("2024. 01. {}. {:02}:{m:02}", day(h), h % 24)),
        ("Czechia", &|h, m| format!("{}. 1. 2024 {:02}:{m:02}", day(h), h % 24)),
        ("Japan", &|h, m| format!("2024年1月{}日 {:02}:{m:02}", day(h), h % 24)),
        ("blanks", &|h, m| format!("{} 01 2024 {:02}:{m:02}", day(h), h % 24)),
        ("mail", &|h, m| format!("{} {} Jan 2024 {:02}:{m:02}:00 +0000", ["Sun", "Mon"][h / 24], day(h), h % 24)),
    ];
    for (at, (name, form)) in forms.iter().enumerate() {
        let text = rows("time,v", 14, |row| format!("{},{row}.5", form(22 + row / 2, row % 2 * 30)));
        let (said, found) = times(&project, &format!("j{at}"), "\"time\"", text);
        assert_eq!(found, "14 2024-01-14T22:00:00Z 2024-01-15T04:30:00Z", "{name}: {said}");
        assert!(!notes(&said).contains("fit both"), "{name}: {said}");
    }

    let east = rows("time,v", 14, |row| format!("2024-01-14 22:{:02}:00 GMT+1,{row}.5", row));
    let (said, found) = times(&project, "east", "\"time\"", east);
    assert_eq!(found, "14 2024-01-14T21:00:00Z 2024-01-14T21:13:00Z", "{said}");
    // One day may be of two years.
    let one = rows("time,v", 14, |row| format!("14-01-24 22:{:02},{row}.5", row));
    let (said, _) = times(&project, "one", "\"time\"", one);
    assert!(notes(&said).contains("fit both %d-%m-%y %H:%M and %y-%m-%d %H:%M"), "{said}");
    // Codes are no days.
    let codes = rows("time,part", 14, |row| format!("2024-01-14 22:{row:02},{:02}-01-05", row + 1));
    let (said, _) = times(&project, "codes", "\"time\"", codes);
    assert_eq!(answer(&project, "SELECT max(part) AS p FROM CODES"), "14-01-05", "{said}");
    // Steps that go on over midnight are of neighbouring days.
    let steps = rows("time,v", 120, |row| {
        format!("01/0{}/2024 {:02}:{:02},{row}.5", 6 + row / 40, row % 40 / 4 + 7, row % 4 * 15)
    });
    let (said, found) = times(&project, "steps", "\"time\"", steps);
    assert_eq!(found, "120 2024-01-06T07:00:00Z 2024-01-08T16:45:00Z", "{said}");
}

#[test]
fn epochs_with_a_fraction_and_of_other_counts() {
    let project = Project::empty();
    let fraction = |at: usize| format!("{}.25", 1_705_269_600 + at * 30);
    let bare = rows(&format!("{},0.5", fraction(0)), 19, |at| format!("{},{at}.5", fraction(at + 1)));
    for (job, text, time) in
        [("a", rows("v0,v", 20, |at| format!("{},{at}.5", fraction(at))), "v0"), ("b", bare, "column_1")]
    {
        let (said, found) = times(&project, job, time, text);
        assert_eq!(found, "20 2024-01-14T22:00:00.250Z 2024-01-14T22:09:30.250Z", "{said}");
        assert!(notes(&said).contains("have the magnitude of times since 1970 (s)"), "{said}");
    }
    // What goes up and down is measured.
    let measured = rows("day,v0", 20, |at| format!("2024-01-{:02},{}.5", at + 1, 1_705_269_600 + at * 37 % 11));
    let (said, found) = times(&project, "c", "\"day\"", measured);
    assert_eq!(found, "20 2024-01-01T00:00:00Z 2024-01-20T00:00:00Z", "{said}");

    let counts = [
        ("d", "time", 3_788_114_400_u64, "If it counts from 1904", "that is 2024-01-14T22:00:00Z"),
        ("e", "gps_time", 1_389_304_800, "If it counts from 1980-01-06", "that is 2024-01-14T22:00:00Z"),
        ("f", "time", 726_962_400, "If it counts from 2001", "that is 2024-01-14T22:00:00Z"),
    ];
    for (job, name, first, who, when) in counts {
        let text = rows(&format!("{name},v"), 20, |at| format!("{},{at}.5", first + at as u64 * 60));
        let (said, _) = times(&project, job, &format!("\"{name}\""), text);
        assert!(notes(&said).contains(who) && notes(&said).contains(when), "{said}");
    }

    let windows =
        rows("FileTime,v", 20, |at| format!("{},{at}.5", 133_497_432_000_000_000_u64 + at as u64 * 600_000_000));
    let (said, found) = times(&project, "h", "ts", windows);
    assert_eq!(found, "20 2024-01-14T22:00:00Z 2024-01-14T22:19:00Z", "{said}");

    let knmi = rows("STN,YYYYMMDD,HH,T", 48, |at| format!("260,202401{:02},{},{at}", 14 + at / 24, at % 24 + 1));
    let (said, found) = times(&project, "g", "ts", knmi);
    assert_eq!(found, "48 2024-01-14T01:00:00Z 2024-01-16T00:00:00Z", "{said}");
}

#[test]
fn numbers_in_text_are_told_with_their_way() {
    let project = Project::empty();
    let text = rows("time;usd;credit;loss;power", 20, |at| {
        let minus = at % 3 == 1;
        format!(
            "2024-01-14 22:{at:02};$1,{:03}.50;{};{};{at},5 kWh",
            at * 7,
            if minus { format!("{at}.5-") } else { format!("{at}.5") },
            if minus { format!("({at}.5)") } else { format!("{at}.5") }
        )
    });
    project.write("a.csv", text);
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    for (name, what, sum) in [
        ("usd", "numbers with '$'", "21340.0"),
        ("credit", "numbers such as '1.5-'", "53.0"),
        ("loss", "numbers such as '(1.5)'", "53.0"),
        ("power", "numbers with 'kWh'", "200.0"),
    ] {
        let told = notes(&said);
        let note =
            told.lines().find(|note| note.starts_with(&format!("{name}: {what}"))).unwrap_or_else(|| panic!("{told}"));
        let sql = note.rsplit_once("of them: ").unwrap().1.trim_end_matches('.');
        assert_eq!(answer(&project, &format!("SELECT sum({sql}) AS s FROM A")), sum, "{note}");
    }

    let zeit: Vec<String> = (0..20).map(|at| format!("14.01.2024 22:{at:02}")).collect();
    let v: Vec<String> = (0..20).map(|at| format!("{at},5")).collect();
    let w = Float64Array::from_iter_values((0..20).map(f64::from));
    let long = Decimal256Array::from_iter_values((0..20).map(i256::from_i128)).with_precision_and_scale(50, 4).unwrap();
    parquet(
        &project,
        "b.parquet",
        vec![
            ("zeit", Arc::new(StringArray::from(zeit)) as ArrayRef),
            ("v", Arc::new(StringArray::from(v))),
            ("w", Arc::new(w)),
            ("long", Arc::new(long)),
        ],
    );
    let (said, _) = proposed(&project, "b", "b.parquet", &[]);
    assert!(notes(&said).contains("v: numbers such as '0,5', read as text; `derive` makes numbers of them"), "{said}");
    assert!(notes(&said).contains("long: decimal(50,4), read as float64, which keeps 15 to 17 digits"), "{said}");
}
