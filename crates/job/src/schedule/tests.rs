use super::*;

fn micros(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros()
}

/// The times of a schedule between two times, in its own zone.
fn shown(schedule: &str, zone: Tz, after: &str, to: &str) -> Vec<String> {
    let cron = Cron::parse(schedule).unwrap();
    let text = |moment| zone.timestamp_micros(moment).unwrap().format("%m-%dT%H:%M%:z").to_string();
    scheduled_times(&cron, zone, micros(after), micros(to)).into_iter().map(text).collect()
}

#[test]
fn days_and_weekdays() {
    let utc = |schedule, after, to| shown(schedule, Tz::UTC, after, to);
    assert_eq!(
        utc("15 1 * * *", "2026-03-01T01:15:00Z", "2026-03-03T01:15:00Z"),
        ["03-02T01:15+00:00", "03-03T01:15+00:00"]
    );
    // 2026-03-01 is a Sunday; with both fields given, either day matches.
    assert_eq!(
        utc("0 0 3 * sun", "2026-02-28T12:00:00Z", "2026-03-09T00:00:00Z"),
        ["03-01T00:00+00:00", "03-03T00:00+00:00", "03-08T00:00+00:00"]
    );
    assert_eq!(utc("0 0 */2 * 7", "2026-02-28T12:00:00Z", "2026-03-09T00:00:00Z"), ["03-01T00:00+00:00"]);
    assert_eq!(
        utc("50/5 6-7/1 2 3 *", "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z"),
        ["03-02T06:50+00:00", "03-02T06:55+00:00", "03-02T07:50+00:00", "03-02T07:55+00:00"]
    );
    assert_eq!(utc("0 12 29 2 *", "2096-03-01T00:00:00Z", "2104-03-01T00:00:00Z"), ["02-29T12:00+00:00"]);
    assert!(utc("0 0 31 4 *", "2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z").is_empty());
}

#[test]
fn a_day_of_23_hours_runs_what_it_skips() {
    let paris = |schedule| shown(schedule, Tz::Europe__Paris, "2026-03-28T22:00:00Z", "2026-03-29T03:00:00Z");
    assert_eq!(paris("30 2 * * *"), ["03-29T03:30+02:00"]);
    assert_eq!(
        paris("30 * * * *"),
        ["03-28T23:30+01:00", "03-29T00:30+01:00", "03-29T01:30+01:00", "03-29T03:30+02:00", "03-29T04:30+02:00"]
    );
    let sao_paulo = shown("0 0 * * *", Tz::America__Sao_Paulo, "2018-11-03T12:00:00Z", "2018-11-05T12:00:00Z");
    assert_eq!(sao_paulo, ["11-04T01:00-02:00", "11-05T00:00-02:00"]);
}

#[test]
fn a_day_of_25_hours_runs_once_what_it_has_twice() {
    let paris = |schedule| shown(schedule, Tz::Europe__Paris, "2026-10-24T23:00:00Z", "2026-10-25T02:00:00Z");
    assert_eq!(paris("30 2 * * *"), ["10-25T02:30+02:00"]);
    assert_eq!(paris("30 * * * *"), ["10-25T01:30+02:00", "10-25T02:30+02:00", "10-25T02:30+01:00"]);
}

#[test]
fn what_was_missed() {
    let cron = Cron::parse("0 * * * *").unwrap();
    let now = micros("2026-05-02T12:30:00Z");
    let hours =
        |window: i64, last: Option<&str>| missed(&cron, Tz::UTC, window * 3_600_000_000, last.map(micros), now).len();
    assert_eq!(hours(24, Some("2026-05-02T09:00:00Z")), 3);
    assert_eq!(hours(24, Some("2026-05-02T08:59:59Z")), 4);
    assert_eq!(hours(2, Some("2026-05-01T00:00:00Z")), 2);
    assert_eq!(hours(24, None), 0);
    assert_eq!(hours(24, Some("2026-05-02T12:30:00Z")), 0);
}

#[test]
fn what_is_run_now() {
    let shown = |schedule: &str, catch_up, window: i64, last: Option<&str>, now: &str| -> Vec<String> {
        let cron = Cron::parse(schedule).unwrap();
        let found = to_run(&cron, Tz::UTC, catch_up, window * 3_600_000_000, last.map(micros), micros(now));
        found.iter().map(|moment| Tz::UTC.timestamp_micros(*moment).unwrap().format("%dT%H:%M").to_string()).collect()
    };
    let hourly = |catch_up, last, now| shown("0 * * * *", catch_up, 24, last, now);
    let last = Some("2026-05-02T09:00:01Z");
    assert_eq!(hourly(CatchUp::All, last, "2026-05-02T12:00:01Z"), ["02T10:00", "02T11:00", "02T12:00"]);
    assert_eq!(hourly(CatchUp::All, last, "2026-05-02T11:59:59Z"), ["02T10:00", "02T11:00"]);
    assert_eq!(hourly(CatchUp::Latest, last, "2026-05-02T12:30:00Z"), ["02T12:00"]);
    // Only the current minute, and not a minute later.
    assert_eq!(hourly(CatchUp::None, last, "2026-05-02T12:00:59Z"), ["02T12:00"]);
    assert!(hourly(CatchUp::None, last, "2026-05-02T12:01:00Z").is_empty());
    for catch_up in [CatchUp::All, CatchUp::Latest, CatchUp::None] {
        // A job that never ran has missed nothing.
        assert_eq!(hourly(catch_up, None, "2026-05-02T12:00:59Z"), ["02T12:00"]);
        assert!(hourly(catch_up, None, "2026-05-02T12:01:00Z").is_empty());
        // A run started by hand in the minute counts.
        assert!(hourly(catch_up, Some("2026-05-02T12:00:00Z"), "2026-05-02T12:00:01Z").is_empty());
    }
    // Of more times than are listed, the last; and one far back.
    let last = Some("2026-01-01T00:00:00Z");
    assert_eq!(shown("* * * * *", CatchUp::Latest, 24 * 365, last, "2026-05-02T12:00:01Z"), ["02T12:00"]);
    assert_eq!(shown("0 0 3 2 *", CatchUp::Latest, 24 * 365, last, "2026-05-02T12:00:01Z"), ["03T00:00"]);
    assert!(shown("0 0 3 2 *", CatchUp::Latest, 24, last, "2026-05-02T12:00:01Z").is_empty());
}

#[test]
fn due_in_its_minute_only() {
    let cron = Cron::parse("15 1 * * *").unwrap();
    let due = |time| is_due(&cron, Tz::Europe__Paris, micros(time));
    assert!(due("2026-06-01T23:15:00Z") && due("2026-06-01T23:15:59.999Z"));
    assert!(!due("2026-06-01T23:14:59.999Z") && !due("2026-06-01T23:16:00Z") && !due("2026-06-01T01:15:00Z"));
}

#[test]
fn minutes_of_other_zones() {
    let cron = Cron::parse("10 1 * * *").unwrap();
    let now = micros("2026-06-01T00:00:00Z");
    assert_eq!(minutes_elsewhere(&cron, Tz::Europe__Paris, Tz::UTC, now), [10]);
    assert_eq!(minutes_elsewhere(&cron, Tz::Asia__Kolkata, Tz::UTC, now), [40]);
    assert_eq!(minutes_elsewhere(&cron, Tz::Australia__Lord_Howe, Tz::UTC, now), [10, 40]);
}
