//! Conditions joined by AND, of which there may be thousands.

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

/// The conditions joined by AND in their order, as a tree of least depth; `None` of none.
///
/// DataFusion's own function joins them from the left. The evaluation of such a tree recurses as deep as there are conditions, and
/// asks on each level for the types of all below, which takes seconds a batch for some thousands.
pub(crate) fn conjunction(
    conditions: impl IntoIterator<Item = Arc<dyn PhysicalExpr>>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let mut conditions: Vec<_> = conditions.into_iter().collect();
    while conditions.len() > 1 {
        let mut joined = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => Arc::new(BinaryExpr::new(left, Operator::And, right)),
                None => left,
            });
        }
        conditions = joined;
    }
    conditions.pop()
}
