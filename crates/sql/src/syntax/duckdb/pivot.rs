//! `t PIVOT (sum(v) FOR k IN (1, 2))` as filtered aggregates, and `t UNPIVOT (v FOR k IN (a, b))` as unnested arrays.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, Ident, NullInclusion, PivotValueSource, TableAlias, TableFactor, Value, visit_expressions,
};

use crate::syntax::dialect::parser_of;

/// The subquery that a pivoted or unpivoted relation stands for; `None` of others.
///
/// # Errors
/// If the values of a `PIVOT` are no list: the columns of a query are known before it reads rows.
pub(super) fn derived(relation: &TableFactor) -> Result<Option<TableFactor>> {
    let (query, alias) = match relation {
        TableFactor::Pivot { table, aggregate_functions, value_column, value_source, default_on_null, alias } => {
            let PivotValueSource::List(values) = value_source else {
                return plan_err!(
                    "PIVOT takes its values as a list, as in FOR kind IN ('a', 'b'): the columns of a query are known before it reads rows"
                );
            };
            let [column] = value_column.as_slice() else {
                return plan_err!("PIVOT takes the values of one column: name one after FOR");
            };
            (pivoted(table, aggregate_functions, column, values, default_on_null.as_ref()), alias)
        }
        TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
            (unpivoted(table, value, name, columns, null_inclusion.as_ref()), alias)
        }
        _ => return Ok(None),
    };

    let subquery = Box::new(*parser_of(&query)?.parse_query()?);
    let alias: Option<TableAlias> = alias.clone();
    Ok(Some(TableFactor::Derived { lateral: false, subquery, alias, sample: None }))
}

/// One row for each group of the columns that neither the values nor the aggregates name, with a column for each value and aggregate.
fn pivoted(
    table: &TableFactor,
    aggregates: &[ExprWithAlias],
    column: &Expr,
    values: &[ExprWithAlias],
    default: Option<&Expr>,
) -> String {
    let mut used = columns_of(column);
    aggregates.iter().for_each(|aggregate| used.extend(columns_of(&aggregate.expr)));

    let mut items = vec![format!("* EXCLUDE ({})", listed(&used))];
    for value in values {
        for aggregate in aggregates {
            let call = format!("{} FILTER (WHERE {column} IS NOT DISTINCT FROM {})", aggregate.expr, value.expr);
            let call = default.map_or(call.clone(), |default| format!("coalesce({call}, {default})"));
            let name = Ident::with_quote('"', name_of(value, aggregate, aggregates.len()));
            items.push(format!("{call} AS {name}"));
        }
    }
    format!("SELECT {} FROM {table} GROUP BY ALL", items.join(", "))
}

/// The name of a column as DuckDB has it: the value, and the aggregate where there are several or it has a name.
fn name_of(value: &ExprWithAlias, aggregate: &ExprWithAlias, aggregates: usize) -> String {
    let value = match (&value.alias, &value.expr) {
        (Some(alias), _) => alias.value.clone(),
        (None, Expr::Value(literal)) => match &literal.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        (None, other) => other.to_string(),
    };
    match &aggregate.alias {
        Some(alias) => format!("{value}_{}", alias.value),
        None if aggregates > 1 => format!("{value}_{}", aggregate.expr),
        None => value,
    }
}

/// A row for each of `columns`, with its name and its value; those without a value are left out unless they are included.
fn unpivoted(
    table: &TableFactor,
    value: &Expr,
    name: &Ident,
    columns: &[ExprWithAlias],
    nulls: Option<&NullInclusion>,
) -> String {
    let mut used = BTreeSet::new();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns {
        used.extend(columns_of(&column.expr));
        let named = column.alias.as_ref().or(last_name(&column.expr));
        let named = named.map_or_else(|| column.expr.to_string(), |name| name.value.clone());
        names.push(Value::SingleQuotedString(named).to_string());
        values.push(column.expr.to_string());
    }

    let (names, values) = (names.join(", "), values.join(", "));
    let rows = format!(
        "SELECT * EXCLUDE ({}), unnest(make_array({names})) AS {name}, unnest(make_array({values})) AS {value} FROM {table}",
        listed(&used)
    );
    match nulls {
        Some(NullInclusion::IncludeNulls) => rows,
        _ => format!("SELECT * FROM ({rows}) WHERE {value} IS NOT NULL"),
    }
}

/// The columns that an expression names, as written, without their tables.
fn columns_of(expr: &Expr) -> BTreeSet<Ident> {
    let mut columns = BTreeSet::new();
    let _: ControlFlow<()> = visit_expressions(expr, |expr| {
        columns.extend(last_name(expr).cloned());
        ControlFlow::Continue(())
    });
    columns
}

fn last_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    }
}

fn listed(columns: &BTreeSet<Ident>) -> String {
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    columns.join(", ")
}
