//! What the names of tables in a query stand for.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Statement, TableFactor, Visit, Visitor};

use crate::system::parse::relation_parts;
use crate::system::syntax::last_name;
use crate::system::tables::SystemTables;

/// Names of CTEs and of tables in all parts of a query. A name that stands for different things in different parts counts as that of
/// which less is known.
#[derive(Debug, Default)]
pub(super) struct Named {
    ctes: HashSet<String>,
    /// Names of tables of system catalogs, by which their columns are known.
    catalogs: HashSet<String>,
    /// Names of functions that give rows.
    functions: HashSet<String>,
    /// Names of what else is read.
    others: HashSet<String>,
    /// Whether something without a name is read, beside tables and functions.
    has_unnamed: bool,
}

impl Named {
    /// The names of a query that was not rewritten yet.
    pub(super) fn of(statement: &Statement, tables: &SystemTables) -> Self {
        let mut names = Names { tables, named: Self::default() };
        let _: ControlFlow<()> = statement.visit(&mut Ctes(&mut names.named.ctes));
        let _: ControlFlow<()> = statement.visit(&mut names);
        names.named
    }

    /// Whether a name without a schema is that of a table of `pg_catalog`.
    pub(super) fn is_catalog(&self, table: &str, tables: &SystemTables) -> bool {
        !self.ctes.contains(table) && tables.schema_of(table).is_some()
    }

    /// Whether columns with the name of a table before them are those of a table of system catalogs, in whichever part of the query.
    pub(super) fn is_of_catalogs(&self, table: &str) -> bool {
        self.catalogs.contains(table) && !self.others.contains(table) && !self.functions.contains(table)
    }

    /// Whether all columns of the query are those of tables of system catalogs, or of functions.
    pub(super) fn are_all_of_catalogs(&self) -> bool {
        self.others.is_empty() && !self.has_unnamed
    }

    fn add(&mut self, factor: &TableFactor, tables: &SystemTables) {
        match factor {
            TableFactor::Table { alias, args: Some(_), .. } | TableFactor::UNNEST { alias, .. } => {
                self.functions.extend(alias.as_ref().map(|alias| alias.name.value.clone()));
            }
            TableFactor::Table { name, alias, .. } => {
                let known_as = alias.as_ref().map_or_else(|| last_name(name), |alias| alias.name.value.clone());
                let names = if self.names_catalog(name, tables) { &mut self.catalogs } else { &mut self.others };
                names.insert(known_as);
            }
            TableFactor::Derived { alias: Some(alias), .. } => drop(self.others.insert(alias.name.value.clone())),
            // Its tables have names of their own.
            TableFactor::NestedJoin { .. } => {}
            _ => self.has_unnamed = true,
        }
    }

    fn names_catalog(&self, name: &ObjectName, tables: &SystemTables) -> bool {
        let (schema, table) = relation_parts(name);
        match schema {
            Some(schema) => tables.has(&schema, &table),
            None => self.is_catalog(&table, tables),
        }
    }
}

/// Finds the names of CTEs.
struct Ctes<'a>(&'a mut HashSet<String>);

impl Visitor for Ctes<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(ctes.map(|cte| cte.alias.name.value.clone()));
        ControlFlow::Continue(())
    }
}

/// Finds the names of tables.
struct Names<'a> {
    tables: &'a SystemTables,
    named: Named,
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.named.add(factor, self.tables);
        ControlFlow::Continue(())
    }
}
