//! Multi-window files: their windows are read, rebuilt, deleted from and published as if they had their own SSTs.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use tidetable_layout::time::window_bounds;
use tidetable_layout::{KeyRange, Projection, Window};
use tidetable_store::DeletePlan;
use tidetable_store::Snapshot;
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan, CompactionReason};

use super::{days, due, of_extent};
use crate::model::{self, Cells, DAY, Event, Model, START, World, day_of};
use crate::prefix;

#[derive(Debug, Clone)]
enum Step {
    Load(Vec<Event>),
    Change(usize, Vec<Event>),
    Drop(DeleteTarget),
    Compact(CompactionExtent),
    Rebuild,
}

/// Days of January, including the last, and a much later day.
const DAYS: [i64; 6] = [0, 1, 2, 14, 30, 45];

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0u64..3, 0usize..DAYS.len(), 0i64..3, "[ab]", proptest::option::of(0i64..100));
    let event = event.prop_map(|(id, day, hour, q, w)| Event {
        id,
        time: START + DAYS[day] * DAY + hour * 3_600_000_000,
        q,
        v: 0,
        w,
    });
    prop::collection::vec(event, 1..12)
}

fn any_step() -> impl Strategy<Value = Step> {
    let target = prop_oneof![
        prop_oneof![Just("00"), Just("01#2018"), Just("02#201801")].prop_map(prefix),
        (0u64..3, 0usize..DAYS.len()).prop_map(|(id, day)| {
            let key = format!("{id:02}#{}", model::date(START + DAYS[day] * DAY)).into_bytes();
            DeleteTarget::Family { key, family: "F".to_owned() }
        }),
    ];
    let extent = prop_oneof![
        4 => Just(CompactionExtent::Due),
        1 => Just(CompactionExtent::Needed),
        1 => Just(CompactionExtent::Full),
    ];
    prop_oneof![
        6 => any_events().prop_map(Step::Load),
        3 => (0usize..6, any_events()).prop_map(|(input, events)| Step::Change(input, events)),
        2 => target.prop_map(Step::Drop),
        6 => extent.prop_map(Step::Compact),
        1 => Just(Step::Rebuild),
    ]
}

/// A read of each window must return the cells of its day in the whole table.
fn windows_hold_their_days(world: &World, all: &Cells) {
    let Some(snapshot) = world.snapshot() else { return };
    let mut seen = 0;
    for window in &snapshot.version().windows {
        let bounds = window_bounds(Window::Day, window.start);
        let slices = snapshot.scan_ranges(&[KeyRange::all()], &bounds);
        assert!(slices.len() <= 1);
        let mut own = Cells::new();
        for slice in &slices {
            for block in snapshot.scan(slice, &Projection::all(snapshot.schema())).unwrap() {
                model::read(snapshot.schema(), &block.unwrap(), &mut own);
            }
        }
        let day = window.start.div_euclid(DAY) as i32;
        let expected: Cells =
            all.iter().filter(|(cell, _)| day_of(&cell.0) == day).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(own, expected);
        seen += own.len();
    }
    assert_eq!(seen, all.len());
}

fn joined(world: &World) -> Vec<Vec<i64>> {
    let snapshot = world.snapshot().unwrap();
    let joined = snapshot.version().ssts().filter_map(|sst| sst.multi_window.as_ref());
    joined.map(|joined| joined.windows.iter().map(|start| (start - START) / DAY).collect()).collect()
}

fn event(id: u64, day: i64, hour: i64) -> Event {
    Event { id, time: START + day * DAY + hour * 3_600_000_000, q: "a".to_owned(), v: 0, w: Some(day) }
}

/// Three joined days, and a much later one.
fn three_days(rule: &str) -> (World, Model) {
    let (world, mut model) = (World::new(true, rule), Model::new(true, rule));
    for day in [0, 1, 2, 45] {
        world.write(&model.load(vec![event(0, day, 0), event(1, day, 0), event(1, day, 1)]));
        world.load(model.now);
    }
    assert_eq!(due(&world, model.now), 1);
    assert_eq!(joined(&world), [[0, 1, 2]]);
    (world, model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn joined_windows_are_as_if_they_were_not(
        rule in prop_oneof![Just(""), Just("maxversions=1")],
        steps in prop::collection::vec(any_step(), 4..24),
    ) {
        let (world, mut model) = (World::new(true, rule), Model::new(true, rule));
        world.write(&model.load(vec![event(0, 0, 0), event(1, 1, 0), event(1, 45, 0)]));
        world.load(model.now);
        for step in steps {
            let before = model.cells();
            let changes = !matches!(step, Step::Compact(_) | Step::Rebuild);
            match step {
                Step::Load(events) => {
                    world.write(&model.load(events));
                    world.load(model.now);
                }
                Step::Change(input, events) => {
                    let Some(file) = model.change(input, events) else { continue };
                    world.write(&file);
                    world.load(model.now);
                }
                Step::Drop(target) => {
                    let snapshot = world.snapshot().unwrap();
                    let plan = DeletePlan::new(&snapshot, target.clone()).unwrap();
                    prop_assert_eq!(plan.cells as usize, model.would_hide(&target).0.max(plan.cells as usize));
                    if plan.is_empty() {
                        continue;
                    }
                    world.commit(&snapshot, &plan.edit(), model.now);
                    model.drop(target);
                }
                Step::Compact(extent) => {
                    let before = days(&world);
                    of_extent(&world, model.now, extent);
                    prop_assert_eq!(days(&world), before);
                }
                Step::Rebuild => world.rebuild(),
            }
            let cells = world.cells();
            prop_assert_eq!(&cells, &model.cells());
            windows_hold_their_days(&world, &cells);
            if changes {
                let changed: BTreeSet<i32> = model::changed_days(&before, &cells);
                prop_assert!(world.changed_days().is_superset(&changed), "{:?} changed", changed);
            }
        }
    }
}

#[test]
fn a_window_that_is_built_anew_leaves_the_others_alone() {
    let (world, mut model) = three_days("");
    let file = model.change(1, vec![event(1, 1, 5)]).unwrap();
    world.write(&file);
    world.load(model.now);
    assert_eq!(joined(&world), [[0, 2]], "without the inputs of the other days");
    let cells = world.cells();
    assert_eq!(cells, model.cells());
    windows_hold_their_days(&world, &cells);
    assert_eq!(world.changed_days(), [day_of("#20180102")].into());
    // Equal, cell for cell, to a table without joins.
    world.rebuild();
    assert_eq!((joined(&world).len(), world.cells()), (0, cells.clone()));
    // It is joined again with later SSTs, and removed once all its windows were rebuilt.
    due(&world, model.now);
    assert_eq!((joined(&world), world.cells()), (vec![vec![0, 1, 2]], cells));
    for input in 0..3 {
        world.write(&model.change(input, vec![event(2, input as i64, 7)]).unwrap());
        world.load(model.now);
    }
    assert_eq!((joined(&world).len(), world.cells()), (0, model.cells()));
}

#[test]
fn an_old_version_is_read_as_it_was() {
    let (world, mut model) = three_days("");
    let (snapshot, cells) = (world.snapshot().unwrap(), world.cells());
    world.write(&model.change(0, vec![event(2, 0, 3)]).unwrap());
    world.load(model.now);
    due(&world, model.now);
    assert_eq!(world.cells_of(&snapshot), cells);
    let again = Snapshot::new(snapshot.table().clone(), Arc::new(snapshot.version().clone())).unwrap();
    assert_eq!(world.cells_of(&again), cells);
}

#[test]
fn a_join_gives_way_to_a_window_that_is_built_anew() {
    let (world, mut model) = three_days("maxversions=1");
    world.write(&model.load(vec![event(0, 2, 9)]));
    world.load(model.now);
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, model.now).unwrap();
    assert_eq!((plan.merges[0].reason, plan.merges[0].joins.len()), (CompactionReason::SeveralSsts, 3));
    let done = Compaction::run(&plan, &world.ids).unwrap();
    // The first day has no SST of its own, only multi-window files.
    world.write(&model.change(0, vec![event(2, 0, 3)]).unwrap());
    world.load(model.now);
    let refused = world.try_commit(&snapshot, &done.edit, plan.now).unwrap_err();
    assert!(refused.to_string().contains("rebuilt meanwhile"), "{refused}");
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn what_is_late_joins_the_others() {
    let (world, mut model) = three_days("");
    world.write(&model.load(vec![event(0, 1, 4)]));
    world.load(model.now);
    assert_eq!(of_extent(&world, model.now, CompactionExtent::Needed), 1);
    assert_eq!((joined(&world), world.cells()), (vec![vec![0, 1, 2]], model.cells()));
    assert_eq!(of_extent(&world, model.now, CompactionExtent::Full), 1, "the last day becomes dense");
    assert_eq!(of_extent(&world, model.now, CompactionExtent::Full), 0);
    // A delete removes rows of some days from them.
    let snapshot = world.snapshot().unwrap();
    let drop = DeleteTarget::Row { key: b"00#20180102".to_vec() };
    let plan = DeletePlan::new(&snapshot, drop.clone()).unwrap();
    assert_eq!(plan.days.len(), 1);
    world.commit(&snapshot, &plan.edit(), model.now);
    model.drop(drop);
    assert_eq!(of_extent(&world, model.now, CompactionExtent::Needed), 1);
    assert_eq!((joined(&world), world.cells()), (vec![vec![0, 1, 2]], model.cells()));
}
