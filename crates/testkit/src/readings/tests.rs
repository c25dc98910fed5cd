use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDateTime, TimeDelta};

use super::*;
use crate::{DUPLICATES, GAPS, LATE};

fn readings(meters: u32, days: u32, seed: u64, arrival: Arrival) -> Readings {
    let first = NaiveDate::from_ymd_opt(2017, 7, 26).unwrap();
    Readings { meters, per_day: 24, first, days, seed, arrival }
}

fn texts(readings: &Readings) -> (Vec<String>, Written) {
    let folder = tempfile::tempdir().unwrap();
    let written = readings.write_csv(folder.path()).unwrap();
    let texts = written.paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    (texts, Written { paths: Vec::new(), ..written })
}

/// (meter, time, kWh) of a line.
fn fields(line: &str) -> (u32, NaiveDateTime, f64) {
    let fields: Vec<&str> = line.split(',').collect();
    let time = NaiveDateTime::parse_from_str(fields[1], "%Y-%m-%dT%H:%M:%SZ").unwrap();
    (fields[0].parse().unwrap(), time, fields[2].parse().unwrap())
}

fn lines(texts: &[String]) -> impl Iterator<Item = &str> {
    texts.iter().flat_map(|text| text.lines().skip(1))
}

#[test]
fn a_seed_decides_the_bytes_and_the_sums_are_theirs() {
    for arrival in [Arrival::Ordered, Arrival::Irregular] {
        let (text, written) = texts(&readings(50, 3, 1, arrival));
        assert_eq!((text.clone(), written.clone()), texts(&readings(50, 3, 1, arrival)));
        assert_ne!(text, texts(&readings(50, 3, 2, arrival)).0);
        let sum = |sum: f64, line: &str| sum + fields(line).2;
        assert!((lines(&text).fold(0.0, sum) - written.sum(0)).abs() < 1e-6);
        let different: BTreeSet<&str> = lines(&text).collect();
        assert!((different.iter().copied().fold(0.0, sum) - written.records_sum(0)).abs() < 1e-6);
        assert_eq!((lines(&text).count(), different.len()), (written.rows as usize, written.records() as usize));
    }
}

#[test]
fn ordered_readings_have_ascending_ids_and_neither_gaps_nor_copies() {
    let (text, written) = texts(&readings(7, 3, 1, Arrival::Ordered));
    assert!(text[0].starts_with("meter,ts,kwh\n1,2017-07-26T00:00:00Z,0."), "{}", text[0]);
    assert_eq!((written.rows, written.duplicates, written.late, written.gaps), (7 * 24 * 3, 0, 0, 0));
    assert_eq!(written.ids, (1..=7).collect::<Vec<u32>>());
    let keys: Vec<_> = lines(&text).map(|line| (fields(line).1, fields(line).0)).collect();
    assert!(keys.is_sorted());
}

#[test]
fn irregular_readings_are_late_twice_or_missing_at_their_rates() {
    let made = readings(700, 8, 3, Arrival::Irregular);
    let (text, written) = texts(&made);
    let count = made.count() as f64;
    let close = |found: u64, rate: f64| (found as f64 / count / rate - 1.0).abs() < 0.25;
    assert!(close(written.late, LATE) && close(written.duplicates, DUPLICATES) && close(written.gaps, GAPS));
    assert_eq!(written.records() + written.gaps, made.count());
    let ids: BTreeSet<u32> = written.ids.iter().copied().collect();
    assert_eq!((ids.len(), ids.iter().all(|&id| id <= 999_999)), (700, true));
    let (mut now, mut found, mut late, mut delays) = (NaiveDateTime::MIN, BTreeMap::new(), 0, BTreeSet::new());
    for line in lines(&text) {
        let (meter, time, kwh) = fields(line);
        assert!(ids.contains(&meter));
        let is_copy = match found.insert((meter, time), kwh) {
            Some(first) => {
                assert_eq!(first.to_bits(), kwh.to_bits(), "{line}");
                assert!(time <= now, "{line}");
                true
            }
            None => false,
        };
        if time < now && !is_copy {
            late += 1;
            delays.insert(now - time);
        }
        now = now.max(time);
    }
    // Late readings of the last instant come after it, at no later time.
    assert!(late <= written.late && late + 30 > written.late, "{late} {}", written.late);
    assert_eq!(found.len() as u64, written.records());
    let (least, most) = (delays.first().unwrap(), delays.last().unwrap());
    assert!(*least <= TimeDelta::hours(1) && *most > TimeDelta::days(2) && *most <= TimeDelta::days(3));
    // Each file holds its day, and late readings of the days before.
    for (day, text) in (0..).zip(&text) {
        let days: BTreeSet<i64> =
            text.lines().skip(1).map(|line| (made.date(day) - fields(line).1.date()).num_days()).collect();
        assert!(
            days.iter().all(|&before| (0..=3).contains(&before)) && days.len() as u32 == day.min(3) + 1,
            "{days:?}"
        );
    }
}

#[test]
fn every_instant_has_an_order_of_its_own() {
    let (text, written) = texts(&readings(200, 2, 1, Arrival::Irregular));
    let mut instants: BTreeMap<NaiveDateTime, Vec<u32>> = BTreeMap::new();
    lines(&text).map(fields).for_each(|(meter, time, _)| instants.entry(time).or_default().push(meter));
    let orders: Vec<&Vec<u32>> = instants.values().collect();
    assert_eq!(orders.len(), 48);
    assert!(orders.iter().all(|order| !order.is_sorted()));
    let rank: BTreeMap<u32, usize> = orders[0].iter().enumerate().map(|(at, &id)| (id, at)).collect();
    for order in &orders[1..] {
        let ranks: Vec<usize> = order.iter().filter_map(|id| rank.get(id).copied()).collect();
        let rises = ranks.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64 / ranks.len() as f64;
        assert!((0.35..0.65).contains(&rises), "{rises}");
    }
    assert_eq!(written.ids.len(), 200);
}
