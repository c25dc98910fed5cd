//! Takes nested unions as one before DataFusion does; see `docs/datafusion-workarounds.md`.
//!
//! `a UNION ALL b UNION ALL c ..` is a union of a union of a union. DataFusion 55.2 merges two levels at a time from the bottom, and
//! casts all inputs again at each: the time grows with the square of their number. In a chain of `UNION`, each level would remove
//! duplicates again, as [`dependencies`](crate::dependencies) plans that before.
//!
//! Rules take the names of a union for those of its inputs: where all but one are empty, that one stands for it. DataFusion names
//! direct inputs so, and those of inner unions are named here.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Projection, Union};
use datafusion::optimizer::AnalyzerRule;

/// Replaces unions of unions by one of all inputs, from the top.
#[derive(Debug)]
pub(crate) struct FlatUnions;

impl AnalyzerRule for FlatUnions {
    fn name(&self) -> &str {
        "flat_unions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_down_with_subqueries(|plan| {
            Ok(match plan {
                LogicalPlan::Union(union) => flat(union, below_union)?.update_data(LogicalPlan::Union),
                LogicalPlan::Distinct(Distinct::All(input)) => match Arc::unwrap_or_clone(input) {
                    LogicalPlan::Union(union) => flat(union, below_distinct_union)?
                        .update_data(|union| LogicalPlan::Distinct(Distinct::All(Arc::new(LogicalPlan::Union(union))))),
                    input => Transformed::no(LogicalPlan::Distinct(Distinct::All(Arc::new(input)))),
                },
                plan => Transformed::no(plan),
            })
        })
        .data()
    }
}

/// The union with the inputs of the unions that `nested` finds below it, in their order and with its names.
fn flat(union: Union, nested: fn(&LogicalPlan) -> Option<&Union>) -> Result<Transformed<Union>> {
    if !union.inputs.iter().any(|input| nested(input).is_some()) {
        return Ok(Transformed::no(union));
    }
    let mut inputs = Vec::new();
    let mut open: Vec<Arc<LogicalPlan>> = union.inputs.into_iter().rev().collect();
    while let Some(input) = open.pop() {
        match nested(&input) {
            Some(inner) => open.extend(inner.inputs.iter().rev().map(Arc::clone)),
            None => inputs.push(named(input, &union.schema)?),
        }
    }
    Ok(Transformed::yes(Union { inputs, schema: union.schema }))
}

/// `input` with the names of the columns of `schema`, by position.
fn named(input: Arc<LogicalPlan>, schema: &DFSchema) -> Result<Arc<LogicalPlan>> {
    let (from, to) = (input.schema().fields(), schema.fields());
    if from.iter().map(|field| field.name()).eq(to.iter().map(|field| field.name())) {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(to);
    let columns = columns.map(|(column, field)| Expr::Column(Column::from(column)).alias(field.name())).collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}

/// A union whose rows are all rows of a union above it.
fn below_union(plan: &LogicalPlan) -> Option<&Union> {
    if let LogicalPlan::Union(union) = plan { Some(union) } else { None }
}

/// A union, without or with its duplicates, that may be taken apart where duplicates are removed above it.
fn below_distinct_union(plan: &LogicalPlan) -> Option<&Union> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => below_union(input),
        plan => below_union(plan),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};

    use super::*;

    fn row(value: i32) -> LogicalPlan {
        LogicalPlanBuilder::values(vec![vec![lit(value)]]).unwrap().build().unwrap()
    }

    fn flattened(plan: LogicalPlanBuilder) -> String {
        let analyzed = FlatUnions.analyze(plan.build().unwrap(), &ConfigOptions::default()).unwrap();
        analyzed.display_indent().to_string()
    }

    #[test]
    fn chains_are_one_union_in_their_order() {
        let inner = LogicalPlanBuilder::from(row(3)).union(row(4)).unwrap().build().unwrap();
        let chain = LogicalPlanBuilder::from(row(1)).union(row(2)).unwrap().union(inner).unwrap();
        let values = (1..=4).map(|value| format!("\n  Values: (Int32({value}))")).collect::<String>();
        assert_eq!(flattened(chain), format!("Union{values}"));

        let distinct = LogicalPlanBuilder::from(row(1)).union_distinct(row(2)).unwrap().union_distinct(row(3)).unwrap();
        let values = (1..=3).map(|value| format!("\n    Values: (Int32({value}))")).collect::<String>();
        assert_eq!(flattened(distinct), format!("Distinct:\n  Union{values}"));
    }

    #[test]
    fn inputs_have_the_names_of_the_union() {
        let of = |name: &str| LogicalPlanBuilder::from(row(1)).project([col("column1").alias(name)]).unwrap();
        let inner = of("q").union(of("c").build().unwrap()).unwrap().build().unwrap();
        let union = of("z").union(inner).unwrap().build().unwrap();
        let plan = FlatUnions.analyze(union, &ConfigOptions::default()).unwrap();
        assert_eq!(plan.inputs().len(), 3);
        for input in plan.inputs() {
            assert_eq!(input.schema().field(0).name(), "z", "{input}");
        }
    }

    #[test]
    fn duplicates_are_removed_where_they_were() {
        // Those of 1 and 2 are removed, those of the result are not.
        let mixed = LogicalPlanBuilder::from(row(1)).union_distinct(row(2)).unwrap().union(row(3)).unwrap();
        let plan = flattened(mixed);
        assert!(plan.starts_with("Union\n  Distinct:\n    Union\n"), "{plan}");
    }
}
