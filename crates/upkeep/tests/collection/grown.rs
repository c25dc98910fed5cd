//! Grown files: a table loaded step by step equals one loaded at once.

use proptest::prelude::*;
use tidetable_layout::schema::{Encoding, Merge};
use tidetable_layout::spec::{ColumnSpec, FamilySpec, TimestampSpec};
use tidetable_layout::{TableSpec, Window};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};
use tidetable_upkeep::{VerifyOptions, verify};

use super::event;
use super::model::{DAY, Event, File, START, World};

const FILES: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Append(usize, Vec<Event>),
    Compact(CompactionExtent),
}

fn any_step() -> impl Strategy<Value = Step> {
    let event = (0u64..3, 0i64..4, 0i64..3, prop::option::of(0i64..3));
    let event = event.prop_map(|(id, day, hour, w)| {
        let time = START + day * DAY + hour * DAY / 24;
        Event { id, time, q: if w == Some(1) { "a" } else { "b" }.to_owned(), v: 0, w }
    });
    let extents =
        prop_oneof![Just(CompactionExtent::Due), Just(CompactionExtent::Needed), Just(CompactionExtent::Full)];
    prop_oneof![
        6 => (0..FILES, prop::collection::vec(event, 1..4)).prop_map(|(file, events)| Step::Append(file, events)),
        1 => extents.prop_map(Step::Compact),
    ]
}

fn spec(window: Window, upsert: bool, families: &[(&str, Merge, TimestampSpec)]) -> TableSpec {
    let family = |(name, kind, timestamp): &(&str, Merge, TimestampSpec)| FamilySpec {
        name: (*name).to_owned(),
        kind: *kind,
        columns: vec![ColumnSpec {
            qualifier: "w".to_owned(),
            value: "{w}".to_owned(),
            encoding: if kind.is_newest() { Encoding::Text } else { Encoding::Int64 },
            timestamp: timestamp.clone(),
            ..ColumnSpec::default()
        }],
    };
    TableSpec {
        name: "T".to_owned(),
        row_key: if window == Window::None { "{id:02}" } else { "{id:02}#{ts:%Y%m%d}" }.to_owned(),
        window,
        upsert,
        families: families.iter().map(family).collect(),
        ..TableSpec::default()
    }
}

/// Layouts where the order of inputs matters in all possible ways.
fn worlds(which: usize) -> World {
    let of = |spec: &TableSpec| World::of(spec, "", 256 << 20);
    let (newest, own, zero) = (Merge::Newest, TimestampSpec::Implied, TimestampSpec::Zero);
    match which {
        0 => World::new(true, ""),
        1 => World::new(false, "maxversions=1"),
        2 => of(&spec(Window::None, true, &[("F", newest, own.clone()), ("G", newest, own)])),
        3 => of(&spec(Window::Month, false, &[("F", newest, own), ("G", newest, zero)])),
        _ => of(&spec(Window::Month, false, &[("S", Merge::Sum, zero.clone()), ("X", Merge::Max, zero)])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_that_grows_reads_as_if_it_had_come_as_it_is(which in 0usize..5, steps in prop::collection::vec(any_step(), 1..10)) {
        let world = worlds(which);
        let mut files: Vec<Vec<Event>> = (0..FILES).map(|file| vec![event(file as u64, 1)]).collect();
        let file = |files: &[Vec<Event>], at: usize| File::of(&format!("{at:02}.csv"), &files[at]);
        (0..FILES).for_each(|at| world.write(&file(&files, at)));
        world.load(START);
        for (count, step) in (1..).zip(steps) {
            match step {
                Step::Append(at, more) => {
                    files[at].extend(more.into_iter().map(|event| Event { v: count, ..event }));
                    world.write(&file(&files, at));
                    world.load(START);
                }
                Step::Compact(extent) => {
                    let snapshot = world.snapshot().unwrap();
                    let plan = CompactionPlan::of_extent(&snapshot, START, extent).unwrap();
                    let done = Compaction::run(&plan, &world.ids).unwrap();
                    if !done.edit.is_empty() {
                        world.commit(&snapshot, &done.edit, plan.now);
                    }
                }
            }
            let fresh = worlds(which);
            (0..FILES).for_each(|at| fresh.write(&file(&files, at)));
            fresh.load(START);
            prop_assert_eq!(world.cells(), fresh.cells());
            let (held, made) = (world.snapshot().unwrap(), fresh.snapshot().unwrap());
            let inputs = |version: &tidetable_store::Version| -> Vec<_> {
                version.inputs.iter().map(|input| (input.hash, input.read, input.days.clone(), input.windows.clone())).collect()
            };
            prop_assert_eq!(inputs(held.version()), inputs(made.version()));
        }
        prop_assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
    }
}

#[test]
fn only_what_a_later_file_holds_otherwise_makes_an_older_one_be_read_again() {
    let world = World::new(true, "");
    let (mut first, second) = (vec![event(1, 1)], vec![event(1, 2), Event { v: 7, ..event(1, 3) }]);
    world.write(&File::of("1.csv", &first));
    world.write(&File::of("2.csv", &second));
    world.load(START);
    for (more, is_overtaken) in [
        (event(1, 4), false),
        (Event { v: 7, ..event(1, 3) }, false),
        (event(2, 2), false),
        (Event { v: 8, ..event(1, 3) }, true),
        (event(1, 30), false),
    ] {
        first.push(more);
        world.write(&File::of("1.csv", &first));
        let edit = world.work_out(&world.snapshot().unwrap().version().clone());
        assert_eq!(edit.rebuilt.is_empty(), !is_overtaken, "{first:?}");
        world.load(START);
    }
}
