use chrono::{DateTime, NaiveDate, NaiveDateTime};
use chrono_tz::{Australia, Europe, Tz};
use proptest::prelude::*;

use crate::time::format::FormatFault;
use crate::time::stamp::TimeFault;
use crate::time::zone::ZoneCache;
use crate::time::{Clock, TimeRule};

fn micros(format: Option<&str>, zone: Option<Tz>, text: &str) -> Result<i64, TimeFault> {
    let rule = TimeRule::timestamp(format, zone, false).unwrap();
    let mut clock = Clock::default();
    let stamp = rule.stamp(text.as_bytes(), &mut clock);
    let slow = stamp.map(|stamp| stamp.micros);
    let padded = format!("{text},{}", " ".repeat(40));
    for _ in 0..2 {
        let fast = rule.short_micros(padded.as_bytes(), text.len(), &mut clock);
        assert!(fast.is_none_or(|value| Ok(value) == slow), "{text} {fast:?} {slow:?}");
        // What is to be counted is seen by the complete way only.
        let counted = stamp.is_ok_and(|stamp| stamp.repeated || stamp.cut);
        assert!(!counted || fast.is_none(), "{text}");
    }
    slow
}

fn instant(text: &str) -> Result<i64, TimeFault> {
    Ok(DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros())
}

#[test]
fn hours_of_offsets_may_have_one_digit() {
    let read = |format: &str, text: &str| micros(Some(format), None, text);
    for (text, wanted) in [
        ("2024-01-14 22:00 GMT+1", "2024-01-14T22:00:00+01:00"),
        ("2024-01-14 22:00 GMT-5:30", "2024-01-14T22:00:00-05:30"),
        ("2024-01-14 22:00 GMT+0100", "2024-01-14T22:00:00+01:00"),
        ("2024-01-14 22:00 GMTZ", "2024-01-14T22:00:00Z"),
    ] {
        assert_eq!(read("%Y-%m-%d %H:%M GMT%-z", text), instant(wanted), "{text}");
    }
    assert_eq!(read("%Y-%m-%d %H:%M GMT%z", "2024-01-14 22:00 GMT+1"), Err(TimeFault::Form));
}

#[test]
fn rfc_3339() {
    for text in [
        "2017-07-26T00:15:00Z",
        "2017-07-26 00:15:00Z",
        "2017-07-26T00:15:00.123456Z",
        "2017-07-26T00:15:00.5+02:00",
        "1969-12-31T23:59:59.999Z",
        "0001-01-01T00:00:00Z",
        "0000-12-31T23:00:00-01:00",
        "1677-09-20T00:00:00Z",
        "2262-04-11T23:47:16.854776Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        assert_eq!(micros(None, Some(Europe::Paris), text), instant(text), "{text}");
    }
    assert_eq!(micros(None, None, "2017-07-26 00:15:00"), instant("2017-07-26T00:15:00Z"));
    assert_eq!(micros(None, Some(Europe::Paris), "2017-07-26 00:15:00.25"), instant("2017-07-26T00:15:00.25+02:00"));
    assert_eq!(micros(None, None, "2017-07-26T00:15:00.1234567899Z"), instant("2017-07-26T00:15:00.123456Z"));
    for bad in [
        "",
        "2017-07-26",
        "2017-02-29T00:00:00Z",
        "2017-13-01T00:00:00Z",
        "2017-07-26T24:00:01Z",
        "2017-07-26T25:00:00Z",
        "2017-07-26T00:60:00Z",
        "2017-07-26T00:15:60Z",
        "2017-07-26T23:59:61Z",
        "2017-07-26T23:59:60+01:00",
        "2017-07-26T00:15:00Zx",
        "2017-07-26T00:15:00.Z",
        "17-07-26T00:15:00Z",
    ] {
        assert_eq!(micros(None, None, bad), Err(TimeFault::Form), "{bad}");
    }
}

#[test]
fn the_end_of_an_interval_is_not_read() {
    let format = Some("%d.%m.%Y %H:%M - %*");
    assert_eq!(micros(format, None, "01.02.2020 23:00 - 02.02.2020 00:00"), instant("2020-02-01T23:00:00Z"));
    assert_eq!(micros(format, None, "01.02.2020 23:00 - "), Err(TimeFault::Form));
    assert_eq!(micros(format, None, "01.02.2020 23:00"), Err(TimeFault::Form));
}

#[test]
fn times_that_queries_cannot_work_with() {
    for (format, text) in [
        (None, "0000-03-01T00:00:00Z"),
        (None, "0000-12-31T23:59:59Z"),
        (None, "0001-01-01T00:00:00+00:01"),
        (None, "9999-12-31T23:59:59-05:30"),
        (Some("s"), "99999999999999999"),
        (Some("ms"), "253402300800000"),
        (Some("us"), "-62135596800000001"),
        (Some("%s"), "9223372036854775807"),
    ] {
        assert_eq!(micros(format, Some(Europe::Paris), text), Err(TimeFault::Range), "{text}");
    }
}

#[test]
fn midnight_is_written_in_two_ways() {
    let next = instant("2017-07-27T00:00:00Z");
    assert_eq!(micros(None, None, "2017-07-26T24:00:00Z"), next);
    assert_eq!(micros(Some("%Y%m%d%H%M"), None, "201707262400"), next);
    assert_eq!(
        micros(Some("%Y-%m-%d %H:%M"), Some(Europe::Paris), "2021-03-27 24:00"),
        instant("2021-03-27T23:00:00Z")
    );
    assert_eq!(micros(Some("%d/%m/%Y %H:%M:%S"), None, "31/12/2020 24:00:00"), instant("2021-01-01T00:00:00Z"));
    assert_eq!(micros(None, None, "2017-02-30T24:00:00Z"), Err(TimeFault::Form));
}

#[test]
fn iso_8601_times() {
    assert_eq!(micros(None, None, "2021-04-01T10:00"), instant("2021-04-01T10:00:00Z"));
    assert_eq!(micros(None, None, "2021-04-01T10:00+02:00"), instant("2021-04-01T08:00:00Z"));
    assert_eq!(micros(None, None, "2021-04-01 10:00:20,5"), instant("2021-04-01T10:00:20.5Z"));
    assert_eq!(
        micros(Some("%Y-%m-%d %H:%M:%S,%f"), None, "2021-04-01 10:00:20,25"),
        instant("2021-04-01T10:00:20.25Z")
    );
}

#[test]
fn epoch_numbers_with_a_fraction() {
    let at = instant("2019-02-25T21:21:01.428571Z");
    assert_eq!(micros(Some("s"), None, "1551129661.4285717"), at);
    assert_eq!(micros(Some("s"), None, "1551129661,428571"), at);
    assert_eq!(micros(Some("ms"), None, "1551129661428.571"), at);
    assert_eq!(micros(Some("s"), None, "1.551129661e9"), instant("2019-02-25T21:21:01Z"));
    assert_eq!(micros(Some("excel"), None, "44287.0104166667"), instant("2021-04-01T00:15:00Z"));
    assert_eq!(micros(Some("excel"), Some(Europe::Paris), "44287"), instant("2021-03-31T22:00:00Z"));
    assert_eq!(micros(Some("s"), None, "1.5.2"), Err(TimeFault::Form));
}

#[test]
fn names_of_zones_days_and_months() {
    let cest = |zone, text| micros(Some("%Y-%m-%d %H:%M %Z"), zone, text);
    for zone in [None, Some(Europe::Paris), Some(chrono_tz::America::New_York)] {
        assert_eq!(cest(zone, "2021-10-31 02:00 CEST"), instant("2021-10-31T00:00:00Z"), "{zone:?}");
        assert_eq!(cest(zone, "2021-10-31 02:00 CET"), instant("2021-10-31T01:00:00Z"), "{zone:?}");
    }
    assert_eq!(cest(None, "2021-10-31 02:00 IST"), Err(TimeFault::Form));
    assert_eq!(cest(Some(chrono_tz::Asia::Kolkata), "2021-10-31 02:00 IST"), instant("2021-10-30T20:30:00Z"));
    let script = "%a %b %d %Y %H:%M:%S GMT%z";
    assert_eq!(micros(Some(script), None, "Thu Apr 01 2021 01:30:00 GMT+0200"), instant("2021-03-31T23:30:00Z"));
    assert_eq!(micros(Some("%d %b %Y"), None, "3 févr. 2021"), instant("2021-02-03T00:00:00Z"));
    assert_eq!(micros(Some("%d. %B %Y %H:%M"), None, "3. März 2021 07:00"), instant("2021-03-03T07:00:00Z"));
}

#[test]
fn inputs_of_the_first_reader_keep_their_rules() {
    let stamp = |format, text: &str| {
        let rule = TimeRule::timestamp(format, None, true).unwrap();
        let padded = format!("{text}{}", " ".repeat(40));
        let fast = rule.short_micros(padded.as_bytes(), text.len(), &mut Clock::default());
        assert_eq!(fast, None, "{text}");
        rule.stamp(text.as_bytes(), &mut Clock::default())
    };
    for (format, text) in [
        (None, "2017-07-26T24:00:00Z"),
        (None, "2017-07-26T10:00"),
        (None, "2017-07-26T10:00:00,5"),
        (Some("s"), "1551129661.5"),
    ] {
        assert_eq!(stamp(format, text), Err(TimeFault::Form), "{text}");
    }
}

#[test]
fn a_leap_second_is_the_first_of_the_next_day() {
    let midnight = instant("2017-01-01T00:00:00Z");
    assert_eq!(micros(None, None, "2016-12-31T23:59:60Z"), midnight);
    assert_eq!(micros(None, None, "2016-12-31 23:59:60"), midnight);
    assert_eq!(micros(None, None, "2017-01-01T00:59:60+01:00"), midnight);
    assert_eq!(micros(None, Some(Europe::Paris), "2017-01-01 00:59:60"), midnight);
    assert_eq!(micros(None, Some(Europe::Paris), "2016-12-31 23:59:60"), Err(TimeFault::Form));
    assert_eq!(micros(None, None, "2016-12-31T23:59:60.25Z"), instant("2017-01-01T00:00:00.25Z"));
    assert_eq!(micros(Some("%Y%m%d%H%M%S"), None, "20161231235960"), midnight);
}

#[test]
fn what_is_not_quite_as_written_is_marked() {
    let stamp = |format, zone, text: &str| {
        let rule = TimeRule::timestamp(format, zone, false).unwrap();
        let stamp = rule.stamp(text.as_bytes(), &mut Clock::default()).unwrap();
        (stamp.repeated, stamp.cut)
    };
    assert_eq!(stamp(None, Some(Europe::Paris), "2021-10-31 02:30:00"), (true, false));
    assert_eq!(stamp(None, Some(Europe::Paris), "2021-10-31 03:00:00"), (false, false));
    assert_eq!(stamp(None, Some(Europe::Paris), "2021-10-31T02:30:00Z"), (false, false));
    assert_eq!(stamp(None, None, "2021-10-31T02:30:00.1234567Z"), (false, true));
    assert_eq!(stamp(None, None, "2021-10-31T02:30:00.123456000Z"), (false, false));
    assert_eq!(stamp(Some("%Y-%m-%d %H:%M:%S.%9f"), None, "2021-10-31 02:30:00.000000001"), (false, true));
    assert_eq!(stamp(Some("%Y-%m-%d %H:%M:%S.%9f"), None, "2021-10-31 02:30:00.000001000"), (false, false));
    assert_eq!(
        micros(Some("%Y-%m-%d %H:%M:%S.%9f"), None, "2021-10-31 02:30:00.000001234"),
        instant("2021-10-31T02:30:00.000001Z")
    );
    assert_eq!(stamp(Some("ns"), None, "1577836800000000001"), (false, true));
    assert_eq!(stamp(Some("ns"), None, "1577836800000001000"), (false, false));
}

#[test]
fn formats() {
    let cases = [
        ("%d/%m/%Y %H:%M", "26/07/2017 00:15", "2017-07-26T00:15:00Z"),
        ("%d/%m/%Y %H:%M", "6/7/2017 9:15", "2017-07-06T09:15:00Z"),
        ("%Y%m%d%H%M%S%3f", "20150301124501003", "2015-03-01T12:45:01.003Z"),
        ("%d-%b-%y %I:%M %p", "26-Jul-17 12:15 am", "2017-07-26T00:15:00Z"),
        ("%d/%m/%Y %I:%M:%S %p", "13/3/2023 1:05:00 p. m.", "2023-03-13T13:05:00Z"),
        ("%d/%m/%Y %I:%M:%S %p", "13/3/2023 1:05:00\u{a0}a.\u{202f}m.", "2023-03-13T01:05:00Z"),
        ("%d/%m/%Y %I:%M %p", "13/3/2023 1:05  P.M.", "2023-03-13T13:05:00Z"),
        ("%d/%m/%Y %I:%M%p", "13/3/2023 12:05PM.", "2023-03-13T12:05:00Z"),
        ("%d %B %Y, %I %p", "1 september 1999, 1 PM", "1999-09-01T13:00:00Z"),
        ("%s", "-1", "1969-12-31T23:59:59Z"),
        ("%s%.f", "1426535612.045", "2015-03-16T19:53:32.045Z"),
        ("%FT%T%.f%z", "2017-07-26T00:15:00-0130", "2017-07-26T00:15:00-01:30"),
        ("%Y-%m-%d %H:%M:%S.%f", "2017-07-26 00:15:00.5", "2017-07-26T00:15:00.5Z"),
        ("100%% %F", "100% 2017-07-26", "2017-07-26T00:00:00Z"),
        ("ms", "1426535612045", "2015-03-16T19:53:32.045Z"),
        ("%Y-%m", "1749-01", "1749-01-01T00:00:00Z"),
        ("%b %y", "Sep 07", "2007-09-01T00:00:00Z"),
        ("%Y", "1995", "1995-01-01T00:00:00Z"),
        ("%Y-Q%q", "1995-Q3", "1995-07-01T00:00:00Z"),
        ("%b-%d-%Y", "Jan-1-1995", "1995-01-01T00:00:00Z"),
        ("ns", "-1", "1969-12-31T23:59:59.999999Z"),
    ];
    for (format, text, expected) in cases {
        assert_eq!(micros(Some(format), None, text), instant(expected), "{format}");
    }
    assert_eq!(micros(Some("%d/%m/%Y"), None, "31/04/2017"), Err(TimeFault::Form));
    assert_eq!(micros(Some("%YQ%q"), None, "1995Q5"), Err(TimeFault::Form));
    assert_eq!(micros(Some("%Y-%m"), None, "1995-13"), Err(TimeFault::Form));
    let fault = |format| TimeRule::timestamp(Some(format), None, false).unwrap_err();
    assert_eq!(fault("%Q"), FormatFault::Item("Q".to_owned()));
    assert_eq!(fault("%Y-%m-%d%*%H"), FormatFault::BehindRest);
    assert_eq!(fault("%Y %"), FormatFault::Unfinished);
    for no_moment in ["%Y-%m %H", "%m-%d", "%Y %d", "%Y-%m Q%q", "%H:%M", "plain"] {
        assert_eq!(fault(no_moment), FormatFault::NoDay, "{no_moment}");
    }
    assert_eq!(fault("%F %I:%M"), FormatFault::HalfClock);
}

#[test]
fn clock_changes() {
    let paris = |text| micros(Some("%Y-%m-%d %H:%M"), Some(Europe::Paris), text);
    assert_eq!(paris("2021-03-28 01:59"), instant("2021-03-28T00:59:00Z"));
    assert_eq!(paris("2021-03-28 02:00"), Err(TimeFault::Skipped(Europe::Paris)));
    assert_eq!(paris("2021-03-28 02:59"), Err(TimeFault::Skipped(Europe::Paris)));
    assert_eq!(paris("2021-03-28 03:00"), instant("2021-03-28T01:00:00Z"));
    assert_eq!(paris("2021-10-31 01:59"), instant("2021-10-30T23:59:00Z"));
    assert_eq!(paris("2021-10-31 02:30"), instant("2021-10-31T00:30:00Z"));
    assert_eq!(paris("2021-10-31 03:00"), instant("2021-10-31T02:00:00Z"));
}

#[test]
fn dates() {
    let date = |text: &str| TimeRule::date(None, false).unwrap().days(text.as_bytes());
    assert_eq!(date("1970-01-02"), Ok(1));
    assert_eq!(date("2000-02-29"), Ok(11_016));
    assert_eq!(date("2001-02-29"), Err(TimeFault::Form));
}

proptest! {
    #[test]
    fn the_calendar_is_chronos(days in -106_650i32..106_750, second in 0i64..86_400) {
        let day = NaiveDate::from_epoch_days(days).unwrap();
        let moment: NaiveDateTime = day.and_hms_opt(0, 0, 0).unwrap() + chrono::Duration::seconds(second);
        let text = moment.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        prop_assert_eq!(micros(None, None, &text), Ok(moment.and_utc().timestamp_micros()));
    }

    #[test]
    fn cached_offsets_are_the_zones_own(seconds in -5_000_000_000i64..5_000_000_000, lord_howe: bool) {
        let zone = if lord_howe { Australia::Lord_Howe } else { Europe::Paris };
        let naive = DateTime::from_timestamp(seconds, 0).unwrap().naive_utc();
        let expected = chrono::TimeZone::from_local_datetime(&zone, &naive).earliest().map(|at| at.timestamp());
        let mut cache = ZoneCache::default();
        for _ in 0..2 {
            let offset = cache.meant(zone, seconds).unwrap().offset();
            prop_assert_eq!(offset.map(|offset| seconds - i64::from(offset)), expected);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        for format in [None, Some("%d/%m/%Y %H:%M"), Some("%s%.f"), Some("%b %e %Y %I%p %z"), Some("us")] {
            let rule = TimeRule::timestamp(format, Some(Europe::Paris), false).unwrap();
            let mut clock = Clock::default();
            let slow = rule.stamp(&text, &mut clock).map(|stamp| stamp.micros);
            let mut padded = text.clone();
            padded.push(b',');
            padded.extend([b' '; 40]);
            let fast = rule.short_micros(&padded, text.len(), &mut clock);
            prop_assert!(fast.is_none_or(|value| Ok(value) == slow));
        }
    }
}
