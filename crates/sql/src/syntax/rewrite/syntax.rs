//! Expressions as written: calls, and names as DataFusion gives them.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Value, VisitMut, VisitorMut,
};

/// A call of the function `name` with positional arguments.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    let args = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The arguments of a function, if all are expressions without names.
pub(crate) fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut args = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => args.push(expr.clone()),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if list.args.len() == 1 => {}
            _ => return None,
        }
    }
    Some(args)
}

/// Whether an expression is text, written out.
pub(crate) fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// Whether the session has a function of this name, in lower case.
pub(crate) fn is_function(state: &SessionState, name: &str) -> bool {
    state.scalar_functions().contains_key(name)
        || state.aggregate_functions().contains_key(name)
        || state.window_functions().contains_key(name)
}

/// A whole number.
pub(crate) fn number(value: i64) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).with_empty_span())
}

/// Takes an expression out of its place, in which NULL remains.
pub(crate) fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.with_empty_span()))
}

/// A normalized column name: DataFusion's names do not show casts or the spelling of functions.
pub(crate) fn name_of(expr: &Expr) -> String {
    struct Plain;

    impl VisitorMut for Plain {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => *expr = take(inner),
                Expr::TypedString(text) => *expr = Expr::Value(text.value.clone()),
                Expr::Function(function) => {
                    function.name.0.iter_mut().for_each(|part| {
                        if let ObjectNamePart::Identifier(name) = part {
                            name.value.make_ascii_lowercase();
                        }
                    });
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }

    let mut expr = expr.clone();
    let _: ControlFlow<()> = expr.visit(&mut Plain);
    expr.to_string()
}
