//! Model check: random loads, changes, deletes, compactions, rebuilds, vacuums, snapshots and reads against a map of
//! cells.

use std::sync::Arc;

use tidetable_blobs::Blobs;
use tidetable_layout::KeyRange;
use tidetable_store::{Snapshot, StoreError};

use super::kept::{Shown, tidy, whole};
use super::{Figures, each_seed};
use crate::cells::{Cells, cells_in, cells_of_row, same};
use crate::event::Spread;
use crate::finding::{Finding, Result};
use crate::model::Model;
use crate::random::Random;
use crate::sim::Shelf;
use crate::step::{Kind, Script, Step};
use crate::world::{Done, World, offer, tell};

/// One seed in this many has inputs of many pages and stripes.
const LARGE: u64 = 50;

/// Makes `operations` steps for each seed.
///
/// # Errors
/// The first difference.
pub fn prove(first: u64, seeds: u64, operations: u64) -> Result<Figures> {
    each_seed(first, seeds, |seed| {
        // Large inputs cost a thousand times as much.
        let large = seed % LARGE == LARGE - 1;
        let (figures, bytes) = run(seed, if large { operations / 20 } else { operations }, large)?;
        // Sometimes repeated: a run must be a function of its seed.
        if seed % 10 == 0 {
            let (_, again) = run(seed, if large { operations / 20 } else { operations }, large)?;
            if again != bytes {
                return Err(Finding::new("the same run gave other bytes"));
            }
        }
        Ok(figures)
    })
}

/// A snapshot held while the table changes.
struct Held {
    snapshot: Snapshot,
    cells: Cells,
}

struct Pair {
    world: World,
    model: Model,
    script: Script,
    /// Of the newest version; `None` before the first commit.
    snapshot: Option<Snapshot>,
    shown: Shown,
    held: Vec<Held>,
}

fn run(seed: u64, operations: u64, large: bool) -> Result<(Figures, u128)> {
    let shelf = Shelf::default();
    let figures = on(Arc::new(shelf.clone()), seed, operations, large)?;
    Ok((figures, shelf.hash()))
}

/// Makes `operations` steps on storage whose files all have different times.
pub(super) fn on(blobs: Arc<dyn Blobs>, seed: u64, operations: u64, large: bool) -> Result<Figures> {
    let mut random = Random::new(seed);
    let mut kind = Kind::any(&mut random);
    if large {
        kind.spread = Spread { ids: 50_000, days: 1, hours: 4 };
    }
    let mut world = World::new(blobs, kind, seed)?;
    world.exact = true;
    if large && random.one_in(2) {
        // Small, so that a load writes several sorted runs.
        world.memory = 1 << 20;
    }

    let script = Script::new(kind, Random::new(random.number()), if large { 120_000 } else { 12 });
    let (shown, held) = (Shown::default(), Vec::new());
    let mut pair = Pair { world, model: World::model(kind)?, script, snapshot: None, shown, held };
    let mut figures = Figures::default();
    for _ in 0..operations {
        let name = match random.below(1000) {
            0..230 => pair.change()?,
            230..240 => pair.under_way(&mut random)?,
            240..600 => pair.read_range(kind, &mut random)?,
            600..900 => pair.read_row(kind, &mut random)?,
            900..950 => pair.hold(&mut random),
            950..980 => pair.read_held(&mut random)?,
            980..995 => pair.read_older(&mut random)?,
            _ => pair.verify(&mut random)?,
        };
        figures.add(&Figures(vec![("operations", 1), (name, 1)]));
    }

    for Held { snapshot, cells } in &pair.held {
        same("a snapshot at the end", &cells_in(snapshot, &KeyRange::all())?, cells)?;
    }
    whole(pair.world.table(), true)?;
    figures.add(&Figures(vec![("seeds", 1)]));
    Ok(figures)
}

impl Pair {
    fn change(&mut self) -> Result<&'static str> {
        let step = self.script.next(self.model.inputs().len());
        let must_keep = self.model.must_keep_by(&step) && self.snapshot.is_some();
        offer(&mut self.model, &step);
        let done = self.world.act(&step, self.model.inputs(), self.model.now())?;
        if must_keep && done == Done::Nothing {
            return Err(Finding::new(format!("a drop was not kept: {step:?}")));
        }
        self.look(&step, done)?;
        if let Step::Vacuum(kept) = step {
            self.shown.vacuumed(self.world.table(), kept)?;
            tidy(self.world.table())?;
            let numbers = self.shown.numbers();
            numbers.iter().try_for_each(|number| self.shown.check(self.world.table(), *number))?;
            // A snapshot does not keep files from vacuum.
            self.held.retain(|held| numbers.first() <= Some(&held.snapshot.version().number));
        }
        Ok(step.name())
    }

    /// Checks the table after a step: the newest version against the model, as a whole and row by row.
    fn look(&mut self, step: &Step, done: Done) -> Result<()> {
        self.snapshot = self.world.snapshot()?;
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        tell(&mut self.model, step, done, snapshot.version().now);
        same(&format!("after {}", step.name()), &cells_in(snapshot, &KeyRange::all())?, self.model.cells())?;
        self.shown.put(snapshot.version().number, self.model.cells());
        // Point lookups of existing rows: random keys rarely exist.
        let keys = self.model.cells().keys().map(|cell| &cell.0);
        for key in keys.step_by(self.model.cells().len() / 20 + 1) {
            let expected = self.model.cells_in(&KeyRange::of_key(key.as_bytes()));
            same(&format!("row {key}"), &cells_of_row(snapshot, key)?, &expected)?;
        }
        Ok(())
    }

    /// A vacuum between writing and committing a load. If its cutoff is before the load's files, the load is
    /// committed; otherwise it is refused and repeated.
    fn under_way(&mut self, random: &mut Random) -> Result<&'static str> {
        let Some(before) = self.snapshot.as_ref().map(|snapshot| snapshot.version().number) else {
            return self.change();
        };

        let step = Step::Load(self.script.events());
        offer(&mut self.model, &step);
        let (now, sleeps) = (self.model.now(), random.one_in(2));
        let (base, edit) = self.world.prepared(self.model.inputs())?;
        let table = self.world.table();
        let mut written = None;
        for sst in edit.ssts.values().flatten() {
            written = written.max(table.blobs().stat(&table.sst_path(&sst.id))?.and_then(|stat| stat.modified));
        }
        let after = written.filter(|_| sleeps).map(|written| written + 1);

        // Only a vacuum that removes SSTs commits a version.
        let said = self.world.vacuum(1 + random.below(3), after)?;
        let kept = table.version_numbers()?.first().copied().unwrap_or(before);
        self.shown.vacuumed(table, (before + 1).saturating_sub(kept))?;
        self.held.retain(|held| kept <= held.snapshot.version().number);

        let done = match table.commit(base, &edit, self.world.ids(), now) {
            Ok(version) if !sleeps || said == Done::Nothing => Done::Committed(version.number),
            Err(StoreError::Fenced { .. }) if sleeps => self.world.act(&step, self.model.inputs(), now)?,
            Ok(version) => return Err(Finding::new(format!("version {} names files that are gone", version.number))),
            Err(error) => return Err(Finding::from(error).at("a load that a vacuum came upon")),
        };

        self.look(&step, done)?;
        whole(self.world.table(), false)?;
        Ok("vacuums upon a load")
    }

    fn hold(&mut self, random: &mut Random) -> &'static str {
        if let Some(snapshot) = &self.snapshot {
            self.held.truncate(7);
            let held = Held { snapshot: snapshot.clone(), cells: self.model.cells().clone() };
            self.held.insert(random.place(self.held.len() + 1), held);
        }
        "snapshots"
    }

    fn read_held(&self, random: &mut Random) -> Result<&'static str> {
        if let Some(Held { snapshot, cells }) = self.held.get(random.place(self.held.len())) {
            let found = cells_in(snapshot, &KeyRange::all())?;
            same(&format!("snapshot of version {}", snapshot.version().number), &found, cells)?;
        }
        Ok("reads of snapshots")
    }

    fn read_older(&self, random: &mut Random) -> Result<&'static str> {
        if let Some(number) = random.pick(&self.shown.numbers()) {
            self.shown.check(self.world.table(), number)?;
        }
        Ok("reads of older versions")
    }

    fn verify(&self, random: &mut Random) -> Result<&'static str> {
        whole(self.world.table(), random.one_in(8))?;
        Ok("verifies")
    }

    fn read_range(&self, kind: Kind, random: &mut Random) -> Result<&'static str> {
        let (a, b) = (any_key(kind, random), any_key(kind, random));
        let keys = match random.below(4) {
            0 => KeyRange { start: a.into_bytes(), end: None },
            1 => KeyRange::prefix(&a.as_bytes()[..a.len().min(5)]),
            _ => KeyRange { start: a.clone().min(b.clone()).into_bytes(), end: Some(a.max(b).into_bytes()) },
        };
        if let Some(snapshot) = &self.snapshot {
            same(&format!("range {keys:?}"), &cells_in(snapshot, &keys)?, &self.model.cells_in(&keys))?;
        }
        Ok("ranges")
    }

    fn read_row(&self, kind: Kind, random: &mut Random) -> Result<&'static str> {
        let key = any_key(kind, random);
        if let Some(snapshot) = &self.snapshot {
            let expected = self.model.cells_in(&KeyRange::of_key(key.as_bytes()));
            same(&format!("row {key}"), &cells_of_row(snapshot, &key)?, &expected)?;
        }
        Ok("rows")
    }
}

fn any_key(kind: Kind, random: &mut Random) -> String {
    let (id, day) = (random.below(kind.spread.ids + 1), random.below(kind.spread.days + 2));
    if kind.dated { format!("{id:05}#201801{day:02}") } else { format!("{id:05}") }
}
