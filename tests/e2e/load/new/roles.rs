//! `tidetable new`: which columns are the event time, the entity, and the rest of the key.

use super::readings::{notes, proposed, rows, times};
use crate::harness::Project;

#[test]
fn a_time_that_all_rows_share_is_no_event_time() {
    let project = Project::empty();
    let quarters = rows("LAST UPDATE,geo,TIME_PERIOD,OBS_VALUE", 24, |at| {
        format!("22/11/24 23:00:00,DE,{}-Q{},{at}.5", 2018 + at / 4, 1 + at % 4)
    });
    let (said, found) = times(&project, "a", "\"TIME_PERIOD\"", quarters);
    assert_eq!(found, "24 2018-01-01T00:00:00Z 2023-10-01T00:00:00Z", "{said}");

    let spans = rows("point,End,Start,value,ResultTime", 24, |at| {
        format!("ES,2023-01-{:02} 01:00:00,2023-01-{:02} 00:00:00,{at}.5,2023-06-01 10:00:00", at + 1, at + 1)
    });
    let (said, found) = times(&project, "b", "\"Start\"", spans);
    assert_eq!(found, "24 2023-01-01T00:00:00Z 2023-01-24T00:00:00Z", "{said}");
    assert!(project.read("jobs/b/job.toml").contains("time = \"Start\""));
}

#[test]
fn times_of_parts_say_that_they_are_taken_as_utc() {
    let project = Project::empty();
    let taken = "Times are written without an offset and taken as UTC";
    let local = rows("Date,Time,v", 24, |at| format!("2023-03-01,{at:02}:00,{at}.5"));
    let (said, _) = times(&project, "a", "ts", local);
    assert!(notes(&said).contains(taken), "{said}");

    // A pair in UTC is better than a local one.
    let both = rows("Date Local,Time Local,Date GMT,Time GMT,v", 18, |at| {
        format!("2023-03-01,{at:02}:00,2023-03-01,{:02}:00,{at}.5", at + 6)
    });
    let (said, found) = times(&project, "b", "ts", both);
    assert_eq!(found, "18 2023-03-01T06:00:00Z 2023-03-01T23:00:00Z", "{said}");
    assert!(!notes(&said).contains(taken), "{said}");

    let hobo = rows("\"Date Time, GMT-05:00\",temp", 24, |at| format!("2014-07-17 {at:02}:00:00,{at}.5"));
    let (said, _) = times(&project, "c", "event_time", hobo);
    let taken =
        "are read in Etc/GMT+5, as the name of Date Time, GMT-05:00 says (GMT-05:00); --timezone says otherwise.";
    assert!(notes(&said).contains(taken), "{said}");
    let column = rows("time,tz,kwh", 24, |at| format!("2024-03-08 {at:02}:00,PST,{at}.5"));
    let (said, _) = times(&project, "d", "\"time\"", column);
    assert!(notes(&said).contains("tz names a zone, such as 'PST', and is not used."), "{said}");
}

#[test]
fn a_channel_is_of_the_key_before_a_reading() {
    let project = Project::empty();
    let cpus = rows("timestamp,CPU,user", 90, |at| {
        format!("2024-02-13 {:02}:00:00,{},{}.25", at / 3 % 24, at as i64 % 3 - 1, at * 37 % 91)
    });
    let (said, found) = times(&project, "a", "\"timestamp\"", cpus.lines().take(73).collect::<Vec<_>>().join("\n"));
    assert_eq!(said["row_key"], "{timestamp:ms}#{CPU}");
    assert!(found.starts_with("72 "), "{found}");

    // A reading is of the key only where nothing else tells rows apart, and that is said.
    let trades = rows("ts,price,amount", 90, |at| format!("{},{}.5,1", 1_672_531_203 + at / 3, 16_400 + at % 3));
    let (said, _) = times(&project, "b", "ts", trades);
    assert!(notes(&said).contains("price is a measured value and of the key, because no other column"), "{said}");
}

#[test]
fn days_of_the_year_and_hours_are_parts_of_the_time() {
    let project = Project::empty();
    let days = rows("Year,DOY,Hour,T", 96, |at| format!("{},{},{},{at}.5", 2023 + at / 48, 59 + at / 24 % 2, at % 24));
    let (said, found) = times(&project, "a", "ts", days);
    assert_eq!(found, "96 2023-02-28T00:00:00Z 2024-02-29T23:00:00Z", "{said}");
    let ending = rows("Date,Hour Ending,Location,LMP", 48, |at| {
        format!("2024-01-{:02},{:02},HUB,{at}.25", 1 + at / 24, 1 + at % 24)
    });
    let (said, found) = times(&project, "b", "ts", ending);
    assert_eq!(found, "48 2024-01-01T01:00:00Z 2024-01-03T00:00:00Z", "{said}");
    let ticks = rows("<TICKER>,<DATE>,<TIME>,<CLOSE>", 24, |at| format!("EURUSD,20240113,{at:02}3000,{at}.5"));
    let (said, found) = times(&project, "c", "ts", ticks);
    assert_eq!(found, "24 2024-01-13T00:30:00Z 2024-01-13T23:30:00Z", "{said}");
    let years = rows("Year,Mean", 40, |at| format!("{},{at}.5", 1959 + at));
    let (said, _) = times(&project, "d", "ts", years);
    assert!(notes(&said).contains("Year is not stored: ts says the same."), "{said}");
}

#[test]
fn a_remark_is_no_entity() {
    let project = Project::empty();
    let unit = rows("time,Unit,MPAN,v", 56, |at| {
        format!("2023-{:02}-{:02},kWh,1200012345678,{at}.5", 1 + at / 28, 1 + at % 28)
    });
    let quality = rows("time,Slave,Reg,Quality", 240, |at| {
        format!(
            "2024-04-01 {:02}:{:02}:00,{},{},{}",
            at / 120,
            at / 2 % 60,
            1 + at % 2,
            1000 + at * 7919 % 50_021,
            ["GOOD", "GOOD", "TIMEOUT"][at % 3]
        )
    });
    let flag = rows("pickup,store_and_fwd_flag,PULocationID,fare", 240, |at| {
        format!("2024-01-01 {:02}:{:02}:00,N,{},{at}.5", at / 60, at % 60, 1 + at * 31 % 100)
    });
    for (job, text, key) in [
        ("a", unit, "{MPAN:020}#{time:%Y%m%d}"),
        ("b", quality, "{Slave:010}#{time:ms}"),
        ("c", flag, "{PULocationID:010}#{pickup:ms}"),
    ] {
        project.write(&format!("{job}.csv"), text);
        let (said, _) = proposed(&project, job, &format!("{job}.csv"), &[]);
        assert_eq!(said["row_key"], key);
    }
}

#[test]
fn copies_are_counted_apart_from_rows_that_differ() {
    let project = Project::empty();
    let text = "time,tag,v\n2024-01-13 00:00,a,1\n2024-01-13 00:00,a,1\n2024-01-13 01:00,a,2\n2024-01-13 01:00,a,2\n\
                2024-01-13 02:00,a,3\n2024-01-13 02:00,a,4\n2024-01-13 03:00,b,5\n";
    let (said, found) = times(&project, "a", "\"time\"", text.to_owned());
    let told = notes(&said);
    assert!(told.contains("1 row has the key and time of an earlier row and differs from it in v"), "{told}");
    assert!(told.contains("The first are rows 5 and 6"), "{told}");
    assert!(told.contains("2 other rows are copies of an earlier row in every column."), "{told}");
    assert!(found.starts_with("4 "), "{found}");
}
