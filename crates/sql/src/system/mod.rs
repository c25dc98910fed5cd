//! Queries of PostgreSQL's system catalogs, as drivers and dashboards ask them, over tables in memory.
//!
//! | module | contents |
//! |---|---|
//! | `tables` | the tables, as schemas of a catalog |
//! | `parse` | which queries ask for them; parsing as PostgreSQL does |
//! | `names` | what names and functions of a session mean |
//! | `rewrite` | makes such a query one that is planned here |
//! | `casts`, `functions`, `empty` | its parts: types, functions, tables without rows |

mod casts;
mod empty;
mod functions;
mod names;
mod parse;
mod rewrite;
mod syntax;
mod tables;

pub use names::{SystemNames, VISIBLE_OIDS};
pub use parse::{SystemUse, system_use};
pub use tables::{SystemTable, SystemTables};

pub(crate) use parse::parse_postgres;
pub(crate) use rewrite::rewrite;

use std::sync::Arc;

/// What a session needs to answer queries of system catalogs.
#[derive(Debug, Clone)]
pub(crate) struct System {
    pub(crate) tables: Arc<SystemTables>,
    pub(crate) names: Arc<dyn SystemNames>,
}
