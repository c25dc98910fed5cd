//! Deletes and compactions against a model: the table is a function of its layout, its inputs and its deletes, and
//! compaction changes no answer.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compaction;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{StoreError, VersionEdit};
use tidetable_upkeep::compaction::{Compaction, CompactionPlan};

use model::{DAY, Event, Model, START, World};

/// A step of a table.
#[derive(Debug, Clone)]
enum Step {
    Load(Vec<Event>),
    /// New content of a loaded input.
    Change(usize, Vec<Event>),
    Drop(DeleteTarget),
    /// This many hours after the last step.
    Compact(i64),
    Rebuild,
}

fn any_event() -> impl Strategy<Value = Event> {
    let event = (0u64..3, 0i64..3, 0i64..3, "[ab]", proptest::option::of(0i64..100));
    event.prop_map(|(id, day, hour, q, w)| Event { id, time: START + day * DAY + hour * 3_600_000_000, q, v: 0, w })
}

fn any_target(dated: bool, ranges: bool) -> impl Strategy<Value = DeleteTarget> {
    let key = (0u64..3, 0i64..3).prop_map(move |(id, day)| {
        let date = if dated { format!("#2018010{}", day + 1) } else { String::new() };
        format!("{id:02}{date}").into_bytes()
    });
    let family = prop_oneof![Just("F".to_owned()), Just("G".to_owned())];
    let column = prop_oneof![Just("ID"), Just("v"), Just("q-a"), Just("q-b"), Just("w")];
    let times = proptest::option::of((-1i64..60, 1i64..40).prop_map(|(from, hours)| {
        let from = if from < 0 { 0 } else { START + from * 3_600_000_000 };
        from..(from + hours * 3_600_000_000)
    }));
    let prefix =
        prop_oneof![Just("0"), Just("00"), Just("01#2018"), Just("02#201801"), Just("zz"), Just("00#20180102")];
    prop_oneof![
        prefix.prop_map(|prefix| DeleteTarget::Prefix { prefix: prefix.as_bytes().to_vec() }),
        key.clone().prop_map(|key| DeleteTarget::Row { key }),
        (key.clone(), family.clone()).prop_map(|(key, family)| DeleteTarget::Family { key, family }),
        (key, family, column, times).prop_map(move |(key, family, qualifier, times)| DeleteTarget::Column {
            key,
            family,
            qualifier: qualifier.as_bytes().to_vec(),
            times: times.filter(|_| ranges),
        }),
    ]
}

fn any_step(dated: bool, ranges: bool) -> impl Strategy<Value = Step> {
    let events = || prop::collection::vec(any_event(), 1..12);
    prop_oneof![
        4 => events().prop_map(Step::Load),
        2 => (0usize..4, events()).prop_map(|(input, events)| Step::Change(input, events)),
        4 => any_target(dated, ranges).prop_map(Step::Drop),
        2 => (0i64..30).prop_map(Step::Compact),
        1 => Just(Step::Rebuild),
    ]
}

/// Whether keys name the window, the rule of both families, and the steps.
fn any_case() -> impl Strategy<Value = (bool, &'static str, Vec<Step>)> {
    let rules = prop_oneof![
        Just(""),
        Just("maxversions=1"),
        Just("maxage=2d"),
        Just("maxversions=1 or maxage=1d"),
        Just("maxversions=1 and maxage=1d"),
    ];
    (any::<bool>(), rules).prop_flat_map(|(dated, rule)| {
        // A version removed by compaction because of a newer one does not come back when that is deleted.
        let ranges = !rule.contains("maxversions");
        prop::collection::vec(any_step(dated, ranges), 1..9).prop_map(move |steps| (dated, rule, steps))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_a_function_of_its_inputs_and_drops((dated, rule, steps) in any_case()) {
        let world = World::new(dated, rule);
        let mut model = Model::new(dated, rule);
        for step in steps {
            let before = model.cells();
            let loads = matches!(step, Step::Load(_) | Step::Change(..));
            match step {
                Step::Load(events) => world.write(&model.load(events)),
                Step::Change(input, events) => match model.change(input, events) {
                    Some(file) => world.write(&file),
                    None => continue,
                },
                Step::Drop(target) => {
                    let Some(snapshot) = world.snapshot() else { continue };
                    let plan = DeletePlan::new(&snapshot, target.clone()).unwrap();
                    let (shown, stored) = model.would_hide(&target);
                    let is_right = if plan.is_empty() { shown == 0 } else { stored > 0 };
                    prop_assert!(is_right);
                    if plan.edit().is_empty() {
                        prop_assert!(plan.is_empty() && model.has_dropped(&target));
                        continue;
                    }
                    world.commit(&snapshot, &plan.edit(), model.now);
                    model.drop(target);
                }
                Step::Compact(hours) => {
                    let Some(snapshot) = world.snapshot() else { continue };
                    let plan = CompactionPlan::new(&snapshot, model.now + hours * 3_600_000_000).unwrap();
                    let done = Compaction::run(&plan, &world.ids).unwrap();
                    if plan.is_empty() {
                        prop_assert!(done.edit.is_empty());
                        continue;
                    }
                    world.commit(&snapshot, &done.edit, plan.now);
                    model.now = plan.now;
                    let compacted = world.snapshot().unwrap();
                    prop_assert_eq!(world.cells_of(&snapshot.as_of_now(plan.now).unwrap()), world.cells());
                    prop_assert!(CompactionPlan::new(&compacted, plan.now).unwrap().is_empty(), "done twice");
                    if dated {
                        prop_assert_eq!(world.cells_of(&compacted.including_expired()), world.cells_of(&compacted));
                    }
                }
                Step::Rebuild if world.snapshot().is_none() => continue,
                Step::Rebuild => world.rebuild(),
            }
            if loads {
                world.load(model.now);
            }
            prop_assert_eq!(world.cells(), model.cells());
            if dated {
                let changed: BTreeSet<i32> = model::changed_days(&before, &model.cells());
                prop_assert!(world.changed_days().is_superset(&changed), "{:?} changed", changed);
            }
        }
    }
}

fn event(id: u64, hours: i64) -> Event {
    Event { id, time: START + hours * 3_600_000_000, q: "a".to_owned(), v: 0, w: Some(hours) }
}

fn prefix(text: &str) -> DeleteTarget {
    DeleteTarget::Prefix { prefix: text.as_bytes().to_vec() }
}

/// A table of three inputs, and its model.
fn loaded(rule: &str) -> (World, Model) {
    let (world, mut model) = (World::new(true, rule), Model::new(true, rule));
    for events in [vec![event(0, 0), event(1, 0)], vec![event(0, 1), event(0, 30)], vec![event(1, 2)]] {
        world.write(&model.load(events));
        world.load(model.now);
    }
    (world, model)
}

#[test]
fn what_is_appended_during_a_compaction_stays() {
    let (world, mut model) = loaded("");
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, model.now).unwrap();
    let done = Compaction::run(&plan, &world.ids).unwrap();
    // The same cells again, so that the input order matters.
    world.write(&model.load(vec![event(0, 0), event(1, 2)]));
    world.load(model.now);
    world.commit(&snapshot, &done.edit, plan.now);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn a_compaction_gives_way_to_a_drop_and_to_another() {
    let (world, model) = loaded("maxversions=1");
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, model.now).unwrap();
    let done = Compaction::run(&plan, &world.ids).unwrap();
    let again = Compaction::run(&plan, &world.ids).unwrap();
    world.commit(&snapshot, &again.edit, plan.now);
    let conflict = world.try_commit(&snapshot, &done.edit, plan.now).unwrap_err();
    assert!(matches!(conflict, StoreError::Conflict { .. }), "{conflict}");

    let (world, model) = loaded("maxversions=1");
    let snapshot = world.snapshot().unwrap();
    let done = Compaction::run(&CompactionPlan::new(&snapshot, model.now).unwrap(), &world.ids).unwrap();
    let drop = DeletePlan::new(&snapshot, prefix("00")).unwrap();
    world.commit(&snapshot, &drop.edit(), model.now);
    let conflict = world.try_commit(&snapshot, &done.edit, plan.now).unwrap_err();
    assert!(conflict.to_string().contains("rows that begin with 00"), "{conflict}");
    let left = done.edit.compacted.iter().flat_map(|compacted| compacted.written());
    assert!(left.into_iter().all(|sst| !world.has_sst(&sst.id)), "files of a refused commit stay");
}

#[test]
fn a_drop_gives_way_to_whatever_came_meanwhile() {
    let (world, mut model) = loaded("");
    let snapshot = world.snapshot().unwrap();
    let drop = DeletePlan::new(&snapshot, prefix("00")).unwrap();
    assert_eq!((drop.rows, drop.cells), (2, 3 + 3 + 3 + 2));
    world.write(&model.load(vec![event(0, 5)]));
    world.load(model.now);
    assert!(matches!(world.try_commit(&snapshot, &drop.edit(), model.now), Err(StoreError::Conflict { .. })));
}

#[test]
fn a_rebuild_gives_way_to_no_drop() {
    let (world, mut model) = loaded("");
    let (base, edit) = world.rebuilt().unwrap();
    // Deleted and compacted while the table was rebuilt.
    let snapshot = world.snapshot().unwrap();
    world.commit(&snapshot, &DeletePlan::new(&snapshot, prefix("00")).unwrap().edit(), model.now);
    model.drop(prefix("00"));
    let snapshot = world.snapshot().unwrap();
    let done = Compaction::run(&CompactionPlan::new(&snapshot, model.now).unwrap(), &world.ids).unwrap();
    world.commit(&snapshot, &done.edit, model.now);
    world.table().commit(base, &edit, &world.ids, model.now).unwrap();
    assert_eq!(world.cells(), model.cells());
    world.rebuild();
    assert_eq!(world.cells(), model.cells());

    // With an input newer than the delete, their rows cannot be told apart in one SST: the load must be repeated.
    world.write(&model.load(vec![event(1, 3)]));
    let (base, edit) = world.rebuilt().unwrap();
    let snapshot = world.snapshot().unwrap();
    world.commit(&snapshot, &DeletePlan::new(&snapshot, prefix("01")).unwrap().edit(), model.now);
    let refused = world.table().commit(base, &edit, &world.ids, model.now);
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    world.rebuild();
    assert_eq!(world.cells().keys().filter(|cell| cell.0.starts_with("01")).count(), 4, "the new input stays");
}

#[test]
fn a_drop_must_name_something() {
    let (world, model) = loaded("");
    let snapshot = world.snapshot().unwrap();
    assert!(matches!(DeletePlan::new(&snapshot, prefix("")), Err(StoreError::DeleteNamesNoRow { .. })));
    let family = DeleteTarget::Family { key: b"00#20180101".to_vec(), family: "X".to_owned() };
    let refused = DeletePlan::new(&snapshot, family).unwrap_err();
    assert!(refused.to_string().contains("it has F, G"), "{refused}");
    let nothing = DeletePlan::new(&snapshot, prefix("9")).unwrap();
    // It is recorded, once, for what the inputs bring later.
    assert!(nothing.is_empty() && !nothing.edit().is_empty());
    world.commit(&snapshot, &nothing.edit(), model.now);
    let snapshot = world.snapshot().unwrap();
    assert!(DeletePlan::new(&snapshot, prefix("9")).unwrap().edit().is_empty());
    // The commit refuses it too.
    let wrong = VersionEdit { deletes: vec![prefix("")], base: snapshot.version().number, ..VersionEdit::default() };
    assert!(world.try_commit(&snapshot, &wrong, model.now).is_err());
}

#[test]
fn an_input_may_take_no_sequence_that_a_drop_holds_for() {
    let (world, mut model) = loaded("");
    let snapshot = world.snapshot().unwrap();
    let plan = DeletePlan::new(&snapshot, prefix("0")).unwrap();
    world.commit(&snapshot, &plan.edit(), model.now);
    model.drop(prefix("0"));
    // The last input is removed; the next one still gets a sequence number after the delete.
    let snapshot = world.snapshot().unwrap();
    let last = snapshot.version().inputs.last().unwrap().path.clone();
    let gone = VersionEdit { removed: vec![last], base: snapshot.version().number, ..VersionEdit::default() };
    world.commit(&snapshot, &gone, model.now);
    assert_eq!(world.snapshot().unwrap().version().next_input_seqno(), 4);
}

#[test]
fn a_window_that_loses_all_its_rows_keeps_its_days() {
    let (world, model) = loaded("maxage=1h");
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, START + 10 * DAY).unwrap();
    let done = Compaction::run(&plan, &world.ids).unwrap();
    assert_eq!(done.after, (0, 0));
    world.commit(&snapshot, &done.edit, plan.now);
    let version = world.snapshot().unwrap().version().clone();
    assert_eq!(version.ssts().count(), 0);
    // The first day had expired before, so it does not change.
    let changed: Vec<u64> = version.windows.iter().flat_map(|window| window.days.values().copied()).collect();
    assert_eq!(changed, [3, version.number]);
    // A run with an earlier clock does not turn the time back: removed cells would be missing.
    world.write(&Model::new(true, "").load(vec![event(2, 0)]));
    world.load(model.now);
    assert_eq!(world.snapshot().unwrap().version().now, plan.now);
}
