//! SQL over a store.
//!
//! A [`Session`] answers queries about the tables of one store, each in two shapes and beside what
//! was published of them:
//!
//! | name | one row of it is |
//! |---|---|
//! | `records.T`, or just `T` | a record: the columns of the source, read back from keys and cells |
//! | `cells.T` | a cell: row key, family, qualifier, timestamp, value |
//! | `exports.NAME` | a published row, of one part or of all parts of an export |
//!
//! Planning cuts a table into slices ([`tidetable_store::Slice`]); each is a "file" of a DataFusion
//! file scan, whose opener merges and decodes it. Names keep their case.

mod catalog;
mod cell_table;
mod cells;
mod declared;
mod error;
mod exports;
mod expressions;
mod filter;
mod groups;
mod key_filter;
mod opener;
mod records;
mod session;
mod source;
mod values;

pub use cells::{CellRef, cells_of_block};
pub use declared::{QueryError, QueryShape, check_query, in_columns, query_shape};
pub use error::{Result, SqlError};
pub use expressions::{Derive, ExpressionError, Filter, Preparation};
pub use session::{Session, SessionOptions};
