//! `tidetable read`.

use clap::Args;
use tidetable_cells::KeyPattern;

use super::parse::{Columns, parse_columns, parse_regex, parse_time};
use super::sql::SHOWN;

/// Headings of options.
const ROWS: &str = "Rows";

const CELLS: &str = "Cells";

/// `tidetable read`
#[derive(Debug, Args)]
pub struct Read {
    /// The table
    pub table: String,
    /// Only the row with this key
    #[arg(long, value_name = "KEY", help_heading = ROWS, conflicts_with_all = ["prefix", "start", "end"])]
    pub row: Option<String>,
    /// Only rows whose key begins with this: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "PREFIX", help_heading = ROWS, conflicts_with_all = ["start", "end"])]
    pub prefix: Option<String>,
    /// Only rows from this key on: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub start: Option<String>,
    /// Only rows before this key: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub end: Option<String>,
    /// Only rows whose whole key this regular expression matches
    ///
    /// `.` is a character in a key that is UTF-8, and a byte in any other.
    #[arg(long, value_name = "REGEX", help_heading = ROWS, value_parser = parse_regex)]
    pub regex: Option<KeyPattern>,
    /// At most this many rows
    #[arg(long, visible_alias = "count", value_name = "N", help_heading = ROWS)]
    pub limit: Option<u64>,
    /// From the last row to the first
    #[arg(long, visible_alias = "reversed", help_heading = ROWS)]
    pub reverse: bool,
    /// Only cells of these columns, separated by commas; may be given more than once. `\,` is a comma in a name
    #[arg(long, value_name = "FAMILY[:QUALIFIER]", help_heading = CELLS, value_parser = parse_columns)]
    pub columns: Vec<Columns>,
    /// At most this many cells of each column of a row, the newest
    #[arg(long, value_name = "N", help_heading = CELLS)]
    pub cells_per_column: Option<u64>,
    /// Only cells with a timestamp from this time on
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub from: Option<i64>,
    /// Only cells with a timestamp before this time
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub to: Option<i64>,
    /// Row keys without cells
    #[arg(long, help_heading = CELLS)]
    pub keys_only: bool,
    /// Also cells that garbage-collection rules hide, as far as they are still stored
    #[arg(long, help_heading = CELLS)]
    pub include_expired: bool,
    /// The logical time for garbage-collection rules [default: that of the last commit]
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time, conflicts_with = "include_expired")]
    pub now: Option<i64>,
    /// Most lines of a table to show; 0 for all [default: 1000 on a terminal, else all]
    #[arg(long, value_name = "N", help_heading = SHOWN)]
    pub max_rows: Option<u64>,
}
