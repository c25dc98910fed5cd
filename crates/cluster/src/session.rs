//! A session with a scheduler: how it is reached, and the settings of its jobs.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use tonic::transport::Channel;

use crate::connect::SchedulerLink;
use crate::job::Job;

/// Jobs of a run that the scheduler has at the same time.
const JOBS_AT_A_TIME: usize = 64;

/// A session with a scheduler, one for a whole run: its connection, its name and the number of its jobs.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) link: SchedulerLink,
    pub(crate) name: String,
    /// The number of the next job: how many there were so far.
    pub(crate) next: AtomicU64,
    pub(crate) chaos: Option<Chaos>,
    /// Whether the scheduler was reached once in the run.
    pub(crate) reached: AtomicBool,
    /// Executors that take no part in the run, and why, as far as it was noted.
    pub(crate) noted_unfit: Mutex<BTreeSet<(String, String)>>,
}

/// Faults that Ballista injects into units, for tests: each fails with `probability`, drawn from `seed`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chaos {
    /// The share of units that fail, from 0 to 1.
    pub probability: f64,
    /// The seed from which faults follow: another one gives other faults.
    pub seed: u64,
}

impl Session {
    /// A session by `link`, for a run.
    pub(crate) fn new(link: SchedulerLink, name: &str) -> Self {
        Self {
            link,
            name: name.to_owned(),
            next: AtomicU64::new(0),
            chaos: None,
            reached: AtomicBool::new(false),
            noted_unfit: Mutex::default(),
        }
    }

    pub(crate) fn place_of(&self) -> String {
        self.link.place()
    }

    pub(crate) fn jobs_at_a_time(&self) -> usize {
        JOBS_AT_A_TIME
    }

    /// A job whose units are sent for the time `times`.
    pub(crate) fn job(&self, client: SchedulerGrpcClient<Channel>, times: u32) -> Job<'_> {
        let serial = self.next.fetch_add(1, Ordering::Relaxed);
        let mut settings = vec![
            ("ballista.job.name".to_owned(), self.name.clone()),
            // A retry of a task repeats all its partitions.
            ("ballista.scheduler.max_partitions_per_task".to_owned(), "1".to_owned()),
            ("ballista.planner.adaptive.enabled".to_owned(), "false".to_owned()),
        ];
        if let Some(Chaos { probability, seed }) = self.chaos {
            // Faults follow from the seed and the partition: the same ones again would never end.
            let seed = seed.wrapping_add(serial.wrapping_mul(1_000_003)).wrapping_add(u64::from(times));
            for (key, value) in [
                ("enabled", "true".to_owned()),
                ("probability", probability.to_string()),
                ("fault_type", "transient".to_owned()),
                ("seed", seed.to_string()),
            ] {
                settings.push((format!("ballista.testing.chaos_execution.{key}"), value));
            }
        }
        let operation = format!("{}-{serial}", self.name);
        Job { client, session: &self.name, operation, settings, tls: self.link.tls() }
    }
}
