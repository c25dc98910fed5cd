//! What names and functions of a session mean.

use std::fmt::Debug;
use std::ops::Range;

use datafusion::scalar::ScalarValue;

/// Relations with object ids below this are tables of system catalogs, which need no schema in a query.
pub const CATALOG_OIDS: i64 = 1_000_000;

/// Names of a session, for casts such as `'SENSOR'::regclass` and functions such as `current_user`.
pub trait SystemNames: Debug + Send + Sync {
    /// The object id of a relation, whose name may have a schema and quotes.
    fn relation(&self, name: &str) -> Option<i64>;

    /// The object id of a type, by a name of SQL or of `pg_type`.
    fn type_id(&self, name: &str) -> Option<i64>;

    /// The names of types as `format_type` writes them, by object id.
    fn type_names(&self) -> Vec<(i64, String)>;

    /// The value of a function or keyword that does not depend on rows, such as `current_setting('TimeZone')`; its arguments are
    /// those that are texts. `None` for other functions.
    fn constant(&self, function: &str, arguments: &[String]) -> Option<ScalarValue>;

    /// The schemas whose tables need none in a query, in the order in which tables are looked for in them. Those of system
    /// catalogs, which are looked for first, are not among them.
    fn search_path(&self) -> Vec<String>;

    /// The object ids of the relations of these schemas.
    fn visible_oids(&self) -> Range<i64>;

    /// Whether a word without quotes is a name of the store, whose case counts. Others are taken in lower case.
    fn keeps_case(&self, word: &str) -> bool;
}
