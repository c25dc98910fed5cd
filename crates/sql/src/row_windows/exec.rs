//! The plan node of window functions by batch, and the rule that places it.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::Distribution;
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, InputOrderMode,
    PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use tidetable_upstream::rules::node_rule::{Rule, node_rule};

use crate::row_windows::state::RowWindows;

type Plan = Arc<dyn ExecutionPlan>;

/// Evaluates by batch the window functions that can be. It follows all rules that look at windows.
pub(crate) fn windows_by_batch() -> Rule {
    node_rule("WindowsByBatch", |plan| {
        let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() else { return Ok(None) };
        let is_sorted = window.input_order_mode == InputOrderMode::Sorted;
        if !is_sorted || RowWindows::new(window.window_expr(), &window.schema()).is_none() {
            return Ok(None);
        }
        Ok(Some(RowWindowExec::over(Arc::new(window.clone()))))
    })
}

/// A [`BoundedWindowAggExec`] over sorted input, all of whose functions are evaluated by batch. To others it is that node, which
/// can take its place.
#[derive(Debug)]
struct RowWindowExec {
    window: Arc<BoundedWindowAggExec>,
    metrics: ExecutionPlanMetricsSet,
}

impl RowWindowExec {
    fn over(window: Arc<BoundedWindowAggExec>) -> Plan {
        Arc::new(Self { window, metrics: ExecutionPlanMetricsSet::new() })
    }
}

impl DisplayAs for RowWindowExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        self.window.fmt_as(t, f)
    }
}

impl ExecutionPlan for RowWindowExec {
    fn name(&self) -> &'static str {
        "RowWindowExec"
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.window.as_ref())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.window.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        self.window.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.window.apply_expressions(f)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.window.required_input_ordering()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.window.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.window.maintains_input_order()
    }

    fn replace_children(self: Arc<Self>, children: Vec<Plan>, options: ReplaceChildrenOptions) -> Result<Plan> {
        let window = Arc::clone(&self.window).replace_children(children, options)?;
        Ok(match window.downcast_ref::<BoundedWindowAggExec>() {
            Some(window) => Self::over(Arc::new(window.clone())),
            None => window,
        })
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let Some(mut windows) = RowWindows::new(self.window.window_expr(), &schema) else {
            return self.window.execute(partition, context);
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = self.window.input().execute(partition, context)?.map(move |batch| {
            let timer = metrics.elapsed_compute().timer();
            let found = windows.add(&batch?);
            timer.done();
            found.record_output(&metrics)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
