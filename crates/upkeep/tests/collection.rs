//! Maintenance of a table: verify, repair, vacuum and checkpoints.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

#[path = "collection/checkpoints.rs"]
mod checkpoints;
#[path = "collection/disk.rs"]
mod disk;
#[path = "collection/full.rs"]
mod full;
#[path = "collection/grown.rs"]
mod grown;
#[path = "collection/oldest.rs"]
mod oldest;
#[path = "collection/progress.rs"]
mod progress;
#[path = "collection/repair.rs"]
mod repair;
#[path = "collection/shared_files.rs"]
mod shared_files;
#[path = "collection/staging.rs"]
mod staging;
#[path = "collection/vacuum.rs"]
mod vacuum;
#[path = "collection/verify.rs"]
mod verify;
#[path = "collection/writers.rs"]
mod writers;

use std::path::PathBuf;

use model::{Event, Model, START, World};

fn event(id: u64, hours: i64) -> Event {
    Event { id, time: START + hours * 3_600_000_000, q: "a".to_owned(), v: 0, w: Some(hours) }
}

/// Path of a file of the store on disk.
fn path(world: &World, inside: &str) -> PathBuf {
    PathBuf::from(world.table().blobs().display()).join(inside)
}

/// Loads these events as one more input.
fn load(world: &World, model: &mut Model, events: Vec<Event>) {
    world.write(&model.load(events));
    world.load(model.now);
}

/// A table of three loads over two days, and its model.
fn loaded() -> (World, Model) {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    for events in [vec![event(0, 0), event(1, 0)], vec![event(0, 1), event(0, 30)], vec![event(1, 2)]] {
        load(&world, &mut model, events);
    }
    (world, model)
}
