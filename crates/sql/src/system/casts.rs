//! Casts to types that exist in system catalogs only.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{self, Expr, Value, ValueWithSpan};

use crate::system::functions::{FORMAT_TYPE, filled};
use crate::system::names::SystemNames;
use crate::system::syntax::{number, text_of, type_name, value};

/// The name of a relation by its object id.
const RELATION_NAME: &str = "(SELECT min(relname) FROM pg_catalog.pg_class WHERE oid = $1)";

/// The object id of the relation whose name, or object id, a parameter has.
const RELATION_OID: &str = "(SELECT min(c.oid) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
    WHERE CAST($1 AS VARCHAR) IN (c.relname, concat(n.nspname, '.', c.relname), CAST(c.oid AS VARCHAR)))";

/// What stands for a cast; `None` if it stays.
///
/// # Errors
/// If it names a relation or a type that does not exist.
pub(super) fn replacement(expr: &Expr, kind: &ast::DataType, names: &dyn SystemNames) -> Result<Option<Expr>> {
    if let ast::DataType::Array(_) = kind {
        // Arrays have the types of their items.
        return Ok(Some(match text_of(expr).as_deref().and_then(array_items) {
            Some(items) => filled(&format!("make_array({})", items.join(", ")), &[])?,
            None => expr.clone(),
        }));
    }

    // Those that have a name of SQL stay, among them what stands for others.
    if !matches!(kind, ast::DataType::Custom(..) | ast::DataType::Regclass) {
        return Ok(None);
    }

    let name = type_name(kind);
    Ok(Some(match name.as_str() {
        "regclass" => match text_of(expr) {
            Some(text) => match text.parse().ok().or_else(|| names.relation(&text)) {
                Some(oid) => number(oid),
                None => return plan_err!("table '{text}' not found"),
            },
            None if is_number(expr) => expr.clone(),
            None if is_parameter(expr) => filled(RELATION_OID, std::slice::from_ref(expr))?,
            None => filled(RELATION_NAME, std::slice::from_ref(expr))?,
        },
        "regtype" => match text_of(expr) {
            Some(text) => match text.parse().ok().or_else(|| names.type_id(&text)) {
                Some(oid) => number(oid),
                None => return plan_err!("type '{text}' does not exist"),
            },
            None => filled(&format!("{FORMAT_TYPE}($1, NULL)"), std::slice::from_ref(expr))?,
        },
        "oid" | "xid" | "cid" | "int8" | "int4" | "int2" => match reg_of(expr) {
            Some(inner) => inner,
            None => cast(expr, "BIGINT")?,
        },
        "float8" => cast(expr, "DOUBLE")?,
        "bool" => cast(expr, "BOOLEAN")?,
        "text" | "name" | "varchar" | "bpchar" | "cstring" | "\"char\"" | "char" | "inet" | "pg_node_tree"
        | "unknown" => cast(expr, "VARCHAR")?,
        "sql_identifier" | "character_data" | "yes_or_no" | "int2vector" | "oidvector" | "aclitem" => {
            cast(expr, "VARCHAR")?
        }
        "cardinal_number" => cast(expr, "BIGINT")?,
        name if name.starts_with("reg") => match text_of(expr) {
            Some(text) => value(Value::SingleQuotedString(text.trim_start_matches("pg_catalog.").to_owned())),
            None => cast(expr, "VARCHAR")?,
        },
        _ => return Ok(None),
    }))
}

/// The items of an array in braces, as literals.
fn array_items(text: &str) -> Option<Vec<String>> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    let items = inside.split(',').filter(|item| !item.is_empty());
    let literal = |item: &str| match item.parse::<i64>() {
        Ok(number) => number.to_string(),
        Err(_) => format!("'{}'", item.trim_matches('"').replace('\'', "''")),
    };
    Some(items.map(literal).collect())
}

fn cast(expr: &Expr, kind: &str) -> Result<Expr> {
    filled(&format!("CAST($1 AS {kind})"), std::slice::from_ref(expr))
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }))
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }))
}

/// The object id that was made a name only to become an object id again: `indrelid::regclass::oid`.
fn reg_of(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Cast { expr, data_type, .. } if text_of(expr).is_none() && type_name(data_type).starts_with("reg") => {
            Some(expr.as_ref().clone())
        }
        Expr::Nested(expr) => reg_of(expr),
        _ => None,
    }
}
