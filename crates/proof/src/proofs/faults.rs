//! Fault injection: every call of a disk fails once, in every possible way.
//!
//! A step with a fault returns a store error or succeeds. Either way the table is readable, as before the step or
//! after it; and once the disk works again, the step can be repeated. A vacuum then removes all leftovers of the
//! failed try.

use tidetable_blobs::BlobError;
use tidetable_store::StoreError;

use super::kept::{tidy, whole};
use super::run::{Run, Taken, world as open};
use super::{Figures, each_seed};
use crate::cells::{Cells, same};
use crate::finding::{Finding, Result};
use crate::sim::{Fault, FaultKind, Loss, SimDisk};
use crate::step::{Kind, Step};
use crate::world::{Done, World};

/// Versions that a vacuum keeps: more than any run has.
const MAX_VERSIONS: u64 = 1000;

/// Runs of `steps` steps, one per seed.
///
/// # Errors
/// A fault after which the table was wrong.
pub fn prove(first: u64, seeds: u64, steps: usize) -> Result<Figures> {
    each_seed(first, seeds, |seed| {
        let run = Run::new(seed, steps, &SimDisk::default())?;
        let mut figures = Figures(vec![("seeds", 1), ("steps", run.taken.len() as u64)]);
        let mut before = (Cells::new(), 0);

        for (at, taken) in run.taken.iter().enumerate() {
            let calls = {
                let disk = SimDisk::new(taken.before.clone());
                open(&disk, run.kind, 1)?.act(&taken.step, &taken.inputs, taken.now)?;
                disk.calls()
            };

            for (number, call) in calls.iter().enumerate() {
                for kind in FaultKind::ALL.into_iter().filter(|kind| kind.concerns(*call)) {
                    let fault = Fault { at: number as u64, kind };
                    let failed = check(run.kind, taken, &before, fault).map_err(|found| {
                        found.at(format_args!("step {at} ({}), {kind:?} of {call:?}, call {number}", taken.step.name()))
                    })?;
                    figures.add(&Figures(vec![("faults", 1), ("errors", u64::from(failed))]));
                }
            }

            before = (taken.cells.clone(), taken.version);
        }
        Ok(figures)
    })
}

/// Takes a step with a fault, and checks the table after it. Returns whether the step returned an error.
fn check(kind: Kind, taken: &Taken, before: &(Cells, u64), fault: Fault) -> Result<bool> {
    let disk = SimDisk::new(taken.before.clone());
    let world = open(&disk, kind, 2)?;
    disk.fail(fault);
    let done = world.act(&taken.step, &taken.inputs, taken.now);
    disk.heal();
    let acknowledged = match &done {
        Ok(Done::Committed(number)) => *number,
        Ok(Done::Nothing) => before.1,
        Err(Finding::Store(error)) => {
            typed(error)?;
            before.1
        }
        Err(other) => return Err(Finding::new(other.to_string())),
    };
    // A reader, now or after a power loss, sees the table as before the step or after it.
    let look = |what: &str, world: &World| -> Result<u64> {
        let number = world.table().latest_number()?;
        let cells = world.cells()?;
        if number == before.1 {
            same(what, &cells, &before.0)?
        } else {
            same(what, &cells, &taken.cells)?
        }
        if number < acknowledged || number > taken.version {
            return Err(Finding::new(format!("{what}: version {number}, where {acknowledged} was acknowledged")));
        }
        Ok(number)
    };

    look("after the fault", &world)?;
    look("after a loss of power", &open(&disk.after(Loss::Everything), kind, 3)?)?;

    // In another process, if this one died.
    let world = if fault.kind == FaultKind::Dead { open(&disk, kind, 5)? } else { world };
    if done.is_err() {
        let again = world.act(&taken.step, &taken.inputs, taken.now)?;
        same("done again", &world.cells()?, &taken.cells)?;
        if let Done::Committed(number) = again {
            let left = open(&disk.after(Loss::Everything), kind, 4)?;
            same("done again, after a loss of power", &left.cells()?, &taken.cells)?;
            // These steps do not check whether they were done before.
            let twice =
                matches!(taken.step, Step::Rebuild | Step::Compact(_) | Step::Vacuum(_)) && number == taken.version + 1;
            if number != taken.version && !twice {
                return Err(Finding::new(format!("done again it is version {number}, not {}", taken.version)));
            }
        }
    }

    // Leftovers of the failed try are removed, and nothing else.
    let number = world.table().latest_number()?;
    world.vacuum(MAX_VERSIONS, Some(i64::MAX))?;
    tidy(world.table())?;
    whole(world.table(), true)?;
    if number > 0 {
        same("after a vacuum", &world.cells()?, &taken.cells)?;
    }
    Ok(done.is_err())
}

/// A failed call must give an I/O error, not one of damage or conflict.
fn typed(error: &StoreError) -> Result<()> {
    let reading = match error {
        StoreError::Blob(BlobError::Io { .. }) => true,
        StoreError::Sst { source, .. } => source.to_string().contains("simulated EIO"),
        StoreError::Write { source, .. } => {
            let cause = std::error::Error::source(source).map(ToString::to_string).unwrap_or_default();
            [source.to_string(), cause].iter().any(|text| text.contains("EIO") || text.contains("space"))
        }
        _ => false,
    };
    if reading { Ok(()) } else { Err(Finding::new(format!("the error for a failed call is: {error} ({error:?})"))) }
}
