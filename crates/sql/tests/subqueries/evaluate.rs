//! Evaluates queries by nested loops in three-valued logic.

use std::collections::BTreeMap;

use super::query::{Condition, Expr, From, Function, JoinKind, Operator, Query, SetKind, Value};

/// A table: the names of its columns, and rows.
#[derive(Debug, Clone)]
pub struct Table {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Value>>,
}

pub type Tables = BTreeMap<&'static str, Table>;

/// The rows of one or several relations, by alias.
type Row = Vec<(String, Vec<String>, Vec<Value>)>;

/// What an expression is evaluated in: the rows around it, outermost first, and the rows of its group.
#[derive(Clone)]
struct Scope<'a> {
    tables: &'a Tables,
    rows: Vec<Row>,
    group: Option<&'a [Row]>,
}

/// The rows of a query.
pub fn rows(query: &Query, tables: &Tables) -> Vec<Vec<Value>> {
    Scope { tables, rows: Vec::new(), group: None }.query(query)
}

impl<'a> Scope<'a> {
    fn with(&self, row: &Row) -> Self {
        let mut rows = self.rows.clone();
        rows.push(row.clone());
        Self { rows, group: None, ..*self }
    }

    fn query(&self, query: &Query) -> Vec<Vec<Value>> {
        let outer = Self { group: None, ..self.clone() };
        let mut found = outer.select(query);
        if query.distinct {
            found.sort();
            found.dedup();
        }
        if let Some((kind, other)) = &query.set {
            found = combined(*kind, found, outer.query(other));
        }
        if let Some((skip, fetch)) = query.limit {
            found.sort();
            found = found.into_iter().skip(skip as usize).take(fetch as usize).collect();
        }
        found
    }

    fn select(&self, query: &Query) -> Vec<Vec<Value>> {
        let mut joined: Vec<Row> = self.from(&query.from).into_iter().map(|row| vec![row]).collect();
        for join in &query.joins {
            let is_lateral = matches!(join.kind, JoinKind::Lateral | JoinKind::LeftLateral);
            let keeps = matches!(join.kind, JoinKind::Left | JoinKind::LeftLateral);
            let mut next = Vec::new();
            for left in joined {
                let rights = if is_lateral { self.with(&left).from(&join.with) } else { self.from(&join.with) };
                let before = next.len();
                for right in &rights {
                    let both: Row = left.iter().chain([right]).cloned().collect();
                    let fits = join.on.as_ref().is_none_or(|on| self.with(&both).truth(on) == Some(true));
                    next.extend(fits.then_some(both));
                }
                if keeps && next.len() == before {
                    let absent = self.absent(&join.with);
                    next.push(left.into_iter().chain([absent]).collect());
                }
            }
            joined = next;
        }
        if let Some(filter) = &query.filter {
            joined.retain(|row| self.with(row).truth(filter) == Some(true));
        }
        let Some(groups) = &query.groups else {
            return joined.iter().map(|row| self.with(row).values(&query.select)).collect();
        };

        let mut grouped: BTreeMap<Vec<Value>, Vec<Row>> = BTreeMap::new();
        if groups.is_empty() {
            grouped.insert(Vec::new(), Vec::new());
        }
        for row in joined {
            grouped.entry(self.with(&row).values(groups)).or_default().push(row);
        }
        let mut found = Vec::new();
        for rows in grouped.values() {
            // Columns outside of functions are groups: the same in all rows.
            let first = rows.first().cloned().unwrap_or_default();
            let scope = Scope { group: Some(rows), tables: self.tables, rows: self.with(&first).rows };
            if query.having.as_ref().is_none_or(|having| scope.truth(having) == Some(true)) {
                found.push(scope.values(&query.select));
            }
        }
        found
    }

    fn from(&self, from: &From) -> Vec<(String, Vec<String>, Vec<Value>)> {
        match from {
            From::Table { name, alias, .. } => {
                let table = &self.tables[name];
                let names: Vec<String> = table.columns.iter().map(ToString::to_string).collect();
                table.rows.iter().map(|row| (alias.clone(), names.clone(), row.clone())).collect()
            }
            From::Derived { query, alias } => {
                let names = names(query);
                self.query(query).into_iter().map(|row| (alias.clone(), names.clone(), row)).collect()
            }
        }
    }

    fn absent(&self, from: &From) -> (String, Vec<String>, Vec<Value>) {
        let (alias, names) = match from {
            From::Table { name, alias, .. } => {
                (alias, self.tables[name].columns.iter().map(ToString::to_string).collect())
            }
            From::Derived { query, alias } => (alias, names(query)),
        };
        let values = vec![Value::Null; Vec::len(&names)];
        (alias.clone(), names, values)
    }

    fn values(&self, exprs: &[Expr]) -> Vec<Value> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    fn value(&self, expr: &Expr) -> Value {
        let int = |expr: &Expr| match self.value(expr) {
            Value::Int(int) => Some(int),
            Value::Null => None,
            other => panic!("{other:?} is no number"),
        };
        let of_int = |int: Option<i64>| int.map_or(Value::Null, Value::Int);
        match expr {
            Expr::Column { table, name } => {
                let relations = self.rows.iter().rev().flatten();
                let (_, names, values) = relations.into_iter().find(|(alias, ..)| alias == table).unwrap();
                values[names.iter().position(|known| known == name).unwrap()].clone()
            }
            Expr::Value(value) => value.clone(),
            Expr::Plus(left, right) => of_int(int(left).zip(int(right)).map(|(left, right)| left + right)),
            Expr::Minus(left, right) => of_int(int(left).zip(int(right)).map(|(left, right)| left - right)),
            Expr::Modulo(of, by) => of_int(int(of).map(|of| of % by)),
            Expr::AsText(of) => match self.value(of) {
                Value::Null => Value::Null,
                other => Value::Text(other.to_string()),
            },
            Expr::AsInt(of) => match self.value(of) {
                Value::Text(text) => Value::Int(text.parse().unwrap()),
                other => other,
            },
            Expr::AsDate(of) => match self.value(of) {
                Value::Time(hour) => Value::Date(hour / 24),
                other => other,
            },
            Expr::Coalesce(one, other) => match self.value(one) {
                Value::Null => self.value(other),
                value => value,
            },
            Expr::Case(when, then, or) => self.value(if self.truth(when) == Some(true) { then } else { or }),
            Expr::Scalar(query) => {
                let mut rows = self.query(query);
                assert!(rows.len() <= 1, "{query}: {rows:?}");
                rows.pop().map_or(Value::Null, |mut row| row.pop().unwrap())
            }
            Expr::Aggregate { function, of } => self.aggregate(*function, of),
            Expr::Condition(condition) => self.truth(condition).map_or(Value::Null, Value::Bool),
        }
    }

    fn aggregate(&self, function: Function, of: &Expr) -> Value {
        let rows = self.group.unwrap();
        let outer = Self { rows: self.rows[..self.rows.len() - 1].to_vec(), group: None, tables: self.tables };
        let values = rows.iter().map(|row| outer.with(row).value(of)).filter(|value| *value != Value::Null);
        match function {
            Function::CountRows => Value::Int(rows.len() as i64),
            Function::Count => Value::Int(values.count() as i64),
            Function::CountDistinct => Value::Int(values.collect::<std::collections::BTreeSet<_>>().len() as i64),
            Function::Sum => {
                let add = |sum: Value, value: Value| match (sum, value) {
                    (Value::Int(sum), Value::Int(value)) => Value::Int(sum + value),
                    (_, value) => value,
                };
                values.fold(Value::Null, add)
            }
            Function::Min => values.min().unwrap_or(Value::Null),
            Function::Max => values.max().unwrap_or(Value::Null),
        }
    }

    fn truth(&self, condition: &Condition) -> Option<bool> {
        match condition {
            Condition::Constant(truth) => *truth,
            Condition::Compare(left, operator, right) => compared(&self.value(left), *operator, &self.value(right)),
            Condition::Same { left, right, not } => Some((self.value(left) == self.value(right)) != *not),
            Condition::IsNull { of, not } => Some((self.value(of) == Value::Null) != *not),
            Condition::And(left, right) => and(self.truth(left), self.truth(right)),
            Condition::Or(left, right) => or(self.truth(left), self.truth(right)),
            Condition::Not(of) => self.truth(of).map(|truth| !truth),
            Condition::Is { of, truth, not } => Some((self.truth(of) == *truth) != *not),
            Condition::In { of, query, not } => self.any(of, Operator::Equal, query).map(|truth| truth != *not),
            Condition::Exists { query, not } => Some(self.query(query).is_empty() == *not),
            Condition::Quantified { of, operator, all: false, query } => self.any(of, *operator, query),
            Condition::Quantified { of, operator, all: true, query } => {
                let of = self.value(of);
                let each = self.query(query).into_iter().map(|row| compared(&of, *operator, &row[0]));
                each.fold(Some(true), and)
            }
            Condition::Case(when, then, or) => self.truth(if self.truth(when) == Some(true) { then } else { or }),
        }
    }

    fn any(&self, of: &Expr, operator: Operator, query: &Query) -> Option<bool> {
        let of = self.value(of);
        let each = self.query(query).into_iter().map(|row| compared(&of, operator, &row[0]));
        each.fold(Some(false), or)
    }
}

fn names(query: &Query) -> Vec<String> {
    (0..query.select.len()).map(|at| format!("v{at}")).collect()
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    and(left.map(|left| !left), right.map(|right| !right)).map(|both| !both)
}

fn compared(left: &Value, operator: Operator, right: &Value) -> Option<bool> {
    if *left == Value::Null || *right == Value::Null {
        return None;
    }
    let order = left.cmp(right);
    Some(match operator {
        Operator::Equal => order.is_eq(),
        Operator::Unequal => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
    })
}

fn combined(kind: SetKind, left: Vec<Vec<Value>>, right: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let mut counts: BTreeMap<Vec<Value>, (usize, usize)> = BTreeMap::new();
    for row in left {
        counts.entry(row).or_default().0 += 1;
    }
    for row in right {
        counts.entry(row).or_default().1 += 1;
    }
    let copies = |left: usize, right: usize| match kind {
        SetKind::Union => 1,
        SetKind::UnionAll => left + right,
        SetKind::Except => usize::from(left > 0 && right == 0),
        SetKind::ExceptAll => left.saturating_sub(right),
        SetKind::Intersect => usize::from(left > 0 && right > 0),
        SetKind::IntersectAll => left.min(right),
    };
    let rows = counts.into_iter().flat_map(|(row, (left, right))| std::iter::repeat_n(row, copies(left, right)));
    rows.collect()
}
