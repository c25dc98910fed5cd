//! Random queries with subqueries.

use super::query::{Condition, Expr, From, Function, Join, JoinKind, Kind, OPERATORS, Operator, Query, SetKind, Value};

const TABLES: [&str; 3] = ["a", "b", "c"];
pub const COLUMNS: [(&str, Kind); 6] =
    [("id", Kind::Int), ("i", Kind::Int), ("j", Kind::Int), ("n", Kind::Int), ("s", Kind::Text), ("t", Kind::Time)];

/// The columns of relations: alias, name, type.
type Relations = Vec<(String, &'static str, Kind)>;

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

pub struct Generator {
    pub random: Random,
    /// The schema of the tables.
    schema: String,
    aliases: usize,
    /// The relations of the queries around, outermost first.
    outer: Vec<Relations>,
}

impl Generator {
    pub fn new(random: Random, schema: &str) -> Self {
        Self { random, schema: schema.to_owned(), aliases: 0, outer: Vec::new() }
    }

    /// A query of one or two tables, with subqueries in one of its clauses.
    pub fn query(&mut self) -> Query {
        self.aliases = 0;
        self.outer.clear();
        let table = self.table();
        let mut own = relations(&table);
        let mut query = plain(table);
        if self.random.one_in(5) {
            let other = self.other_table(&own);
            let kind = self.random.of(&[JoinKind::Inner, JoinKind::Left]);
            let mut both = own.clone();
            both.extend(relations(&other));
            let on = self.comparison(&both);
            query.joins.push(Join { kind, with: other, on: Some(on) });
            own = both;
        }
        if self.random.one_in(10) {
            let (join, more) = self.lateral(&own);
            query.joins.push(join);
            own.extend(more);
        }
        let id = column(&own[0]);
        match self.random.below(10) {
            0..4 => {
                query.filter = Some(self.condition(&own, 2));
                query.select = vec![id];
            }
            4..7 => {
                let condition = self.condition(&own, 2);
                query.select = vec![id, Expr::Condition(Box::new(condition))];
                if self.random.one_in(3) {
                    query.select.push(self.scalar(&own, Kind::Int));
                }
                if self.random.one_in(4) {
                    query.filter = Some(self.condition(&own, 1));
                }
            }
            7 => {
                // The condition sees groups alone.
                let key = column(&own[1 + self.random.below(4)]);
                let groups: Relations = own.iter().filter(|known| same(&column(known), &key)).cloned().collect();
                query.groups = Some(vec![key.clone()]);
                query.having = Some(self.condition(&groups, 1));
                query.select = vec![key, self.aggregate(&own)];
            }
            8 => {
                let condition = self.condition(&own, 1);
                let (one, none) = (Expr::Value(Value::Int(1)), Expr::Value(Value::Null));
                let counted = Expr::Case(Box::new(condition), Box::new(one), Box::new(none));
                query.groups = Some(Vec::new());
                query.select = vec![Expr::Aggregate { function: Function::Count, of: Box::new(counted) }];
            }
            _ => {
                let other = self.sub(Kind::Int, 1, false);
                let kind = self.set_kind();
                query.select = vec![self.expr(&own, Kind::Int, 0)];
                query.filter = Some(self.condition(&own, 1));
                query.set = Some((kind, Box::new(Query { set: None, limit: None, ..other })));
            }
        }
        query
    }

    fn set_kind(&mut self) -> SetKind {
        self.random.of(&[
            SetKind::Union,
            SetKind::UnionAll,
            SetKind::Except,
            SetKind::ExceptAll,
            SetKind::Intersect,
            SetKind::IntersectAll,
        ])
    }

    /// A table; sometimes without an alias, so that it hides one of the queries around.
    fn table(&mut self) -> From {
        self.aliases += 1;
        let name = self.random.of(&TABLES);
        let alias = if self.random.one_in(6) { name.to_owned() } else { format!("r{}", self.aliases) };
        From::Table { name, schema: self.schema.clone(), alias }
    }

    /// A table to join to `own`.
    fn other_table(&mut self, own: &Relations) -> From {
        loop {
            let table = self.table();
            let is_known = relations(&table).iter().any(|(alias, ..)| own.iter().any(|(known, ..)| known == alias));
            if !is_known {
                return table;
            }
        }
    }

    fn lateral(&mut self, own: &Relations) -> (Join, Relations) {
        self.outer.push(own.clone());
        let query = self.sub(Kind::Int, 1, false);
        self.outer.pop();
        self.aliases += 1;
        let alias = format!("l{}", self.aliases);
        let relations = vec![(alias.clone(), "v0", Kind::Int)];
        let (kind, on) = match self.random.one_in(2) {
            true => (JoinKind::Lateral, None),
            false => (JoinKind::LeftLateral, Some(Condition::Constant(Some(true)))),
        };
        (Join { kind, with: From::Derived { query: Box::new(query), alias }, on }, relations)
    }

    /// A condition with subqueries over the columns of `own`.
    fn condition(&mut self, own: &Relations, depth: usize) -> Condition {
        if depth == 0 {
            return match self.random.one_in(3) {
                true => self.comparison(own),
                false => self.predicate(own),
            };
        }
        let below = depth - 1;
        match self.random.below(13) {
            0..3 => self.predicate(own),
            3..5 => and(self.condition(own, below), self.condition(own, below)),
            5..8 => or(self.condition(own, below), self.condition(own, below)),
            8 | 9 => Condition::Not(Box::new(self.condition(own, below))),
            10 => {
                let truth = self.random.of(&[Some(true), Some(false), None]);
                let not = self.random.one_in(2);
                Condition::Is { of: Box::new(self.condition(own, below)), truth, not }
            }
            11 => {
                let parts = [0, 1, 2].map(|_| Box::new(self.condition(own, below)));
                let [when, then, or] = parts;
                Condition::Case(when, then, or)
            }
            _ => {
                let truth = self.random.of(&[Some(true), Some(false), None]);
                or(self.condition(own, below), Condition::Constant(truth))
            }
        }
    }

    /// A predicate of a subquery.
    fn predicate(&mut self, own: &Relations) -> Condition {
        let not = self.random.one_in(2);
        let kind = self.random.of(&[Kind::Int, Kind::Int, Kind::Int, Kind::Text, Kind::Date]);
        match self.random.below(10) {
            0..3 => {
                let of = self.operand(own, kind);
                Condition::In { of, query: Box::new(self.inside(own, kind, false)), not }
            }
            3..5 => Condition::Exists { query: Box::new(self.inside(own, kind, false)), not },
            5..8 => {
                let of = self.operand(own, kind);
                let (operator, all) = (self.random.of(&OPERATORS), self.random.one_in(2));
                Condition::Quantified { of, operator, all, query: Box::new(self.inside(own, kind, false)) }
            }
            8 => Condition::Compare(self.scalar(own, kind), self.random.of(&OPERATORS), self.operand(own, kind)),
            _ => Condition::IsNull { of: self.scalar(own, kind), not },
        }
    }

    fn operand(&mut self, own: &Relations, kind: Kind) -> Expr {
        match self.random.below(12) {
            0 => Expr::Value(Value::Null).typed(kind),
            1 => self.constant(kind),
            2 if kind == Kind::Int => self.scalar(own, kind),
            _ => self.expr(own, kind, 1),
        }
    }

    fn scalar(&mut self, own: &Relations, kind: Kind) -> Expr {
        Expr::Scalar(Box::new(self.inside(own, kind, true)))
    }

    /// A subquery of a query over `own`.
    fn inside(&mut self, own: &Relations, kind: Kind, is_scalar: bool) -> Query {
        self.outer.push(own.clone());
        let depth = self.outer.len();
        let query = self.sub(kind, depth, is_scalar);
        self.outer.pop();
        query
    }

    /// A query of one column of a type; `is_scalar`: of at most one row.
    fn sub(&mut self, kind: Kind, depth: usize, is_scalar: bool) -> Query {
        let table = self.table();
        let mut own = relations(&table);
        let mut query = plain(table);
        if self.random.one_in(8) {
            let other = self.other_table(&own);
            let kind = self.random.of(&[JoinKind::Inner, JoinKind::Left]);
            let mut both = own.clone();
            both.extend(relations(&other));
            let on = match self.random.one_in(3) {
                true => self.correlation(&both),
                false => self.comparison(&both),
            };
            query.joins.push(Join { kind, with: other, on: Some(on) });
            own = both;
        }
        let mut conditions = Vec::new();
        if !self.random.one_in(5) {
            conditions.push(self.correlation(&own));
        }
        if self.random.one_in(4) {
            conditions.push(self.correlation(&own));
        }
        if self.random.one_in(3) {
            conditions.push(self.comparison(&own));
        }
        if depth < 3 && self.random.one_in(7) {
            conditions.push(self.condition(&own, 0));
        }
        query.filter = conditions.into_iter().reduce(and);

        let is_aggregate = if is_scalar { !self.random.one_in(6) } else { self.random.one_in(4) };
        if is_aggregate && kind == Kind::Int {
            query.groups = Some(Vec::new());
            query.select = vec![self.aggregate(&own)];
            if !is_scalar && self.random.one_in(2) {
                query.groups = Some(vec![column(&own[1 + self.random.below(4)])]);
            }
            if self.random.one_in(4) {
                let (counted, most) = (self.aggregate(&own), Expr::Value(Value::Int(self.random.below(3) as i64)));
                query.having = Some(Condition::Compare(counted, self.random.of(&OPERATORS), most));
            }
            if self.random.one_in(5) {
                let plus = Expr::Value(Value::Int(1));
                query.select = vec![Expr::Coalesce(Box::new(query.select.remove(0)), Box::new(plus))];
            }
        } else if is_aggregate {
            query.groups = Some(Vec::new());
            let function = self.random.of(&[Function::Min, Function::Max]);
            query.select = vec![Expr::Aggregate { function, of: Box::new(self.expr(&own, kind, 1)) }];
        } else {
            let is_outer = self.random.one_in(8);
            query.select = vec![if is_outer { self.outer_expr(kind) } else { self.expr(&own, kind, 1) }];
            query.distinct = self.random.one_in(7);
            let hides_outer = self.outer.iter().flatten().any(|(alias, ..)| *alias == own[0].0);
            if is_scalar && query.joins.is_empty() && !hides_outer && self.random.one_in(2) {
                // The table has one row at most with this number, which is not its own.
                let only = Condition::Compare(column(&own[0]), Operator::Equal, self.outer_expr(Kind::Int));
                query.filter = Some(match query.filter.take() {
                    Some(filter) => and(only, filter),
                    None => only,
                });
            } else if is_scalar {
                query.limit = Some((self.random.below(2) as u64, 1));
            } else if self.random.one_in(10) {
                query.limit = Some((self.random.below(2) as u64, self.random.below(3) as u64));
            }
        }
        if !is_scalar && query.limit.is_none() && self.random.one_in(10) {
            let other = Query { set: None, limit: None, ..self.sub(kind, depth, false) };
            query.set = Some((self.set_kind(), Box::new(other)));
        }
        query
    }

    fn aggregate(&mut self, own: &Relations) -> Expr {
        let function = self.random.of(&[
            Function::CountRows,
            Function::CountRows,
            Function::Count,
            Function::CountDistinct,
            Function::Sum,
            Function::Min,
            Function::Max,
        ]);
        Expr::Aggregate { function, of: Box::new(self.expr(own, Kind::Int, 0)) }
    }

    /// A condition between a row of a subquery and those around it.
    fn correlation(&mut self, own: &Relations) -> Condition {
        let kind = self.random.of(&[Kind::Int, Kind::Int, Kind::Int, Kind::Text, Kind::Date, Kind::Time]);
        let outer = self.outer_expr(kind);
        match self.random.below(14) {
            0..5 => Condition::Compare(self.own_column(own, kind), Operator::Equal, outer),
            5..8 => Condition::Compare(self.expr(own, kind, 1), Operator::Equal, outer),
            8 | 9 => Condition::Compare(self.expr(own, kind, 1), self.random.of(&OPERATORS), outer),
            10 => Condition::Same { left: self.expr(own, kind, 0), right: outer, not: self.random.one_in(3) },
            11 => {
                let first = Condition::Compare(self.expr(own, kind, 0), Operator::Equal, outer);
                or(first, self.comparison(own))
            }
            12 => Condition::Compare(outer, self.random.of(&OPERATORS), self.constant(kind)),
            _ => {
                let sum = Expr::Plus(Box::new(self.expr(own, Kind::Int, 0)), Box::new(self.outer_expr(Kind::Int)));
                Condition::Compare(sum, self.random.of(&OPERATORS), self.expr(own, Kind::Int, 0))
            }
        }
    }

    fn comparison(&mut self, own: &Relations) -> Condition {
        let kind = self.random.of(&[Kind::Int, Kind::Int, Kind::Text, Kind::Date]);
        match self.random.below(5) {
            0 => Condition::IsNull { of: self.expr(own, kind, 0), not: self.random.one_in(2) },
            1 => Condition::Compare(self.expr(own, kind, 1), self.random.of(&OPERATORS), self.expr(own, kind, 1)),
            _ => Condition::Compare(self.expr(own, kind, 1), self.random.of(&OPERATORS), self.constant(kind)),
        }
    }

    fn outer_expr(&mut self, kind: Kind) -> Expr {
        let Some(last) = self.outer.len().checked_sub(1) else { return self.constant(kind) };
        // Mostly the next query.
        let level = if self.random.one_in(4) { self.random.below(last + 1) } else { last };
        let relations = self.outer[level].clone();
        self.expr(&relations, kind, 1)
    }

    fn own_column(&mut self, own: &Relations, kind: Kind) -> Expr {
        let known: Vec<_> = own.iter().filter(|(.., own)| *own == kind).collect();
        match known.is_empty() {
            true => self.expr(own, kind, 0),
            false => column(known[self.random.below(known.len())]),
        }
    }

    fn constant(&mut self, kind: Kind) -> Expr {
        let int = self.random.below(4) as i64;
        Expr::Value(match kind {
            Kind::Int => Value::Int(int),
            Kind::Text => Value::Text(int.to_string()),
            Kind::Date => Value::Date(int),
            Kind::Time => Value::Time(int * 13),
        })
    }

    /// An expression over the columns of `own`.
    fn expr(&mut self, own: &Relations, kind: Kind, depth: usize) -> Expr {
        let fits = |wanted: Kind| own.iter().filter(move |(.., own)| *own == wanted).collect::<Vec<_>>();
        if depth > 0 && self.random.one_in(3) {
            let int = |generator: &mut Self| Box::new(generator.expr(own, Kind::Int, depth - 1));
            match (kind, self.random.below(6)) {
                (Kind::Int, 0) => return Expr::Plus(int(self), int(self)),
                (Kind::Int, 1) => return Expr::Minus(int(self), Box::new(self.constant(Kind::Int))),
                (Kind::Int, 2) => return Expr::Modulo(int(self), 2),
                (Kind::Int, 3) => {
                    let text = fits(Kind::Text);
                    if !text.is_empty() {
                        return Expr::AsInt(Box::new(column(text[self.random.below(text.len())])));
                    }
                }
                (Kind::Int | Kind::Text, 4) => {
                    let of = Box::new(self.expr(own, kind, 0));
                    return Expr::Coalesce(of, Box::new(self.constant(kind)));
                }
                (Kind::Text, _) => return Expr::AsText(int(self)),
                (Kind::Int, 5) => {
                    let when = Box::new(self.comparison(own));
                    return Expr::Case(when, int(self), Box::new(self.constant(Kind::Int)));
                }
                _ => {}
            }
        }
        let of_kind = fits(kind);
        if !of_kind.is_empty() {
            return column(of_kind[self.random.below(of_kind.len())]);
        }
        let times = fits(Kind::Time);
        match kind {
            Kind::Date if !times.is_empty() => Expr::AsDate(Box::new(column(times[self.random.below(times.len())]))),
            Kind::Text if !fits(Kind::Int).is_empty() => Expr::AsText(Box::new(self.expr(own, Kind::Int, 0))),
            _ => self.constant(kind),
        }
    }
}

impl Expr {
    /// A null of a type.
    fn typed(self, kind: Kind) -> Self {
        match kind {
            Kind::Int => Self::AsInt(Box::new(self)),
            Kind::Text => Self::AsText(Box::new(self)),
            Kind::Date | Kind::Time => Self::AsDate(Box::new(self)),
        }
    }
}

fn plain(from: From) -> Query {
    Query {
        distinct: false,
        select: Vec::new(),
        from,
        joins: Vec::new(),
        filter: None,
        groups: None,
        having: None,
        set: None,
        limit: None,
    }
}

fn relations(from: &From) -> Relations {
    match from {
        From::Table { alias, .. } => COLUMNS.iter().map(|(name, kind)| (alias.clone(), *name, *kind)).collect(),
        From::Derived { alias, .. } => vec![(alias.clone(), "v0", Kind::Int)],
    }
}

fn column((table, name, _): &(String, &'static str, Kind)) -> Expr {
    Expr::Column { table: table.clone(), name }
}

fn same(one: &Expr, other: &Expr) -> bool {
    one.to_string() == other.to_string()
}

fn and(left: Condition, right: Condition) -> Condition {
    Condition::And(Box::new(left), Box::new(right))
}

fn or(left: Condition, right: Condition) -> Condition {
    Condition::Or(Box::new(left), Box::new(right))
}
