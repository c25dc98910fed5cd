//! Connections to both APIs, and what every request carries.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use google_cloud_auth::credentials::{Builder, CacheableResource, Credentials};
use prost::Message;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use crate::client::endpoints::Endpoints;
use crate::error::{BigtableError, Result};
use crate::names::{InstanceName, TableName};
use crate::proto::admin::bigtable_table_admin_client::BigtableTableAdminClient;
use crate::proto::data::FeatureFlags;
use crate::proto::data::bigtable_client::BigtableClient;

/// What a token of the service is for.
const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/bigtable.admin.table", "https://www.googleapis.com/auth/bigtable.data"];
/// Connections of the Data API: one carries about a hundred requests at a time.
const CONNECTIONS: usize = 4;
/// The largest message of the service.
pub(super) const LARGEST_MESSAGE: usize = 256 << 20;
/// Bytes in flight of one answer, and of a connection.
const WINDOWS: (u32, u32) = (8 << 20, 32 << 20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How a client behaves.
#[derive(Clone)]
pub struct ClientOptions {
    /// Where the service is.
    pub endpoints: Endpoints,
    /// The application profile; the default one if empty.
    pub app_profile: String,
    /// For how long a request that fails is repeated without any progress.
    pub patience: Duration,
    /// How long a request may take, and a stream be silent.
    pub timeout: Duration,
    /// Random numbers from 0 to 1, which spread repetitions.
    pub random: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoints, app_profile, patience, timeout, .. } = self;
        f.debug_struct("ClientOptions")
            .field("endpoints", endpoints)
            .field("app_profile", app_profile)
            .field("patience", patience)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

impl ClientOptions {
    /// The usual behaviour; `random` gives numbers from 0 to 1.
    pub fn new(endpoints: Endpoints, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self {
            endpoints,
            app_profile: String::new(),
            patience: Duration::from_secs(300),
            timeout: Duration::from_secs(60),
            random: Arc::new(random),
        }
    }
}

/// A client of the Data API and of the Table Admin API. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    data: Vec<Channel>,
    admin: BigtableTableAdminClient<Channel>,
    next: AtomicUsize,
    /// Whether the credentials have given a token.
    has_authorized: AtomicBool,
    credentials: Option<Credentials>,
    features: AsciiMetadataValue,
    options: ClientOptions,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials are left out.
        f.debug_struct("Client").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that connects with its first request. Finds application default credentials, unless the endpoints take none.
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// [`BigtableError::Credentials`] if none are found; [`BigtableError::Endpoint`] for an invalid URL.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let credentials = if options.endpoints.has_credentials { Some(credentials()?) } else { None };
        let data = endpoint(&options.endpoints.data)?;
        let data = std::iter::repeat_with(|| data.connect_lazy());
        let admin = BigtableTableAdminClient::new(endpoint(&options.endpoints.admin)?.connect_lazy());
        let inner = Inner {
            data: data.take(CONNECTIONS).collect(),
            admin,
            next: AtomicUsize::new(0),
            has_authorized: AtomicBool::new(false),
            credentials,
            features: features(),
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The options that it was made with.
    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// A connection of the Data API; they take turns.
    pub(super) fn channel(&self) -> Channel {
        let turn = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let found = self.inner.data.get(turn % CONNECTIONS).cloned();
        // There are as many.
        found.unwrap_or_else(|| Endpoint::from_static("http://localhost").connect_lazy())
    }

    pub(super) fn data(&self) -> BigtableClient<Channel> {
        BigtableClient::new(self.channel()).max_decoding_message_size(LARGEST_MESSAGE)
    }

    pub(super) fn admin(&self) -> BigtableTableAdminClient<Channel> {
        self.inner.admin.clone()
    }

    /// A request about a table, with what the service routes it by.
    pub(super) async fn of_table<T>(&self, message: T, table: &TableName) -> Result<Request<T>, Status> {
        let profile = &self.inner.options.app_profile;
        self.request(
            message,
            &format!("table_name={}&app_profile_id={}", encoded(&table.to_string()), encoded(profile)),
        )
        .await
    }

    /// A request of the admin API about a table.
    pub(super) async fn of_admin<T>(&self, message: T, table: &TableName) -> Result<Request<T>, Status> {
        self.request(message, &format!("name={}", encoded(&table.to_string()))).await
    }

    /// A request of the admin API about an instance.
    pub(super) async fn of_instance<T>(&self, message: T, instance: &InstanceName) -> Result<Request<T>, Status> {
        self.request(message, &format!("parent={}", encoded(&instance.to_string()))).await
    }

    async fn request<T>(&self, message: T, params: &str) -> Result<Request<T>, Status> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        if let Ok(params) = AsciiMetadataValue::try_from(params) {
            metadata.insert("x-goog-request-params", params);
        }
        metadata.insert("bigtable-features", self.inner.features.clone());
        self.authorize(metadata).await?;
        Ok(request)
    }

    async fn authorize(&self, metadata: &mut MetadataMap) -> Result<(), Status> {
        let Some(credentials) = &self.inner.credentials else { return Ok(()) };
        let headers = match credentials.headers(http::Extensions::new()).await {
            Ok(CacheableResource::New { data, .. }) => data,
            Ok(CacheableResource::NotModified) => return Ok(()),
            Err(error) => {
                let text = format!("no token of the application default credentials: {}", first_cause(&error));
                // Where there never was a token the machine has none, as a rule: without a file of credentials the library
                // asks a metadata server that only machines of Google Cloud have.
                let is_transient = error.is_transient() && self.inner.has_authorized.load(Ordering::Relaxed);
                return Err(if is_transient { Status::unavailable(text) } else { Status::unauthenticated(text) });
            }
        };
        self.inner.has_authorized.store(true, Ordering::Relaxed);

        let mut all = std::mem::take(metadata).into_headers();
        for (name, mut value) in headers {
            let Some(name) = name else { continue };
            // HTTP/2 does not compress it, and debug output leaves it out.
            value.set_sensitive(true);
            all.insert(name, value);
        }
        *metadata = MetadataMap::from_headers(all);
        Ok(())
    }
}

/// An error with those that caused it: the credentials name the file or server only there.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

/// The error that caused all others: those above it say the same in more words.
fn first_cause(error: &dyn std::error::Error) -> String {
    let mut first = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    first.to_string()
}

fn credentials() -> Result<Credentials> {
    // Another provider may be there already; either serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::default()
        .with_scopes(SCOPES)
        .build()
        .map_err(|error| BigtableError::Credentials { reason: with_causes(&error) })
}

fn endpoint(url: &str) -> Result<Endpoint> {
    let failed =
        |error: tonic::transport::Error| BigtableError::Endpoint { url: url.to_owned(), reason: with_causes(&error) };
    let mut endpoint = Endpoint::from_shared(url.to_owned())
        .and_then(|endpoint| endpoint.user_agent(concat!("tidetable/", env!("CARGO_PKG_VERSION"))))
        .map_err(failed)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(CONNECT_TIMEOUT)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1);
    if url.starts_with("https://") {
        endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(failed)?;
    }
    Ok(endpoint)
}

/// The header by which the service knows what this client understands.
fn features() -> AsciiMetadataValue {
    let flags = FeatureFlags {
        reverse_scans: true,
        last_scanned_row_responses: true,
        mutate_rows_rate_limit: true,
        mutate_rows_rate_limit2: true,
        retry_info: true,
        ..FeatureFlags::default()
    };
    // With padding, as clients in Go send it: the emulator reads no other form.
    let text = URL_SAFE.encode(flags.encode_to_vec());
    AsciiMetadataValue::try_from(text).unwrap_or_else(|_| AsciiMetadataValue::from_static(""))
}

/// Percent-encodes a value of the routing header.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_carry_routes_and_features_and_no_secret_to_an_emulator() {
        let options =
            ClientOptions { app_profile: "a b".to_owned(), ..ClientOptions::new(Endpoints::plaintext("h:1"), || 0.0) };
        let client = Client::new(options).unwrap();
        let table: crate::client::Target = "projects/p/instances/i/tables/T".parse().unwrap();
        let request = client.of_table((), &table.table().unwrap()).await.unwrap();
        let routes = request.metadata().get("x-goog-request-params").unwrap().to_str().unwrap();
        assert_eq!(routes, "table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2FT&app_profile_id=a%20b");
        assert!(request.metadata().get("bigtable-features").is_some());
        assert!(request.metadata().get("authorization").is_none());
    }

    #[test]
    fn a_wrong_url_is_named() {
        let found = endpoint("http://a b").unwrap_err();
        assert!(matches!(found, BigtableError::Endpoint { url, .. } if url == "http://a b"));
    }
}
