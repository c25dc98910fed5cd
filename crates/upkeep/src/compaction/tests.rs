use tidetable_store::version::{Compacted, MultiWindow, Replacement, Sst, Version, VersionEdit, WindowState};
use tidetable_store::version::{DeleteTarget, Tombstone};

use super::{CompactionExtent, CompactionReason};
use crate::compaction::extent::LeftReason;
use crate::compaction::join::{JoinPick, joins};
use crate::compaction::picker::{Pick, pick};

fn sst(id: &str, seqno: u64, first: &str, last: &str) -> Sst {
    Sst {
        id: id.to_owned(),
        seqno,
        level: 0,
        bytes: 1,
        checksum: String::new(),
        rows: 1,
        cells: 1,
        first_key: first.into(),
        last_key: last.into(),
        min_timestamp: None,
        max_timestamp: None,
        multi_window: None,
        bounds: None,
        emptied: false,
    }
}

fn dropped(prefix: &str, seqno: u64) -> Tombstone {
    let target = DeleteTarget::Prefix { prefix: prefix.into() };
    Tombstone { target, input_seqno: 1, seqno, version: 1, now: 0 }
}

/// A version of one window a day.
fn version(windows: Vec<Vec<Sst>>) -> Version {
    let identity: tidetable_store::version::TableIdentity = serde_json::from_value(serde_json::json!({
        "job": "j", "layout": "", "gc": {},
        "spec": { "name": "T", "row_key": "{id}", "window": "day", "granularity": "millis", "unpivot": [], "families": [] },
        "source": { "fields": [], "time": 0 },
    }))
    .unwrap();
    let windows = windows.into_iter().enumerate();
    let windows = windows.map(|(start, ssts)| WindowState { start: start as i64, days: [(0, 1)].into(), ssts });
    let mut version = Version::empty(identity);
    version.number = 1;
    version.windows = windows.collect();
    version
}

#[test]
fn windows_are_picked_from_the_manifest() {
    let mut found = version(vec![
        vec![sst("a", 0, "a", "m")],
        vec![sst("b", 1, "a", "m"), sst("c", 2, "b", "z")],
        vec![sst("d", 3, "a", "m"), sst("e", 3, "n", "z")],
        vec![],
    ]);
    let several = Pick { start: 1, reason: CompactionReason::SeveralSsts, ssts: 0..2 };
    assert_eq!(pick(&found, CompactionExtent::Needed, &[]).picked, std::slice::from_ref(&several));
    // Files of loads could be denser; files of compactions are dense.
    found.windows[2].ssts.iter_mut().for_each(|sst| sst.level = 1);
    let fresh = Pick { start: 0, reason: CompactionReason::Fresh, ssts: 0..1 };
    assert_eq!(pick(&found, CompactionExtent::Full, &[]).picked, [fresh, several.clone()]);
    // A tombstone applies to older SSTs that may hold its keys.
    found.tombstones = vec![dropped("b", 1), dropped("y", 4)];
    let hidden = |start, count| Pick { start, reason: CompactionReason::HiddenCells, ssts: 0..count };
    assert_eq!(pick(&found, CompactionExtent::Needed, &[]).picked, [hidden(0, 1), several.clone(), hidden(2, 2)]);
    found.tombstones.clear();
    found.table.gc = [("F".to_owned(), "maxversions=1".to_owned())].into();
    assert_eq!(pick(&found, CompactionExtent::Needed, &[]).picked, [hidden(0, 1), several, hidden(2, 2)]);
}

#[test]
fn a_window_is_left_for_a_reason() {
    let two = || vec![sst("b", 1, "a", "m"), sst("c", 2, "b", "z")];
    let shared = vec![of_days("d", 0, &[0, 1], MIB), sst("e", 4, "a", "z")];
    let mut found = version(vec![shared, two(), vec![], vec![sst("a", 0, "a", "m")]]);
    let left = |found: &Version, extent| pick(found, extent, &[]).left;

    // After a load, few runs are not worth a merge.
    let of_load = [(0, LeftReason::OneRun), (1, LeftReason::FewRuns), (2, LeftReason::NoSsts), (3, LeftReason::OneRun)];
    assert_eq!(left(&found, CompactionExtent::Due), of_load);
    let asked = [(0, LeftReason::NothingHidden), (2, LeftReason::NoSsts), (3, LeftReason::NothingHidden)];
    assert_eq!(left(&found, CompactionExtent::Needed), asked);
    // What is hidden in a window that shares files goes when those are joined again.
    found.tombstones = vec![dropped("b", 9)];
    assert_eq!(left(&found, CompactionExtent::Needed), [(0, LeftReason::SharesFiles), (2, LeftReason::NoSsts)]);
    // A join takes its windows, whatever else could be done with them.
    let joined = JoinPick { reason: CompactionReason::Settled, windows: vec![0, 1, 3] };
    assert_eq!(pick(&found, CompactionExtent::Needed, &[joined]).left, [(2, LeftReason::NoSsts)]);
}

#[test]
fn drops_and_files_have_orders_of_their_own() {
    let before = version(vec![vec![sst("a", 0, "a", "m")]]);
    let drop = |prefix: &str| DeleteTarget::Prefix { prefix: prefix.into() };
    let edit = VersionEdit { deletes: vec![drop("a"), drop("b")], base: 1, ..VersionEdit::default() };
    let next = before.apply(&edit, "c", 5).unwrap();
    assert_eq!(
        next.tombstones.iter().map(|drop| (drop.seqno, drop.version, drop.now)).collect::<Vec<_>>(),
        [(1, 2, 5), (2, 2, 5)]
    );
    let more = VersionEdit { ssts: [(0, vec![sst("b", 0, "a", "b")])].into(), base: 2, ..VersionEdit::default() };
    let next = next.apply(&more, "d", 6).unwrap();
    assert_eq!(next.windows[0].ssts[1].seqno, 3);
    // Files of a compaction stay older than appended ones, and may share a sequence number where they share no key.
    let put = |first: Sst, second: Sst| {
        let compacted = Compacted {
            replacements: vec![Replacement {
                replaced: vec!["a".to_owned()],
                ssts: vec![first, second],
                ..Replacement::default()
            }],
            ..Compacted::default()
        };
        next.apply(&VersionEdit { compacted: Some(compacted), base: 3, ..VersionEdit::default() }, "e", 7)
    };
    let done = put(sst("x", 2, "a", "c"), sst("y", 2, "d", "m")).unwrap();
    assert_eq!(done.windows[0].ssts.iter().map(|sst| sst.id.as_str()).collect::<Vec<_>>(), ["x", "y", "b"]);
    assert!(put(sst("x", 2, "a", "d"), sst("y", 2, "d", "m")).unwrap_err().contains("share keys"));
    assert!(put(sst("x", 4, "a", "c"), sst("y", 4, "d", "m")).unwrap_err().contains("is newer"));
}

#[test]
fn a_manifest_keeps_drops() {
    let mut found = version(vec![vec![sst("a", 0, "a", "m")]]);
    found.tombstones = vec![dropped("b", 1)];
    found.tombstones.push(Tombstone {
        target: DeleteTarget::Column {
            key: b"k\xff".to_vec(),
            family: "F".into(),
            qualifier: vec![],
            times: Some(i64::MIN..5),
        },
        ..dropped("", 2)
    });
    let bytes = tidetable_store::manifest::encode(&found).unwrap();
    assert_eq!(tidetable_store::manifest::decode(&bytes, 1).unwrap(), found);
    found.tombstones.reverse();
    assert!(tidetable_store::manifest::decode(&tidetable_store::manifest::encode(&found).unwrap(), 1).is_err());
}

/// A simulated table: loads and compactions add up bytes; all SSTs overlap, as for a table of meters.
struct Paper {
    version: Version,
    loaded: u64,
    written: u64,
}

impl Paper {
    fn new() -> Self {
        Self { version: version(Vec::new()), loaded: 0, written: 0 }
    }

    /// One load: bytes by window.
    fn load(&mut self, parts: &[(i64, u64)]) {
        for (start, bytes) in parts {
            let seqno = self.version.next_seqno();
            let fresh = Sst { bytes: *bytes, ..sst(&format!("{seqno}"), seqno, "a", "z") };
            self.version.window(*start).ssts.push(fresh);
            (self.loaded, self.written) = (self.loaded + bytes, self.written + bytes);
        }
    }

    /// Compacts until nothing is due, without joins; returns the number of rounds.
    fn compact(&mut self) -> usize {
        for round in 0..9 {
            let picks = pick(&self.version, CompactionExtent::Due, &[]).picked;
            if picks.is_empty() {
                return round;
            }
            for pick in picks.into_iter().rev() {
                let window = self.version.window(pick.start);
                let bytes = window.ssts[pick.ssts.clone()].iter().map(|sst| sst.bytes).sum();
                let last = window.ssts[pick.ssts.end - 1].clone();
                let merged = Sst { id: format!("{}'", last.id), bytes, level: last.level + 1, ..last };
                window.ssts.splice(pick.ssts, [merged]);
                self.written += bytes;
            }
            tidetable_store::version::invariants::check(&self.version).unwrap();
        }
        panic!("it never ends");
    }

    fn amplification(&self) -> f64 {
        self.written as f64 / self.loaded as f64
    }

    fn most_runs(&self) -> usize {
        self.version.windows.iter().map(|window| window.ssts.len()).max().unwrap()
    }
}

const MIB: u64 = 1 << 20;

/// `bytes` varied by up to a fifth, deterministically.
fn about(bytes: u64, at: i64) -> u64 {
    bytes * (80 + (at.unsigned_abs() * 7919) % 41) / 100
}

#[test]
fn thirty_daily_loads_are_written_few_times() {
    // Daily windows with late data: of a day, two days, a week.
    let mut days = Paper::new();
    for day in 10..40 {
        let late = [(day, 90), (day - 1, 7), (day - 2, 2), (day - 7, 1)];
        days.load(&late.map(|(start, share)| (start, about(share * MIB, day))));
        days.compact();
    }
    assert!(days.amplification() < 1.1 && days.most_runs() < 8, "{} {}", days.amplification(), days.most_runs());
    // One window for all loads.
    let mut month = Paper::new();
    for day in 0..30 {
        month.load(&[(0, about(100 * MIB, day))]);
        month.compact();
        assert!(month.most_runs() <= 2 * 8, "{}", month.most_runs());
    }
    assert!(month.amplification() < 2.5 && month.amplification() > 1.5, "{}", month.amplification());
    // Hourly loads for a month.
    let mut hours = Paper::new();
    for hour in 0..30 * 24 {
        hours.load(&[(hour / 24, about(4 * MIB, hour))]);
        hours.compact();
    }
    assert!(
        hours.amplification() < 2.5 && hours.most_runs() < 2 * 8,
        "{} {}",
        hours.amplification(),
        hours.most_runs()
    );
}

#[test]
fn settled_windows_are_left_alone() {
    let mut paper = Paper::new();
    paper.load(&[(0, 500 * MIB), (1, 500 * MIB)]);
    paper.load(&[(1, 5 * MIB)]);
    for at in 0..7 {
        assert_eq!(paper.compact(), 0);
        paper.load(&[(1, about(5 * MIB, at))]);
    }
    // Late SSTs are merged into one; large ones stay.
    assert_eq!(paper.compact(), 1);
    let bytes: Vec<u64> = paper.version.windows[1].ssts.iter().map(|sst| sst.bytes / MIB).collect();
    assert_eq!((bytes.len(), bytes[0]), (2, 500));
    assert_eq!(paper.version.windows[0].ssts.len(), 1);
}

#[test]
fn many_runs_are_merged_in_rounds() {
    let mut paper = Paper::new();
    (0..500).for_each(|at| paper.load(&[(0, about(MIB * 4, at))]));
    let picks = pick(&paper.version, CompactionExtent::Due, &[]).picked;
    assert_eq!(picks.len(), 16);
    assert!(picks.iter().all(|pick| (2..=32).contains(&pick.ssts.len())));
    assert_eq!(picks, pick(&paper.version, CompactionExtent::Needed, &[]).picked);
    assert_eq!((paper.compact(), paper.most_runs()), (2, 1));
    // Runs of halving sizes stay few.
    let mut halves = Paper::new();
    (0..40).for_each(|at| halves.load(&[(0, (1 << 40) >> at)]));
    halves.compact();
    assert!(halves.most_runs() < 2 * 8 + 20, "{}", halves.most_runs());
}

const DAY: i64 = 86_400_000_000;

/// A multi-window file.
fn of_days(id: &str, seqno: u64, days: &[i64], bytes: u64) -> Sst {
    let multi_window = MultiWindow { windows: days.iter().map(|day| day * DAY).collect(), without: Vec::new() };
    Sst { bytes, level: 1, multi_window: Some(multi_window), ..sst(id, seqno, "a", "z") }
}

/// The joins of a table with one SST for each (day of 1970 from 0, bytes).
fn joins_of(days: &[(i64, u64)], extent: CompactionExtent) -> Vec<(CompactionReason, Vec<i64>)> {
    let mut paper = Paper::new();
    days.iter().for_each(|(day, bytes)| paper.load(&[(day * DAY, *bytes)]));
    let joins = joins(&paper.version, extent).into_iter();
    joins.map(|join| (join.reason, join.windows.iter().map(|start| start / DAY).collect())).collect()
}

#[test]
fn months_that_are_over_are_joined_if_they_are_small() {
    let due = |days: &[(i64, u64)]| joins_of(days, CompactionExtent::Due);
    // January ends with day 30, and a week of February must have come.
    let january: Vec<(i64, u64)> = (0..31).map(|day| (day, 8 * MIB)).collect();
    let until = |last: i64| january.iter().copied().chain([(last, MIB)]).collect::<Vec<_>>();
    assert_eq!(due(&until(37)), []);
    assert_eq!(due(&until(38)), [(CompactionReason::Settled, (0..31).collect())]);
    // More than one file, or one day alone, gains nothing.
    let large: Vec<(i64, u64)> = until(38).into_iter().map(|(day, bytes)| (day, bytes + MIB)).collect();
    assert_eq!(due(&large), []);
    assert_eq!(due(&[(3, MIB), (40, MIB)]), []);
    // Above the limit, SSTs are first merged day by day.
    let many: Vec<(i64, u64)> = (0..65).map(|at| (at % 4, 1)).chain([(40, 1)]).collect();
    assert_eq!(due(&many), []);
}

#[test]
fn what_is_late_waits_until_it_weighs_something() {
    let mut found = version(Vec::new());
    found.window(0).ssts.push(of_days("a", 0, &[0, 1, 2], 100 * MIB));
    found.window(40 * DAY).ssts.push(sst("z", 1, "a", "z"));
    let picked = |found: &Version, extent| joins(found, extent).into_iter().map(|join| join.reason).collect::<Vec<_>>();
    assert_eq!(picked(&found, CompactionExtent::Needed), []);
    found.window(DAY).ssts.push(Sst { bytes: MIB, ..sst("b", 2, "a", "z") });
    assert_eq!(picked(&found, CompactionExtent::Due), []);
    assert_eq!(picked(&found, CompactionExtent::Needed), [CompactionReason::SeveralSsts]);
    assert_eq!(pick(&found, CompactionExtent::Due, &[]).picked, []);
    found.window(DAY).ssts.push(Sst { bytes: 30 * MIB, ..sst("c", 3, "a", "z") });
    assert_eq!(picked(&found, CompactionExtent::Due), [CompactionReason::SeveralSsts]);
    tidetable_store::version::invariants::check(&found).unwrap();
    // A window is in one join only, and its own SSTs are newer.
    let mut twice = found.clone();
    twice.window(2 * DAY).ssts.push(of_days("d", 4, &[2, 3], MIB));
    assert!(tidetable_store::version::invariants::check(&twice).unwrap_err().contains("two joins"));
    let mut older = found;
    older.window(0).ssts[0].seqno = 3;
    assert!(
        tidetable_store::version::invariants::check(&older).unwrap_err().contains("older than its multi-window SSTs")
    );
}
