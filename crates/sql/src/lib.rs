//! SQL over a store.
//!
//! A [`Session`] queries the tables of one store. Each table has three schemas; published exports and runs have their
//! own:
//!
//! | name | one row of it is |
//! |---|---|
//! | `records.T`, or just `T` | a record: the columns of the source, read back from keys and cells |
//! | `cells.T` | a cell: row key, family, qualifier, timestamp, value |
//! | `rows.T` | a row, as GoogleSQL for Bigtable shows it: `_key`, and each family a map of its newest cells |
//! | `T(..)`, `rows(T, ..)` | the same with options: history, an earlier time, expired cells |
//! | `unpack(T, ..)` | a row at one of its timestamps |
//! | `exports.NAME` | a row of the published files, of one part or of all parts of an export |
//! | `runs.runs`, `runs.loads`, .. | a run, the load of a table, an input, a part, a check, a failed attempt, a rejected row |
//!
//! A family without cells in a row is an empty map, and `family['qualifier']` is null for a missing cell. The options
//! of `T(..)` are those of GoogleSQL. `with_history => true` turns the maps into
//! `MAP<BYTES, ARRAY<STRUCT<timestamp, value>>>`, newest first, and allows `after`, `before` (exclusive),
//! `after_or_equal`, `before_or_equal` and `latest_n`; without history there is `as_of`. `include_expired`, which
//! GoogleSQL does not have, shows cells that garbage collection hides. Bounds apply to cell timestamps; a row without a
//! cell within them is left out. `unpack` also takes a query in parentheses with history columns:
//! `unpack((SELECT _key, f['q'] AS q FROM T(with_history => true)))`.
//!
//! `hll_estimate(value)` estimates the count of distinct values in a cell of an HLL family.
//!
//! A session with [`ExternalTables`] also has the tables of `CREATE EXTERNAL TABLE`.
//!
//! A scan is planned as scan ranges ([`tidetable_store::ScanRange`]), each a "file" of a DataFusion file scan, whose
//! opener merges and decodes it. Identifiers are case-sensitive.

mod advice;
mod aggregate;
mod asof;
mod catalog;
mod conjunction;
mod engine_fault;
mod error;
mod gapfill;
mod grouping;
mod names;
mod optimizer;
mod planning_thread;
mod predicate;
mod pushdown;
mod row_windows;
mod scan;
mod schema;
mod session;
mod shared_scan;
mod small_results;
mod source;
mod syntax;
mod system;
mod view_options;
mod views;

pub use catalog::TableVersions;
pub use catalog::external::ExternalTables;
pub use catalog::runs::run_tables;
pub use datafusion::prelude::DataFrame;
pub use datafusion::scalar::ScalarValue;
pub use engine_fault::EngineFault;
pub use error::{Result, SqlError, UnknownName};
pub use predicate::{Predicate, Predicates};
pub use session::declared::{
    CheckedQuery, Declared, QueryError, QueryShape, check_query, in_columns, query_shape, read_by,
};
pub use session::expressions::{Derive, ExpressionError, Filter, Preparation, field_type};
pub use session::planning::{PlannedQuery, plan_frame};
pub use session::tables::TableColumns;
pub use session::{Session, SessionOptions};
pub use shared_scan::{ScanSignatures, SharedScan, SharedScanCounts};
pub use small_results::{first_row_of_integers, first_rows, quoted_name};
pub use syntax::googlesql::DUPLICATE_MARK;
pub use syntax::script::{ScriptError, Statement, is_complete, statements};
pub use system::{
    CATALOG_OIDS, PlacedWord, SystemNames, SystemTable, SystemTables, SystemUse, Word, system_use, words,
};
pub use tidetable_functions::as_written;
