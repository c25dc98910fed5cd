//! Pushes and comparisons against the official emulator, with faults between.
//!
//! Not compared, because the emulator differs from the service:
//! - a table of microseconds: the emulator refuses timestamps that are no whole milliseconds, and so deletes of one;
//! - aggregate families other than sums: it keeps what was written last, which one push does not show;
//! - an idempotency token: it is ignored, so cells are read back before they are merged again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidetable_proof::event::{Inputs, START};
use tidetable_proof::random::Random;
use tidetable_proof::shape::small;
use tidetable_proof::sim::Shelf;
use tidetable_proof::step::{Kind, Script, Step};
use tidetable_proof::world::World;
use tidetable_store::Store;

use crate::support::emulator::Emulator;
use crate::support::faults::{Fault, Faults};
use crate::support::{client, diff, push_of, push_until_done, runtime};
use tonic::Code;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn tables_of_every_shape_go_there() {
    let Some(emulator) = Emulator::start() else { return };
    let runtime = runtime();
    let client = client(&emulator.address(), PATIENCE, &runtime);
    for (at, shape) in small().unwrap().into_iter().enumerate() {
        let store = Store::new(Arc::new(shape.shelf));
        let table = format!("T{at}");
        let push = push_of(&store, &client, &table, "first");
        let state = push_until_done(&push, 1, &runtime).unwrap_or_else(|error| panic!("{}: {error}", shape.name));
        assert!(state.counts.cells > 0, "{}", shape.name);
        let found = diff(&store, &client, &table, &runtime);
        assert!(found.is_equal() && found.cells_equal == state.counts.cells, "{}: {found:?}", shape.name);
        if shape.name.starts_with("every type") {
            // It is of microseconds, which the emulator forgets of a table.
            continue;
        }
        // A second push has nothing to do.
        let plan = push.plan(runtime.handle()).unwrap();
        assert!(plan.is_done && !plan.creates(), "{}", shape.name);
    }
}

#[test]
fn every_fault_at_every_request_loses_and_doubles_nothing() {
    let Some(emulator) = Emulator::start() else { return };
    let runtime = runtime();
    let direct = client(&emulator.address(), PATIENCE, &runtime);
    let faults = [
        Fault::Before(Code::Unavailable),
        Fault::After(Code::Unavailable),
        Fault::After(Code::DeadlineExceeded),
        Fault::Reset(0),
        Fault::Reset(1),
        Fault::Partial,
    ];
    let shapes = small().unwrap();
    // Of cells that replace each other, and of sums, which must not be added twice.
    for (at, shape) in shapes.iter().enumerate().filter(|(_, shape)| matches!(shape.name, "compacted" | "aggregates")) {
        for (number, fault) in faults.into_iter().enumerate() {
            // Every second request of a method fails, so each of them does once.
            let seen: Mutex<HashMap<String, u64>> = Mutex::default();
            let proxy = Faults::start(&emulator.address(), move |path, _| {
                let mut seen = seen.lock().unwrap();
                let number = seen.entry(path.to_owned()).or_default();
                *number += 1;
                if *number % 2 == 1 { fault } else { Fault::None }
            });
            let through = client(&proxy.address(), PATIENCE, &runtime);
            let store = Store::new(Arc::new(shape.shelf.clone()));
            let table = format!("F{at}x{number}");
            let push = push_of(&store, &through, &table, "p");
            push_until_done(&push, 1, &runtime).unwrap_or_else(|error| panic!("{} {fault:?}: {error}", shape.name));
            assert!(proxy.seen() > 3);
            let found = diff(&store, &direct, &table, &runtime);
            assert!(found.is_equal() && found.cells_equal > 0, "{} {fault:?}: {found:?}", shape.name);
            let again = diff(&store, &through, &table, &runtime);
            assert_eq!(again, found, "read through the proxy: {} {fault:?}", shape.name);
        }
    }
}

#[test]
fn what_changes_is_pushed_whatever_happens_to_a_table() {
    let Some(emulator) = Emulator::start() else { return };
    let runtime = runtime();
    let direct = client(&emulator.address(), PATIENCE, &runtime);
    // Every third request fails in some way.
    let proxy = Faults::start(&emulator.address(), |_, request| match request % 9 {
        2 => Fault::After(Code::Unavailable),
        5 => Fault::Partial,
        8 => Fault::Reset(1),
        _ => Fault::None,
    });
    let through = client(&proxy.address(), PATIENCE, &runtime);
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        let shelf = Shelf::default();
        let world = World::new(Arc::new(shelf.clone()), kind, seed).unwrap();
        let store = Store::new(Arc::new(shelf));
        let mut script = Script::new(kind, random, 12);
        let (mut inputs, mut now) = (Inputs::default(), START);
        let table = format!("C{seed}");
        for number in 0..8 {
            let step = script.next(inputs.len());
            match &step {
                Step::Load(events) => inputs.add(events.clone()),
                Step::Change(at, events) => inputs.change(*at, events.clone()),
                // Of a version that is gone nothing is known; this is another test.
                Step::Vacuum(_) => continue,
                _ => {}
            }
            now += 3_600_000_000;
            world.act(&step, &inputs, now).unwrap();
            if store.table("T").latest_number().unwrap() == 0 {
                continue;
            }
            let push = push_of(&store, &through, &table, &format!("{seed}-{number}"));
            push_until_done(&push, 3, &runtime).unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
            let found = diff(&store, &direct, &table, &runtime);
            assert!(found.is_equal(), "seed {seed} ({kind:?}), after {}: {found:?}", step.name());
        }
    }
}

#[test]
fn a_push_goes_on_when_the_server_is_lost_or_it_is_stopped() {
    let Some(mut emulator) = Emulator::start() else { return };
    let runtime = runtime();
    let direct = client(&emulator.address(), Duration::from_secs(2), &runtime);
    let shape = small().unwrap().into_iter().find(|shape| shape.name == "aggregates").unwrap();
    let store = Store::new(Arc::new(shape.shelf));
    // A connection that ends at each request in turn: the push fails, as its patience is short, and is repeated.
    for last in 0..8 {
        let table = format!("K{last}");
        let proxy = Faults::start(&emulator.address(), move |_, request| {
            if request < last { Fault::None } else { Fault::After(Code::Unavailable) }
        });
        let cut = client(&proxy.address(), Duration::from_millis(200), &runtime);
        let _ = push_until_done(&push_of(&store, &cut, &table, "cut"), 1, &runtime);
        push_until_done(&push_of(&store, &direct, &table, "again"), 2, &runtime).unwrap();
        let found = diff(&store, &direct, &table, &runtime);
        assert!(found.is_equal() && found.cells_equal > 0, "cut at {last}: {found:?}");
    }
    emulator.restart();
    let direct = client(&emulator.address(), PATIENCE, &runtime);
    let push = push_of(&store, &direct, "K0", "after");
    let plan = push.plan(runtime.handle()).unwrap();
    assert!(plan.creates_table && plan.notes.iter().any(|note| note.contains("is gone")), "{:?}", plan.notes);
    push_until_done(&push, 1, &runtime).unwrap();
    assert!(diff(&store, &direct, "K0", &runtime).is_equal());
}

#[test]
fn a_target_that_does_not_fit_is_refused_before_anything_is_written() {
    let Some(emulator) = Emulator::start() else { return };
    let runtime = runtime();
    let client = client(&emulator.address(), PATIENCE, &runtime);
    let shapes = small().unwrap();
    let store_of = |name: &str| {
        let shape = shapes.iter().find(|shape| shape.name == name).unwrap();
        Store::new(Arc::new(shape.shelf.clone()))
    };
    let sums = store_of("aggregates");
    let mut push = push_of(&sums, &client, "R", "r");
    push.choices.create = false;
    let message = |error: tidetable_bigtable::BigtableError| error.to_string();
    assert!(message(push.plan(runtime.handle()).unwrap_err()).contains("--create"));
    push.choices.create = true;
    push_until_done(&push, 1, &runtime).unwrap();
    // Other sums are there already: they would be added.
    let others =
        Store::new(Arc::new(small().unwrap().into_iter().find(|shape| shape.name == "aggregates").unwrap().shelf));
    let error = push_until_done(&push_of(&others, &client, "R", "other"), 1, &runtime).unwrap_err();
    assert!(message(error).contains("aggregate family"));
    // Compared, there is nothing to do.
    let mut compared = push_of(&others, &client, "R", "compared");
    compared.choices.compare = true;
    let state = push_until_done(&compared, 1, &runtime).unwrap();
    assert_eq!((state.counts.cells, state.counts.deleted), (0, 0));
    // What someone else wrote beside it is deleted by a comparison.
    let fresh = store_of("fresh");
    push_until_done(&push_of(&fresh, &client, "S", "s"), 1, &runtime).unwrap();
    let compacted = store_of("compacted");
    let mut compared = push_of(&compacted, &client, "S", "compared");
    compared.choices.compare = true;
    push_until_done(&compared, 1, &runtime).unwrap();
    assert!(diff(&compacted, &client, "S", &runtime).is_equal());
}
