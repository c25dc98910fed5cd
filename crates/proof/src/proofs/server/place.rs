//! Servers and their clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tidetable_blobs::Blobs;
use tidetable_blobs::BucketBlobs;
use tidetable_bucket_server::{Clock, Faults, Options, Server};
use tokio::runtime::{Builder, Runtime};

use crate::finding::{Finding, Result};
use crate::proofs::{Figures, each_seed};

/// Name of the bucket that every server has.
pub(super) const BUCKET: &str = "tidetable";

/// A server with clients for two writers.
pub(super) struct Place {
    /// The server, whose faults and requests a proof sets and counts.
    pub server: Server,
    clients: [Arc<dyn ObjectStore>; 2],
    google: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
}

impl Place {
    fn new(runtime: Arc<Runtime>) -> Result<Self> {
        // A file written later has a later time, as the model wants it.
        let server = Server::start(Options { clock: Clock::Steps, slow: Duration::ZERO, ..Options::default() })?;
        let inside = runtime.enter();
        let (clients, google) = ([client(&server)?, client(&server)?], google(&server)?);
        drop(inside);
        Ok(Self { server, clients, google, runtime })
    }

    /// The storage of a writer, 0 or 1, each by a client of its own.
    pub fn blobs(&self, writer: usize) -> Arc<dyn Blobs> {
        self.over(&self.clients[writer % 2])
    }

    /// The same storage by Google's API, which has other conditional writes.
    pub fn google(&self) -> Arc<dyn Blobs> {
        self.over(&self.google)
    }

    fn over(&self, client: &Arc<dyn ObjectStore>) -> Arc<dyn Blobs> {
        let (client, handle) = (Arc::clone(client), self.runtime.handle().clone());
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

/// Tries again soon: a back-off only takes time here.
fn retry() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(4));
    RetryConfig {
        backoff: BackoffConfig { init_backoff, max_backoff, base: 2.0 },
        max_retries: 10,
        retry_timeout: Duration::from_secs(60),
    }
}

fn wrong(error: object_store::Error) -> Finding {
    Finding::new(format!("a client: {error}"))
}

/// The S3 client of `object_store`, as a root in a bucket uses it.
fn client(server: &Server) -> Result<Arc<dyn ObjectStore>> {
    let client = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id("proof")
        .with_secret_access_key("proof")
        .with_retry(retry())
        .build();
    Ok(Arc::new(client.map_err(wrong)?))
}

/// The client of `object_store` for Google Cloud Storage.
fn google(server: &Server) -> Result<Arc<dyn ObjectStore>> {
    let endpoint = server.endpoint();
    let names = r#""disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": """#;
    let client = GoogleCloudStorageBuilder::new()
        .with_service_account_key(format!(r#"{{"gcs_base_url": "{endpoint}", {names}}}"#))
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name(BUCKET)
        .with_retry(retry())
        .build();
    Ok(Arc::new(client.map_err(wrong)?))
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
