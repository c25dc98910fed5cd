//! Servers and their clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tidetable_bucket_server::{Clock, Faults, Options, Server};
use tidetable_store::Blobs;
use tidetable_store::storage::BucketBlobs;
use tokio::runtime::{Builder, Runtime};

use crate::finding::{Finding, Result};
use crate::proofs::{Figures, each_seed};

/// The bucket of every server.
pub(super) const BUCKET: &str = "tidetable";

/// A server with clients for two writers.
pub(super) struct Place {
    /// The server.
    pub server: Server,
    clients: [Arc<dyn ObjectStore>; 2],
    runtime: Arc<Runtime>,
}

impl Place {
    fn new(runtime: Arc<Runtime>) -> Result<Self> {
        // A file written later has a later time, as the model wants it.
        let server = Server::start(Options { clock: Clock::Steps, slow: Duration::ZERO, ..Options::default() })?;
        let inside = runtime.enter();
        let clients = [client(&server)?, client(&server)?];
        drop(inside);
        Ok(Self { server, clients, runtime })
    }

    /// The storage of a writer, 0 or 1.
    pub fn blobs(&self, writer: usize) -> Arc<dyn Blobs> {
        let (client, handle) = (Arc::clone(&self.clients[writer % 2]), self.runtime.handle().clone());
        Arc::new(BucketBlobs::new(client, Path::from("root"), handle, format!("s3://{BUCKET}/root")))
    }

    /// Sets the faults from now on.
    ///
    /// # Errors
    /// If the text is wrong.
    pub fn set_faults(&self, text: &str) -> Result<()> {
        let faults: Faults = text.parse().map_err(|error| Finding::new(format!("{error}")))?;
        self.server.set_faults(faults);
        Ok(())
    }

    /// Requests since the last reset, and those with a fault.
    pub fn figures(&self) -> Figures {
        let counts = self.server.counts();
        Figures(vec![("requests", counts.total()), ("faults", counts.faults)])
    }
}

/// The client of `object_store`, which tries again soon: a back-off only takes time here.
fn client(server: &Server) -> Result<Arc<dyn ObjectStore>> {
    let (init_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(4));
    let retry = RetryConfig {
        backoff: BackoffConfig { init_backoff, max_backoff, base: 2.0 },
        max_retries: 10,
        retry_timeout: Duration::from_secs(60),
    };
    let client = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id("proof")
        .with_secret_access_key("proof")
        .with_retry(retry)
        .build();
    Ok(Arc::new(client.map_err(|error| Finding::new(format!("a client: {error}")))?))
}

/// Runs `one` for each seed, as [`each_seed`] does, on a server that is empty and has no faults.
///
/// # Errors
/// The finding, with its seed.
pub(super) fn each_place(
    first: u64,
    seeds: u64,
    one: impl Fn(&Place, u64) -> Result<Figures> + Sync,
) -> Result<Figures> {
    let runtime = Arc::new(Builder::new_multi_thread().worker_threads(2).enable_all().build()?);
    let idle: Mutex<Vec<Place>> = Mutex::default();
    each_seed(first, seeds, |seed| {
        let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let place = taken.map_or_else(|| Place::new(Arc::clone(&runtime)), Ok)?;
        place.set_faults("")?;
        place.server.reset(seed);
        let mut figures = one(&place, seed)?;
        figures.add(&place.figures());
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        Ok(figures)
    })
}
