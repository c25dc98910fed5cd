//! A scripted run on a simulated disk, with the data to check it and to continue from any step.

use std::path::PathBuf;
use std::sync::Arc;

use tidetable_blobs::LocalBlobs;

use crate::cells::{Cells, same};
use crate::event::Inputs;
use crate::finding::{Finding, Result};
use crate::random::Random;
use crate::sim::{Platter, SimDisk};
use crate::step::{Kind, Script, Step};
use crate::world::{Done, World, offer, tell};

/// A step that was taken, with all that another run needs to go on from there.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The step, as the script gave it.
    pub step: Step,
    /// The inputs that the step found, its own included.
    pub inputs: Inputs,
    /// Logical time before the step, microseconds since the epoch.
    pub now: i64,
    /// Number of the newest version after the step.
    pub version: u64,
    /// The cells that a read shows after it, by the model.
    pub cells: Cells,
    /// The disk before the step, from which it can be taken again.
    pub before: Platter,
}

/// A run on a simulated disk, whose steps all succeeded.
#[derive(Debug, Clone)]
pub struct Run {
    /// The kind of its table, by which another run opens it.
    pub kind: Kind,
    /// Its steps in order, each with what it found.
    pub taken: Vec<Taken>,
}

impl Run {
    /// Runs `steps` random steps on `disk`, each marked with the version before it.
    ///
    /// # Errors
    /// If the table and the model differ.
    pub fn new(seed: u64, steps: usize, disk: &SimDisk) -> Result<Self> {
        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        let world = world(disk, kind, 0)?;
        let mut model = World::model(kind)?;
        let mut script = Script::new(kind, random, 8);
        let mut taken: Vec<Taken> = Vec::new();
        let mut version = 0;
        for _ in 0..steps {
            let step = script.next(model.inputs().len());
            offer(&mut model, &step);
            let (before, now) = (disk.platter(), model.now());

            let done = world.act(&step, model.inputs(), now)?;
            if let Done::Committed(number) = done {
                version = number;
                disk.mark(number);
            }

            let time = world.snapshot()?.map_or(now, |snapshot| snapshot.version().now);
            tell(&mut model, &step, done, time);
            same(step.name(), &world.cells()?, model.cells())?;
            let (inputs, cells) = (model.inputs().clone(), model.cells().clone());
            taken.push(Taken { step, inputs, now, version, cells, before });
        }
        Ok(Self { kind, taken })
    }

    /// The cells that a read of version `number` shows.
    ///
    /// # Errors
    /// If there was no such version.
    pub fn cells_of(&self, number: u64) -> Result<Cells> {
        if number == 0 {
            return Ok(Cells::new());
        }
        let taken = self.taken.iter().find(|taken| taken.version == number);
        taken.map(|taken| taken.cells.clone()).ok_or_else(|| Finding::new(format!("version {number} never existed")))
    }

    /// Repeats the steps after version `number`, on a disk with that version.
    ///
    /// # Errors
    /// If a step fails or gives wrong cells.
    pub fn go_on(&self, disk: &SimDisk, number: u64, run: u64) -> Result<()> {
        let world = world(disk, self.kind, run)?;
        for taken in self.taken.iter().skip_while(|taken| taken.version <= number) {
            world.act(&taken.step, &taken.inputs, taken.now)?;
            same(&format!("going on with {}", taken.step.name()), &world.cells()?, &taken.cells)?;
        }
        Ok(())
    }
}

/// The table on a simulated disk.
///
/// # Errors
/// If its layout does not compile.
pub fn world(disk: &SimDisk, kind: Kind, run: u64) -> Result<World> {
    let blobs = LocalBlobs::on(Arc::new(disk.clone()), PathBuf::from("/store"));
    let mut world = World::new(Arc::new(blobs), kind, run)?;
    world.exact = true;
    Ok(world)
}
