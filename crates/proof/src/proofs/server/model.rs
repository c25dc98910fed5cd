//! Random steps against the model.

use super::place::each_place;
use crate::finding::Result;
use crate::proofs::{Figures, buckets, model as in_memory};
use crate::random::Random;
use crate::step::Kind;

/// Faults that the storage gets over without an error.
const UNSEEN: &str = "500=0.02,503=0.02,409=0.05,412=0.05,error-after=0.03";
/// Faults of which some are errors of the storage; the step is then repeated.
const SEEN: &str =
    "reset=0.02,500=0.02,503=0.02,409=0.05,412=0.05,error-after=0.03,lost-reply=0.03,truncated=0.03,stale-upload=0.05";

/// Makes `operations` steps for each seed, as `prove model` does, over faults that the storage gets over.
///
/// # Errors
/// The first difference.
pub fn model(first: u64, seeds: u64, operations: u64) -> Result<Figures> {
    each_place(first, seeds, |place, seed| {
        place.set_faults(UNSEEN)?;
        in_memory::on(place.blobs(0), seed, operations, false)
    })
}

/// The contract of the storage, then random steps for each seed, each repeated until it succeeds; every second seed by
/// Google's API.
///
/// # Errors
/// The first difference.
pub fn steps(first: u64, seeds: u64, steps: u64) -> Result<Figures> {
    each_place(first, seeds, |place, seed| {
        let blobs = if seed.is_multiple_of(2) { place.google() } else { place.blobs(0) };
        place.set_faults(UNSEEN)?;
        buckets::contract(blobs.as_ref())?;
        place.set_faults(SEEN)?;
        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        buckets::steps(blobs, kind, random.number(), steps)
    })
}
