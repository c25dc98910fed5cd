//! Functions of system catalogs as expressions that are planned here.

use std::ops::{ControlFlow, Range};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{Expr, Function, Value, ValueWithSpan, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::system::names::{CATALOG_OIDS, SystemNames};
use crate::system::syntax::{arguments, boolean, null, value};

/// Functions of the session: their values are constants.
const CONSTANTS: [&str; 22] = [
    "version",
    "current_database",
    "current_schema",
    "current_user",
    "session_user",
    "current_role",
    "current_catalog",
    "current_setting",
    "set_config",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "pg_is_wal_replay_paused",
    "pg_postmaster_start_time",
    "pg_conf_load_time",
    "pg_my_temp_schema",
    "pg_client_encoding",
    "inet_server_addr",
    "inet_server_port",
    "inet_client_addr",
    "txid_current",
    "to_regclass",
    "to_regtype",
];

/// Functions by what stands for them, with `$1`, `$2`, .. for their arguments.
const TEMPLATES: [(&str, &str); 66] = [
    ("current_schemas", ""),
    ("pg_type_is_visible", "true"),
    ("pg_function_is_visible", "true"),
    ("pg_operator_is_visible", "true"),
    ("pg_opclass_is_visible", "true"),
    ("pg_collation_is_visible", "true"),
    ("pg_conversion_is_visible", "true"),
    ("pg_ts_config_is_visible", "true"),
    ("pg_statistics_obj_is_visible", "true"),
    ("pg_is_other_temp_schema", "false"),
    ("pg_get_userbyid", "'tidetable'"),
    ("pg_encoding_to_char", "'UTF8'"),
    ("pg_char_to_encoding", "6"),
    ("pg_relation_is_publishable", "false"),
    ("pg_ts_dict_is_visible", "true"),
    ("pg_get_expr", "CAST(NULL AS VARCHAR)"),
    ("pg_get_viewdef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_indexdef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_constraintdef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_functiondef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_function_arguments", "CAST(NULL AS VARCHAR)"),
    ("pg_get_function_identity_arguments", "CAST(NULL AS VARCHAR)"),
    ("pg_get_function_result", "CAST(NULL AS VARCHAR)"),
    ("pg_get_partkeydef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_ruledef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_triggerdef", "CAST(NULL AS VARCHAR)"),
    ("pg_get_serial_sequence", "CAST(NULL AS VARCHAR)"),
    ("pg_get_statisticsobjdef_columns", "CAST(NULL AS VARCHAR)"),
    ("pg_tablespace_location", "''"),
    ("pg_relation_filepath", "CAST(NULL AS VARCHAR)"),
    ("obj_description", "CAST(NULL AS VARCHAR)"),
    ("col_description", "CAST(NULL AS VARCHAR)"),
    ("shobj_description", "CAST(NULL AS VARCHAR)"),
    ("has_table_privilege", "true"),
    ("has_any_column_privilege", "true"),
    ("has_column_privilege", "true"),
    ("has_schema_privilege", "true"),
    ("has_database_privilege", "true"),
    ("has_function_privilege", "true"),
    ("has_sequence_privilege", "true"),
    ("has_type_privilege", "true"),
    ("has_tablespace_privilege", "true"),
    ("has_language_privilege", "true"),
    ("has_foreign_data_wrapper_privilege", "true"),
    ("has_server_privilege", "true"),
    ("pg_has_role", "true"),
    ("row_security_active", "false"),
    ("pg_relation_size", "CAST(NULL AS BIGINT)"),
    ("pg_table_size", "CAST(NULL AS BIGINT)"),
    ("pg_indexes_size", "CAST(NULL AS BIGINT)"),
    ("pg_total_relation_size", "CAST(NULL AS BIGINT)"),
    ("pg_database_size", "CAST(NULL AS BIGINT)"),
    ("pg_size_pretty", "CAST($1 AS VARCHAR)"),
    ("pg_relation_is_updatable", "0"),
    ("pg_column_is_updatable", "false"),
    ("pg_stat_get_numscans", "CAST(0 AS BIGINT)"),
    ("pg_stat_get_live_tuples", "CAST(NULL AS BIGINT)"),
    ("age", "CAST(0 AS BIGINT)"),
    ("array_upper", "array_length($1)"),
    ("array_lower", "CASE WHEN array_length($1) > 0 THEN 1 END"),
    ("quote_literal", "concat('''', replace($1, '''', ''''''), '''')"),
    ("generate_subscripts", "unnest(range(1, array_length($1) + 1))"),
    (
        "quote_ident",
        "CASE WHEN regexp_like($1, '^[a-z_][a-z0-9_$]*$') THEN $1 ELSE concat('\"', replace($1, '\"', '\"\"'), '\"') END",
    ),
    ("parse_ident", "string_to_array(replace($1, '\"', ''), '.')"),
    ("mxid_age", "CAST(0 AS BIGINT)"),
    ("pg_table_is_visible", ""),
];

/// The function that makes a struct of names and values.
pub(super) const OBJECT: &str = "named_struct";

/// The function that names a type, by its object id and modifier.
pub(super) const FORMAT_TYPE: &str = "format_type";

/// Whether a function is one of system catalogs. Those that other databases have, too, are not: a query with nothing else is
/// planned as it is.
pub(super) fn is_system_function(name: &str) -> bool {
    let is_common = matches!(name, "age" | "array_upper" | "array_lower" | "generate_subscripts" | "parse_ident");
    !is_common
        && (name == FORMAT_TYPE || CONSTANTS.contains(&name) || TEMPLATES.iter().any(|(known, _)| *known == name))
}

/// What stands for a function; `None` if it stays.
///
/// # Errors
/// If it has fewer arguments than it needs.
pub(super) fn replacement(name: &str, function: &Function, names: &dyn SystemNames) -> Result<Option<Expr>> {
    let given = arguments(function);
    if name == "set_config" {
        return plan_err!(
            "set_config inside a query is not supported: send SELECT set_config('name', 'value', false), or SET name TO \
             'value', as a statement of its own"
        );
    }
    if matches!(name, "json_build_object" | "jsonb_build_object") {
        return object(&given).map(Some);
    }
    if CONSTANTS.contains(&name) {
        let texts: Vec<String> = given.iter().filter_map(super::syntax::text_of).collect();
        return Ok(Some(constant(name, &texts, names)));
    }
    if name == FORMAT_TYPE {
        return filled(&type_template(names), &given).map(Some);
    }
    match TEMPLATES.iter().find(|(known, _)| *known == name) {
        Some(("pg_table_is_visible", _)) => {
            let Range { start, end } = names.visible_oids();
            let is_visible = format!("$1 < {CATALOG_OIDS} OR ($1 >= {start} AND $1 < {end})");
            filled(&is_visible, &given).map(Some)
        }
        Some(("current_schemas", _)) => filled(&schemas_template(&given, names), &[]).map(Some),
        Some((_, template)) => filled(template, &given).map(Some),
        None => Ok(None),
    }
}

/// An object of JSON as a struct, which clients get as JSON. A name that is not known before the query runs has that of its place.
fn object(arguments: &[Expr]) -> Result<Expr> {
    let mut parts = Vec::with_capacity(arguments.len());
    for (place, argument) in arguments.iter().enumerate() {
        parts.push(match place % 2 {
            0 => {
                let name = super::syntax::text_of(argument).unwrap_or_else(|| format!("name{place}"));
                value(Value::SingleQuotedString(name))
            }
            _ => argument.clone(),
        });
    }
    if parts.is_empty() || parts.len() % 2 != 0 {
        return plan_err!("json_build_object takes names and values in turn");
    }
    let places = (1..=parts.len()).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ");
    filled(&format!("{OBJECT}({places})"), &parts)
}

/// The schemas of a session as an array; with those of system catalogs unless the argument is false.
fn schemas_template(arguments: &[Expr], names: &dyn SystemNames) -> String {
    let has_implicit = arguments.first().is_none_or(|argument| *argument != boolean(false));
    let implicit = has_implicit.then(|| "pg_catalog".to_owned());
    let all = implicit.into_iter().chain(names.search_path());
    let literals: Vec<String> = all.map(|schema| format!("'{}'", schema.replace('\'', "''"))).collect();
    format!("make_array({})", literals.join(", "))
}

/// The value of a function of the session, as a literal.
pub(super) fn constant(name: &str, arguments: &[String], names: &dyn SystemNames) -> Expr {
    use datafusion::scalar::ScalarValue;
    match names.constant(name, arguments) {
        Some(ScalarValue::Utf8(Some(text))) => value(Value::SingleQuotedString(text)),
        Some(ScalarValue::Boolean(Some(is_true))) => value(Value::Boolean(is_true)),
        Some(ScalarValue::Int64(Some(number))) => super::syntax::number(number),
        _ => null(),
    }
}

/// The name of a type by its object id, as a CASE over all types. Numbers with a modifier show precision and scale.
fn type_template(names: &dyn SystemNames) -> String {
    let whens: Vec<String> = names
        .type_names()
        .into_iter()
        .map(|(oid, name)| format!("WHEN {oid} THEN '{}'", name.replace('\'', "''")))
        .collect();
    let numeric = "CASE WHEN $1 = 1700 AND $2 > 4 THEN concat('numeric(', CAST(($2 - 4) / 65536 AS VARCHAR), ',', \
                   CAST(($2 - 4) % 65536 AS VARCHAR), ')') ELSE ";
    format!("{numeric} CASE $1 {} ELSE '???' END END", whens.join(" "))
}

/// An expression with arguments in the places of `$1`, `$2`, ..
pub(super) fn filled(template: &str, arguments: &[Expr]) -> Result<Expr> {
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(template).and_then(|mut parser| parser.parse_expr());
    let Ok(mut expr) = parsed else { return plan_err!("a function of system catalogs cannot be read") };
    match expr.visit(&mut Filled(arguments)) {
        ControlFlow::Continue(()) => Ok(Expr::Nested(Box::new(expr))),
        ControlFlow::Break(()) => plan_err!("a function of system catalogs has too few arguments"),
    }
}

struct Filled<'a>(&'a [Expr]);

impl VisitorMut for Filled<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr {
            let place = name.trim_start_matches('$').parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            match place.and_then(|place| self.0.get(place)) {
                Some(argument) => *expr = argument.clone(),
                // `format_type(oid, NULL)` may lack the modifier.
                None if name == "$2" => *expr = null(),
                None => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }
}
