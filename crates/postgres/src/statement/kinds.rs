//! Statements by what they ask for.

use crate::statement::copy::CopyOptions;
use crate::statement::settings::Setting;

/// Rows that a `FETCH` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// So many.
    Rows(usize),
    /// Those that are left.
    All,
}

/// A statement by what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Statement {
    /// Rows of a query.
    Query,
    /// No statement at all.
    Empty,
    /// Begins a block of statements.
    Begin,
    /// Ends a block.
    Commit,
    /// Gives a block up.
    Rollback,
    /// Goes back to a point of a block, which undoes nothing here.
    RollbackTo,
    /// A point of a block, or what is accepted and does nothing; the tag that answers it.
    Accepted(&'static str),
    /// Sets something of the session.
    Set(Setting),
    /// Sets something, and returns the value as a row.
    SetConfig(Setting),
    /// Asks for a setting.
    Show(String),
    /// Forgets prepared statements; `None` for all.
    Deallocate(Option<String>),
    /// Forgets things of the session.
    Discard(Discarded),
    /// Names the rows of a query, to fetch them later.
    Declare { cursor: String, is_binary: bool, is_held: bool, query: String },
    /// Asks for rows of a cursor, or skips them.
    Fetch { cursor: String, rows: Fetched, is_skipped: bool },
    /// Forgets a cursor; `None` for all.
    Close(Option<String>),
    /// Sends the rows of a query as a file.
    Copy { query: String, options: CopyOptions },
}

/// What a `DISCARD` forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// All of the session.
    All,
    /// Plans, which are not kept here: prepared statements stay.
    Plans,
    /// Temporary tables, of which there are none.
    Temp,
    /// Values of sequences, of which there are none.
    Sequences,
}
