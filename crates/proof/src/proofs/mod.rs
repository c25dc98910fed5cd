//! The proofs. Each is a function of a seed and a size, and returns figures or a [`Finding`].

pub mod bits;
pub mod buckets;
pub mod faults;
pub mod histories;
pub mod kept;
pub mod kills;
pub mod model;
pub mod planted;
pub mod power;
pub mod replies;
pub mod run;
pub mod server;

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::finding::{Finding, Result};

/// Figures of a proof, for its report: names with counts, in the order in which they first came.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures(pub Vec<(&'static str, u64)>);

impl Figures {
    /// Adds the figures of another part, name by name.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => self.0.push((name, *count)),
            }
        }
    }

    /// The figure with this name; 0 if the proof does not count it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// Runs `one` for each seed from `first` on, on all cores, each in a pool of one thread so that a seed is
/// reproducible. Ends at the first finding.
///
/// # Errors
/// The finding, with its seed.
pub fn each_seed(first: u64, seeds: u64, one: impl Fn(u64) -> Result<Figures> + Sync) -> Result<Figures> {
    let (next, sum) = (AtomicU64::new(0), Mutex::new((Figures::default(), None::<Finding>)));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);

    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= seeds {
                        return;
                    }
                    let seed = first + at;
                    let done = match &pool {
                        Ok(pool) => pool.install(|| one(seed)),
                        Err(error) => Err(Finding::new(error.to_string())),
                    };

                    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match done {
                        Ok(figures) => sum.0.add(&figures),
                        Err(finding) => {
                            sum.1 = Some(finding.at(format_args!("seed {seed}")));
                            next.store(seeds, Ordering::Relaxed);
                            return;
                        }
                    }
                }
            });
        }
    });

    let (figures, finding) = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    finding.map_or(Ok(figures), Err)
}
