//! Brings the units of a run to a Ballista scheduler.

use std::sync::atomic::AtomicU64;

use tidetable_runner::Stop;
use tidetable_runner::units::{Answer, Carried, CarryError, Unit, UnitCarrier, build};
use tokio::runtime::{Builder, Runtime};

use crate::address::host_and_port;
use crate::error::ClusterError;
use crate::jobs::Call;
use crate::session::{Chaos, Session};

/// A scheduler that units are sent to.
#[derive(Debug)]
pub struct Ballista {
    session: Session,
    runtime: Runtime,
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
        let session = Session { host, port, name: session.to_owned(), next: AtomicU64::new(0), chaos: None };
        Ok(Self { session, runtime })
    }

    /// The same with faults.
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
        let call = Call { session: &self.session, units: &encoded, stop, take, note };
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
