//! The folder in which the answers of an executor wait to be fetched.
//!
//! Ballista writes each answer to the disk of the executor. An executor whose disk takes no more answers fails every unit that it
//! gets, and gets more of them than others, because it fails fast: it leaves instead, and its units run elsewhere.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use tokio::sync::mpsc::Sender;

use crate::MESSAGE;

/// Bytes of one write of the file that tries the folder.
const CHUNK: usize = 64 << 10;

/// The folder in which the answers of an executor wait to be fetched.
#[derive(Debug, Clone)]
pub(crate) struct AnswerFolder {
    /// The name of the executor, for messages.
    pub(crate) executor: String,
    pub(crate) path: PathBuf,
}

impl AnswerFolder {
    /// Makes the folder, and fails unless it takes one answer of the largest size.
    pub(crate) fn probe(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        let path = self.path.join(format!(".probe-{}", std::process::id()));
        let written = write_zeros(&path);
        let removed = std::fs::remove_file(&path);
        written.and(removed)
    }
}

/// Writes a file of the size of the largest answer.
fn write_zeros(path: &std::path::Path) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    for _ in 0..MESSAGE / CHUNK {
        file.write_all(&[0; CHUNK])?;
    }
    file.flush()
}

/// Ballista's engine. It says when the folder of answers cannot be written.
pub(crate) struct WatchedEngine {
    pub(crate) inner: DefaultExecutionEngine,
    pub(crate) folder: AnswerFolder,
    /// Gets why the folder cannot be written.
    pub(crate) failed: Sender<io::Error>,
}

impl ExecutionEngine for WatchedEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let (inner, partitions) = (&self.inner, global_output_partition_ids);
        let stage = inner.create_query_stage_exec(job_id, stage_id, task_id, partitions, plan, work_dir, config)?;
        Ok(Arc::new(WatchedStage { stage, folder: self.folder.clone(), failed: self.failed.clone() }))
    }
}

/// A stage of Ballista's, which looks at the folder when it fails.
#[derive(Debug)]
struct WatchedStage {
    stage: Arc<dyn QueryStageExecutor>,
    folder: AnswerFolder,
    failed: Sender<io::Error>,
}

impl fmt::Display for WatchedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stage.fmt(f)
    }
}

#[tonic::async_trait]
impl QueryStageExecutor for WatchedStage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let error = match self.stage.execute_query_stage(task_id, context).await {
            Ok(written) => return Ok(written),
            Err(error) => error,
        };

        let folder = self.folder.clone();
        let probed = tokio::task::spawn_blocking(move || folder.probe()).await;
        let Ok(Err(source)) = probed else { return Err(error) };
        let AnswerFolder { executor, path } = &self.folder;
        let reason = format!("executor {executor} cannot write answers to {}: {source}", path.display());
        // A second failure tells nothing new.
        let _ = self.failed.try_send(source);
        Err(DataFusionError::IoError(io::Error::other(reason)))
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.stage.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.stage.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.stage.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.stage.collect_column_stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Failing;

    impl fmt::Display for Failing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Failing")
        }
    }

    #[tonic::async_trait]
    impl QueryStageExecutor for Failing {
        async fn execute_query_stage(&self, _: usize, _: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
            Err(DataFusionError::Execution("a unit failed".to_owned()))
        }

        fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_told_apart_from_a_unit_that_fails() {
        let dir = tempfile::tempdir().unwrap();
        let (failed, mut fails) = tokio::sync::mpsc::channel(1);
        let folder = AnswerFolder { executor: "one".to_owned(), path: dir.path().join("answers") };
        let stage = WatchedStage { stage: Arc::new(Failing), folder: folder.clone(), failed };
        let run = || async { stage.execute_query_stage(0, Arc::default()).await.unwrap_err().to_string() };

        assert!(run().await.contains("a unit failed"));
        assert!(fails.try_recv().is_err());
        assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 0, "nothing is left of the probe");

        std::fs::remove_dir(&folder.path).unwrap();
        std::fs::write(&folder.path, "no folder").unwrap();
        for _ in 0..2 {
            let said = run().await;
            assert!(said.contains("executor one cannot write answers to"), "{said}");
            assert!(said.contains(&folder.path.display().to_string()), "{said}");
        }
        assert!(fails.try_recv().is_ok() && fails.try_recv().is_err());
    }
}
