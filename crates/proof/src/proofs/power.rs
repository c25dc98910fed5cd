//! Power loss before each change of a disk, which loses unsynced data.

use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use super::kept::{tidy, whole};
use super::run::{Run, world};
use super::{Figures, each_seed};
use crate::cells::{cells_in, same};
use crate::finding::{Finding, Result};
use crate::random::Random;
use crate::sim::{Boundary, Loss, SimDisk};

/// Partial losses tried at each boundary, besides the loss of everything unsynced.
const PARTIAL: u64 = 3;

/// Runs of `steps` steps, one per seed.
///
/// # Errors
/// A boundary after which the table does not match a prefix of the commits.
pub fn prove(first: u64, seeds: u64, steps: usize) -> Result<Figures> {
    each_seed(first, seeds, |seed| {
        let disk = SimDisk::default();
        disk.remember();
        let run = Run::new(seed, steps, &disk)?;
        let mut random = Random::new(!seed);

        let mut figures = Figures(vec![("seeds", 1), ("commits", run.taken.last().map_or(0, |taken| taken.version))]);
        for (at, boundary) in disk.boundaries().iter().enumerate() {
            let losses: Vec<Loss> = (0..PARTIAL).map(|_| Loss::Some(random.number())).collect();
            for loss in std::iter::once(Loss::Everything).chain(losses) {
                let goes_on = random.one_in(16);
                let checked = check(&run, boundary, loss, goes_on, &mut random);
                let (call, path) = &boundary.call;
                checked.map_err(|found| {
                    found.at(format_args!("boundary {at} (before {call:?} {}), {loss:?}", path.display()))
                })?;
                figures.add(&Figures(vec![("losses", 1), ("runs ended after a loss", u64::from(goes_on))]));
            }
            figures.add(&Figures(vec![("boundaries", 1)]));
        }
        Ok(figures)
    })
}

fn check(run: &Run, boundary: &Boundary, loss: Loss, goes_on: bool, random: &mut Random) -> Result<()> {
    let disk = SimDisk::new(boundary.platter.after(loss));
    let world = world(&disk, run.kind, 1 + random.number() / 2)?;
    let number = world.table().latest_number()?;
    // Acknowledged commits must exist; the one in progress may.
    if !(boundary.mark..=boundary.mark + 1).contains(&number) {
        return Err(Finding::new(format!("version {} was committed, version {number} is there", boundary.mark)));
    }

    same(&format!("version {number}"), &world.cells()?, &run.cells_of(number)?)?;
    if let Some(older) = random.pick(&world.table().version_numbers()?) {
        let snapshot = Snapshot::new(world.table().clone(), world.table().version(older)?.into())?;
        same(&format!("version {older}"), &cells_in(&snapshot, &KeyRange::all())?, &run.cells_of(older)?)?;
    }
    if random.one_in(4) {
        whole(world.table(), true)?;
    }

    if !goes_on {
        return Ok(());
    }
    run.go_on(&disk, number, 1 + random.number() / 2)?;
    world.vacuum(2, Some(i64::MAX))?;
    tidy(world.table())?;
    whole(world.table(), true)
}
