//! Upserts against a model: newer events replace rows, and events without values empty them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

use std::cmp::Reverse;

use proptest::prelude::*;
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{TableSpec, Window};
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};
use tidetable_upkeep::{VerifyOptions, verify};

use model::{Cells, DAY, Event, File, START, World};

#[derive(Debug, Clone)]
enum Step {
    Load(Vec<Event>),
    Compact(CompactionExtent),
    Drop(u64),
    Rebuild,
}

/// The newest event of each id; null values have no cell.
fn table() -> TableSpec {
    let column = |qualifier: &str, value: &str| ColumnSpec {
        qualifier: qualifier.to_owned(),
        value: value.to_owned(),
        ..ColumnSpec::default()
    };
    let families = [("F", "q", "{q}"), ("G", "w", "{w}")].map(|(family, qualifier, value)| FamilySpec {
        name: family.to_owned(),
        columns: vec![column(qualifier, value)],
        ..FamilySpec::default()
    });
    TableSpec {
        name: "T".to_owned(),
        row_key: "{id:02}".to_owned(),
        window: Window::None,
        upsert: true,
        families: families.into(),
        ..TableSpec::default()
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let event = (0u64..3, 0i64..6, prop_oneof![2 => Just(""), 1 => Just("a")], prop::option::of(0i64..3));
    event.prop_map(|(id, day, q, w)| Event { id, time: START + day * DAY, q: q.to_owned(), v: 0, w })
}

fn any_step() -> impl Strategy<Value = Step> {
    let extents =
        prop_oneof![Just(CompactionExtent::Due), Just(CompactionExtent::Needed), Just(CompactionExtent::Full)];
    prop_oneof![
        8 => prop::collection::vec(any_event(), 1..4).prop_map(Step::Load),
        2 => extents.prop_map(Step::Compact),
        1 => (0u64..3).prop_map(Step::Drop),
        1 => Just(Step::Rebuild),
    ]
}

/// The visible cells of events in order of arrival; those of an id before its last delete are hidden.
fn shown(events: &[Event], drops: &[(usize, u64)]) -> Cells {
    let mut cells = Cells::new();
    for id in 0..3 {
        let from = drops.iter().filter(|(_, dropped)| *dropped == id).map(|(from, _)| *from).max().unwrap_or(0);
        let Some(newest) = events[from..].iter().filter(|event| event.id == id).max_by_key(|event| event.time) else {
            continue;
        };
        let mut put = |family: &str, qualifier: &str, value: Option<String>| {
            let key = (format!("{id:02}"), family.to_owned(), qualifier.to_owned(), Reverse(newest.time));
            value.map(|value| cells.insert(key, value));
        };
        put("F", "q", Some(newest.q.clone()).filter(|q| !q.is_empty()));
        put("G", "w", newest.w.map(|w| w.to_string()));
    }
    cells
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_time_of_an_event_without_values_stands(steps in prop::collection::vec(any_step(), 1..16), rule: bool) {
        let world = World::of(&table(), if rule { "maxversions=1" } else { "" }, 256 << 20);
        let (mut events, mut drops) = (Vec::<Event>::new(), Vec::new());
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Load(more) => {
                    let more: Vec<Event> = more.into_iter().map(|event| Event { v: at as u64, ..event }).collect();
                    world.write(&File::of(&format!("{at:02}.csv"), &more));
                    world.load(START);
                    events.extend(more);
                }
                Step::Rebuild => world.rebuild(),
                Step::Compact(_) | Step::Drop(_) if world.snapshot().is_none() => continue,
                Step::Compact(extent) => {
                    let snapshot = world.snapshot().unwrap();
                    let plan = CompactionPlan::of_extent(&snapshot, START, extent).unwrap();
                    let done = Compaction::run(&plan, &world.ids).unwrap();
                    if !done.edit.is_empty() {
                        world.commit(&snapshot, &done.edit, plan.now);
                    }
                }
                Step::Drop(id) => {
                    let snapshot = world.snapshot().unwrap();
                    let key = format!("{id:02}").into_bytes();
                    let plan = DeletePlan::new(&snapshot, DeleteTarget::Row { key }).unwrap();
                    if !plan.is_empty() {
                        world.commit(&snapshot, &plan.edit(), START);
                        drops.push((events.len(), id));
                    }
                }
            }
            prop_assert_eq!(world.cells(), shown(&events, &drops), "step {}", at);
        }
        if world.snapshot().is_some() {
            prop_assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());
        }
    }
}
