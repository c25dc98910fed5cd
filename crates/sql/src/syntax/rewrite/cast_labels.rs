//! Names casts in statements in which two expressions have one name; row "Names of casts" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 refuses two aggregates, window functions or group keys of one name, and its names do not show casts:
//! `sum(i), sum(CAST(i AS DECIMAL))`. Where a statement has such a pair, each cast becomes `CAST(cast_label(i, 'DECIMAL') AS
//! DECIMAL)`, so that the names differ. Coercion removes the function, and columns keep their names.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, Select, SelectItem, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use tidetable_functions::CAST_LABEL;

use crate::syntax::rewrite::syntax::{call, name_of, take};

/// Labels the casts of `statement`, if it has aggregates, window functions or group keys that differ by casts only.
pub(crate) fn label_casts(statement: &mut ast::Statement) {
    let mut names = NamesOfCasts::default();
    let _: ControlFlow<()> = Visit::visit(statement, &mut names);
    if names.clash() {
        let _: ControlFlow<()> = VisitMut::visit(statement, &mut Labeller);
    }
}

/// The texts of expressions that share a name.
#[derive(Default)]
struct NamesOfCasts {
    has_cast: bool,
    has_equal_keys: bool,
    texts: HashMap<String, HashSet<String>>,
}

impl NamesOfCasts {
    fn add(&mut self, expr: &Expr) {
        self.texts.entry(name_of(expr)).or_default().insert(without_parentheses(expr));
    }

    fn clash(&self) -> bool {
        self.has_cast && (self.has_equal_keys || self.texts.values().any(|texts| texts.len() > 1))
    }
}

impl Visitor for NamesOfCasts {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let mut keys = NamesOfCasts { has_cast: true, ..NamesOfCasts::default() };
        keys_of(select).into_iter().for_each(|key| keys.add(key));
        self.has_equal_keys |= keys.clash();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(_) => self.add(expr),
            Expr::Cast { .. } => self.has_cast = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The expressions that `select` groups by: a key may be the number or the alias of a column.
fn keys_of(select: &Select) -> Vec<&Expr> {
    let items: Vec<(&Expr, Option<&Ident>)> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) => Some((expr, None)),
            SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(alias))),
            _ => None,
        })
        .collect();
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return items.into_iter().map(|(expr, _)| expr).collect();
    };

    let mut grouped = Vec::new();
    for key in keys {
        match key {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => grouped.extend(sets.iter().flatten()),
            key => grouped.push(key),
        }
    }

    for key in &mut grouped {
        let named = match *key {
            Expr::Value(value) => value.to_string().parse().ok().and_then(|nth: usize| items.get(nth.checked_sub(1)?)),
            Expr::Identifier(name) => items.iter().find(|(_, alias)| *alias == Some(name)),
            _ => None,
        };
        if let Some((expr, _)) = named {
            *key = *expr;
        }
    }
    grouped
}

/// The text of an expression, in which only casts and names count.
fn without_parentheses(expr: &Expr) -> String {
    struct Plain;

    impl VisitorMut for Plain {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Nested(inner) = expr {
                *expr = take(inner);
            }
            ControlFlow::Continue(())
        }
    }

    let mut expr = expr.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut expr, &mut Plain);
    expr.to_string().to_ascii_lowercase()
}

/// Labels casts by their type.
struct Labeller;

impl VisitorMut for Labeller {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && has_cast(expr)
            {
                let alias = Ident::with_quote('"', column_name(expr));
                *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { kind, expr: inner, data_type, .. } = expr {
            let label = Value::SingleQuotedString(format!("{kind:?} {data_type}")).with_empty_span();
            **inner = call(CAST_LABEL, vec![take(inner), Expr::Value(label)]);
        }
        ControlFlow::Continue(())
    }
}

/// The name of a column without an alias: that of the column which it casts, or else its text.
fn column_name(expr: &Expr) -> String {
    let mut inner = expr;
    while let Expr::Cast { expr, .. } | Expr::Nested(expr) = inner {
        inner = expr;
    }
    match inner {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(path) => path.last().map(|name| name.value.clone()).unwrap_or_default(),
        _ => expr.to_string(),
    }
}

fn has_cast(expr: &Expr) -> bool {
    struct Finder;

    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Cast { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    Visit::visit(expr, &mut Finder).is_break()
}
