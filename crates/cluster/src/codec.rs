//! Encoding of plan nodes and functions of ours. Everything else is Ballista's.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use tidetable_functions::{code_of_function, function_of_code};
use tidetable_runner::units::{Worker, build};
use tidetable_sql::{Hidden, PropertyBarrierExec};

use crate::exec::UnitExec;
use crate::query::scans;

/// What a node of ours begins with. Ballista's are protobuf messages, which never do.
const MAGIC: &[u8] = b"\xFFtidetable unit exec 1";
/// What a scan of a table begins with.
const SCAN: &[u8] = b"\xFFtidetable scan 1";
/// What a barrier begins with; a byte follows that tells what it hides.
const BARRIER: &[u8] = b"\xFFtidetable property barrier 1 ";
/// What a part of a query begins with; the build follows, and a node of Ballista.
const PART: &[u8] = b"\xFFtidetable part 1 ";

const OTHER_BUILD: &str = "the scheduler is another build than this executor: install the same build on all machines";

/// Encodes [`UnitExec`] and scans of tables, and leaves other nodes to Ballista.
#[derive(Debug)]
pub(crate) struct PlanCodec {
    inner: BallistaPhysicalExtensionCodec,
    /// Runs the units that are decoded.
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
        if let Some(scan) = buf.strip_prefix(SCAN) {
            let store = self.worker.as_ref().map(|worker| worker.store());
            return scans::decode(scan, (ctx, self), store);
        }
        if let Some(hidden) = buf.strip_prefix(BARRIER) {
            let hidden = match hidden {
                b"o" => Hidden::Order,
                _ => Hidden::All,
            };
            return match inputs {
                [input] => Ok(PropertyBarrierExec::over(Arc::clone(input), hidden)),
                _ => Err(DataFusionError::Internal(format!("PropertyBarrierExec with {} inputs", inputs.len()))),
            };
        }
        if let Some(part) = buf.strip_prefix(PART) {
            let own = build()?.as_bytes();
            return match part.strip_prefix(own) {
                Some(part) => self.inner.try_decode(part, inputs, ctx, proto_converter),
                None => Err(DataFusionError::Execution(OTHER_BUILD.to_owned())),
            };
        }
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
        if node.is::<UnitExec>() {
            buf.extend_from_slice(MAGIC);
            return Ok(());
        }
        if let Some(barrier) = node.downcast_ref::<PropertyBarrierExec>() {
            buf.extend_from_slice(BARRIER);
            buf.push(match barrier.hidden() {
                Hidden::Order => b'o',
                Hidden::All => b'a',
            });
            return Ok(());
        }
        if let Some(scan) = scans::encode(node.as_ref(), self)? {
            buf.extend_from_slice(SCAN);
            buf.extend_from_slice(&scan);
            return Ok(());
        }
        let mut own = Vec::new();
        let of_units = node.children().iter().any(|child| child.is::<UnitExec>());
        self.inner.try_encode(node, &mut own, proto_converter)?;
        // Units name their build themselves.
        if !of_units {
            buf.extend_from_slice(PART);
            buf.extend_from_slice(build()?.as_bytes());
        }
        buf.extend_from_slice(&own);
        Ok(())
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(code) = code_of_function(node) {
            buf.extend_from_slice(code.as_bytes());
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        let function = std::str::from_utf8(buf).ok().and_then(function_of_code);
        function.ok_or_else(|| DataFusionError::Plan(format!("the function {name} is not known to executors")))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::ExecutionPlanProperties;
    use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
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

    #[test]
    fn barriers_survive_the_wire() {
        let codec = PlanCodec::new(None);
        for hidden in [Hidden::Order, Hidden::All] {
            let input = Arc::new(PlaceholderRowExec::new(schema()));
            let node =
                PhysicalPlanNode::try_from_physical_plan(PropertyBarrierExec::over(input, hidden), &codec).unwrap();
            let plan = node.try_into_physical_plan(&TaskContext::default(), &codec).unwrap();
            assert_eq!(plan.downcast_ref::<PropertyBarrierExec>().map(PropertyBarrierExec::hidden), Some(hidden));
        }
    }
}
