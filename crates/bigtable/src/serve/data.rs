//! The Data API.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures::Stream;
use futures::stream::poll_fn;
use prost::Message;
use tidetable_serving::Tables;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::proto::data::{
    CheckAndMutateRowRequest, CheckAndMutateRowResponse, ExecuteQueryRequest, ExecuteQueryResponse, FeatureFlags,
    MutateRowRequest, MutateRowResponse, MutateRowsRequest, MutateRowsResponse, PingAndWarmRequest,
    PingAndWarmResponse, PrepareQueryRequest, PrepareQueryResponse, ReadModifyWriteRowRequest,
    ReadModifyWriteRowResponse, ReadRowsRequest, SampleRowKeysRequest, SampleRowKeysResponse,
};
use crate::proto::data_server::Bigtable;
use crate::serve::names::Address;
use crate::serve::query::Queries;
use crate::serve::refusal::{Refusal, blocking, of_serving};
use crate::serve::rows::{EncodedRows, Reading, RowsPlan, read};
use crate::serve::sample::samples;

/// Responses that wait for a client, at most: a reader that is further ahead waits.
const AHEAD: usize = 4;
/// The header with what a client understands.
const FEATURES: &str = "bigtable-features";
/// The header with the time a client waits.
const TIMEOUT: &str = "grpc-timeout";
/// As clients of all languages write it, with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A stream of responses.
pub(crate) type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers the Data API.
#[derive(Clone)]
pub(crate) struct DataService {
    pub(crate) tables: Arc<Tables>,
    pub(crate) address: Address,
    pub(crate) queries: Queries,
    /// Bytes that a request for rows may hold.
    pub(crate) request_memory: usize,
    /// Whether the server ends.
    pub(crate) ends: Arc<AtomicBool>,
}

impl fmt::Debug for DataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataService").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The responses that come through a channel; the sender notices when the client is gone.
pub(crate) fn responses<T: Send + 'static>(mut receiver: Receiver<Result<T, Status>>) -> Responses<T> {
    Box::pin(poll_fn(move |context| receiver.poll_recv(context)))
}

/// When the client stops to wait.
pub(crate) fn deadline(metadata: &MetadataMap) -> Option<Instant> {
    let text = metadata.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok()?;
    let time = match unit {
        "H" => Duration::from_secs(number.saturating_mul(3_600)),
        "M" => Duration::from_secs(number.saturating_mul(60)),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Instant::now().checked_add(time)
}

/// What a client understands.
fn features(metadata: &MetadataMap) -> FeatureFlags {
    let value = metadata.get(FEATURES).and_then(|value| BASE64.decode(value.as_bytes()).ok());
    value.and_then(|bytes| FeatureFlags::decode(bytes.as_slice()).ok()).unwrap_or_default()
}

/// The client of a `ReadRows` request.
struct Client {
    sender: Sender<Result<EncodedRows, Status>>,
    started: Instant,
    deadline: Option<Instant>,
    ends: Arc<AtomicBool>,
}

impl Reading for Client {
    fn send(&mut self, rows: EncodedRows) -> bool {
        self.sender.blocking_send(Ok(rows)).is_ok()
    }

    fn stopped(&self) -> Option<Status> {
        if self.sender.is_closed() {
            return Some(Status::cancelled("the client is gone"));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Some(Status::deadline_exceeded("the deadline of the request has passed"));
        }
        self.ends.load(Ordering::Relaxed).then(|| Status::unavailable("the server ends"))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

fn refused<T>(method: &'static str) -> Result<Response<T>, Status> {
    Err(Refusal::Write { method }.into())
}

#[tonic::async_trait]
impl Bigtable for DataService {
    type ReadRowsStream = Responses<EncodedRows>;
    type SampleRowKeysStream = Responses<SampleRowKeysResponse>;
    type MutateRowsStream = Responses<MutateRowsResponse>;
    type ExecuteQueryStream = Responses<ExecuteQueryResponse>;

    async fn read_rows(&self, request: Request<ReadRowsRequest>) -> Result<Response<Self::ReadRowsStream>, Status> {
        let (started, deadline) = (Instant::now(), deadline(request.metadata()));
        let last_scanned = features(request.metadata()).last_scanned_row_responses;
        let request = request.into_inner();
        let table = self.address.table(&request.table_name)?.to_owned();
        let memory = self.request_memory;
        let plan = blocking(move || Ok(RowsPlan::new(&request, last_scanned, memory)?)).await?;
        let tables = Arc::clone(&self.tables);
        let (sender, receiver) = mpsc::channel(AHEAD);
        let mut client = Client { sender, started, deadline, ends: Arc::clone(&self.ends) };
        // The thread ends with the read; an error is the last that the client gets.
        drop(tokio::task::spawn_blocking(move || {
            let snapshot = tables.snapshot(&table).map_err(of_serving);
            if let Err(status) = snapshot.and_then(|snapshot| read(&plan, snapshot, &mut client)) {
                // A client that is gone needs none.
                let _ = client.sender.blocking_send(Err(status));
            }
        }));
        Ok(Response::new(responses(receiver)))
    }

    async fn sample_row_keys(
        &self,
        request: Request<SampleRowKeysRequest>,
    ) -> Result<Response<Self::SampleRowKeysStream>, Status> {
        let request = request.into_inner();
        if !request.authorized_view_name.is_empty() || !request.materialized_view_name.is_empty() {
            return Err(Refusal::Unserved { what: "a view" }.into());
        }
        let table = self.address.table(&request.table_name)?.to_owned();
        let tables = Arc::clone(&self.tables);
        let found = blocking(move || Ok(samples(&tables.snapshot(&table).map_err(of_serving)?)?)).await?;
        Ok(Response::new(Box::pin(futures::stream::iter(found.into_iter().map(Ok)))))
    }

    async fn ping_and_warm(
        &self,
        request: Request<PingAndWarmRequest>,
    ) -> Result<Response<PingAndWarmResponse>, Status> {
        self.address.instance(&request.get_ref().name)?;
        Ok(Response::new(PingAndWarmResponse {}))
    }

    async fn prepare_query(
        &self,
        request: Request<PrepareQueryRequest>,
    ) -> Result<Response<PrepareQueryResponse>, Status> {
        let request = request.into_inner();
        self.address.instance(&request.instance_name)?;
        self.queries.prepare(request).await.map(Response::new)
    }

    async fn execute_query(
        &self,
        request: Request<ExecuteQueryRequest>,
    ) -> Result<Response<Self::ExecuteQueryStream>, Status> {
        let deadline = deadline(request.metadata());
        let request = request.into_inner();
        self.address.instance(&request.instance_name)?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        self.queries.execute(request, deadline, sender);
        Ok(Response::new(responses(receiver)))
    }

    async fn mutate_row(&self, _: Request<MutateRowRequest>) -> Result<Response<MutateRowResponse>, Status> {
        refused("MutateRow")
    }

    async fn mutate_rows(&self, _: Request<MutateRowsRequest>) -> Result<Response<Self::MutateRowsStream>, Status> {
        refused("MutateRows")
    }

    async fn check_and_mutate_row(
        &self,
        _: Request<CheckAndMutateRowRequest>,
    ) -> Result<Response<CheckAndMutateRowResponse>, Status> {
        refused("CheckAndMutateRow")
    }

    async fn read_modify_write_row(
        &self,
        _: Request<ReadModifyWriteRowRequest>,
    ) -> Result<Response<ReadModifyWriteRowResponse>, Status> {
        refused("ReadModifyWriteRow")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_in_all_units() {
        let of = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(TIMEOUT, text.parse().unwrap());
            deadline(&metadata).map(|deadline| deadline - Instant::now())
        };
        for (text, seconds) in
            [("2H", 7_200), ("3M", 180), ("40S", 40), ("5000m", 5), ("6000000u", 6), ("7000000000n", 7)]
        {
            let left = of(text).unwrap();
            assert!(
                left <= Duration::from_secs(seconds) && left > Duration::from_secs(seconds - 1),
                "{text}: {left:?}"
            );
        }
        for wrong in ["", "S", "12", "x1S", "1d", "99999999999999999999H"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(deadline(&MetadataMap::new()), None);
    }

    #[test]
    fn features_are_read_with_padding_and_without() {
        let sent = FeatureFlags { last_scanned_row_responses: true, reverse_scans: true, ..FeatureFlags::default() };
        let text = BASE64.encode(sent.encode_to_vec());
        for text in [text.trim_end_matches('=').to_owned(), text] {
            let mut metadata = MetadataMap::new();
            metadata.insert(FEATURES, text.parse().unwrap());
            assert_eq!(features(&metadata), sent);
        }
        assert_eq!(features(&MetadataMap::new()), FeatureFlags::default());
    }
}
