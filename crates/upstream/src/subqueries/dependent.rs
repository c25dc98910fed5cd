//! Evaluates a subquery for all outer values at once.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, NullEquality, Result, TableReference, plan_err};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Alias, GroupingSet, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Join, JoinConstraint, JoinType,
    Limit, LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, SubqueryAlias, Union, Window,
    lit, when,
};
use datafusion::scalar::ScalarValue;

use super::domain::{Domain, Outer};
use super::{Unnesting, filtered, left_join};

/// The rows of a subquery for all outer values. Its plan has the columns of the subquery's plan, and the keys.
pub(super) struct Dependent {
    pub(super) plan: LogicalPlan,
    /// The columns of the plan that hold the outer values.
    pub(super) keys: Vec<Column>,
}

/// Moves the domain of outer values down a subquery.
struct PushDown<'a> {
    unnesting: &'a mut Unnesting,
    outer: &'a Outer,
    /// The rows of the outer query.
    rows: &'a LogicalPlan,
}

impl Unnesting {
    /// The rows of `plan` for all values of `outer` in `rows`.
    ///
    /// # Errors
    /// If a node cannot be evaluated for several outer rows.
    pub(super) fn dependent(&mut self, plan: LogicalPlan, outer: &Outer, rows: &LogicalPlan) -> Result<Dependent> {
        if outer.is_empty() {
            return Ok(Dependent { plan, keys: Vec::new() });
        }
        PushDown { unnesting: self, outer, rows }.plan(plan)
    }
}

impl PushDown<'_> {
    fn domain(&mut self) -> Result<Domain> {
        self.outer.domain(self.rows, self.unnesting.next())
    }

    fn plan(&mut self, plan: LogicalPlan) -> Result<Dependent> {
        if !self.outer.is_in_plan(&plan)? {
            return self.for_each_value(plan);
        }

        match plan {
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => {
                let Dependent { plan, keys } = self.input(filter.input)?;
                let condition = self.outer.replaced(filter.predicate, &keys)?;
                Ok(Dependent { plan: filtered(plan, vec![condition])?, keys })
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Dependent { plan, keys } = self.input(input)?;
                Ok(Dependent { plan: LogicalPlan::Distinct(Distinct::All(Arc::new(plan))), keys })
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.distinct_on(distinct),
            LogicalPlan::SubqueryAlias(alias) => {
                let Dependent { plan, keys } = self.input(alias.input)?;
                let plan = SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?;
                let keys = keys.into_iter().map(|key| Column::new(Some(alias.alias.clone()), key.name)).collect();
                Ok(Dependent { plan: LogicalPlan::SubqueryAlias(plan), keys })
            }
            LogicalPlan::Subquery(subquery) => self.input(subquery.subquery),
            // Without a limit, the order of a subquery's rows has no meaning.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.input(sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Unnest(unnest) => {
                let Dependent { plan, keys } = self.input(unnest.input)?;
                let plan = LogicalPlanBuilder::from(plan);
                let plan = plan.unnest_columns_with_options(unnest.exec_columns, unnest.options)?.build()?;
                Ok(Dependent { plan, keys })
            }
            other => {
                plan_err!("a subquery cannot use columns of the outer query in {}; write it as a join", other.display())
            }
        }
    }

    fn input(&mut self, input: Arc<LogicalPlan>) -> Result<Dependent> {
        self.plan(Arc::unwrap_or_clone(input))
    }

    /// The rows of a plan without outer values, once for each of them.
    fn for_each_value(&mut self, plan: LogicalPlan) -> Result<Dependent> {
        let Domain { plan: domain, keys } = self.domain()?;
        if let LogicalPlan::EmptyRelation(empty) = &plan
            && empty.produce_one_row
        {
            return Ok(Dependent { plan: domain, keys });
        }
        let plan = LogicalPlanBuilder::from(plan).cross_join(domain)?.build()?;
        Ok(Dependent { plan, keys })
    }

    fn projection(&mut self, projection: Projection) -> Result<Dependent> {
        let Dependent { plan, keys } = self.input(projection.input)?;
        let fields = projection.schema.iter();
        let columns = projection
            .expr
            .into_iter()
            .zip(fields)
            .map(|(expr, (table, field))| Ok(renamed(self.outer.replaced(expr, &keys)?, table, field.name())));
        let mut columns = columns.collect::<Result<Vec<_>>>()?;
        columns.extend(keys.iter().cloned().map(Expr::Column));
        let plan = Projection::try_new(columns, Arc::new(plan))?;
        Ok(Dependent { plan: LogicalPlan::Projection(plan), keys })
    }

    fn aggregate(&mut self, aggregate: Aggregate) -> Result<Dependent> {
        if let [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_) | GroupingSet::GroupingSets(_))] =
            aggregate.group_expr.as_slice()
        {
            return plan_err!(
                "a subquery cannot use columns of the outer query in ROLLUP, CUBE or GROUPING SETS; write it as a join"
            );
        }
        let has_groups = !aggregate.group_expr.is_empty();
        let Dependent { plan, keys } = self.input(aggregate.input)?;
        let mut fields = aggregate.schema.iter();
        let mut renamed_over_keys = |exprs: Vec<Expr>| {
            let exprs = exprs
                .into_iter()
                .zip(fields.by_ref())
                .map(|(expr, (table, field))| Ok(renamed(self.outer.replaced(expr, &keys)?, table, field.name())));
            exprs.collect::<Result<Vec<_>>>()
        };
        let mut groups = renamed_over_keys(aggregate.group_expr)?;
        let functions = renamed_over_keys(aggregate.aggr_expr)?;
        groups.extend(keys.iter().cloned().map(Expr::Column));

        let empty_values = match has_groups {
            true => Vec::new(),
            false => functions.iter().map(|expr| value_of_no_rows(expr, &plan)).collect::<Result<Vec<_>>>()?,
        };
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, functions)?);
        match has_groups {
            true => Ok(Dependent { plan, keys }),
            false => self.with_empty_groups(plan, &keys, empty_values),
        }
    }

    /// Adds a row for each outer value without one to an aggregation that has one row over no rows.
    fn with_empty_groups(
        &mut self,
        plan: LogicalPlan,
        keys: &[Column],
        empty_values: Vec<ScalarValue>,
    ) -> Result<Dependent> {
        let is_present = Column::new_unqualified(format!("__present_{}", self.unnesting.next()));
        let groups = keys.len();
        let columns = plan.schema().columns();
        let mut marked: Vec<Expr> = columns.iter().cloned().map(Expr::Column).collect();
        marked.push(lit(true).alias(&is_present.name));
        let marked = LogicalPlan::Projection(Projection::try_new(marked, Arc::new(plan))?);

        let Domain { plan: domain, keys: all_keys } = self.domain()?;
        let on = all_keys.iter().cloned().zip(keys.iter().cloned());
        let on = on.map(|(all, some)| (Expr::Column(all), Expr::Column(some))).collect();
        let joined = left_join(domain, marked, on)?;

        let results = columns.into_iter().skip(groups).zip(empty_values).map(|(result, empty)| {
            if empty.is_null() {
                return Ok(Expr::Column(result));
            }
            let is_absent = Expr::Column(is_present.clone()).is_null();
            let value = when(is_absent, lit(empty)).otherwise(Expr::Column(result.clone()))?;
            Ok(value.alias_qualified(result.relation, result.name))
        });
        let mut results = results.collect::<Result<Vec<_>>>()?;
        results.extend(all_keys.iter().cloned().map(Expr::Column));
        let plan = LogicalPlan::Projection(Projection::try_new(results, Arc::new(joined))?);
        Ok(Dependent { plan, keys: all_keys })
    }

    fn window(&mut self, window: Window) -> Result<Dependent> {
        let width = window.input.schema().fields().len();
        let Dependent { plan, keys } = self.input(window.input)?;
        let fields = window.schema.iter().skip(width);
        let functions = window.window_expr.into_iter().zip(fields).map(|(expr, (table, field))| {
            let expr = self.outer.replaced(expr, &keys)?.transform_up(|expr| Ok(partitioned(expr, &keys))).data()?;
            Ok(renamed(expr, table, field.name()))
        });
        let plan = Window::try_new(functions.collect::<Result<_>>()?, Arc::new(plan))?;
        Ok(Dependent { plan: LogicalPlan::Window(plan), keys })
    }

    fn union(&mut self, union: Union) -> Result<Dependent> {
        let number = self.unnesting.next();
        let mut names = Vec::new();
        let mut inputs = Vec::new();
        for input in union.inputs {
            let columns = input.schema().columns();
            let Dependent { plan, keys } = self.input(input)?;
            names = (0..keys.len()).map(|at| Column::new_unqualified(format!("__outer_{number}_{at}"))).collect();
            let keys = keys.into_iter().zip(&names).map(|(key, name)| Expr::Column(key).alias(&name.name));
            let columns = columns.into_iter().zip(union.schema.iter());
            let columns = columns.map(|(column, (_, field))| renamed(Expr::Column(column), None, field.name()));
            let columns = columns.chain(keys).collect();
            inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)));
        }

        let plan = Union::try_new(inputs)?;
        let columns = union
            .schema
            .iter()
            .map(|(table, field)| renamed(Expr::Column(Column::new_unqualified(field.name())), table, field.name()));
        let columns = columns.chain(names.iter().cloned().map(Expr::Column)).collect();
        let plan = Projection::try_new(columns, Arc::new(LogicalPlan::Union(plan)))?;
        Ok(Dependent { plan: LogicalPlan::Projection(plan), keys: names })
    }

    fn distinct_on(&mut self, distinct: DistinctOn) -> Result<Dependent> {
        let Dependent { plan, keys } = self.input(distinct.input)?;
        let keys_first = |exprs: Vec<Expr>| {
            let exprs = exprs.into_iter().map(|expr| self.outer.replaced(expr, &keys));
            keys.iter().cloned().map(|key| Ok(Expr::Column(key))).chain(exprs).collect::<Result<Vec<_>>>()
        };

        let on = keys_first(distinct.on_expr)?;
        let fields = distinct.schema.iter();
        let selected = distinct
            .select_expr
            .into_iter()
            .zip(fields)
            .map(|(expr, (table, field))| Ok(renamed(self.outer.replaced(expr, &keys)?, table, field.name())));
        let mut selected = selected.collect::<Result<Vec<_>>>()?;
        selected.extend(keys.iter().cloned().map(Expr::Column));

        let order = match distinct.sort_expr {
            Some(order) => {
                let by_keys = keys.iter().map(|key| Expr::Column(key.clone()).sort(true, true));
                Some(by_keys.chain(self.order(order, &keys)?).collect())
            }
            None => None,
        };

        let plan = DistinctOn::try_new(on, selected, order, Arc::new(plan))?;
        Ok(Dependent { plan: LogicalPlan::Distinct(Distinct::On(plan)), keys })
    }

    fn order(&self, order: Vec<SortExpr>, keys: &[Column]) -> Result<Vec<SortExpr>> {
        let mut over_keys = Vec::with_capacity(order.len());
        for by in order {
            over_keys.push(by.with_expr(self.outer.replaced(by.expr.clone(), keys)?));
        }
        Ok(over_keys)
    }

    /// The first rows for each outer value: those with the lowest row numbers.
    fn limit(&mut self, limit: Limit) -> Result<Dependent> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return plan_err!("LIMIT and OFFSET of a correlated subquery must be numbers");
        };

        let (order, input) = match Arc::unwrap_or_clone(limit.input) {
            LogicalPlan::Sort(sort) => (sort.expr, sort.input),
            // A projection keeps the order and the number of rows.
            LogicalPlan::Projection(mut projection) => {
                projection.input = Arc::new(LogicalPlan::Limit(Limit { input: projection.input, ..limit }));
                return self.projection(projection);
            }
            other => (Vec::new(), Arc::new(other)),
        };

        let Dependent { plan, keys } = self.input(input)?;
        let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        let number = Column::new_unqualified(format!("__row_{}", self.unnesting.next()));
        let numbered = row_number()
            .partition_by(keys.iter().cloned().map(Expr::Column).collect())
            .order_by(self.order(order, &keys)?)
            .build()?
            .alias(&number.name);

        let plan = LogicalPlan::Window(Window::try_new(vec![numbered], Arc::new(plan))?);
        let number = || Expr::Column(number.clone());
        let row = |count: usize| lit(ScalarValue::UInt64(Some(count as u64)));
        let mut conditions = vec![number().gt(row(skip))];
        conditions.extend(fetch.map(|fetch| number().lt_eq(row(skip.saturating_add(fetch)))));
        let plan = filtered(plan, conditions)?;
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        Ok(Dependent { plan, keys })
    }

    fn join(&mut self, join: Join) -> Result<Dependent> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};

        let keeps_left = matches!(join.join_type, Left | LeftSemi | LeftAnti | LeftMark | Full);
        let keeps_right = matches!(join.join_type, Right | RightSemi | RightAnti | RightMark | Full);
        let in_on = |side: fn(&(Expr, Expr)) -> &Expr| join.on.iter().any(|pair| self.outer.is_in(side(pair)));
        let for_right = keeps_right || self.outer.is_in_plan(&join.right)? || in_on(|pair| &pair.1);
        // The values of the condition come from one of the sides.
        let for_left = keeps_left || self.outer.is_in_plan(&join.left)? || in_on(|pair| &pair.0) || !for_right;

        let (left, left_keys) = self.side(join.left, for_left)?;
        let (right, right_keys) = self.side(join.right, for_right)?;
        let any_keys = if for_left { &left_keys } else { &right_keys };
        let mut filter = join.filter.map(|filter| self.outer.replaced(filter, any_keys)).transpose()?;
        let on = join.on.into_iter().map(|(left, right)| {
            Ok((self.outer.replaced(left, &left_keys)?, self.outer.replaced(right, &right_keys)?))
        });
        let mut on = on.collect::<Result<Vec<_>>>()?;
        let mut null_equality = join.null_equality;
        if for_left && for_right {
            let pairs = left_keys.iter().cloned().zip(right_keys.iter().cloned());
            let mut pairs = pairs.map(|(left, right)| (Expr::Column(left), Expr::Column(right)));
            if on.is_empty() || null_equality == NullEquality::NullEqualsNull {
                null_equality = NullEquality::NullEqualsNull;
                on.extend(pairs);
            } else {
                filter = pairs.try_fold(filter, |filter, (left, right)| {
                    let same = not_distinct(left, right);
                    Ok::<_, datafusion::error::DataFusionError>(Some(match filter {
                        Some(filter) => filter.and(same),
                        None => same,
                    }))
                })?;
            }
        }
        let join_type = join.join_type;
        let (left, right, constraint) = (Arc::new(left), Arc::new(right), JoinConstraint::On);
        let plan = Join::try_new(left, right, on, filter, join_type, constraint, null_equality, join.null_aware)?;
        let plan = LogicalPlan::Join(plan);
        match join_type {
            Full => self.with_keys_of_both(plan, join.schema.columns(), &left_keys, &right_keys),
            Right | RightSemi | RightAnti | RightMark => Ok(Dependent { plan, keys: right_keys }),
            Inner if !for_left => Ok(Dependent { plan, keys: right_keys }),
            _ => Ok(Dependent { plan, keys: left_keys }),
        }
    }

    fn side(&mut self, side: Arc<LogicalPlan>, for_values: bool) -> Result<(LogicalPlan, Vec<Column>)> {
        if !for_values {
            return Ok((Arc::unwrap_or_clone(side), Vec::new()));
        }
        let Dependent { plan, keys } = self.input(side)?;
        Ok((plan, keys))
    }

    /// The rows of a full join: each has the keys of at least one side.
    fn with_keys_of_both(
        &mut self,
        plan: LogicalPlan,
        columns: Vec<Column>,
        left: &[Column],
        right: &[Column],
    ) -> Result<Dependent> {
        let number = self.unnesting.next();
        let keys: Vec<Column> =
            (0..left.len()).map(|at| Column::new_unqualified(format!("__outer_{number}_{at}"))).collect();
        let both = left.iter().zip(right).zip(&keys).map(|((left, right), key)| {
            let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
            Ok(when(left.clone().is_null(), right).otherwise(left)?.alias(&key.name))
        });
        let columns = columns.into_iter().map(|column| Ok(Expr::Column(column))).chain(both);
        let plan = Projection::try_new(columns.collect::<Result<_>>()?, Arc::new(plan))?;
        Ok(Dependent { plan: LogicalPlan::Projection(plan), keys })
    }
}

pub(super) fn not_distinct(left: Expr, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::IsNotDistinctFrom, Box::new(right)))
}

/// `expr` under the name of a column, unless that is its name already.
fn renamed(expr: Expr, table: Option<&TableReference>, name: &str) -> Expr {
    let (own_table, own_name) = expr.qualified_name();
    if own_table.as_ref() == table && own_name == name {
        return expr;
    }
    expr.alias_qualified(table.cloned(), name)
}

/// A window function computed for each of the keys.
fn partitioned(expr: Expr, keys: &[Column]) -> Transformed<Expr> {
    match expr {
        Expr::WindowFunction(mut function) => {
            let WindowFunction { params, .. } = function.as_mut();
            params.partition_by.extend(keys.iter().cloned().map(Expr::Column));
            Transformed::yes(Expr::WindowFunction(function))
        }
        expr => Transformed::no(expr),
    }
}

/// The result of an aggregate function over no rows of `input`.
fn value_of_no_rows(expr: &Expr, input: &LogicalPlan) -> Result<ScalarValue> {
    use datafusion::logical_expr::ExprSchemable;
    match expr {
        Expr::Alias(Alias { expr, .. }) => value_of_no_rows(expr, input),
        Expr::AggregateFunction(function) => function.func.default_value(&expr.get_type(input.schema())?),
        _ => Ok(ScalarValue::Null),
    }
}
