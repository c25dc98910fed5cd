//! One job of the scheduler: its plan is sent, waited for, and its answers fetched from the executors that have them.

use std::sync::Arc;

use ballista_core::client::BallistaClient;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::job_status::Status as State;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, JobStatus, KeyValuePair, PartitionLocation, SuccessfulJob,
};
use ballista_core::version::insert_version_header;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt;
use tidetable_runner::units::Answer;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::MESSAGE;
use crate::codec::PlanCodec;
use crate::exec::{UnitExec, row, rows, schema};
use crate::tls::config::Tls;

/// Partitions whose answers are fetched at the same time.
const FETCHES: usize = 8;
/// Attempts to connect to an executor that has answers, and the wait between two, in milliseconds.
const CONNECTS: (u8, u64) = (3, 200);

/// A job that is about to be sent, by a connection to the scheduler.
pub(crate) struct Job<'a> {
    pub(crate) client: SchedulerGrpcClient<Channel>,
    pub(crate) session: &'a str,
    pub(crate) operation: String,
    pub(crate) settings: Vec<(String, String)>,
    /// TLS to the executors that have the answers; `None` for connections in clear.
    pub(crate) tls: Option<&'a Arc<Tls>>,
}

/// Why a job did not bring all its answers.
#[derive(Debug)]
pub(crate) enum JobError {
    /// The scheduler does not take it; nor will it the next time.
    Refused(String),
    /// It failed, or the scheduler or an executor is lost: its units may be sent again.
    Lost(String),
    /// The executors that had its units cannot do them, such as those of another root.
    Unfit {
        /// Whether no executor can that is connected.
        everywhere: bool,
    },
}

/// The scheduler's name of a running job, once it is known.
pub(crate) type Named<'a> = dyn Fn(&str) + Sync + 'a;

impl Job<'_> {
    /// Sends `units` and passes the answers to `take`, with the index of each.
    pub(crate) async fn run(
        self,
        units: &[&[u8]],
        named: &Named<'_>,
        take: &(dyn Fn(usize, Answer) + Sync),
    ) -> Result<(), JobError> {
        let plan = plan(units).map_err(|error| JobError::Refused(error.to_string()))?;
        let tls = self.tls;
        fetch_all(self.finish(plan, named).await?, tls, take).await
    }

    /// Sends a plan, and waits until the scheduler says that it is done or has failed.
    async fn finish(mut self, plan: Vec<u8>, named: &Named<'_>) -> Result<SuccessfulJob, JobError> {
        let settings = self.settings.into_iter().map(|(key, value)| KeyValuePair { key, value: Some(value) });
        let mut request = Request::new(ExecuteQueryParams {
            session_id: self.session.to_owned(),
            settings: settings.collect(),
            operation_id: self.operation,
            query: Some(Query::PhysicalPlan(plan)),
        });
        insert_version_header(request.metadata_mut());

        let mut states = self.client.execute_query_push(request).await.map_err(refusal)?.into_inner();
        loop {
            let state = states.next().await.ok_or_else(|| JobError::Lost("the scheduler ended".to_owned()))?;
            let state = state.map_err(|status| JobError::Lost(status.message().to_owned()))?;
            let Some(JobStatus { job_id, status, .. }) = state.status else { continue };
            named(&job_id);
            match status {
                Some(State::Failed(failed)) => return Err(JobError::Lost(failed.error)),
                Some(State::Successful(done)) => return Ok(done),
                _ => {}
            }
        }
    }
}

/// Cancels a job. A scheduler that is gone has none.
pub(crate) async fn cancel(mut client: SchedulerGrpcClient<Channel>, job: String) {
    let _ = client.cancel_job(CancelJobParams { job_id: job }).await;
}

/// The encoded plan of units: a partition of one row each.
fn plan(units: &[&[u8]]) -> Result<Vec<u8>, DataFusionError> {
    let mut parts = Vec::new();
    for (unit, bytes) in (0..).zip(units) {
        parts.push(vec![row(unit, bytes)?]);
    }

    let input = MemorySourceConfig::try_new_exec(&parts, schema(), None)?;
    let exec = Arc::new(UnitExec::new(input, None));
    let node = PhysicalPlanNode::try_from_physical_plan(exec, &PlanCodec::new(None))?;
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes)?;
    Ok(bytes)
}

fn refusal(status: tonic::Status) -> JobError {
    let reason = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition | Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => {
            JobError::Refused(reason)
        }
        _ => JobError::Lost(reason),
    }
}

/// Fetches all answers of a job, also if some are lost.
async fn fetch_all(
    done: SuccessfulJob,
    tls: Option<&Arc<Tls>>,
    take: &(dyn Fn(usize, Answer) + Sync),
) -> Result<(), JobError> {
    let fetches = done.partition_location.into_iter().map(|location| async move {
        for (unit, bytes) in fetch(location, tls).await? {
            let answer = Answer::decode(&bytes).map_err(|error| JobError::Lost(error.to_string()))?;
            take(unit as usize, answer);
        }
        Ok(())
    });
    let results: Vec<Result<(), JobError>> = futures::stream::iter(fetches).buffer_unordered(FETCHES).collect().await;
    results.into_iter().collect()
}

/// The answers of a partition, from the executor that has them.
async fn fetch(location: PartitionLocation, tls: Option<&Arc<Tls>>) -> Result<Vec<(u32, Vec<u8>)>, JobError> {
    let mut stream = stream_of(location, tls).await?;
    let mut found = Vec::new();
    while let Some(batch) = stream.next().await {
        let answers = batch.and_then(|batch| rows(&batch));
        found.extend(answers.map_err(|error| JobError::Lost(error.to_string()))?);
    }
    Ok(found)
}

/// The rows of a partition, from the executor that has them.
async fn stream_of(location: PartitionLocation, tls: Option<&Arc<Tls>>) -> Result<SendableRecordBatchStream, JobError> {
    let layout = location.layout();
    let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
        return Err(JobError::Lost("an answer without a place".to_owned()));
    };
    let (host, port) = (executor.host.as_str(), u16::try_from(executor.port).unwrap_or_default());
    let gone = |error: String| JobError::Lost(format!("executor {} at {host}:{port}: {error}", executor.id));
    let (times, wait) = CONNECTS;
    let mut client =
        BallistaClient::try_new(host, port, MESSAGE, false, tls.map(|tls| tls.fetches()), times, wait, 0, 0)
            .await
            .map_err(|error| gone(error.to_string()))?;
    client
        .fetch_partition_proxied(&executor.id, &partition.into(), location.file_id, layout, host, port, true)
        .await
        .map_err(|error| gone(error.to_string()))
}
