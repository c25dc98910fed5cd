use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{GAPS, LATE};

fn metrics(hosts: u32, instants: u32, arrival: Arrival) -> Metrics {
    Metrics { hosts, instants, first: NaiveDate::from_ymd_opt(2015, 3, 16).unwrap(), seed: 1, arrival }
}

/// The lines of all files, without headers.
fn lines(metrics: &Metrics) -> (Vec<String>, Written) {
    let folder = tempfile::tempdir().unwrap();
    let written = metrics.write_csv(folder.path()).unwrap();
    assert_eq!(written.paths.len(), 10);
    let texts = written.paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
    let lines = texts.flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<String>>()).collect();
    (lines, Written { paths: Vec::new(), ..written })
}

#[test]
fn samples_have_their_columns_and_their_sums() {
    for arrival in [Arrival::Ordered, Arrival::Irregular] {
        let (lines, written) = lines(&metrics(30, 25, arrival));
        let (mut sums, mut seen) = (vec![[0.0; 2]; 100], BTreeSet::new());
        for line in &lines {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!((fields.len(), fields[1].len()), (102, "2015-03-16T00:00:00.000Z".len()));
            assert_eq!(fields[2].split('.').nth(1).map(str::len), Some(2), "{line}");
            let is_new = seen.insert(line.as_str());
            for (sum, field) in sums.iter_mut().zip(&fields[2..]) {
                let value = field.parse::<f64>().unwrap();
                sum[0] += value;
                sum[1] += if is_new { value } else { 0.0 };
            }
        }
        assert_eq!((lines.len(), seen.len()), (written.rows as usize, written.records() as usize));
        for (at, sum) in sums.iter().enumerate() {
            assert!((sum[0] - written.sum(at)).abs() <= sum[0] * 1e-12, "{at}: {sum:?} {}", written.sum(at));
            assert!((sum[1] - written.records_sum(at)).abs() <= sum[1] * 1e-12, "{at}");
        }
    }
}

#[test]
fn ordered_samples_are_of_all_machines_at_each_minute() {
    let made = metrics(3, 25, Arrival::Ordered);
    let (lines, written) = lines(&made);
    assert_eq!((written.rows, made.cells(), written.late, written.gaps), (75, 7500, 0, 0));
    for (row, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!("server{}.example.com,2015-03-16T00:{:02}:00.000Z,", row % 3, row / 3)),
            "{line}"
        );
    }
}

#[test]
fn irregular_samples_are_of_machines_with_a_zipf_distribution() {
    let made = metrics(100, 200, Arrival::Irregular);
    let (all, written) = lines(&made);
    assert_eq!((all.clone(), written.clone()), lines(&made));
    let count = made.cells() as f64 / 100.0;
    assert!((written.late as f64 / count / LATE - 1.0).abs() < 0.25);
    assert!((written.gaps as f64 / count / GAPS - 1.0).abs() < 0.25);
    // By machine, the rows by time; a time twice is a row twice.
    let mut hosts: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in &all {
        let (host, rest) = line.split_once(',').unwrap();
        let (time, values) = rest.split_once(',').unwrap();
        let earlier = hosts.entry(host).or_default().insert(time, values);
        assert!(earlier.is_none_or(|earlier| earlier == values), "{line}");
    }
    let mut counts: Vec<f64> = hosts.values().map(|rows| rows.len() as f64).collect();
    counts.sort_by(|one, other| other.total_cmp(one));
    assert!(
        (counts[0] / counts[1] - 2.0).abs() < 0.2 && (counts[0] / counts[9] - 10.0).abs() < 2.5,
        "{:?}",
        &counts[..10]
    );
    assert!(counts.len() == 100, "{}", counts.len());
    let counters = |values: &str| -> Vec<u64> {
        values.split(',').skip(FLOATS).take(COUNTERS).map(|value| value.parse().unwrap()).collect()
    };
    for rows in hosts.values() {
        let counters: Vec<Vec<u64>> = rows.values().map(|values| counters(values)).collect();
        assert!(counters.windows(2).all(|pair| pair[0].iter().zip(&pair[1]).all(|(one, other)| one <= other)));
    }
    let late = all.windows(2).filter(|pair| pair[0].split(',').nth(1) > pair[1].split(',').nth(1)).count() as u64;
    assert!(late > written.late / 2, "{late} rows are older than the one before");
}
