//! Functions of DuckDB that the session has under another name, or in another form.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Function, Ident, ObjectName, ObjectNamePart, Value};

use crate::syntax::dialect::parser_of;
use crate::syntax::googlesql::functions::{as_lambda, lambda, set};
use crate::syntax::rewrite::syntax::arguments;

/// Functions with the same arguments under another name.
const OTHER_NAMES: [(&str, &str); 20] = [
    ("approx_quantile", "approx_percentile_cont"),
    ("datepart", "date_part"),
    ("datetrunc", "date_trunc"),
    ("favg", "avg"),
    ("fsum", "sum"),
    ("get_current_timestamp", "now"),
    ("group_concat", "string_agg"),
    ("kahan_sum", "sum"),
    ("len", "length"),
    ("list", "array_agg"),
    ("list_pack", "make_array"),
    ("list_value", "make_array"),
    ("listagg", "string_agg"),
    ("regexp_matches", "regexp_like"),
    ("str_split", "string_to_array"),
    ("string_split", "string_to_array"),
    ("strptime", "to_timestamp"),
    ("today", "current_date"),
    ("transaction_timestamp", "now"),
    ("sumkahan", "sum"),
];

/// Parts of a date or time that are functions of their own, and the names that `date_part` has for them.
const PARTS: [(&str, &str); 16] = [
    ("century", "century"),
    ("day", "day"),
    ("dayofmonth", "day"),
    ("dayofweek", "dow"),
    ("dayofyear", "doy"),
    ("decade", "decade"),
    ("epoch", "epoch"),
    ("hour", "hour"),
    ("minute", "minute"),
    ("month", "month"),
    ("quarter", "quarter"),
    ("second", "second"),
    ("week", "week"),
    ("weekday", "dow"),
    ("weekofyear", "week"),
    ("year", "year"),
];

/// What a call stands for; changed in place where it stays a function with its clauses.
pub(super) fn replaced(state: &SessionState, function: &mut Function) -> Option<Expr> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let name = name.value.to_ascii_lowercase();
    let args = arguments(function)?;

    if let ("list_transform" | "list_filter" | "array_transform" | "array_filter", [list, body]) =
        (name.as_str(), args.as_slice())
        && let Some((item, body)) = lambda(body)
    {
        let known = name.replace("list_", "array_");
        return set(function, &known, vec![list.clone(), as_lambda(item, body)]);
    }
    if let Some(text) = in_another_form(&name, &args, function) {
        return parser_of(&text).ok()?.parse_expr().ok();
    }
    if is_known(state, &name) {
        return None;
    }
    // `WEEK(MONDAY)` is a part of GoogleSQL.
    let is_weekday = |value: &Expr| {
        name == "week" && matches!(value, Expr::Identifier(day) if day.value.to_ascii_lowercase().ends_with("day"))
    };
    if let (Some((_, part)), [value]) = (PARTS.iter().find(|(other, _)| *other == name), args.as_slice())
        && !is_weekday(value)
    {
        return parser_of(&format!("date_part('{part}', {value})")).ok()?.parse_expr().ok();
    }
    if let Some((_, known)) = OTHER_NAMES.iter().find(|(other, _)| *other == name) {
        function.name = ObjectName::from(vec![Ident::new(*known)]);
    }
    None
}

/// Whether the session has a function of this name.
fn is_known(state: &SessionState, name: &str) -> bool {
    state.scalar_functions().contains_key(name)
        || state.aggregate_functions().contains_key(name)
        || state.window_functions().contains_key(name)
}

/// The expression for a call whose arguments DataFusion's function of the same name does not take, or that it has in another form.
fn in_another_form(name: &str, args: &[Expr], function: &Function) -> Option<String> {
    match (name, args) {
        ("strftime", [first, second]) => {
            // DuckDB takes both orders.
            let (time, form) = if is_text(first) && !is_text(second) { (second, first) } else { (first, second) };
            Some(format!("to_char({time}, {form})"))
        }
        ("dayname", [time]) => Some(format!("to_char({time}, '%A')")),
        ("monthname", [time]) => Some(format!("to_char({time}, '%B')")),
        ("date_diff" | "datediff", [Expr::Value(part), from, to]) => match &part.value {
            Value::SingleQuotedString(part) => boundaries(part, from, to),
            _ => None,
        },
        ("count_if", [condition]) => {
            Some(with_clauses(function, "count", &format!("CASE WHEN {condition} THEN 1 END")))
        }
        ("arg_max" | "argmax" | "max_by", [value, by, count]) => greatest(function, value, by, count, "DESC"),
        ("arg_min" | "argmin" | "min_by", [value, by, count]) => greatest(function, value, by, count, "ASC"),
        ("max", [value, count]) => greatest(function, value, value, count, "DESC"),
        ("min", [value, count]) => greatest(function, value, value, count, "ASC"),
        _ => None,
    }
}

/// How many starts of a part of time lie between two times: `date_diff` counts these, not whole parts.
fn boundaries(part: &str, from: &Expr, to: &Expr) -> Option<String> {
    let part = part.trim_end_matches('s').to_ascii_lowercase();
    let counted = match part.as_str() {
        "microsecond" | "millisecond" | "second" | "minute" | "hour" => {
            let cut = |time: &Expr| format!("date_trunc('{part}', CAST({time} AS TIMESTAMP))");
            return Some(format!("timestamp_diff({}, {}, {part})", cut(to), cut(from)));
        }
        "day" | "month" | "quarter" | "year" => part.as_str(),
        _ => return None,
    };
    Some(format!("date_diff(CAST({to} AS DATE), CAST({from} AS DATE), {counted})"))
}

/// The values of the `count` rows with the greatest, or least, `by`, in that order.
fn greatest(function: &Function, value: &Expr, by: &Expr, count: &Expr, order: &str) -> Option<String> {
    if function.over.is_some() {
        return None;
    }
    let filter = function.filter.as_ref().map_or(String::new(), |filter| format!(" AND ({filter})"));
    Some(format!(
        "array_slice(array_agg({value} ORDER BY {by} {order}) FILTER (WHERE {by} IS NOT NULL{filter}), 1, {count})"
    ))
}

/// A call of another function over `args`, with the clauses behind the call of `function`.
fn with_clauses(function: &Function, name: &str, args: &str) -> String {
    let filter = function.filter.as_ref().map_or(String::new(), |filter| format!(" FILTER (WHERE {filter})"));
    let over = function.over.as_ref().map_or(String::new(), |over| format!(" OVER {over}"));
    format!("{name}({args}){filter}{over}")
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}
