//! Random loads, changes, drops, compactions, rebuilds, snapshots and reads against a map of cells.

use std::sync::Arc;

use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use super::{Figures, each_seed};
use crate::cells::{Cells, cells_in, cells_of_row, same};
use crate::event::Spread;
use crate::finding::{Finding, Result};
use crate::model::Model;
use crate::random::Random;
use crate::sim::Shelf;
use crate::step::{Kind, Script};
use crate::world::{Done, World, offer, tell};

/// Every so many seeds one has inputs of many pages and stripes.
const LARGE: u64 = 50;

/// `operations` in each of so many seeds.
///
/// # Errors
/// The first difference.
pub fn prove(first: u64, seeds: u64, operations: u64) -> Result<Figures> {
    each_seed(first, seeds, |seed| {
        // Large inputs cost a thousand times as much.
        let large = seed % LARGE == LARGE - 1;
        let (figures, bytes) = run(seed, if large { operations / 20 } else { operations }, large)?;
        // Once again, now and then: a run must be a function of its seed.
        if seed % 10 == 0 {
            let (_, again) = run(seed, if large { operations / 20 } else { operations }, large)?;
            if again != bytes {
                return Err(Finding::new("the same run gave other bytes"));
            }
        }
        Ok(figures)
    })
}

/// A reader that goes on while the table changes.
struct Held {
    snapshot: Snapshot,
    cells: Cells,
}

fn run(seed: u64, operations: u64, large: bool) -> Result<(Figures, u128)> {
    let mut random = Random::new(seed);
    let mut kind = Kind::any(&mut random);
    if large {
        kind.spread = Spread { ids: 50_000, days: 1, hours: 4 };
    }
    let shelf = Arc::new(Shelf::default());
    let mut world = World::new(Arc::clone(&shelf) as _, kind, seed)?;
    if large && random.one_in(2) {
        // So little that a load writes several sorted runs.
        world.memory = 1 << 20;
    }
    let mut model = World::model(kind)?;
    let mut script = Script::new(kind, Random::new(random.number()), if large { 120_000 } else { 12 });
    let mut held: Vec<Held> = Vec::new();
    let mut figures = Figures::default();
    for operation in 0..operations {
        let name = match random.below(100) {
            0..24 => change(&world, &mut model, &mut script)?,
            24..60 => read_range(&world, &model, kind, &mut random)?,
            60..90 => read_row(&world, &model, kind, &mut random)?,
            90..95 => {
                if let Some(snapshot) = world.snapshot()? {
                    held.truncate(7);
                    held.insert(random.place(held.len() + 1), Held { snapshot, cells: model.cells().clone() });
                }
                "snapshots"
            }
            _ => {
                if let Some(Held { snapshot, cells }) = held.get(random.place(held.len())) {
                    let found = cells_in(snapshot, &KeyRange::all())?;
                    same(&format!("snapshot of version {}", snapshot.version().number), &found, cells)?;
                }
                "reads of snapshots"
            }
        };
        figures.add(&Figures(vec![("operations", 1), (name, 1)]));
        let _ = operation;
    }
    for Held { snapshot, cells } in &held {
        same("a snapshot at the end", &cells_in(snapshot, &KeyRange::all())?, cells)?;
    }
    figures.add(&Figures(vec![("seeds", 1)]));
    Ok((figures, shelf.hash()))
}

fn change(world: &World, model: &mut Model, script: &mut Script) -> Result<&'static str> {
    let step = script.next(model.inputs().len());
    let now = model.now();
    let before = model.would_hide_by(&step);
    offer(model, &step);
    let done = world.act(&step, model.inputs(), now)?;
    if let Some((shown, stored)) = before {
        let committed = done != Done::Nothing;
        if shown && !committed || committed && !stored {
            return Err(Finding::new(format!("a drop hides cells: {shown}, committed: {committed}; {step:?}")));
        }
    }
    let time = world.snapshot()?.map_or(now, |snapshot| snapshot.version().now);
    tell(model, &step, done, time);
    same(&format!("after {}", step.name()), &world.cells()?, model.cells())?;
    // Rows that are there, by way of the filters: keys at random seldom are.
    let keys = model.cells().keys().map(|cell| &cell.0);
    for key in keys.step_by(model.cells().len() / 20 + 1) {
        if let Some(snapshot) = world.snapshot()? {
            let expected = model.cells_in(&KeyRange::of_key(key.as_bytes()));
            same(&format!("row {key}"), &cells_of_row(&snapshot, key)?, &expected)?;
        }
    }
    Ok(step.name())
}

fn any_key(kind: Kind, random: &mut Random) -> String {
    let (id, day) = (random.below(kind.spread.ids + 1), random.below(kind.spread.days + 2));
    if kind.dated { format!("{id:05}#201801{day:02}") } else { format!("{id:05}") }
}

fn read_range(world: &World, model: &Model, kind: Kind, random: &mut Random) -> Result<&'static str> {
    let (a, b) = (any_key(kind, random), any_key(kind, random));
    let keys = match random.below(4) {
        0 => KeyRange { start: a.into_bytes(), end: None },
        1 => KeyRange::prefix(&a.as_bytes()[..a.len().min(5)]),
        _ => KeyRange { start: a.clone().min(b.clone()).into_bytes(), end: Some(a.max(b).into_bytes()) },
    };
    if let Some(snapshot) = world.snapshot()? {
        same(&format!("range {keys:?}"), &cells_in(&snapshot, &keys)?, &model.cells_in(&keys))?;
    }
    Ok("ranges")
}

fn read_row(world: &World, model: &Model, kind: Kind, random: &mut Random) -> Result<&'static str> {
    let key = any_key(kind, random);
    if let Some(snapshot) = world.snapshot()? {
        let expected = model.cells_in(&KeyRange::of_key(key.as_bytes()));
        same(&format!("row {key}"), &cells_of_row(&snapshot, &key)?, &expected)?;
    }
    Ok("rows")
}
