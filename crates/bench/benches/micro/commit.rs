//! Commits: makes, checks, writes and syncs the next version.

use std::collections::{BTreeMap, BTreeSet};

use divan::{Bencher, black_box};
use tidetable_bench::{Bench, Shape};
use tidetable_source::{ContentHash, ReaderVersion, TextShape};
use tidetable_store::{Input, Sst, Version, VersionEdit, ulid_text};

use crate::files;

const DAY: i64 = 86_400_000_000;
const DAYS: usize = 365;

fn sst(id: u128) -> Sst {
    Sst {
        id: ulid_text(id),
        seqno: 0,
        level: 0,
        bytes: 2_600_000,
        checksum: format!("{id:032x}"),
        rows: 20_000,
        cells: 1_940_000,
        first_key: b"0000000001#20170726".to_vec(),
        last_key: b"0000020000#20170726".to_vec(),
        min_timestamp: Some(0),
        max_timestamp: Some(DAY - 1),
        multi_window: None,
        bounds: None,
        emptied: false,
    }
}

fn input(number: usize) -> Input {
    Input {
        input_seqno: number as u64 + 1,
        path: format!("data/{number:04}.csv"),
        size: 65_000_000,
        version: number.to_string(),
        hash: ContentHash(number as u128),
        read: 1_920_000,
        rejected: 0,
        more_lines_rejected: 0,
        reader: ReaderVersion::CURRENT,
        breaks: Vec::new(),
        shape: TextShape::default(),
        days: vec![number as i32],
        windows: vec![number as i64 * DAY],
        owed: Vec::new(),
    }
}

/// A version of `ssts` SSTs over at most a year of days, with one input per day.
fn version(bench: &Bench, ssts: usize) -> Version {
    let mut edit = VersionEdit { inputs: (0..DAYS.min(ssts)).map(input).collect(), ..VersionEdit::default() };
    for at in 0..ssts {
        let day = at % DAYS;
        edit.ssts.entry(day as i64 * DAY).or_default().push(sst(at as u128 + 1));
        edit.days.entry(day as i64 * DAY).or_default().insert(day as i32);
    }
    bench.table().commit(Version::empty(bench.identity()), &edit, bench.ids(), 0).unwrap()
}

/// Replaces the SSTs of a window by one, so that the number of SSTs hardly changes.
fn commit_one(bench: &Bench, current: &Version, next: u128) -> Version {
    let edit = VersionEdit {
        base: current.number,
        rebuilt: vec![0],
        ssts: BTreeMap::from([(0, vec![sst(next)])]),
        days: BTreeMap::from([(0, BTreeSet::from([0]))]),
        ..VersionEdit::default()
    };
    bench.table().commit(black_box(current.clone()), &edit, bench.ids(), 0).unwrap()
}

/// A commit to a table of `ssts` SSTs. Three of the samples also write a checkpoint: they are the slowest, and count
/// in the mean.
#[divan::bench(args = [10, 1_000, 10_000], sample_count = 96, sample_size = 1)]
fn commit(bencher: Bencher, ssts: usize) {
    let folder = files::folder(&format!("commit-{ssts}"));
    let bench = Bench::new(Shape::Meter, &folder, &folder).unwrap();
    let mut current = version(&bench, ssts);
    let mut next = 1u128 << 64;
    bencher.bench_local(|| {
        next += 1;
        current = commit_one(&bench, &current, next);
    });
}

/// Reads the newest version from disk, with the greatest number of deltas since its checkpoint.
#[divan::bench(args = [10, 1_000, 10_000], sample_count = 30, sample_size = 1)]
fn latest(bencher: Bencher, ssts: usize) {
    let folder = files::folder(&format!("latest-{ssts}"));
    let bench = Bench::new(Shape::Meter, &folder, &folder).unwrap();
    let mut current = version(&bench, ssts);
    for next in 1..=62 {
        current = commit_one(&bench, &current, next << 64);
    }
    bencher.bench_local(|| bench.table().latest().unwrap().unwrap().number);
}
