//! SQL over a store.
//!
//! A [`Session`] answers queries about the tables of one store, each in three shapes and beside what
//! was published of them:
//!
//! | name | one row of it is |
//! |---|---|
//! | `records.T`, or just `T` | a record: the columns of the source, read back from keys and cells |
//! | `cells.T` | a cell: row key, family, qualifier, timestamp, value |
//! | `rows.T` | a row, as GoogleSQL for Bigtable shows it: `_key`, and each family a map of its newest cells |
//! | `T(..)`, `rows(T, ..)` | the same of other cells: versions, a moment of the past, what is expired |
//! | `unpack(T, ..)` | a row at one of its timestamps |
//! | `exports.NAME` | a published row, of one part or of all parts of an export |
//! | `runs.runs`, `runs.loads`, .. | a run, a table's load in a run, an input, a part, a check, an attempt in vain, a rejected row |
//!
//! A row of `rows.T` has an empty map for a family that it has no cell of, and `family['qualifier']` is
//! null for a cell it does not have. The options of `T(..)` are those of GoogleSQL: `with_history => true`
//! turns the maps into `MAP<BYTES, ARRAY<STRUCT<timestamp, value>>>`, newest first; with it go `after`,
//! `before` (exclusive), `after_or_equal`, `before_or_equal` and `latest_n`, without it `as_of`; beyond
//! GoogleSQL, `include_expired` shows what garbage collection hides. Bounds are about the timestamps of
//! cells, and a row without a cell in them is left out. `unpack` also takes a query in parentheses that
//! has columns with history, as in `unpack((SELECT _key, f['q'] AS q FROM T(with_history => true)))`.
//!
//! `hll_estimate(value)` counts the distinct values of a cell of an HLL family.
//!
//! Beside these, a session that is given [`ExternalTables`] has tables that were declared over files.
//!
//! Planning cuts a table into slices ([`tidetable_store::ScanRange`]); each is a "file" of a DataFusion
//! file scan, whose opener merges and decodes it. Names keep their case.

mod aggregate;
mod catalog;
mod error;
mod expressions;
mod functions;
mod optimizer;
mod pushdown;
mod scan;
mod session;
mod shared_scan;
mod views;
mod workarounds;

pub use catalog::TableVersions;
pub use catalog::external::ExternalTables;
pub use datafusion::scalar::ScalarValue;
pub use error::{Result, SqlError, UnknownName};
pub use expressions::{Derive, ExpressionError, Filter, Preparation};
pub use scan::cells::{CellRef, cells_of_block};
pub use session::declared::{
    CheckedQuery, Declared, QueryError, QueryShape, check_query, in_columns, query_shape, read_by,
};
pub use session::numbers::{first_rows, name, numbers};
pub use session::script::{ScriptError, Statement, is_complete, statements};
pub use session::{Session, SessionOptions};
pub use shared_scan::{Asked, PassCounts, SharedScan};
