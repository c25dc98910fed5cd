//! Queries with parameters `$1`, `$2`, .. as PostgreSQL has them.

use arrow::datatypes::DataType;
use datafusion::execution::SessionState;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;

use crate::error::{Result, SqlError};
use crate::session::parameters::{list_parameters, numbered_parameters, replace_numbered};
use crate::session::utc::convert_to_utc;
use crate::syntax::grouping_sets::check_grouping_sets;
use crate::syntax::headings::{WrittenNames, with_written_names};
use crate::syntax::relations::check_relations;
use crate::syntax::statement::{NamedStatement, inner, parse_with_names, plan_named, plan_statement, system_statement};
use crate::system::{System, parse_postgres, rewrite};

/// A query of which parameters were replaced.
struct Numbered {
    statement: Statement,
    /// The same with written names in its subqueries, if it has some to be named.
    with_inner_names: Option<Statement>,
    /// The number of parameters that it had.
    count: usize,
    names: Option<WrittenNames>,
}

/// Parses a query, and replaces the parameters that have values. With `system` it is read as PostgreSQL reads it.
fn parse_numbered(
    state: &SessionState,
    system: Option<&System>,
    query: &str,
    values: &[Option<ScalarValue>],
) -> Result<Numbered> {
    let Some(system) = system else {
        let NamedStatement { mut statement, mut with_inner_names, names } = parse_with_names(state, query)?;
        let count = numbered_parameters(&mut statement)?;
        replace_numbered(&mut statement, values)?;
        if let Some(named) = &mut with_inner_names {
            replace_numbered(named, values)?;
        }
        return Ok(Numbered { statement, with_inner_names, count, names });
    };

    let statement = parse_postgres(query, &|word| system.names.keeps_case(word))?;
    let mut statement = Statement::Statement(Box::new(statement));
    let count = numbered_parameters(&mut statement)?;
    // Values come first: names of relations may be among them.
    replace_numbered(&mut statement, values)?;
    if let Some(query) = inner(&mut statement) {
        rewrite(query, system)?;
        check_grouping_sets(query)?;
        check_relations(query)?;
        statement = system_statement(query.clone());
    }
    Ok(Numbered { statement, with_inner_names: None, count, names: None })
}

/// Plans a query with values for its parameters. With `has_written_names` its columns are named as it writes them.
///
/// # Errors
/// If it is not valid, or there are fewer values than parameters.
pub(crate) async fn plan_numbered(
    context: &SessionContext,
    system: Option<&System>,
    query: &str,
    values: Vec<ScalarValue>,
    has_written_names: bool,
) -> Result<DataFrame> {
    let state = context.state();
    let given = values.len();
    let values: Vec<Option<ScalarValue>> = values.into_iter().map(Some).collect();
    let Numbered { statement, with_inner_names, count, names } = parse_numbered(&state, system, query, &values)?;
    if given < count {
        let name = format!("${}", given + 1);
        return Err(SqlError::NoParameter { name, problem: "the query was sent with fewer values" });
    }

    let plan = plan_named(&state, statement, with_inner_names).await?;
    let frame = convert_to_utc(context.execute_logical_plan(plan).await?)?;
    match names.filter(|_| has_written_names) {
        Some(names) => Ok(with_written_names(frame, &names)?),
        None => Ok(frame),
    }
}

/// The types of the parameters of a query: those that are declared, and those that follow from the plan.
///
/// # Errors
/// If it cannot be parsed.
pub(crate) async fn numbered_types(
    state: &SessionState,
    system: Option<&System>,
    query: &str,
    declared: Vec<Option<DataType>>,
) -> Result<Vec<Option<DataType>>> {
    let mut types = declared;
    let Numbered { mut statement, count, .. } = parse_numbered(state, system, query, &[])?;
    types.resize(count, None);
    for number in list_parameters(&mut statement) {
        if let Some(kind @ None) = types.get_mut(number - 1) {
            // Drivers leave the type open for lists of text only.
            *kind = Some(DataType::new_list(DataType::Utf8, true));
        }
    }
    if types.iter().all(Option::is_some) {
        return Ok(types);
    }

    let samples: Vec<Option<ScalarValue>> =
        types.iter().map(|kind| kind.as_ref().and_then(|kind| ScalarValue::try_from(kind).ok())).collect();
    let Numbered { statement, .. } = parse_numbered(state, system, query, &samples)?;
    let Ok(plan) = plan_statement(state, statement).await else { return Ok(types) };
    let Ok(inferred) = plan.get_parameter_types() else { return Ok(types) };

    for (place, kind) in types.iter_mut().enumerate() {
        if kind.is_none() {
            *kind = inferred.get(&format!("${}", place + 1)).cloned().flatten();
        }
    }
    Ok(types)
}
