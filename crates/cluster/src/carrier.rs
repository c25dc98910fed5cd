//! Brings the units of a run to a Ballista scheduler, and their answers back.

use std::time::Duration;

use tidetable_runner::Stop;
use tidetable_runner::units::{Answer, Carried, CarryError, Unit, UnitCarrier, build};
use tokio::runtime::{Builder, Runtime};

use crate::connect::SchedulerLink;
use crate::error::ClusterError;
use crate::jobs::Call;
use crate::session::{Chaos, Session};
use crate::tls::files::TlsFiles;

/// How long the next answer is waited for, unless another limit is set: a unit may take hours.
const TIMEOUT: Duration = Duration::from_secs(12 * 3600);

/// A scheduler that the units of one run are sent to.
#[derive(Debug)]
pub struct Ballista {
    session: Session,
    timeout: Duration,
    runtime: Runtime,
}

impl Ballista {
    /// The scheduler at `address`, `ballista://HOST:PORT` or `ballista+tls://HOST:PORT`, for the run `session`. Nothing is
    /// connected yet.
    ///
    /// # Errors
    /// [`ClusterError::Address`], files of TLS that cannot be used, or if threads cannot be started.
    pub fn new(address: &str, tls: &TlsFiles, session: &str) -> Result<Self, ClusterError> {
        let link = SchedulerLink::new(address, tls)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("cluster").enable_all().build();
        let runtime = runtime.map_err(|source| ClusterError::Listen { address: address.to_owned(), source })?;
        Ok(Self { session: Session::new(link, session), timeout: TIMEOUT, runtime })
    }

    /// The same with another limit than twelve hours for the wait for the next answer.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same with faults that Ballista injects, for tests.
    #[must_use]
    pub fn with_chaos(mut self, chaos: Chaos) -> Self {
        self.session.chaos = Some(chaos);
        self
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
        let refused = |reason: String| CarryError::Refused { place: self.session.place_of(), reason };
        let build = build().map_err(|error| refused(error.to_string()))?;
        let encoded = units.iter().map(|unit| unit.encode(build)).collect::<Result<Vec<_>, _>>();
        let encoded = encoded.map_err(|error| refused(error.to_string()))?;

        let call = Call { session: &self.session, timeout: self.timeout, units: &encoded, stop, take, note };
        match self.runtime.block_on(call.run()) {
            // The caller has enough.
            Err(CarryError::Stopped { signal: 0 }) => Ok(Carried::default()),
            carried => carried,
        }
    }

    fn place(&self) -> String {
        self.session.place_of()
    }
}
