//! Brings the units of a run to a Ballista scheduler.

use std::sync::atomic::{AtomicU64, Ordering};

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use tidetable_runner::Stop;
use tidetable_runner::units::{Answer, Carried, CarryError, Unit, UnitCarrier, build};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;

use crate::error::ClusterError;
use crate::job::Job;
use crate::jobs::Call;

/// The scheme of addresses of schedulers.
pub const SCHEME: &str = "ballista://";

/// Jobs at the same time.
const JOBS_AT_A_TIME: usize = 64;

/// A scheduler that units are sent to.
#[derive(Debug)]
pub struct Ballista {
    host: String,
    port: u16,
    /// Name of the session; one for the whole run.
    session: String,
    next: AtomicU64,
    chaos: Option<Chaos>,
    runtime: Runtime,
}

/// Faults that Ballista injects into units, for tests: each fails with `probability`, drawn from `seed`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chaos {
    /// From 0 to 1.
    pub probability: f64,
    /// Another seed, other faults.
    pub seed: u64,
}

impl Ballista {
    /// The scheduler at `address`, `ballista://HOST:PORT`, for the run `session`. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ClusterError::Address`], or if threads cannot be started.
    pub fn new(address: &str, session: &str) -> Result<Self, ClusterError> {
        let (host, port) = host_and_port(address)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("cluster").enable_all().build();
        let runtime = runtime.map_err(|source| ClusterError::Listen { address: address.to_owned(), source })?;
        let (session, next, chaos) = (session.to_owned(), AtomicU64::new(0), None);
        Ok(Self { host, port, session, next, chaos, runtime })
    }

    /// The same with faults.
    #[must_use]
    pub fn with_chaos(self, chaos: Chaos) -> Self {
        Self { chaos: Some(chaos), ..self }
    }

    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    pub(crate) fn place_of(&self) -> String {
        format!("{SCHEME}{}:{}", self.host, self.port)
    }

    pub(crate) fn jobs_at_a_time(&self) -> usize {
        JOBS_AT_A_TIME
    }

    /// A job whose units are sent for the time `times`.
    pub(crate) fn job(&self, client: SchedulerGrpcClient<Channel>, times: u32) -> Job<'_> {
        let serial = self.next.fetch_add(1, Ordering::Relaxed);
        let mut settings = vec![
            ("ballista.job.name".to_owned(), self.session.clone()),
            // A retry of a task repeats all its partitions.
            ("ballista.scheduler.max_partitions_per_task".to_owned(), "1".to_owned()),
            ("ballista.planner.adaptive.enabled".to_owned(), "false".to_owned()),
        ];
        if let Some(Chaos { probability, seed }) = self.chaos {
            let chaos = |key: &str| format!("ballista.testing.chaos_execution.{key}");
            // Faults follow from the seed and the partition: the same ones again would never end.
            let seed = seed.wrapping_add(serial.wrapping_mul(1_000_003)).wrapping_add(u64::from(times));
            settings.extend([
                (chaos("enabled"), "true".to_owned()),
                (chaos("probability"), probability.to_string()),
                (chaos("fault_type"), "transient".to_owned()),
                (chaos("seed"), seed.to_string()),
            ]);
        }
        let operation = format!("{}-{serial}", self.session);
        Job { client, session: &self.session, operation, settings }
    }
}

impl UnitCarrier for Ballista {
    fn carry(
        &self,
        units: &[Unit],
        stop: &Stop,
        take: &(dyn Fn(usize, Answer) -> bool + Sync),
        note: &(dyn Fn(String) + Sync),
    ) -> Result<Carried, CarryError> {
        if units.is_empty() {
            return Ok(Carried::default());
        }
        let refused = |reason: String| CarryError::Refused { place: self.place_of(), reason };
        let build = build().map_err(|error| refused(error.to_string()))?;
        let encoded = units.iter().map(|unit| unit.encode(build)).collect::<Result<Vec<_>, _>>();
        let encoded = encoded.map_err(|error| refused(error.to_string()))?;
        let call = Call { ballista: self, units: &encoded, stop, take, note };
        match self.runtime.block_on(call.run()) {
            // The caller has enough.
            Err(CarryError::Stopped { signal: 0 }) => Ok(Carried::default()),
            carried => carried,
        }
    }

    fn place(&self) -> String {
        self.place_of()
    }
}

/// Host and port of `ballista://HOST:PORT`.
pub(crate) fn host_and_port(address: &str) -> Result<(String, u16), ClusterError> {
    let wrong = || ClusterError::Address { address: address.to_owned() };
    if !address.starts_with(SCHEME) {
        return Err(wrong());
    }
    let url = url::Url::parse(address).map_err(|_| wrong())?;
    let plain = url.path().trim_matches('/').is_empty() && url.query().is_none() && url.username().is_empty();
    let place = url.host_str().filter(|host| !host.is_empty() && plain).zip(url.port());
    place.map(|(host, port)| (host.to_owned(), port)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let place = |address: &str| host_and_port(address).ok();
        assert_eq!(place("ballista://127.0.0.1:50050"), Some(("127.0.0.1".to_owned(), 50050)));
        assert_eq!(place("ballista://node-1.local:1/"), Some(("node-1.local".to_owned(), 1)));
        assert_eq!(place("ballista://[::1]:7"), Some(("[::1]".to_owned(), 7)));
        for wrong in [
            "127.0.0.1:50050",
            "http://a:1",
            "ballista://a",
            "ballista://:1",
            "ballista://a:b",
            "ballista://a:1/x",
            "ballista://user@a:1",
            "",
        ] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
