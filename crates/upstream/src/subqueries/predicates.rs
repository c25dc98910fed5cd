//! The results of subqueries as expressions over joined columns.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::{count, first_value, max, min};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, Subquery, SubqueryAlias, lit, not, when,
};
use datafusion::scalar::ScalarValue;
use tidetable_functions::one_row;

use super::dependent::Dependent;
use super::domain::Outer;
use super::{OuterRows, Unnesting, column, kept, left_join};

impl Unnesting {
    /// A condition of a filter, which need not tell false from null.
    pub(super) fn condition(&mut self, expr: Expr, rows: &mut OuterRows) -> Result<Expr> {
        match expr {
            Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
                let expr = self.expression(*expr, rows)?;
                let given = self.given_value(&subquery, rows)?;
                self.found(&expr, &given, rows)
            }
            expr => self.expression(expr, rows),
        }
    }

    /// `expr` with columns of `rows` in place of its subqueries.
    pub(super) fn expression(&mut self, expr: Expr, rows: &mut OuterRows) -> Result<Expr> {
        expr.transform_up(|expr| match expr {
            Expr::Exists(Exists { subquery, negated }) => {
                let exists = self.exists(&subquery, rows)?;
                Ok(Transformed::yes(if negated { not(exists) } else { exists }))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let any = self.is_any(&expr, &subquery, rows)?;
                Ok(Transformed::yes(if negated { not(any) } else { any }))
            }
            Expr::SetComparison(compared) => self.compared(compared, rows),
            Expr::ScalarSubquery(subquery)
                if !subquery.outer_ref_columns.is_empty() || kept::is_wrongly_not_null(&subquery) =>
            {
                self.value(&subquery, rows).map(Transformed::yes)
            }
            expr => Ok(Transformed::no(expr)),
        })
        .data()
    }

    /// The rows of the subquery for all rows of the outer query.
    fn given(&mut self, subquery: &Subquery, rows: &OuterRows) -> Result<Given> {
        let outer = Outer::of(&subquery.subquery, rows.base.schema())?;
        let value = subquery.subquery.schema().columns().into_iter().next();
        let Dependent { plan, keys } = self.dependent(subquery.subquery.as_ref().clone(), &outer, &rows.base)?;
        Ok(Given { outer, plan, keys, value: value.map_or_else(|| lit(true), Expr::Column) })
    }

    fn alias(&mut self, plan: LogicalPlan) -> Result<(LogicalPlan, String)> {
        let table = format!("__subquery_{}", self.next());
        Ok((LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), table.as_str())?), table))
    }

    /// As [`Self::given`], for a subquery in place of a value or beside `IN`.
    fn given_value(&mut self, subquery: &Subquery, rows: &OuterRows) -> Result<Given> {
        let width = subquery.subquery.schema().fields().len();
        if width != 1 {
            return plan_err!("a subquery in place of a value, or after IN, ANY or ALL, has one column, not {width}");
        }
        self.given(subquery, rows)
    }

    fn exists(&mut self, subquery: &Subquery, rows: &mut OuterRows) -> Result<Expr> {
        let given = self.given(subquery, rows)?;
        if given.keys.is_empty() {
            // One row with the number of rows.
            let first = LogicalPlanBuilder::from(given.plan).limit(0, Some(1))?.build()?;
            let counted = Aggregate::try_new(Arc::new(first), Vec::new(), vec![count(lit(1_i64)).alias("n")])?;
            let (plan, table) = self.alias(LogicalPlan::Aggregate(counted))?;
            rows.join_row(plan)?;
            return Ok(column("n", table).gt(lit(0_i64)));
        }
        let plan = given.keyed(vec![])?;
        self.found_row(distinct(plan), given.outer, None, rows)
    }

    /// Whether `expr` is a value of the subquery; false where three-valued logic has no answer.
    fn found(&mut self, expr: &Expr, given: &Given, rows: &mut OuterRows) -> Result<Expr> {
        let kind = expr.get_type(rows.joined.schema())?;
        let value = one_zero(given.value.clone(), &kind);
        let is_constant = !expr.any_column_refs();
        let wanted = match is_constant {
            true => given.value.clone().eq(expr.clone()),
            false => given.value.clone().is_not_null(),
        };
        let plan = LogicalPlanBuilder::from(given.plan.clone()).filter(wanted)?.build()?;
        let plan = Given { plan, ..given.clone() }.keyed(vec![value.alias("value")])?;
        let pair = (!is_constant).then(|| (one_zero(expr.clone(), &kind), "value"));
        self.found_row(distinct(plan), given.outer.clone(), pair, rows)
    }

    /// Whether a row of `plan` has the outer values and the value of `pair`.
    fn found_row(
        &mut self,
        plan: LogicalPlan,
        outer: Outer,
        pair: Option<(Expr, &str)>,
        rows: &mut OuterRows,
    ) -> Result<Expr> {
        let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        columns.push(lit(true).alias("found"));
        let marked = Projection::try_new(columns, Arc::new(plan))?;
        let (plan, table) = self.alias(LogicalPlan::Projection(marked))?;
        let pair = pair.map(|(expr, name)| (expr, column(name, &table)));
        rows.join(plan, &outer, &table, pair)?;
        Ok(column("found", table).is_not_null())
    }

    /// The condition `expr = ANY (subquery)`, over the joined rows.
    fn is_any(&mut self, expr: &Expr, subquery: &Subquery, rows: &mut OuterRows) -> Result<Expr> {
        let given = self.given_value(subquery, rows)?;
        let found = self.found(expr, &given, rows)?;
        if !expr.nullable(rows.joined.schema())? && !given.value.nullable(given.plan.schema())? {
            return Ok(found);
        }
        let table = self.summary(&given, &[], rows)?;
        any(found, expr, &table)
    }

    /// Joins the number of rows, the number of values that are not null, and `more` functions of each outer row's subquery.
    /// Returns the name of the table.
    fn summary(&mut self, given: &Given, more: &[Expr], rows: &mut OuterRows) -> Result<String> {
        let keys = given.keys.iter().enumerate();
        let groups = keys.map(|(at, key)| Expr::Column(key.clone()).alias(key_name(at))).collect();
        let mut functions = vec![count(lit(1_i64)).alias("n"), count(given.value.clone()).alias("given")];
        functions.extend(more.iter().cloned());
        let plan = Aggregate::try_new(Arc::new(given.plan.clone()), groups, functions)?;
        let (plan, table) = self.alias(LogicalPlan::Aggregate(plan))?;
        match given.keys.is_empty() {
            true => rows.join_row(plan)?,
            false => rows.join(plan, &given.outer, &table, None)?,
        }
        Ok(table)
    }

    fn compared(&mut self, compared: SetComparison, rows: &mut OuterRows) -> Result<Transformed<Expr>> {
        let SetComparison { expr, subquery, op, quantifier } = compared;
        // All are so if none is not.
        let (of_any, is_all) = match quantifier {
            SetQuantifier::Any => (Some(op), false),
            SetQuantifier::All => (op.negate(), true),
        };
        let kind = expr.get_type(rows.joined.schema())?;
        let Some(of_any) = of_any.filter(|op| *op == Operator::Eq || has_order(&kind)) else {
            return Ok(Transformed::no(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })));
        };
        let any = match of_any {
            Operator::Eq => self.is_any(&expr, &subquery, rows)?,
            op => self.compared_with_any(&expr, op, &subquery, rows)?,
        };
        Ok(Transformed::yes(if is_all { not(any) } else { any }))
    }

    /// `expr op ANY (subquery)`, by the least and the greatest value.
    fn compared_with_any(
        &mut self,
        expr: &Expr,
        op: Operator,
        subquery: &Subquery,
        rows: &mut OuterRows,
    ) -> Result<Expr> {
        let given = self.given_value(subquery, rows)?;
        let extremes = [min(given.value.clone()).alias("least"), max(given.value.clone()).alias("greatest")];
        let table = self.summary(&given, &extremes, rows)?;
        let with =
            |name: &str| Expr::BinaryExpr(BinaryExpr::new(Box::new(expr.clone()), op, Box::new(column(name, &table))));
        let is_so = match op {
            Operator::Lt | Operator::LtEq => with("greatest"),
            Operator::Gt | Operator::GtEq => with("least"),
            _ => with("least").or(with("greatest")),
        };
        any(is_so, expr, &table)
    }

    /// The value of the subquery's only row; an error for an outer row for which it has several.
    fn value(&mut self, subquery: &Subquery, rows: &mut OuterRows) -> Result<Expr> {
        let given = self.given_value(subquery, rows)?;
        if has_one_row(&subquery.subquery) {
            let plan = given.keyed(vec![given.value.clone().alias("value")])?;
            let (plan, table) = self.alias(plan)?;
            rows.join(plan, &given.outer, &table, None)?;
            return Ok(column("value", table));
        }
        let some = first_value(given.value.clone(), Vec::new()).alias("value");
        let table = self.summary(&given, &[some], rows)?;
        Ok(one_row().call(vec![column("n", &table), column("value", table)]))
    }
}

/// The rows of a subquery for all outer rows.
#[derive(Debug, Clone)]
struct Given {
    outer: Outer,
    plan: LogicalPlan,
    /// The columns that hold the outer values.
    keys: Vec<Column>,
    /// The first column that the subquery gives.
    value: Expr,
}

impl Given {
    /// The outer values under their names, followed by `columns`.
    fn keyed(&self, columns: Vec<Expr>) -> Result<LogicalPlan> {
        let keys = self.keys.iter().enumerate();
        let keys = keys.map(|(at, key)| Expr::Column(key.clone()).alias(key_name(at)));
        let plan = Projection::try_new(keys.chain(columns).collect(), Arc::new(self.plan.clone()))?;
        Ok(LogicalPlan::Projection(plan))
    }
}

impl OuterRows {
    /// Joins the row of `plan`, which has at most one for each outer value and each value of `pair`.
    fn join(&mut self, plan: LogicalPlan, outer: &Outer, table: &str, pair: Option<(Expr, Expr)>) -> Result<()> {
        let keys = (0..outer.len()).map(|at| Column::new(Some(table), key_name(at))).collect();
        let mut on = outer.on(keys)?;
        on.extend(pair);
        self.joined = left_join(std::mem::take(&mut self.joined), plan, on)?;
        Ok(())
    }

    /// Joins the one row of `plan` to each row.
    fn join_row(&mut self, plan: LogicalPlan) -> Result<()> {
        self.joined = LogicalPlanBuilder::from(std::mem::take(&mut self.joined)).cross_join(plan)?.build()?;
        Ok(())
    }
}

/// True if `is_so`; null if a value of the subquery, or `expr` beside a value, is null; otherwise false.
fn any(is_so: Expr, expr: &Expr, table: &str) -> Result<Expr> {
    let (rows, given) = (column("n", table), column("given", table));
    let is_unknown = rows.clone().gt(lit(0_i64)).and(expr.clone().is_null().or(given.lt(rows)));
    when(is_so, lit(true)).when(is_unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(false))
}

/// Whether `plan` has one row at most, for any outer row.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Limit(limit) => {
            let fetch = limit.get_fetch_type();
            matches!(fetch, Ok(FetchType::Literal(Some(0 | 1)))) || has_one_row(&limit.input)
        }
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Distinct(_) => plan.inputs().into_iter().all(has_one_row),
        _ => false,
    }
}

fn distinct(plan: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Distinct(Distinct::All(Arc::new(plan)))
}

/// `expr` with one zero: `-0.0` equals `0.0`, but is another join key.
fn one_zero(expr: Expr, kind: &DataType) -> Expr {
    match kind {
        DataType::Float64 => expr + lit(0.0_f64),
        DataType::Float32 => expr + lit(0.0_f32),
        _ => expr,
    }
}

/// Whether `min` and `max` find the extremes of the type.
fn has_order(kind: &DataType) -> bool {
    kind.is_numeric() || kind.is_temporal() || kind.is_string() || kind.is_binary() || *kind == DataType::Boolean
}

fn key_name(at: usize) -> String {
    format!("k{at}")
}
