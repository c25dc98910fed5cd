//! Limits across SSTs: rows that are too large and sums over 64 bits when merged; each commit is refused or readable.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidetable_layout::TableSpec;
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::{ColumnSpec, FamilySpec, TimestampSpec};
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::version::SstBounds;
use tidetable_store::{Snapshot, StoreError, VersionEdit};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};
use tidetable_upkeep::{VerifyOptions, verify};

use model::{DAY, Event, File, START, World};

const LIMIT: u64 = 256 << 20;

/// One running sum for each id, in a row of its own or in one for each day.
fn sums(dated: bool) -> TableSpec {
    let timestamp = TimestampSpec::Zero;
    let column = ColumnSpec { qualifier: "n".to_owned(), value: "{w}".to_owned(), timestamp, ..ColumnSpec::default() };
    TableSpec {
        name: "T".to_owned(),
        row_key: if dated { "{id:02}#{ts:%Y%m%d}" } else { "{id:02}" }.to_owned(),
        families: vec![FamilySpec { name: "S".to_owned(), columns: vec![column], kind: Merge::Sum }],
        ..TableSpec::default()
    }
}

/// Texts of each id, by time.
fn texts() -> TableSpec {
    let column = ColumnSpec { qualifier: "q".to_owned(), value: "{q}".to_owned(), ..ColumnSpec::default() };
    TableSpec {
        name: "T".to_owned(),
        row_key: "{id:02}".to_owned(),
        families: vec![FamilySpec { name: "F".to_owned(), columns: vec![column], ..FamilySpec::default() }],
        ..TableSpec::default()
    }
}

fn value(id: u64, day: i64, w: i64) -> Event {
    Event { id, time: START + day * DAY, q: String::new(), v: 0, w: Some(w) }
}

fn text(time: i64, bytes: usize) -> Event {
    Event { id: 0, time: START + time, q: "x".repeat(bytes), v: 0, w: None }
}

/// Loads one more input; removes it if it is refused.
fn load(world: &World, name: &str, events: &[Event]) -> Result<(), StoreError> {
    let file = File::of(name, events);
    world.write(&file);
    let done = world.try_load(START, |edit| edit);
    if done.is_err() {
        world.hide(&file);
    }
    done.map(|_| ())
}

fn compact(world: &World, extent: CompactionExtent) {
    let Some(snapshot) = world.snapshot() else { return };
    let plan = CompactionPlan::of_extent(&snapshot, START, extent).unwrap();
    let done = Compaction::run(&plan, &world.ids).unwrap();
    if !done.edit.is_empty() {
        world.commit(&snapshot, &done.edit, plan.now);
    }
}

fn overflows(error: StoreError, row: &str) {
    match error {
        StoreError::SumOverflow { table, row: found, column, key } => {
            assert_eq!([&*table, &found, &column], ["T", row, "S:n"]);
            assert_eq!(key, row.as_bytes());
        }
        other => panic!("{other}"),
    }
}

fn is_too_large(error: &StoreError) -> bool {
    matches!(error, StoreError::RowTooLarge { table, row, .. } if table == "T" && row == "00")
}

#[test]
fn a_sum_over_64_bits_is_found_by_the_load_that_brings_it() {
    let world = World::of(&sums(false), "", LIMIT);
    load(&world, "1.csv", &[value(0, 0, i64::MAX), value(1, 0, 7)]).unwrap();
    // In the same window, in another, and in two at once.
    overflows(load(&world, "2.csv", &[value(0, 0, 1)]).unwrap_err(), "00");
    overflows(load(&world, "2.csv", &[value(0, 3, 1)]).unwrap_err(), "00");
    overflows(load(&world, "2.csv", &[value(2, 3, i64::MIN), value(2, 4, -1)]).unwrap_err(), "02");
    let ssts = world.snapshot().unwrap().version().ssts().count();
    assert_eq!(ssts, 1, "nothing of it is committed");
    load(&world, "2.csv", &[value(0, 3, -5), value(1, 0, i64::MAX - 7)]).unwrap();
    load(&world, "3.csv", &[value(0, 0, 0), value(0, 1, 5)]).unwrap();
    overflows(load(&world, "4.csv", &[value(1, 9, 1)]).unwrap_err(), "01");
    let cells: Vec<String> = world.cells().into_values().collect();
    assert_eq!(cells, [i64::MAX.to_string(), i64::MAX.to_string()]);
    // Cells that lowered a sum may be removed: the row is not among the loaded ones.
    world.write(&File::of("2.csv", &[value(1, 0, 1)]));
    overflows(world.try_load(START, |edit| edit).unwrap_err(), "00");
}

/// Writes as a build did that did not check sums of several loads.
fn unchecked(mut edit: VersionEdit) -> VersionEdit {
    for sst in edit.ssts.values_mut().flatten() {
        sst.bounds = Some(SstBounds::default());
    }
    edit
}

#[test]
fn a_table_that_holds_such_a_sum_already_is_reported_and_can_be_mended() {
    let world = World::of(&sums(false), "", LIMIT);
    load(&world, "1.csv", &[value(0, 0, i64::MAX), value(1, 0, 1)]).unwrap();
    world.write(&File::of("2.csv", &[value(0, 1, i64::MAX), value(1, 1, 1)]));
    world.try_load(START, unchecked).unwrap();
    let read = |snapshot: &Snapshot| {
        let whole = snapshot.whole(&tidetable_layout::KeyRange::all()).unwrap();
        let all = tidetable_layout::Projection::all(snapshot.schema());
        snapshot.scan(&whole, &all).unwrap().find_map(Result::err)
    };
    overflows(read(&world.snapshot().unwrap()).unwrap(), "00");
    let mut report = verify(&world.table(), VerifyOptions::default()).unwrap();
    assert!(!report.is_sound());
    overflows(report.rows.pop().unwrap(), "00");
    // Other rows can be loaded and deleted.
    load(&world, "3.csv", &[value(1, 1, 1)]).unwrap();
    overflows(load(&world, "4.csv", &[value(0, 1, 1)]).unwrap_err(), "00");
    let snapshot = world.snapshot().unwrap();
    let plan = DeletePlan::new(&snapshot, DeleteTarget::Row { key: b"00".to_vec() }).unwrap();
    assert_eq!((plan.rows, plan.cells), (1, 1));
    world.commit(&snapshot, &plan.edit(), START);
    assert!(read(&world.snapshot().unwrap()).is_none());
    assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
    assert_eq!(world.cells().into_values().collect::<Vec<_>>(), ["3"]);
    compact(&world, CompactionExtent::Full);
    assert_eq!(world.cells().into_values().collect::<Vec<_>>(), ["3"]);
}

#[test]
fn a_row_is_too_large_whatever_loads_and_windows_its_cells_come_in() {
    let world = World::of(&texts(), "", 1000);
    let time = |at: i64| at * 1_000_000;
    load(&world, "1.csv", &[text(time(1), 400)]).unwrap();
    load(&world, "2.csv", &[text(time(2), 400)]).unwrap();
    for at in [3, DAY / 1_000_000] {
        let error = load(&world, "3.csv", &[text(time(at), 400)]).unwrap_err();
        assert!(is_too_large(&error), "{error}");
    }
    let both = [text(time(1) + DAY, 90), text(time(1) + 2 * DAY, 90)];
    assert!(is_too_large(&load(&world, "3.csv", &both).unwrap_err()));
    load(&world, "3.csv", &both[..1]).unwrap();
    // The same cell again adds nothing.
    load(&world, "4.csv", &[text(time(2), 390)]).unwrap();
    let cells = world.cells();
    assert_eq!(cells.values().map(String::len).collect::<Vec<_>>(), [90, 390, 400]);
    compact(&world, CompactionExtent::Full);
    assert_eq!(world.cells(), cells);
    assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
}

#[test]
fn versions_that_rules_hide_do_not_count_and_hinder_no_compaction() {
    let world = World::of(&texts(), "maxversions=1", 1000);
    for at in 1..40 {
        load(&world, &format!("{at:02}.csv"), &[text(at * 1_000_000, 600)]).unwrap();
        // Merged parts of a window hold versions that expire only in the whole window.
        compact(&world, CompactionExtent::Due);
    }
    assert_eq!(world.cells().len(), 1);
    compact(&world, CompactionExtent::Full);
    assert_eq!(world.cells().len(), 1);
    assert!(is_too_large(&load(&world, "99.csv", &[text(99_000_000, 1001)]).unwrap_err()));
}

#[test]
fn deleting_newer_versions_uncovers_no_row_that_is_too_large() {
    for extent in [None, Some(CompactionExtent::Due)] {
        let world = World::of(&texts(), "maxversions=2", 1000);
        let second = |at: i64| at * 1_000_000;
        // Small cells hide the large ones, whichever came first.
        load(&world, "1.csv", &[text(second(1), 600)]).unwrap();
        load(&world, "2.csv", &[text(second(8), 1), text(second(9), 1)]).unwrap();
        load(&world, "3.csv", &[text(second(2), 600)]).unwrap();
        extent.into_iter().for_each(|extent| compact(&world, extent));
        let delete = |times: std::ops::Range<i64>| {
            let snapshot = world.snapshot().unwrap();
            let times = Some(START + second(times.start)..START + second(times.end));
            let (key, family, qualifier) = (b"00".to_vec(), "F".to_owned(), b"q".to_vec());
            let plan = DeletePlan::new(&snapshot, DeleteTarget::Column { key, family, qualifier, times }).unwrap();
            world.try_commit(&snapshot, &plan.edit(), START)
        };
        if extent.is_none() {
            let error = delete(8..10).unwrap_err();
            assert!(matches!(&error, StoreError::RowTooLargeAfterDelete { row, .. } if row == "00"), "{error}");
            assert_eq!(world.cells().len(), 2, "nothing is deleted");
        }
        delete(2..3).unwrap();
        delete(8..10).unwrap();
        assert!(world.cells().len() <= 1);
        compact(&world, CompactionExtent::Full);
        assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Load(Vec<(u64, i64, i64)>),
    Compact(CompactionExtent),
    Drop(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let values = prop_oneof![
        Just(i64::MAX),
        Just(i64::MIN),
        Just(i64::MAX / 2 + 1),
        Just(-(i64::MAX / 2)),
        Just(1),
        Just(-1),
        -9i64..9
    ];
    let extents =
        prop_oneof![Just(CompactionExtent::Due), Just(CompactionExtent::Needed), Just(CompactionExtent::Full)];
    prop_oneof![
        9 => prop::collection::vec((0u64..2, 0i64..2, values), 1..4).prop_map(Step::Load),
        2 => extents.prop_map(Step::Compact),
        1 => (0u64..2).prop_map(Step::Drop),
    ]
}

/// The sums of each id by day.
type Sums = BTreeMap<u64, BTreeMap<i64, i128>>;

/// The sums after a load; `None` if a cell in the load, in a window, or in the table exceeds 64 bits.
fn add(sums: &Sums, events: &[(u64, i64, i64)], dated: bool) -> Option<Sums> {
    let fits = |sum: i128| i64::try_from(sum).is_ok();
    let (mut own, mut all) = (Sums::new(), sums.clone());
    for (id, day, w) in events {
        for sums in [&mut own, &mut all] {
            *sums.entry(*id).or_default().entry(*day).or_default() += i128::from(*w);
        }
    }
    let parts = own.values().chain(all.values()).flat_map(BTreeMap::values).all(|sum| fits(*sum));
    let whole = all.values().all(|days| dated || fits(days.values().sum()));
    (parts && whole).then_some(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_committed_can_be_read_and_compacted(steps in prop::collection::vec(any_step(), 1..24), dated: bool) {
        let (world, mut known) = (World::of(&sums(dated), "", LIMIT), Sums::new());
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Load(events) => {
                    let next = add(&known, &events, dated);
                    // Files must differ, since copies are not loaded.
                    let event = |(id, day, w)| Event { v: at as u64, ..value(id, day, w) };
                    let events: Vec<Event> = events.into_iter().map(event).collect();
                    let done = load(&world, &format!("{at:02}.csv"), &events);
                    prop_assert_eq!(done.is_ok(), next.is_some(), "step {}: {:?}", at, done);
                    known = next.unwrap_or(known);
                }
                Step::Compact(extent) => compact(&world, extent),
                Step::Drop(id) => {
                    let Some(snapshot) = world.snapshot() else { continue };
                    let prefix = format!("{id:02}").into_bytes();
                    let plan = DeletePlan::new(&snapshot, DeleteTarget::Prefix { prefix }).unwrap();
                    if !plan.is_empty() {
                        world.commit(&snapshot, &plan.edit(), START);
                    }
                    known.remove(&id);
                }
            }
            let shown: Vec<String> = world.cells().into_values().collect();
            let sums = known.values().flat_map(|days| {
                if dated { days.values().copied().collect() } else { vec![days.values().sum::<i128>()] }
            });
            prop_assert_eq!(shown, sums.map(|sum| sum.to_string()).collect::<Vec<_>>(), "step {}", at);
        }
        if world.snapshot().is_some() {
            prop_assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
        }
    }
}
