//! `pg_catalog` and `information_schema`, made of the tables of the store.
//!
//! | module | contents |
//! |---|---|
//! | `shapes` | the tables of both, with their columns |
//! | `batch` | rows of such a table |
//! | `relations` | schemas and tables of the store, with their object ids |
//! | `rows`, `standard` | rows of `pg_catalog` and of `information_schema` |
//! | `names` | what names and functions of a session mean |
//! | `cache` | the catalog of the versions that are served, built once |

mod batch;
mod cache;
mod names;
mod relations;
mod rows;
mod shapes;
mod standard;

pub(crate) use cache::{Catalog, CatalogCache};
pub(crate) use names::SessionNames;

/// The database, whatever name a client connects to.
pub(crate) const DATABASE: &str = "tidetable";
/// The owner of everything.
pub(crate) const OWNER: &str = "tidetable";
/// Object id of the owner.
pub(crate) const OWNER_OID: i64 = 10;
