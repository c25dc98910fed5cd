//! Executes plans in tasks of their own.

use std::sync::Arc;

use datafusion::error::Result as PlanResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;

use crate::session::planning::{DEEP_PLAN, PlannedQuery, depth};

/// Batches that are computed before they are asked for.
const AHEAD: usize = 1;

impl PlannedQuery {
    /// Executes the query in a task of the tokio runtime. Whoever reads the stream is free meanwhile, also while a batch takes
    /// long; dropping the stream ends the task when it next waits.
    pub fn stream(&self) -> SendableRecordBatchStream {
        let (plan, context) = (Arc::clone(&self.plan), Arc::clone(&self.context));
        in_task(&self.plan, move || execute_stream(plan, context))
    }

    /// As [`Self::stream`], but of one partition of the plan only.
    pub fn stream_of(&self, partition: usize) -> SendableRecordBatchStream {
        let (plan, context) = (Arc::clone(&self.plan), Arc::clone(&self.context));
        in_task(&self.plan, move || plan.execute(partition, context))
    }
}

fn in_task(
    plan: &Arc<dyn ExecutionPlan>,
    execute: impl FnOnce() -> PlanResult<SendableRecordBatchStream> + Send + 'static,
) -> SendableRecordBatchStream {
    let is_deep = depth(plan) > DEEP_PLAN;
    let mut builder = RecordBatchReceiverStreamBuilder::new(plan.schema(), AHEAD);
    let sender = builder.tx();
    let work = async move {
        let mut rows = execute()?;
        while let Some(batch) = rows.next().await {
            let is_last = batch.is_err();
            // A reader that is gone needs no more.
            if sender.send(batch).await.is_err() || is_last {
                break;
            }
        }
        Ok(())
    };
    match is_deep {
        true => builder.spawn(tokio::task::unconstrained(work)),
        false => builder.spawn(work),
    }

    // Batches may be there as fast as they are read: whoever also waits for an interrupt is to see it in between.
    let rows = builder.build().then(|batch| async {
        tokio::task::yield_now().await;
        batch
    });
    Box::pin(RecordBatchStreamAdapter::new(plan.schema(), rows))
}
