//! Partial compactions of a window, and copied stripes.

mod joins;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidetable_store::DeletePlan;
use tidetable_store::Snapshot;
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};

use crate::model::{DAY, Event, Model, START, World};
use crate::{any_event, any_target, event, prefix};

#[derive(Debug, Clone)]
enum Step {
    Load(Vec<Event>),
    Drop(DeleteTarget),
    /// What is due after loads.
    Due,
    Needed,
    Full,
}

fn any_step(dated: bool, ranges: bool) -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => prop::collection::vec(any_event(), 1..5).prop_map(Step::Load),
        2 => any_target(dated, ranges).prop_map(Step::Drop),
        6 => Just(Step::Due),
        1 => Just(Step::Needed),
        1 => Just(Step::Full),
    ]
}

fn any_case() -> impl Strategy<Value = (bool, &'static str, Vec<Step>)> {
    let rules = prop_oneof![Just(""), Just("maxversions=1"), Just("maxversions=2 or maxage=2d"), Just("maxage=1d")];
    (any::<bool>(), rules).prop_flat_map(|(dated, rule)| {
        let ranges = !rule.contains("maxversions");
        prop::collection::vec(any_step(dated, ranges), 20..60).prop_map(move |steps| (dated, rule, steps))
    })
}

/// Compacts until nothing is left to do; returns the number of rounds.
fn compact(world: &World, now: i64, plan: impl Fn(&Snapshot) -> CompactionPlan) -> usize {
    for round in 0..9 {
        let Some(snapshot) = world.snapshot() else { return round };
        let plan = plan(&snapshot);
        if plan.is_empty() {
            return round;
        }
        let done = Compaction::run(&plan, &world.ids).unwrap();
        world.commit(&snapshot, &done.edit, now);
    }
    panic!("it never ends");
}

fn due(world: &World, now: i64) -> usize {
    of_extent(world, now, CompactionExtent::Due)
}

fn of_extent(world: &World, now: i64, extent: CompactionExtent) -> usize {
    compact(world, now, |snapshot| CompactionPlan::of_extent(snapshot, now, extent).unwrap())
}

/// The versions that changed each day.
fn days(world: &World) -> Vec<BTreeMap<i32, u64>> {
    let snapshot = world.snapshot();
    snapshot.iter().flat_map(|snapshot| &snapshot.version().windows).map(|window| window.days.clone()).collect()
}

fn most_ssts(world: &World) -> usize {
    let snapshot = world.snapshot().unwrap();
    snapshot.version().windows.iter().map(|window| window.ssts.len()).max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_compaction_changes_an_answer((dated, rule, steps) in any_case()) {
        let world = World::new(dated, rule);
        let mut model = Model::new(dated, rule);
        for step in steps {
            match step {
                Step::Load(events) => {
                    world.write(&model.load(events));
                    world.load(model.now);
                }
                Step::Drop(target) => {
                    let Some(snapshot) = world.snapshot() else { continue };
                    let plan = DeletePlan::new(&snapshot, target.clone()).unwrap();
                    if plan.is_empty() {
                        continue;
                    }
                    world.commit(&snapshot, &plan.edit(), model.now);
                    model.drop(target);
                }
                Step::Due => {
                    let before = days(&world);
                    due(&world, model.now);
                    prop_assert!(world.snapshot().is_none() || most_ssts(&world) < 8);
                    prop_assert_eq!(days(&world), before);
                }
                Step::Needed => drop(of_extent(&world, model.now, CompactionExtent::Needed)),
                Step::Full => {
                    of_extent(&world, model.now, CompactionExtent::Full);
                    let snapshot = world.snapshot();
                    let ssts = snapshot.iter().flat_map(|snapshot| snapshot.version().ssts());
                    prop_assert!(ssts.into_iter().all(|sst| sst.level > 0), "fresh after all became dense");
                }
            }
            prop_assert_eq!(world.cells(), model.cells());
        }
    }
}

#[test]
fn many_ssts_are_merged_in_rounds() {
    let (world, mut model) = (World::new(false, "maxversions=2"), Model::new(false, "maxversions=2"));
    for at in 0..70 {
        world.write(&model.load(vec![event(at % 3, (at % 20) as i64)]));
        world.load(model.now);
    }
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::of_extent(&snapshot, model.now, CompactionExtent::Due).unwrap();
    assert_eq!((plan.merges.len(), plan.windows()), (3, 1));
    assert!(plan.merges.iter().all(|merge| merge.ssts.len() <= 32));
    assert_eq!(due(&world, model.now), 1, "three are few");
    assert_eq!((most_ssts(&world), world.cells()), (3, model.cells()));
    assert_eq!(of_extent(&world, model.now, CompactionExtent::Needed), 1);
    assert_eq!((most_ssts(&world), world.cells()), (1, model.cells()));
}

#[test]
fn an_older_value_is_not_brought_back() {
    let rule = "maxversions=2";
    let (world, mut model) = (World::new(false, rule), Model::new(false, rule));
    for at in 0..66 {
        // A cell of the first input is written again and is then the fourth newest, all in one of three merges.
        let written = match at {
            0 | 60 => event(0, 0),
            61..64 => event(0, at - 56),
            _ => event(1, at % 20),
        };
        world.write(&model.load(vec![written]));
        world.load(model.now);
    }
    let all = |world: &World| world.cells_of(&world.snapshot().unwrap().including_expired());
    let before = all(&world);
    due(&world, model.now);
    assert_eq!(most_ssts(&world), 3);
    assert!(all(&world).iter().all(|(cell, value)| before.get(cell) == Some(value)));
    assert_eq!(world.cells(), model.cells());
}

/// Readings of one meter in one day, a second apart.
fn readings(id: u64, day: i64, count: i64) -> Vec<Event> {
    let event = |at| Event { id, time: START + day * DAY + at * 1_000_000, q: "a".to_owned(), v: 0, w: None };
    (0..count).map(event).collect()
}

#[test]
fn stripes_that_nothing_overlaps_are_copied() {
    for rule in ["", "maxversions=50000"] {
        let (world, mut model) = (World::new(true, rule), Model::new(true, rule));
        // Rows too large to share a stripe.
        world.write(&model.load((0..4).flat_map(|id| readings(id, 0, 40_000)).collect()));
        world.load(model.now);
        of_extent(&world, model.now, CompactionExtent::Full);
        world.write(&model.load(vec![event(2, 1), event(7, 0)]));
        world.load(model.now);
        let stripes = |world: &World| -> Vec<(Vec<u8>, u64, u64)> {
            let snapshot = world.snapshot().unwrap();
            let ssts: Vec<_> = snapshot.version().ssts().cloned().collect();
            let readers = ssts.iter().map(|sst| snapshot.reader(sst).unwrap());
            readers.flat_map(|r| r.stripes().to_vec()).map(|s| (s.first_key.to_vec(), s.rows, s.len)).collect()
        };
        let before = stripes(&world);
        assert_eq!(of_extent(&world, model.now, CompactionExtent::Needed), 1);
        assert_eq!((most_ssts(&world), world.cells() == model.cells()), (1, true));
        let after = stripes(&world);
        assert!(before[0] == after[0] && before[1] == after[1] && before[2] != after[2], "{before:?} {after:?}");
        let snapshot = world.snapshot().unwrap();
        let sst = snapshot.version().ssts().next().unwrap().clone();
        snapshot.reader(&sst).unwrap().verify().unwrap();
        // A delete applies to copied stripes.
        let drop = DeletePlan::new(&snapshot, prefix("00")).unwrap();
        world.commit(&snapshot, &drop.edit(), model.now);
        model.drop(prefix("00"));
        of_extent(&world, model.now, CompactionExtent::Needed);
        assert!(world.cells() == model.cells());
        assert_eq!(stripes(&world).len(), after.len() - 1);
    }
}
