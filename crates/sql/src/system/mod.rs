//! Queries of PostgreSQL's system catalogs, as drivers and dashboards ask them, over tables in memory.
//!
//! | module | contents |
//! |---|---|
//! | `tables` | the tables, as schemas of a catalog |
//! | `parse` | which queries ask for them; parsing as PostgreSQL does |
//! | `names`, `named` | what names and functions of a session mean; what names of tables stand for in a query |
//! | `rewrite` | makes such a query one that is planned here |
//! | `casts`, `functions`, `arrays`, `empty` | its parts: types, functions, arrays of queries, tables without rows |
//! | `words` | the words of statements that a server answers itself |
//! | `aggregates` | which expressions aggregate rows |

mod aggregates;
mod arrays;
mod casts;
mod empty;
mod functions;
mod named;
mod names;
mod parse;
mod rewrite;
mod syntax;
mod tables;
mod words;

pub use names::{CATALOG_OIDS, SystemNames};
pub use parse::{SystemUse, system_use};
pub use tables::{SystemTable, SystemTables};
pub use words::{PlacedWord, Word, words};

pub(crate) use parse::parse_postgres;
pub(crate) use rewrite::rewrite;

use std::sync::Arc;

/// What a session needs to answer queries of system catalogs.
#[derive(Debug, Clone)]
pub(crate) struct System {
    pub(crate) tables: Arc<SystemTables>,
    pub(crate) names: Arc<dyn SystemNames>,
}
