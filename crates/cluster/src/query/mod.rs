//! Queries on executors: a plan of this process, of which they run the parts.

pub(crate) mod roots;
pub(crate) mod scans;
pub(crate) mod settings;

use std::sync::{Arc, Mutex, PoisonError};

use ballista_core::serde::protobuf::PartitionLocation;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt};
use tidetable_runner::units::root_key;
use tidetable_sql::{Place, Session as SqlSession, SqlError};
use tonic::transport::Channel;

use crate::MESSAGE;
use crate::codec::PlanCodec;
use crate::connect::SchedulerLink;
use crate::error::ClusterError;
use crate::job::{Job, JobError, cancel, stream_of};
use crate::query::roots::url_of;
use crate::query::settings::{function_state, job_settings};
use crate::session::Session;
use crate::tls::config::Tls;
use crate::tls::files::TlsFiles;

/// A scheduler whose executors answer queries, one at a time.
#[derive(Debug)]
pub struct ClusterQueries {
    session: Session,
    root: String,
    /// The job that runs, until its rows are fetched.
    running: Mutex<Option<(SchedulerGrpcClient<Channel>, String)>>,
}

impl ClusterQueries {
    /// Queries of `root`, as executors name it too, by the scheduler at `address`; `name`: of the session.
    ///
    /// # Errors
    /// [`ClusterError::Address`], or files of TLS that cannot be used.
    pub fn new(address: &str, tls: &TlsFiles, root: &str, name: &str) -> Result<Self, ClusterError> {
        let session = Session::new(SchedulerLink::new(address, tls)?, name);
        Ok(Self { session, root: root.to_owned(), running: Mutex::default() })
    }

    /// Has executors run a query of `session`; its rows are fetched from them.
    ///
    /// # Errors
    /// [`ClusterError::Sql`]: a mistake of the query, or a query that only this process can run; nothing has run then. Otherwise
    /// what failed elsewhere.
    pub async fn stream(&self, session: &SqlSession, query: &str) -> Result<SendableRecordBatchStream, ClusterError> {
        let place = self.session.place_of();
        let failed = |reason: String| ClusterError::Query { place: place.clone(), reason };
        let key = root_key(&self.root).map_err(|error| failed(error.to_string()))?;
        let plan = session.distributed(query, &Place { url: url_of(&key) }).await?;
        let bytes = encoded(&plan)?;
        let link = &self.session.link;
        let client = link.connect().await;
        let client =
            client.map_err(|error| ClusterError::Unreachable { place: place.clone(), reason: error.reason })?;
        if link.has_executors().await == Some(false) {
            return Err(failed("no executor is connected: start `tidetable executor`".to_owned()));
        }
        let job = Job { settings: job_settings(&self.session.name), ..self.session.job(client.clone(), 1) };
        let named = |job: &str| *self.running() = Some((client.clone(), job.to_owned()));
        let done = job.finish(bytes, &named).await.map_err(|error| match error {
            JobError::Refused(reason) | JobError::Lost(reason) => failed(cause(&reason)),
        })?;
        self.running().take();
        let tls = link.tls().cloned();
        let mut parts = done.partition_location;
        parts.sort_by_key(|part| part.partition_id.as_ref().map(|id| id.partition_id));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            plan.schema(),
            futures::stream::iter(parts).then(move |part| rows_of(part, tls.clone())).try_flatten(),
        )))
    }

    /// Cancels what still runs.
    pub async fn cancel(&self) {
        let running = self.running().take();
        if let Some((client, job)) = running {
            cancel(client, job).await;
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<(SchedulerGrpcClient<Channel>, String)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn rows_of(part: PartitionLocation, tls: Option<Arc<Tls>>) -> Result<SendableRecordBatchStream, DataFusionError> {
    let lost = |error| match error {
        JobError::Refused(reason) | JobError::Lost(reason) => {
            DataFusionError::Execution(format!("rows of the query are lost: {reason}; run it again"))
        }
    };
    stream_of(part, tls.as_ref()).await.map_err(lost)
}

/// What Ballista says of a failed job without where it says it.
fn cause(reason: &str) -> String {
    let words = ["Job failed due to ", "DataFusion error: ", "External error: ", "Execution error: "];
    let text = words.iter().fold(reason.to_owned(), |text, word| text.replace(word, ""));
    text.lines().next().unwrap_or_default().to_owned()
}

/// A plan as bytes, if executors read the same plan from them.
fn encoded(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>, SqlError> {
    let refused = |reason: String| SqlError::NotDistributed { reason };
    // Ballista 55 gives a task the branches that it does not run, with no partitions: a sort with a limit there panics, and
    // the executor ends.
    if plan.exists(|node| Ok(node.is::<UnionExec>() || node.is::<InterleaveExec>())).unwrap_or(true) {
        return Err(refused("it has a UNION".to_owned()));
    }
    // An aggregate without groups above a join counted some partitions twice (decision 0031).
    if plan.exists(|node| Ok(node.name().ends_with("JoinExec"))).unwrap_or(true) {
        return Err(refused("it has a join".to_owned()));
    }
    let codec = PlanCodec::new(None);
    let lost = |error: DataFusionError| refused(format!("its plan cannot be sent: {}", error.strip_backtrace()));
    let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &codec).map_err(lost)?;
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes).map_err(lost)?;
    if bytes.len() > MESSAGE / 2 {
        return Err(refused(format!("its plan of {} bytes is too large to be sent", bytes.len())));
    }
    let context = TaskContext::from(&function_state(None).map_err(lost)?);
    let read = PhysicalPlanNode::try_decode(&bytes).and_then(|node| node.try_into_physical_plan(&context, &codec));
    let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
    let (sent, read) = (shown(plan), shown(&read.map_err(lost)?));
    match sent.lines().zip(read.lines()).find(|(sent, read)| sent != read) {
        None if sent.lines().count() == read.lines().count() => Ok(bytes),
        differs => {
            let node = differs.map_or("its plan", |(sent, _)| sent.trim());
            tracing::debug!(sent, read, "a plan that does not survive its encoding");
            Err(refused(format!("executors would read another plan than \"{node}\"")))
        }
    }
}
