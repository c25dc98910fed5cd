//! Parts of the syntax tree.

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value, ValueWithSpan,
};

/// The last part of a name, without quotes.
pub(super) fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or_else(|| name.to_string(), |name| name.value.clone())
}

/// The name of a function in lower case, without the schema `pg_catalog`; with another schema, with it.
pub(super) fn function_name(function: &Function) -> String {
    let name = function.name.to_string().to_lowercase();
    name.strip_prefix("pg_catalog.").map(str::to_owned).unwrap_or(name)
}

/// The name of a type in lower case, without a schema.
pub(super) fn type_name(kind: &ast::DataType) -> String {
    match kind {
        ast::DataType::Regclass => "regclass".to_owned(),
        ast::DataType::Custom(name, _) => {
            let last = name.0.last().map(ToString::to_string).unwrap_or_default();
            if last.eq_ignore_ascii_case("\"char\"") {
                "\"char\"".to_owned()
            } else {
                last.trim_matches('"').to_lowercase()
            }
        }
        kind => kind.to_string().to_lowercase(),
    }
}

/// The arguments of a function that are expressions.
pub(super) fn arguments(function: &Function) -> Vec<Expr> {
    match &function.args {
        FunctionArguments::List(list) => list
            .args
            .iter()
            .filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } => Some(expr.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The text of a literal, also of one that is cast.
pub(super) fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. })
        | Expr::Value(ValueWithSpan { value: Value::EscapedStringLiteral(text), .. }) => Some(text.clone()),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => text_of(expr),
        _ => None,
    }
}

pub(super) fn value(value: Value) -> Expr {
    Expr::Value(value.with_empty_span())
}

pub(super) fn number(number: i64) -> Expr {
    value(Value::Number(number.to_string(), false))
}

pub(super) fn boolean(value_of: bool) -> Expr {
    value(Value::Boolean(value_of))
}

pub(super) fn null() -> Expr {
    value(Value::Null)
}

/// A name in quotes.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// The name that PostgreSQL gives to a column of an expression.
pub(super) fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()).unwrap_or_default(),
        Expr::Function(function) => last_name(&function.name),
        Expr::Cast { expr, data_type, .. } => match column_name(expr).as_str() {
            "?column?" => type_name(data_type),
            name => name.to_owned(),
        },
        Expr::Nested(expr) | Expr::Collate { expr, .. } => column_name(expr),
        Expr::Case { .. } => "case".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        Expr::Array(_) => "array".to_owned(),
        Expr::Subquery(query) => match query.body.as_select().and_then(|select| select.projection.first()) {
            Some(ast::SelectItem::UnnamedExpr(expr)) => column_name(expr),
            Some(ast::SelectItem::ExprWithAlias { alias, .. }) => alias.value.clone(),
            _ => "?column?".to_owned(),
        },
        Expr::CompoundFieldAccess { root, .. } => column_name(root),
        _ => "?column?".to_owned(),
    }
}
