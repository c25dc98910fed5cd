//! Keeps keys in which nulls are equal apart from others; row "Joins: nulls that are equal" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 has one setting for all keys of a join. `IS NOT DISTINCT FROM`, set operations and correlated subqueries make
//! joins in which nulls are equal. An equality that comes to such a join later becomes one more of its keys, so that a null
//! equals a null there, too; and where cross joins are looked for, all keys of neighbouring joins are put together and have
//! the setting of the topmost join.

use std::cmp::Ordering;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, NullEquality, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, Join, JoinType, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The name of DataFusion's rule that makes keys of equalities.
const KEYS: &str = "extract_equijoin_predicate";

/// Puts the rule that tells keys apart in the place of DataFusion's.
pub(crate) fn replace(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    for rule in rules.iter_mut().filter(|rule| rule.name() == KEYS) {
        *rule = Arc::new(KeysOfTwoKinds(Arc::clone(rule)));
    }
}

/// DataFusion's rule. Where nulls are equal, a key that it makes of an equality holds for no null: the filter of the join says so.
struct KeysOfTwoKinds(Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for KeysOfTwoKinds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(KEYS)
    }
}

impl OptimizerRule for KeysOfTwoKinds {
    fn name(&self) -> &str {
        KEYS
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let null_equal = match &plan {
            LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull => join.on.len(),
            _ => return self.0.rewrite(plan, config),
        };
        self.0.rewrite(plan, config)?.map_data(|plan| match plan {
            LogicalPlan::Join(join) => Ok(LogicalPlan::Join(without_nulls(join, null_equal))),
            plan => Ok(plan),
        })
    }
}

/// The join, whose keys behind the first `null_equal` match no nulls.
fn without_nulls(mut join: Join, null_equal: usize) -> Join {
    let not_null = join.on.iter().skip(null_equal).map(|(left, _)| left.clone().is_not_null());
    join.filter = join.filter.into_iter().chain(not_null).reduce(Expr::and);
    join
}

/// Applies a rule that takes inner joins apart to all but those in which nulls are equal.
///
/// # Errors
/// Those of the rule.
pub(super) fn without_null_equal(
    plan: LogicalPlan,
    apply: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let hidden = plan.transform_up_with_subqueries(hide)?;
    let applied = apply(hidden.data)?;
    match hidden.transformed {
        true => applied.transform_data(|plan| plan.transform_up_with_subqueries(show)),
        false => Ok(applied),
    }
}

fn is_null_equal(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull
}

fn hide(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if is_null_equal(&join) => {
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(HiddenJoin(join)) })))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn show(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Extension(extension) = &plan else { return Ok(Transformed::no(plan)) };
    match extension.node.as_any().downcast_ref::<HiddenJoin>() {
        Some(HiddenJoin(join)) => Ok(Transformed::yes(LogicalPlan::Join(join.clone()))),
        None => Ok(Transformed::no(plan)),
    }
}

/// A join that a rule does not know as one; its inputs are rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HiddenJoin(Join);

impl PartialOrd for HiddenJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl UserDefinedLogicalNodeCore for HiddenJoin {
    fn name(&self) -> &str {
        "HiddenJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.0.left, &self.0.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.0.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("HiddenJoin")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return internal_err!("a join has two inputs");
        };
        let Join { on, filter, join_type, join_constraint, null_equality, null_aware, .. } = self.0.clone();
        let (left, right) = (Arc::new(left), Arc::new(right));
        Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware).map(Self)
    }
}
