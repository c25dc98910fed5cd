//! Bounds the relations of a statement before it is planned: the query of a CTE is planned wherever the CTE is named, so that in a
//! chain of CTEs that each name the one before twice every step doubles the plan. So does a tuple that is compared with the rows of a
//! subquery, in a chain of such subqueries.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{self, ObjectName, ObjectNamePart, Query, Select, TableFactor, Visit, Visitor};

use crate::error::{SqlError, external};

/// The most relations that a statement may have, with those of its CTEs wherever they are named.
const MAX_RELATIONS: usize = 4096;

/// Refuses a statement with more relations than can be planned.
///
/// # Errors
/// [`SqlError::TooManyRelations`].
pub(crate) fn check_relations(statement: &ast::Statement) -> Result<()> {
    let counter = Counter::of(statement);
    check(counter.relations, counter.named_most)
}

/// Refuses more copies of relations than a statement may have relations.
///
/// # Errors
/// [`SqlError::TooManyRelations`].
pub(crate) fn check_copies(relations: usize) -> Result<()> {
    check(relations, None)
}

fn check(relations: usize, cte: Option<String>) -> Result<()> {
    match relations > MAX_RELATIONS {
        true => Err(external(SqlError::TooManyRelations { limit: MAX_RELATIONS, cte })),
        false => Ok(()),
    }
}

/// The number of relations of a part of a statement: tables, subqueries of `FROM`, and selections that read none. CTEs that are
/// declared outside of the part count as tables.
pub(crate) fn relations_of(part: &impl Visit) -> usize {
    Counter::of(part).relations
}

/// Counts the relations of a statement that is walked.
#[derive(Default)]
struct Counter {
    /// The relations of the statement, after the walk.
    relations: usize,
    /// The CTE that adds the most relations by being named, and their number.
    named_most: Option<String>,
    most: usize,
    /// The queries that are walked now, the outermost first.
    queries: Vec<CountedQuery>,
}

/// A query whose relations are counted.
#[derive(Default)]
struct CountedQuery {
    /// The relations so far.
    relations: usize,
    /// The names of its CTEs that were not walked yet, and their queries, which are walked before its body.
    waiting: HashMap<*const Query, String>,
    /// The relations of its CTEs that were walked.
    ctes: HashMap<String, usize>,
}

impl Visitor for Counter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let waiting = ctes.map(|cte| (cte.query.as_ref() as *const Query, cte.alias.name.value.clone())).collect();
        self.queries.push(CountedQuery { waiting, ..CountedQuery::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let relations = self.queries.pop().map_or(0, |done| done.relations);
        let outer = self.queries.last_mut();
        match outer.and_then(|outer| Some((outer.waiting.remove(&std::ptr::from_ref(query))?, outer))) {
            Some((name, outer)) => {
                // `VALUES` has rows, too.
                outer.ctes.insert(name, relations.max(1));
            }
            None => self.add(relations),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.from.is_empty() {
            self.add(1);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, relation: &TableFactor) -> ControlFlow<()> {
        match relation {
            TableFactor::Table { name, .. } => {
                let relations = self.of_table(name);
                self.add(relations);
            }
            TableFactor::Derived { .. } => self.add(1),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Counter {
    /// Counts what a statement, or a part of it, reads.
    fn of(part: &impl Visit) -> Self {
        let mut counter = Self::default();
        let _: ControlFlow<()> = part.visit(&mut counter);
        counter
    }

    /// Adds relations to the query that is walked now, or to the statement.
    fn add(&mut self, relations: usize) {
        let sum = self.queries.last_mut().map_or(&mut self.relations, |query| &mut query.relations);
        *sum = sum.saturating_add(relations);
    }

    /// The relations that the name of a table stands for: those of a CTE, or one.
    fn of_table(&mut self, name: &ObjectName) -> usize {
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return 1 };
        let found = self.queries.iter().rev().find_map(|query| query.ctes.get(&name.value));
        let Some(relations) = found.copied() else { return 1 };
        if relations > self.most {
            (self.most, self.named_most) = (relations, Some(name.value.clone()));
        }
        relations
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::syntax::dialect::TidetableDialect;

    fn relations_of(query: &str) -> usize {
        let statements = Parser::parse_sql(&TidetableDialect, query).unwrap();
        Counter::of(&statements[0]).relations
    }

    #[test]
    fn ctes_count_wherever_they_are_named() {
        for (query, relations) in [
            ("SELECT 1", 1),
            ("WITH a AS (SELECT 1) SELECT * FROM a, a AS b", 2),
            ("SELECT * FROM t, u JOIN v ON true", 3),
            ("WITH a AS (SELECT * FROM t, u) SELECT * FROM a", 2),
            ("WITH a AS (SELECT * FROM t, u) SELECT * FROM t", 1),
            ("WITH a AS (SELECT * FROM t, u), b AS (SELECT * FROM a x, a y) SELECT * FROM b, b AS c, x.a", 9),
            (
                "WITH a AS (SELECT * FROM t, u) SELECT (SELECT max(i) FROM a) FROM (SELECT * FROM a) WHERE EXISTS (SELECT * FROM a)",
                7,
            ),
            // An inner CTE hides an outer one, up to the end of its query.
            ("WITH a AS (SELECT * FROM t, u) SELECT * FROM (WITH a AS (SELECT * FROM t) SELECT * FROM a), a", 4),
            ("WITH RECURSIVE a AS (SELECT * FROM t UNION ALL SELECT * FROM a) SELECT * FROM a", 2),
            ("WITH a AS (SELECT * FROM t) SELECT * FROM a UNION ALL SELECT * FROM a", 2),
            ("SELECT * FROM (SELECT 1) AS a WHERE (SELECT 2) IN (VALUES (1))", 3),
        ] {
            assert_eq!(relations_of(query), relations, "{query}");
        }
    }

    #[test]
    fn counts_have_no_end() {
        let chain: Vec<String> =
            (1..200).map(|at| format!("c{at} AS (SELECT * FROM c{0} x, c{0} y)", at - 1)).collect();
        let query = format!("WITH c0 AS (SELECT * FROM t), {} SELECT * FROM c199", chain.join(", "));
        assert_eq!(relations_of(&query), usize::MAX);
    }
}
