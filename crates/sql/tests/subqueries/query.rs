//! Queries with subqueries, and their text.

use std::fmt::{self, Display, Formatter, Write};

/// A value of a column. Dates are days since 2024-01-01, times hours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Date(i64),
    Time(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    Text,
    Date,
    Time,
}

#[derive(Debug, Clone)]
pub enum Expr {
    Column {
        table: String,
        name: &'static str,
    },
    Value(Value),
    Plus(Box<Expr>, Box<Expr>),
    Minus(Box<Expr>, Box<Expr>),
    Modulo(Box<Expr>, i64),
    AsText(Box<Expr>),
    AsInt(Box<Expr>),
    AsDate(Box<Expr>),
    Coalesce(Box<Expr>, Box<Expr>),
    Case(Box<Condition>, Box<Expr>, Box<Expr>),
    Scalar(Box<Query>),
    /// A function of the rows of a group.
    Aggregate {
        function: Function,
        of: Box<Expr>,
    },
    Condition(Box<Condition>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    CountRows,
    Count,
    CountDistinct,
    Sum,
    Min,
    Max,
}

#[derive(Debug, Clone)]
pub enum Condition {
    Constant(Option<bool>),
    Compare(Expr, Operator, Expr),
    Same {
        left: Expr,
        right: Expr,
        not: bool,
    },
    IsNull {
        of: Expr,
        not: bool,
    },
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    /// `IS TRUE`, `IS NOT FALSE` and so on.
    Is {
        of: Box<Condition>,
        truth: Option<bool>,
        not: bool,
    },
    In {
        of: Expr,
        query: Box<Query>,
        not: bool,
    },
    Exists {
        query: Box<Query>,
        not: bool,
    },
    Quantified {
        of: Expr,
        operator: Operator,
        all: bool,
        query: Box<Query>,
    },
    Case(Box<Condition>, Box<Condition>, Box<Condition>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

pub const OPERATORS: [Operator; 6] = [
    Operator::Equal,
    Operator::Unequal,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];

#[derive(Debug, Clone)]
pub enum From {
    Table { name: &'static str, schema: String, alias: String },
    Derived { query: Box<Query>, alias: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Lateral,
    LeftLateral,
}

#[derive(Debug, Clone)]
pub struct Join {
    pub kind: JoinKind,
    pub with: From,
    pub on: Option<Condition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    Union,
    UnionAll,
    Except,
    ExceptAll,
    Intersect,
    IntersectAll,
}

#[derive(Debug, Clone)]
pub struct Query {
    pub distinct: bool,
    pub select: Vec<Expr>,
    pub from: From,
    pub joins: Vec<Join>,
    pub filter: Option<Condition>,
    pub groups: Option<Vec<Expr>>,
    pub having: Option<Condition>,
    pub set: Option<(SetKind, Box<Query>)>,
    /// Orders by all selected expressions and takes this many rows.
    pub limit: Option<(u64, u64)>,
}

impl Query {
    /// Whether a set operation is below the query itself.
    pub fn has_inner_set(&self) -> bool {
        let text = self.to_string();
        let all = [" UNION ", " EXCEPT ", " INTERSECT "].iter().map(|word| text.matches(word).count()).sum::<usize>();
        all > usize::from(self.set.is_some())
    }
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::Bool(truth) => write!(out, "{truth}"),
            Self::Int(int) => write!(out, "{int}"),
            Self::Text(text) => out.write_str(text),
            Self::Date(day) => write!(out, "2024-01-{:02}", day + 1),
            Self::Time(hour) => write!(out, "2024-01-{:02}T{:02}:00:00", hour / 24 + 1, hour % 24),
        }
    }
}

/// A value as SQL.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        Value::Date(_) => format!("DATE '{value}'"),
        Value::Time(_) => format!("TIMESTAMP '{}'", value.to_string().replace('T', " ")),
        value => value.to_string(),
    }
}

pub fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "BIGINT",
        Kind::Text => "VARCHAR",
        Kind::Date => "DATE",
        Kind::Time => "TIMESTAMP",
    }
}

impl Display for Expr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { table, name } => write!(out, "{table}.{name}"),
            Self::Value(value) => out.write_str(&literal(value)),
            Self::Plus(left, right) => write!(out, "({left} + {right})"),
            Self::Minus(left, right) => write!(out, "({left} - {right})"),
            Self::Modulo(of, by) => write!(out, "({of} % {by})"),
            Self::AsText(of) => write!(out, "CAST({of} AS VARCHAR)"),
            Self::AsInt(of) => write!(out, "CAST({of} AS BIGINT)"),
            Self::AsDate(of) => write!(out, "CAST({of} AS DATE)"),
            Self::Coalesce(one, other) => write!(out, "coalesce({one}, {other})"),
            Self::Case(when, then, or) => write!(out, "CASE WHEN {when} THEN {then} ELSE {or} END"),
            Self::Scalar(query) => write!(out, "({query})"),
            Self::Aggregate { function, of } => match function {
                Function::CountRows => out.write_str("count(*)"),
                Function::Count => write!(out, "count({of})"),
                Function::CountDistinct => write!(out, "count(DISTINCT {of})"),
                Function::Sum => write!(out, "CAST(sum({of}) AS BIGINT)"),
                Function::Min => write!(out, "min({of})"),
                Function::Max => write!(out, "max({of})"),
            },
            Self::Condition(condition) => write!(out, "({condition})"),
        }
    }
}

impl Display for Operator {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Equal => "=",
            Self::Unequal => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Condition {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let not = |is: &bool| if *is { "NOT " } else { "" };
        match self {
            Self::Constant(Some(truth)) => write!(out, "{truth}"),
            Self::Constant(None) => out.write_str("CAST(NULL AS BOOLEAN)"),
            Self::Compare(left, operator, right) => write!(out, "{left} {operator} {right}"),
            Self::Same { left, right, not: is } => write!(out, "({left} IS {}DISTINCT FROM {right})", not(&!is)),
            Self::IsNull { of, not: is } => write!(out, "{of} IS {}NULL", not(is)),
            Self::And(left, right) => write!(out, "({left} AND {right})"),
            Self::Or(left, right) => write!(out, "({left} OR {right})"),
            Self::Not(of) => write!(out, "NOT ({of})"),
            Self::Is { of, truth, not: is } => {
                let truth = match truth {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "NULL",
                };
                write!(out, "(({of}) IS {}{truth})", not(is))
            }
            Self::In { of, query, not: is } => write!(out, "{of} {}IN ({query})", not(is)),
            Self::Exists { query, not: is } => write!(out, "{}EXISTS ({query})", not(is)),
            Self::Quantified { of, operator, all, query } => {
                write!(out, "{of} {operator} {} ({query})", if *all { "ALL" } else { "ANY" })
            }
            Self::Case(when, then, or) => write!(out, "CASE WHEN {when} THEN {then} ELSE {or} END"),
        }
    }
}

impl Display for From {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table { name, schema, alias } => write!(out, "{schema}.{name} AS {alias}"),
            Self::Derived { query, alias } => write!(out, "({query}) AS {alias}"),
        }
    }
}

impl Display for Query {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::from("SELECT ");
        if self.distinct {
            text.push_str("DISTINCT ");
        }
        for (at, expr) in self.select.iter().enumerate() {
            write!(text, "{}{expr} AS v{at}", if at > 0 { ", " } else { "" })?;
        }
        write!(text, " FROM {}", self.from)?;
        for join in &self.joins {
            let kind = match join.kind {
                JoinKind::Inner => "JOIN",
                JoinKind::Left => "LEFT JOIN",
                JoinKind::Lateral => "CROSS JOIN LATERAL",
                JoinKind::LeftLateral => "LEFT JOIN LATERAL",
            };
            write!(text, " {kind} {}", join.with)?;
            if let Some(on) = &join.on {
                write!(text, " ON {on}")?;
            }
        }
        if let Some(filter) = &self.filter {
            write!(text, " WHERE {filter}")?;
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| !groups.is_empty()) {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            write!(text, " GROUP BY {}", groups.join(", "))?;
        }
        if let Some(having) = &self.having {
            write!(text, " HAVING {having}")?;
        }
        if let Some((kind, other)) = &self.set {
            let kind = match kind {
                SetKind::Union => "UNION",
                SetKind::UnionAll => "UNION ALL",
                SetKind::Except => "EXCEPT",
                SetKind::ExceptAll => "EXCEPT ALL",
                SetKind::Intersect => "INTERSECT",
                SetKind::IntersectAll => "INTERSECT ALL",
            };
            write!(text, " {kind} {other}")?;
        }
        if let Some((skip, fetch)) = self.limit {
            let order: Vec<String> = (1..=self.select.len()).map(|at| format!("{at} NULLS FIRST")).collect();
            write!(text, " ORDER BY {} LIMIT {fetch} OFFSET {skip}", order.join(", "))?;
        }
        out.write_str(&text)
    }
}
