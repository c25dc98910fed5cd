//! Calls of GoogleSQL's functions, as calls of what DataFusion or `tidetable_functions` has.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, Interval, LambdaFunction, LambdaFunctionParameter, LambdaSyntax,
    ObjectName, ObjectNamePart, OneOrManyWithParens, Subscript, UnaryOperator, Value, VisitorMut,
};
use tidetable_functions::{INDEX, google_name};

use crate::syntax::rewrite::syntax::{arguments, call, is_function, is_text, number, take};

/// Functions under another name, with the same arguments.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("logical_and", "bool_and"),
    ("logical_or", "bool_or"),
    ("any_value", "first_value"),
    ("approx_count_distinct", "approx_distinct"),
    ("array_includes", "array_has"),
    ("array_includes_all", "array_has_all"),
    ("array_includes_any", "array_has_any"),
    ("ifnull", "coalesce"),
    ("current_timestamp", "now"),
    ("rand", "random"),
    ("var_samp", "var_sample"),
    ("variance", "var_sample"),
    ("truncate", "trunc"),
    ("ceiling", "ceil"),
];

/// Functions whose argument at this place is a part of a date or time, written as a word.
const WITH_PART: [(&str, usize); 5] =
    [("timestamp_trunc", 1), ("timestamp_diff", 2), ("date_trunc", 1), ("date_diff", 2), ("last_day", 1)];

/// Functions whose argument at this place is an interval, such as `INTERVAL 5 MINUTE`.
const WITH_INTERVAL: [(&str, usize); 6] = [
    ("timestamp_add", 1),
    ("timestamp_sub", 1),
    ("date_add", 1),
    ("date_sub", 1),
    ("generate_timestamp_array", 2),
    ("generate_date_array", 2),
];

/// Parts that dates and times are cut to and counted in.
const PARTS: [&str; 12] = [
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "ISOWEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "ISOYEAR",
];

/// Parts that only GoogleSQL's `EXTRACT` has.
const NEW_PARTS: [&str; 4] = ["DAYOFWEEK", "DAYOFYEAR", "ISOWEEK", "DATE"];

/// Rewrites calls of functions, and in GoogleSQL expressions that mean something else there.
pub(crate) struct GoogleFunctions<'a> {
    pub(crate) state: &'a SessionState,
    /// Whether the statement is GoogleSQL throughout.
    pub(crate) is_google: bool,
}

impl VisitorMut for GoogleFunctions<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // Before what is inside: `x AT TIME ZONE z` is part of it.
        if let Expr::Extract { field, expr: value, .. } = expr
            && let Some(extracted) = self.extract(field, value)
        {
            *expr = extracted;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // In GoogleSQL it may be a parameter, which comes later.
        if let Expr::InUnnest { expr: value, array_expr, negated } = expr
            && !self.is_google
        {
            let contains = call("array_has", vec![take(array_expr), take(value)]);
            *expr = match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(contains) },
                false => contains,
            };
        } else if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            self.name_items(access_chain);
        } else if let Expr::Function(function) = expr
            && let Some(replaced) = self.function(function)
        {
            *expr = replaced;
        }
        ControlFlow::Continue(())
    }
}

impl GoogleFunctions<'_> {
    /// In GoogleSQL, `value[n]` counts from 0 where the value is an array.
    fn name_items(&self, access_chain: &mut [AccessExpr]) {
        if !self.is_google {
            return;
        }
        for access in access_chain {
            if let AccessExpr::Subscript(Subscript::Index { index }) = access
                && !matches!(index, Expr::Value(value) if !matches!(value.value, Value::Number(..)))
                && !is_index(index)
            {
                *index = call(INDEX, vec![take(index)]);
            }
        }
    }

    /// A function, or what it stands for; changed in place where it stays one with its clauses.
    fn function(&self, function: &mut Function) -> Option<Expr> {
        let (name, is_safe) = name_of(&function.name)?;
        if name == "hll_count.extract" {
            function.name = ObjectName::from(vec![Ident::new("hll_estimate")]);
            return None;
        }
        let args = arguments(function)?;

        match (name.as_str(), args.as_slice()) {
            ("if", [condition, yes, no]) => return Some(case(condition, yes, no)),
            ("countif" | "count_if", [condition]) => {
                let counted = case(condition, &number(1), &null());
                return set(function, "count", vec![counted]);
            }
            ("array_first", [list]) => return Some(call("array_element", vec![list.clone(), number(1)])),
            ("array_last", [list]) => return Some(call("array_element", vec![list.clone(), number(-1)])),
            ("array_last_n", [list, count]) => return Some(last_items(list, count)),
            ("array_offset", [list, item]) => {
                return Some(minus_one(call("array_position", vec![list.clone(), item.clone()])));
            }
            ("array_offsets", [list, item]) => return Some(offsets(list, item)),
            ("approx_quantiles", [value, count]) if is_plain(function) => return quantiles(value, count),
            ("array_concat_agg", [list]) => return Some(concatenated(function, list)),
            ("normalize", [value, Expr::Identifier(form)]) => {
                return Some(call(&google_name(&name, is_safe)?, vec![value.clone(), text(&form.value)]));
            }
            ("array_is_distinct", [list]) => return Some(is_distinct(list)),
            ("array_slice", [list, start, end]) if self.is_google => return Some(slice(list, start, end)),
            ("md5", [value]) if self.is_google => {
                let text = call("md5", vec![value.clone()]);
                return Some(call("google_from_hex", vec![text]));
            }
            // The base comes last, and is e without one.
            ("log", [value]) if self.is_google => return Some(call("ln", vec![value.clone()])),
            ("log", [value, base]) if self.is_google => {
                return Some(call("log", vec![base.clone(), value.clone()]));
            }
            ("array_transform" | "array_filter" | "list_transform" | "list_filter", [list, body]) => {
                let (item, body) = lambda(body)?;
                return set(function, &name.replace("list_", "array_"), vec![list.clone(), as_lambda(item, body)]);
            }
            ("timestamp_trunc" | "date_trunc", [first, _]) if is_text(first) => return None,
            _ => {}
        }

        if let Some(args) = with_part(&name, &args).or_else(|| with_interval(&name, &args)) {
            return Some(call(&google_name(&name, is_safe)?, args));
        }
        if (self.is_google || !is_function(self.state, &name) || is_safe)
            && let Some(registered) = google_name(&name, is_safe)
        {
            function.name = ObjectName::from(vec![Ident::new(registered)]);
            return None;
        }
        if let Some((_, known)) = OTHER_NAMES.iter().find(|(other, _)| *other == name)
            && !is_safe
            && (self.is_google || !is_function(self.state, &name))
        {
            function.name = ObjectName::from(vec![Ident::new(*known)]);
        }
        None
    }

    /// `EXTRACT(field FROM value)`; `None` if DataFusion's is meant.
    fn extract(&self, field: &DateTimeField, value: &mut Expr) -> Option<Expr> {
        let part = field.to_string().to_ascii_uppercase();
        if !self.is_google && !NEW_PARTS.contains(&part.as_str()) {
            return None;
        }
        let (value, zone) = match value {
            Expr::AtTimeZone { timestamp, time_zone } => (take(timestamp), Some(take(time_zone))),
            value => (take(value), None),
        };
        if part == "DATE" {
            return Some(call("google_date", [value].into_iter().chain(zone).collect()));
        }
        Some(call("google_extract", [text(&part), value].into_iter().chain(zone).collect()))
    }
}

/// The name of a function in lower case, and whether `SAFE.` is before it.
fn name_of(name: &ObjectName) -> Option<(String, bool)> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    match parts.as_slice() {
        [name] => Some((name.value.to_ascii_lowercase(), false)),
        [safe, name] if safe.value.eq_ignore_ascii_case("safe") => Some((name.value.to_ascii_lowercase(), true)),
        [space, name] => Some((format!("{}.{}", space.value, name.value).to_ascii_lowercase(), false)),
        _ => None,
    }
}

/// Gives a function another name and arguments; its clauses stay.
fn set(function: &mut Function, name: &str, args: Vec<Expr>) -> Option<Expr> {
    function.name = ObjectName::from(vec![Ident::new(name)]);
    if let FunctionArguments::List(list) = &mut function.args {
        list.args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
        list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
    }
    None
}

/// Item and body of `item -> body`, which the parser takes for an operator that binds more tightly than a comparison.
fn lambda(expr: &Expr) -> Option<(Ident, Expr)> {
    let Expr::BinaryOp { left, op, right } = expr else { return None };
    match (op, left.as_ref()) {
        (BinaryOperator::Arrow, Expr::Identifier(item)) => Some((item.clone(), right.as_ref().clone())),
        (op, left) => {
            let (item, body) = lambda(left)?;
            Some((item, Expr::BinaryOp { left: Box::new(body), op: op.clone(), right: right.clone() }))
        }
    }
}

fn as_lambda(item: Ident, body: Expr) -> Expr {
    let param = LambdaFunctionParameter { name: item, data_type: None };
    let params = OneOrManyWithParens::One(param);
    Expr::Lambda(LambdaFunction { params, body: Box::new(body), syntax: LambdaSyntax::Arrow })
}

/// The arguments of a function with a part of a date or time, the part as text; `None` for other functions.
fn with_part(name: &str, args: &[Expr]) -> Option<Vec<Expr>> {
    let (_, place) = WITH_PART.iter().find(|(known, _)| *known == name)?;
    let part = part(args.get(*place)?)?;
    let mut args = args.to_vec();
    *args.get_mut(*place)? = text(&part);
    Some(args)
}

/// The part that a word names: `DAY`, `WEEK(MONDAY)`.
fn part(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) if name.quote_style.is_none() => {
            let name = name.value.to_ascii_uppercase();
            PARTS.contains(&name.as_str()).then_some(name)
        }
        Expr::Function(function) => {
            let (name, _) = name_of(&function.name)?;
            match arguments(function)?.as_slice() {
                [Expr::Identifier(day)] if name == "week" => Some(format!("WEEK({})", day.value.to_ascii_uppercase())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The arguments of a function with an interval, its number and its part in place of it; `None` for other functions.
fn with_interval(name: &str, args: &[Expr]) -> Option<Vec<Expr>> {
    let (_, place) = WITH_INTERVAL.iter().find(|(known, _)| *known == name)?;
    let Expr::Interval(Interval { value, leading_field: Some(field), .. }) = args.get(*place)? else { return None };
    let mut args = args.to_vec();
    args.splice(place..=place, [value.as_ref().clone(), text(&field.to_string().to_ascii_uppercase())]);
    Some(args)
}

fn is_index(expr: &Expr) -> bool {
    const INDEXES: [&str; 5] = ["offset", "safe_offset", "ordinal", "safe_ordinal", INDEX];
    let Expr::Function(function) = expr else { return false };
    name_of(&function.name).is_some_and(|(name, _)| INDEXES.contains(&name.as_str()))
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

fn case(condition: &Expr, yes: &Expr, no: &Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: condition.clone(), result: yes.clone() }],
        else_result: Some(Box::new(no.clone())),
    }
}

fn is_distinct(list: &Expr) -> Expr {
    let all = call("array_length", vec![list.clone()]);
    let distinct = call("array_length", vec![call("array_distinct", vec![list.clone()])]);
    binary(all, BinaryOperator::Eq, distinct)
}

/// Items from `start` to `end`, both included and from 0; negative numbers are from the end.
fn slice(list: &Expr, start: &Expr, end: &Expr) -> Expr {
    call("array_slice", vec![list.clone(), from_one(start), from_one(end)])
}

/// A place that counts from 0 as one that counts from 1; a negative one stays.
fn from_one(place: &Expr) -> Expr {
    let is_negative = binary(place.clone(), BinaryOperator::Lt, number(0));
    case(&is_negative, place, &binary(place.clone(), BinaryOperator::Plus, number(1)))
}

/// The last items of a list, all of it if it has fewer.
fn last_items(list: &Expr, count: &Expr) -> Expr {
    let length = signed(call("array_length", vec![list.clone()]));
    let before = binary(length.clone(), BinaryOperator::Minus, count.clone());
    let first = binary(before, BinaryOperator::Plus, number(1));
    call("array_slice", vec![list.clone(), call("greatest", vec![first, number(1)]), length])
}

fn float(value: Expr) -> Expr {
    call("arrow_cast", vec![value, text("Float64")])
}

/// An unsigned number as INT64.
fn signed(value: Expr) -> Expr {
    call("arrow_cast", vec![value, text("Int64")])
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// A place that counts from 1 as one that counts from 0.
fn minus_one(place: Expr) -> Expr {
    Expr::Nested(Box::new(binary(signed(place), BinaryOperator::Minus, number(1))))
}

/// The places of an item in a list, from 0.
fn offsets(list: &Expr, item: &Expr) -> Expr {
    let place = Ident::new("place");
    let body = minus_one(Expr::Identifier(place.clone()));
    call("array_transform", vec![call("array_positions", vec![list.clone(), item.clone()]), as_lambda(place, body)])
}

/// The items of all lists of a group but those that are null, with the clauses of `ARRAY_CONCAT_AGG`.
fn concatenated(function: &Function, list: &Expr) -> Expr {
    let mut lists = function.clone();
    lists.name = ObjectName::from(vec![Ident::new("array_agg")]);
    let is_there = Expr::IsNotNull(Box::new(list.clone()));
    let filter = match lists.filter.take() {
        Some(filter) => binary(*filter, BinaryOperator::And, is_there),
        None => is_there,
    };
    lists.filter = Some(Box::new(filter));
    call("flatten", vec![Expr::Function(lists)])
}

/// Whether a call has no clauses that each of several calls in its place would need.
fn is_plain(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
}

/// The least value, those that cut all into so many groups of about one size, and the greatest; null without values. `None` if the
/// number of groups is no literal.
fn quantiles(value: &Expr, count: &Expr) -> Option<Expr> {
    const MOST: u32 = 1000;
    let Expr::Value(literal) = count else { return None };
    let Value::Number(groups, _) = &literal.value else { return None };
    let groups = groups.parse::<u32>().ok().filter(|groups| (1..=MOST).contains(groups))?;

    let mut bounds = vec![float(call("min", vec![value.clone()]))];
    for group in 1..groups {
        let share = Value::Number(format!("{:.9}", f64::from(group) / f64::from(groups)), false);
        bounds.push(call("approx_percentile_cont", vec![value.clone(), Expr::Value(share.with_empty_span())]));
    }
    bounds.push(float(call("max", vec![value.clone()])));

    let is_empty = binary(call("count", vec![value.clone()]), BinaryOperator::Eq, number(0));
    Some(case(&is_empty, &null(), &call("make_array", bounds)))
}
