//! Commits over a connection that loses replies, of one writer and of two.

use std::thread;

use tidetable_store::Store;

use super::place::{Place, each_place};
use crate::finding::{Finding, Result};
use crate::proofs::Figures;
use crate::proofs::replies::{Acknowledged, TABLE, Writer, check};
use crate::random::Random;
use crate::step::Kind;

/// Faults of a seed, few or many.
const FAULTS: [&str; 3] = [
    "reset=0.01,500=0.01,503=0.01,409=0.02,412=0.02,error-after=0.02,lost-reply=0.02,truncated=0.02",
    "reset=0.04,500=0.04,503=0.02,409=0.06,412=0.06,error-after=0.05,lost-reply=0.05,truncated=0.05",
    "reset=0.10,500=0.05,409=0.15,412=0.15,error-after=0.10,lost-reply=0.10,truncated=0.10",
];

/// Makes `commits` commits to a table per seed, to versions that may be old.
///
/// # Errors
/// A commit that does not exist exactly once.
pub fn replies(first: u64, seeds: u64, commits: u64) -> Result<Figures> {
    each_place(first, seeds, |place, seed| {
        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        place.set_faults(random.pick(&FAULTS).unwrap_or_default())?;
        let (blobs, writer) = (place.blobs(0), Writer { run: seed, first: 0, commits });
        let (figures, acknowledged) = writer.commit_all(&mut random, kind, blobs.clone(), blobs.as_ref())?;
        whole(place, &acknowledged).map(|()| figures)
    })
}

/// Two writers make `commits` commits each to one table per seed, at the same time.
///
/// # Errors
/// A commit that does not exist exactly once.
pub fn writers(first: u64, seeds: u64, commits: u64) -> Result<Figures> {
    each_place(first, seeds, |place, seed| {
        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        place.set_faults(random.pick(&FAULTS).unwrap_or_default())?;

        let both = thread::scope(|scope| {
            let writers = [0, 1].map(|number| scope.spawn(move || write(place, kind, seed, number, commits)));
            writers.map(|writer| writer.join().unwrap_or_else(|_| Err(Finding::new("a writer panicked"))))
        });

        let (mut figures, mut acknowledged) = (Figures::default(), Acknowledged::new());
        for done in both {
            let (part, versions) = done?;
            figures.add(&part);
            acknowledged.extend(versions);
        }
        whole(place, &acknowledged).map(|()| figures)
    })
}

/// Makes the commits of writer `number`, 0 or 1.
fn write(place: &Place, kind: Kind, seed: u64, number: u64, commits: u64) -> Result<(Figures, Acknowledged)> {
    let (blobs, mut random) = (place.blobs(number as usize), Random::new(seed << 1 | number));
    let writer = Writer { run: seed << 1 | number, first: number * commits, commits };
    writer.commit_all(&mut random, kind, blobs.clone(), blobs.as_ref())
}

/// Checks the table, with all faults over.
fn whole(place: &Place, acknowledged: &Acknowledged) -> Result<()> {
    place.set_faults("")?;
    check(&Store::new(place.blobs(0)).table(TABLE), acknowledged)
}
