//! Encoding of the plan node of ours. Everything else is Ballista's.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use tidetable_runner::Worker;

use crate::exec::UnitExec;

/// What the node of ours begins with. Ballista's are protobuf messages, which never do.
const MAGIC: &[u8] = b"\xFFtidetable unit exec 1";

/// Encodes [`UnitExec`], and leaves other nodes to Ballista.
#[derive(Debug)]
pub(crate) struct PlanCodec {
    inner: BallistaPhysicalExtensionCodec,
    /// Runs the units of decoded plans; `None` where plans are only passed on.
    worker: Option<Arc<Worker>>,
}

impl PlanCodec {
    pub(crate) fn new(worker: Option<Arc<Worker>>) -> Self {
        Self { inner: BallistaPhysicalExtensionCodec::default(), worker }
    }
}

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if buf != MAGIC {
            return self.inner.try_decode(buf, inputs, ctx, proto_converter);
        }
        let [input] = inputs else {
            return Err(DataFusionError::Internal(format!("UnitExec with {} inputs", inputs.len())));
        };
        Ok(Arc::new(UnitExec::new(Arc::clone(input), self.worker.clone())))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if !node.is::<UnitExec>() {
            return self.inner.try_encode(node, buf, proto_converter);
        }
        buf.extend_from_slice(MAGIC);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::ExecutionPlanProperties;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;
    use crate::exec::{row, schema};

    #[test]
    fn a_plan_of_units_survives_the_wire() {
        let parts: Vec<_> = (0..3).map(|unit| vec![row(unit, b"u").unwrap()]).collect();
        let input = MemorySourceConfig::try_new_exec(&parts, schema(), None).unwrap();
        let codec = PlanCodec::new(None);
        let node = PhysicalPlanNode::try_from_physical_plan(Arc::new(UnitExec::new(input, None)), &codec).unwrap();
        let mut bytes = Vec::new();
        node.try_encode(&mut bytes).unwrap();
        let node = PhysicalPlanNode::try_decode(&bytes).unwrap();
        let plan = node.try_into_physical_plan(&TaskContext::default(), &codec).unwrap();
        assert!(plan.downcast_ref::<UnitExec>().is_some());
        assert_eq!(plan.output_partitioning().partition_count(), 3);
    }
}
