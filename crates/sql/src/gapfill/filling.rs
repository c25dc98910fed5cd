//! What the physical node fills.

use std::sync::Arc;

use datafusion::physical_plan::PhysicalExpr;

use crate::gapfill::node::{FillKind, Grid};

/// What is filled, and how.
#[derive(Debug, Clone)]
pub(crate) struct Filling {
    pub(crate) grid: Grid,
    pub(crate) time: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) fills: Vec<(FillKind, Arc<dyn PhysicalExpr>)>,
}
