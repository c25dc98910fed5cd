//! Which units are still to be done, and how they are grouped into jobs. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

/// Jobs of a run at a time, about: as many groups are made of its units.
const JOBS: usize = 64;
/// Units of a job, at most: a lost executor costs only those of its jobs.
const MOST_UNITS: usize = 64;
/// Bytes of the units of a job, at most, unless one alone is larger: a plan must fit a message.
const MOST_BYTES: usize = 6 << 20;
/// How often a unit is sent without an answer before the run gives up.
pub(crate) const TIMES: u32 = 8;
/// Longest wait before units are sent again: a scheduler that starts anew needs some seconds.
const LONGEST: Duration = Duration::from_secs(15);

/// Groups units into jobs, by the bytes of each. Units are named by their index.
pub(crate) fn jobs(bytes: &[usize]) -> Vec<Vec<usize>> {
    let most = bytes.len().div_ceil(JOBS).clamp(1, MOST_UNITS);
    let mut jobs: Vec<Vec<usize>> = Vec::new();
    let mut job_bytes = 0;
    for (unit, bytes) in bytes.iter().enumerate() {
        match jobs.last_mut() {
            Some(job) if job.len() < most && job_bytes + bytes <= MOST_BYTES => {
                job.push(unit);
                job_bytes += bytes;
            }
            _ => {
                jobs.push(vec![unit]);
                job_bytes = *bytes;
            }
        }
    }
    jobs
}

/// How long to wait before units are sent for the time `times`, from 1.
pub(crate) fn wait_before(times: u32) -> Duration {
    match times {
        0 | 1 => Duration::ZERO,
        _ => (Duration::from_millis(250) * 2u32.saturating_pow(times - 1)).min(LONGEST),
    }
}

/// The units that have no answer yet, by their index.
#[derive(Debug)]
pub(crate) struct Missing {
    missing: BTreeSet<usize>,
}

impl Missing {
    pub(crate) fn new(units: usize) -> Self {
        Self { missing: (0..units).collect() }
    }

    /// Notes the answer of a unit, which may come twice.
    pub(crate) fn answered(&mut self, unit: usize) {
        self.missing.remove(&unit);
    }

    /// The units of a job that are still missing.
    pub(crate) fn of(&self, units: &[usize]) -> Vec<usize> {
        units.iter().copied().filter(|unit| self.missing.contains(unit)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.missing.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_units_are_a_job_each_and_many_share_jobs() {
        let sizes = |count: usize, bytes: usize| {
            let jobs = jobs(&vec![bytes; count]);
            assert_eq!(jobs.concat(), (0..count).collect::<Vec<_>>());
            jobs.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0, 1), [0; 0]);
        assert_eq!(sizes(3, 1), [1, 1, 1]);
        assert_eq!(sizes(64, 1), [1; 64]);
        assert_eq!((sizes(2000, 1).len(), sizes(2000, 1)[0]), (63, 32));
        assert_eq!(sizes(10_000, 1)[0], 64);
        assert_eq!(sizes(640, 1 << 20)[0], 6);
        assert_eq!(sizes(640, 100 << 20)[0], 1);
    }

    #[test]
    fn waits_grow_up_to_a_limit() {
        let waits: Vec<u128> = (1..=TIMES).map(|times| wait_before(times).as_millis()).collect();
        assert_eq!(waits, [0, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    }

    #[test]
    fn what_is_answered_is_not_sent_again() {
        let mut missing = Missing::new(4);
        missing.answered(2);
        missing.answered(2);
        assert_eq!((missing.of(&[1, 2, 3]), missing.len()), (vec![1, 3], 3));
    }
}
