//! Mutation test: planted bugs, one at a time, must each be found by a proof.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidetable_sstable::tools::failpoints::{self, Bug};

use super::{Figures, bits, faults, histories, model, power, replies};
use crate::finding::{Finding, Result};

/// A proof in a size large enough to find every bug, and small enough to run for each.
type Small = (&'static str, fn() -> Result<Figures>);

const PROOFS: [Small; 8] = [
    ("replies", || replies::prove(1, 10, 20)),
    ("power", || power::prove(1, 3, 6)),
    ("faults", || faults::prove(1, 2, 4)),
    ("model", || model::prove(1, 12, 80)),
    ("model of large inputs", || model::prove(49, 1, 200)),
    ("histories", || histories::prove(1, 20, 100)),
    ("bits", || bits::every_bit(53)),
    ("damages", || bits::damages(1, 10)),
];

/// Plants each bug in turn and runs proofs until one finds it; reports which.
///
/// # Errors
/// A bug that no proof finds, or a finding without a bug.
pub fn prove(mut tell: impl FnMut(Bug, &str)) -> Result<Figures> {
    if !failpoints::POSSIBLE {
        return Err(Finding::new("this build has no bugs to plant; build it with --features planted"));
    }
    for (name, proof) in PROOFS {
        proof().map_err(|finding| finding.at(format_args!("{name}, with no bug planted")))?;
    }

    let mut missed = Vec::new();
    for &bug in Bug::ALL {
        failpoints::plant(Some(bug));
        let found = PROOFS.iter().find_map(|(name, proof)| {
            // A bug may also cause a panic.
            match catch_unwind(AssertUnwindSafe(proof)) {
                Ok(Ok(_)) => None,
                Ok(Err(finding)) => Some(format!("found by {name}: {finding}")),
                Err(_) => Some(format!("found by {name}: a panic")),
            }
        });
        failpoints::plant(None);
        match found {
            Some(found) => tell(bug, &found),
            None => missed.push(bug),
        }
    }

    let found = (Bug::ALL.len() - missed.len()) as u64;
    if missed.is_empty() {
        Ok(Figures(vec![("bugs planted", Bug::ALL.len() as u64), ("found", found)]))
    } else {
        Err(Finding::new(format!("{found} bugs were found, but not {missed:?}")))
    }
}
