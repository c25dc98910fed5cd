//! Prepares and executes queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use tidetable_serving::{Tables, Task, caught};
use tidetable_sql::{Session, TableVersions, plan_frame};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tonic::Status;
use xxhash_rust::xxh3::Xxh3;

use crate::proto::data::{ExecuteQueryRequest, ExecuteQueryResponse, PrepareQueryRequest, PrepareQueryResponse};
use crate::serve::query::parameters::{self, Parameters};
use crate::serve::query::prepare::{plan, schema, session, status};
use crate::serve::query::token::{Place, Prepared, Versions};
use crate::serve::query::{execute, types};
use crate::serve::refusal::{Refusal, blocking, of_serving};

/// How often a query that sends nothing is asked whether it should go on.
const PAUSE: Duration = Duration::from_millis(100);

/// Responses of a query.
type Responses = Sender<Result<ExecuteQueryResponse, Status>>;

/// Prepares and executes the queries of clients, each in a task of its own.
#[derive(Debug, Clone)]
pub(crate) struct Queries {
    tables: Arc<Tables>,
    runtime: Handle,
    /// Bytes that a query may hold.
    memory: u64,
    /// Whether statements that Bigtable refuses are refused.
    strict: bool,
    ends: Arc<AtomicBool>,
}

impl Queries {
    /// Queries over `tables`, run in `runtime` until `ends` is set. Each may hold `memory` bytes.
    pub(crate) fn new(tables: Arc<Tables>, runtime: Handle, memory: u64, ends: Arc<AtomicBool>) -> Self {
        Self { tables, runtime, memory, strict: false, ends }
    }

    /// The same, but with `strict` statements that Bigtable refuses are refused.
    pub(crate) fn with_strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Checks a query, and returns its columns.
    ///
    /// # Errors
    /// If it is not valid.
    pub(crate) async fn prepare(&self, request: PrepareQueryRequest) -> Result<PrepareQueryResponse, Status> {
        let this = self.clone();
        let prepared = Task::spawn(&self.runtime, async move {
            let session = this.session(None).await?;
            let samples = parameters::samples(&request.param_types)?;
            let frame = plan(&session, &request.query, &samples).await?;
            let metadata = types::metadata(&schema(&frame));
            let prepared_query = Prepared::new(request, &metadata).encode();
            Ok(PrepareQueryResponse { metadata: Some(metadata), prepared_query, valid_until: None })
        });
        prepared.result().await.unwrap_or_else(|error| Err(of_serving(error)))
    }

    /// Executes a query; its responses, and an error that ends them, go to `responses`.
    pub(crate) fn execute(&self, request: ExecuteQueryRequest, deadline: Option<Instant>, responses: Responses) {
        let this = self.clone();
        let running = async move {
            let watch = this.watch(&responses, deadline);
            let result = tokio::select! {
                // Without an error its rows would look complete.
                result = caught(this.answer(request, &responses)) => {
                    result.unwrap_or_else(|panicked| Err(of_serving(panicked.into())))
                }
                stopped = watch => Err(stopped),
            };
            if let Err(status) = result {
                // A client that is gone needs none.
                let _ = responses.send(Err(status)).await;
            }
        };
        drop(self.runtime.spawn(running));
    }

    /// Waits until a query should stop; dropping the query then ends its scans.
    async fn watch(&self, responses: &Responses, deadline: Option<Instant>) -> Status {
        loop {
            if responses.is_closed() {
                return Status::cancelled("the client is gone");
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Status::deadline_exceeded("the deadline of the query has passed");
            }
            if self.ends.load(Ordering::Relaxed) {
                return Status::unavailable("the server ends");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn session(&self, versions: Option<&Versions>) -> Result<Session, Status> {
        let tables = Arc::clone(&self.tables);
        let mut pinned = tables.versions();
        if let Some(versions) = versions {
            pinned.numbers.extend(versions.iter().cloned());
        }
        let (memory, strict) = (self.memory, self.strict);
        blocking(move || session(tables.store(), pinned, memory, strict)).await
    }

    async fn answer(&self, request: ExecuteQueryRequest, responses: &Responses) -> Result<(), Status> {
        let query = Query::of(&request)?;
        let resumed =
            match request.resume_token.is_empty() {
                true => None,
                false => Some(Place::decode(&request.resume_token).ok_or(Refusal::Field {
                    field: "resume_token",
                    problem: "it is not one of this server".to_owned(),
                })?),
            };

        let session = self.session(resumed.as_ref().map(|(_, versions)| versions)).await?;
        let versions = match &resumed {
            Some((_, versions)) => versions.clone(),
            None => self.versions(&session, &query.text).await?,
        };
        // Of the versions that the first response saw, also if the table has changed meanwhile.
        let session = if resumed.is_none() { self.session(Some(&versions)).await? } else { session };
        let id = query.id(&versions);
        let skipped = match resumed {
            Some((place, _)) if place.query != id => {
                let problem = "it is of another query, or of other parameters".to_owned();
                return Err(Refusal::Field { field: "resume_token", problem }.into());
            }
            Some((Place { rows: None, .. }, _)) => {
                let end = execute::place(request.resume_token.clone());
                return responses.send(Ok(end)).await.map_err(|_| gone());
            }
            Some((place, _)) => place.rows.unwrap_or_default(),
            None => 0,
        };
        let frame = plan(&session, &query.text, &query.parameters).await?;
        let metadata = types::metadata(&schema(&frame));
        if let Some(prepared) = &query.prepared
            && *prepared != Prepared::new(prepared.request.clone(), &metadata)
        {
            return Err(Refusal::Stale.into());
        }
        // Clients know the columns of a prepared query.
        if query.prepared.is_none() && request.resume_token.is_empty() {
            responses.send(Ok(execute::columns(metadata))).await.map_err(|_| gone())?;
        }

        let mut stream = plan_frame(frame).await.map_err(|error| status(&error))?.stream();
        let mut seen = 0_u64;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| status(&error.into()))?;
            let columns = execute::converted(&batch).map_err(|error| Status::out_of_range(error.to_string()))?;
            let before = skipped.saturating_sub(seen).min(batch.num_rows() as u64);
            let mut row = usize::try_from(before).unwrap_or_default();
            while row < batch.num_rows() {
                let (data, next) = execute::rows(&columns, row, batch.num_rows());
                row = next;
                let place = Place { query: id, rows: Some(seen + row as u64) };
                for response in execute::batch(&data, place.encode(&versions)) {
                    responses.send(Ok(response)).await.map_err(|_| gone())?;
                }
            }
            seen += batch.num_rows() as u64;
        }
        let end = Place { query: id, rows: None };
        responses.send(Ok(execute::place(end.encode(&versions)))).await.map_err(|_| gone())
    }

    /// The versions of the tables that a query reads.
    async fn versions(&self, session: &Session, query: &str) -> Result<Versions, Status> {
        let references = session.references(query).map_err(|error| status(&error))?;
        let TableVersions { numbers, .. } = self.tables.versions();
        let tables = Arc::clone(&self.tables);
        blocking(move || {
            let mut versions = Versions::new();
            let known = tables.names().map_err(of_serving)?;
            for (_, name) in references.into_iter().filter(|(_, name)| known.contains(name)) {
                let number = match numbers.get(&name) {
                    Some(number) => *number,
                    None => tables.snapshot(&name).map_err(of_serving)?.version().number,
                };
                versions.push((name, number));
            }
            versions.dedup();
            Ok(versions)
        })
        .await
    }
}

fn gone() -> Status {
    Status::cancelled("the client is gone")
}

/// Checks a request as [`Queries::execute`] does before it plans.
pub(crate) fn check_execute(request: &ExecuteQueryRequest) {
    let _ = Query::of(request).map(|query| query.id(&Versions::new()));
    let _ = Place::decode(&request.resume_token);
}

/// A query as a client sends it: its text, and the values of its parameters.
struct Query {
    text: String,
    parameters: Parameters,
    prepared: Option<Prepared>,
}

impl Query {
    /// # Errors
    /// If the request is not valid.
    #[expect(deprecated, reason = "clients of before 2025 send the text of a query")]
    fn of(request: &ExecuteQueryRequest) -> Result<Self, Refusal> {
        if request.query.is_empty() == request.prepared_query.is_empty() {
            let problem = "exactly one of query and prepared_query is required".to_owned();
            return Err(Refusal::Field { field: "prepared_query", problem });
        }
        if request.prepared_query.is_empty() {
            let parameters = parameters::values(None, &request.params)?;
            return Ok(Self { text: request.query.clone(), parameters, prepared: None });
        }
        let Some(prepared) = Prepared::decode(&request.prepared_query) else {
            let problem = "it is not one of this server: prepare the query again".to_owned();
            return Err(Refusal::Field { field: "prepared_query", problem });
        };
        let parameters = parameters::values(Some(&prepared.request.param_types), &request.params)?;
        Ok(Self { text: prepared.request.query.clone(), parameters, prepared: Some(prepared) })
    }

    /// A checksum by which resumed queries are compared.
    fn id(&self, versions: &Versions) -> u64 {
        let mut parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        parameters.sort();
        let numbers: Vec<[u8; 8]> = versions.iter().map(|(_, number)| number.to_be_bytes()).collect();

        let mut parts: Vec<&[u8]> = vec![self.text.as_bytes()];
        parts.extend(parameters.iter().map(String::as_bytes));
        for ((table, _), number) in versions.iter().zip(&numbers) {
            parts.extend([table.as_bytes(), number.as_slice()]);
        }

        let mut hash = Xxh3::new();
        for part in parts {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tidetable_blobs::LocalBlobs;
    use tidetable_store::Store;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::mpsc;

    use super::*;
    use crate::proto::data::execute_query_response::Response;
    use crate::proto::data::partial_result_set::PartialRows;

    fn queries(memory: u64) -> (TempDir, Runtime, Queries) {
        let folder = TempDir::new().unwrap();
        let store = Store::new(Arc::new(LocalBlobs::new(folder.path().to_owned())));
        let tables = Arc::new(Tables::open(&store, true, "test").unwrap());
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let queries = Queries::new(tables, runtime.handle().clone(), memory, Arc::default());
        (folder, runtime, queries)
    }

    fn prepared(runtime: &Runtime, queries: &Queries, query: &str) -> Result<PrepareQueryResponse, Status> {
        let request = PrepareQueryRequest { query: query.to_owned(), ..PrepareQueryRequest::default() };
        runtime.block_on(queries.prepare(request))
    }

    /// The bytes of the rows of a query.
    #[expect(deprecated, reason = "clients of before 2025 send the text of a query")]
    fn executed(runtime: &Runtime, queries: &Queries, query: &str) -> Result<usize, Status> {
        let request = ExecuteQueryRequest { query: query.to_owned(), ..ExecuteQueryRequest::default() };
        let (sender, mut receiver) = mpsc::channel(4);
        queries.execute(request, None, sender);
        runtime.block_on(async {
            let mut bytes = 0;
            while let Some(response) = receiver.recv().await {
                if let Some(Response::Results(results)) = response?.response
                    && let Some(PartialRows::ProtoRowsBatch(rows)) = results.partial_rows
                {
                    bytes += rows.batch_data.len();
                }
            }
            Ok(bytes)
        })
    }

    #[test]
    fn long_statements_are_answered_and_deep_ones_refused() {
        let (_folder, runtime, queries) = queries(64 << 20);
        for op in [" AND ", " OR "] {
            let query = format!("SELECT v FROM (VALUES (1), (2)) AS t (v) WHERE {}", vec!["v <> 1"; 3_000].join(op));
            assert!(prepared(&runtime, &queries, &query).is_ok(), "{op}");
            assert!(executed(&runtime, &queries, &query).unwrap() > 0, "{op}");
        }
        let sum = format!("SELECT {} FROM (VALUES (1), (2)) AS t (v)", vec!["v"; 800].join(" + "));
        assert!(executed(&runtime, &queries, &sum).unwrap() > 0);

        for level in ["(", "NOT ", "1 + "] {
            let query = format!("SELECT {}true", level.repeat(100_000));
            let refusals = [
                prepared(&runtime, &queries, &query).err().unwrap(),
                executed(&runtime, &queries, &query).err().unwrap(),
            ];
            for refusal in refusals {
                assert_eq!(refusal.code(), tonic::Code::InvalidArgument, "{level}: {refusal}");
            }
        }
        assert!(executed(&runtime, &queries, "SELECT 1").unwrap() > 0);
    }

    #[test]
    fn a_query_holds_no_more_than_its_memory() {
        let (_folder, runtime, queries) = queries(16 << 20);
        let long = "SELECT length(repeat('x', 2000000000)) AS n";
        let refusal = executed(&runtime, &queries, long).err().unwrap();
        assert_eq!(refusal.code(), tonic::Code::ResourceExhausted, "{refusal}");
        // A sort that exceeds it spills.
        let sorted = "SELECT v, v * 2 AS w FROM generate_series(1, 1500000) AS s (v) ORDER BY w DESC";
        assert!(executed(&runtime, &queries, sorted).unwrap() > 0);
    }
}
