//! Hides keys from aggregations that take them for their own; row "Functional dependencies" of
//! `docs/datafusion-workarounds.md`.
//!
//! A join repeats the keys of its sides: `d.k` of `(SELECT DISTINCT k FROM a) AS d CROSS JOIN c` determines the columns of
//! `d`, not those of `c`. An aggregation of DataFusion 55.2 by `c.j, d.k` takes `d.k` for unique, so that joins to it are
//! left out, `DISTINCT` removes nothing, and other groups are dropped.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Dependency, Result};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use tidetable_functions::opaque;

/// Computes the keys below such aggregations by a function that the optimizer does not see through.
#[derive(Debug)]
pub(crate) struct Dependencies;

impl AnalyzerRule for Dependencies {
    fn name(&self) -> &str {
        "dependencies"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(mut aggregate) => {
                let groups = aggregate.group_expr.iter().filter_map(|expr| column_place(expr, &aggregate.input));
                let keys = misread_keys(&aggregate.input, &groups.collect::<Vec<_>>(), aggregate.group_expr.len());
                if keys.is_empty() {
                    return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
                }
                aggregate.input = Arc::new(hidden(aggregate.input, &keys)?);
                let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
                Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?)))
            }
            // As DataFusion plans it later; the keys that it makes are known only then.
            LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => {
                let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                let groups: Vec<usize> = (0..input.schema().fields().len()).collect();
                let keys = misread_keys(&input, &groups, groups.len());
                let input = if keys.is_empty() { input } else { Arc::new(hidden(input, &keys)?) };
                Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, columns, Vec::new())?)))
            }
            plan => Ok(Transformed::no(plan.recompute_schema()?)),
        })
        .data()
    }
}

/// The index in `input` of the column that `expr` is.
fn column_place(expr: &Expr, input: &LogicalPlan) -> Option<usize> {
    input.schema().maybe_index_of_column(expr.try_as_col()?)
}

/// The columns of keys that are repeated in `input`, are among its columns `groups`, and do not determine all of the
/// `count` groups.
fn misread_keys(input: &LogicalPlan, groups: &[usize], count: usize) -> Vec<usize> {
    let mut keys = Vec::new();
    for dependence in input.schema().functional_dependencies().iter() {
        let determined = groups.iter().filter(|group| dependence.target_indices.contains(group)).count();
        let is_grouped = dependence.source_indices.iter().all(|key| groups.contains(key));
        if dependence.mode == Dependency::Multi && is_grouped && determined < count {
            keys.extend(&dependence.source_indices);
        }
    }
    keys
}

/// `input` with the columns `keys` as results of a function.
fn hidden(input: Arc<LogicalPlan>, keys: &[usize]) -> Result<LogicalPlan> {
    let columns = input.schema().columns().into_iter().enumerate().map(|(place, column)| {
        if !keys.contains(&place) {
            return Expr::Column(column);
        }
        let (table, name) = (column.relation.clone(), column.name.clone());
        opaque().call(vec![Expr::Column(column)]).alias_qualified(table, name)
    });
    Projection::try_new(columns.collect(), input).map(LogicalPlan::Projection)
}
