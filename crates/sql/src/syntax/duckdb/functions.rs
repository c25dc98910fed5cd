//! Functions of DuckDB that the session has under another name, or in another form.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Function, Ident, ObjectName, ObjectNamePart, Value};

use crate::syntax::dialect::parser_of;
use crate::syntax::rewrite::syntax::{arguments, is_function, is_text};

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
const PARTS: [(&str, &str); 14] = [
    ("day", "day"),
    ("dayofmonth", "day"),
    ("dayofweek", "dow"),
    ("dayofyear", "doy"),
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

    if let Some(text) = in_another_form(&name, &args, function) {
        return parser_of(&text).ok()?.parse_expr().ok();
    }
    if is_function(state, &name) {
        return None;
    }
    if let (Some((_, part)), [value]) = (PARTS.iter().find(|(other, _)| *other == name), args.as_slice())
        && !(name == "week" && is_weekday(value))
    {
        return parser_of(&format!("date_part('{part}', {value})")).ok()?.parse_expr().ok();
    }
    if let Some((_, known)) = OTHER_NAMES.iter().find(|(other, _)| *other == name) {
        function.name = ObjectName::from(vec![Ident::new(*known)]);
    }
    None
}

/// Whether an expression names a day of the week: `WEEK(MONDAY)` is a part of time in GoogleSQL.
fn is_weekday(expr: &Expr) -> bool {
    const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    matches!(expr, Expr::Identifier(name) if DAYS.contains(&name.value.to_ascii_lowercase().as_str()))
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

/// The values of the `count` rows with the greatest, or least, `by`, in that order; of equal ones the greatest, or least, values first.
fn greatest(function: &Function, value: &Expr, by: &Expr, count: &Expr, order: &str) -> Option<String> {
    if function.over.is_some() {
        return None;
    }
    let filter = function.filter.as_ref().map_or(String::new(), |filter| format!(" AND ({filter})"));
    Some(format!(
        "array_slice(array_agg({value} ORDER BY {by} {order}, {value} {order}) FILTER (WHERE {by} IS NOT NULL{filter}), 1, {count})"
    ))
}
