//! GoogleSQL: its literals, functions and relations, rewritten to what DataFusion plans.
//!
//! Two dialects are parsed here. Queries of `tidetable sql` and of jobs have GoogleSQL's functions where DataFusion has none of
//! that name, and else keep their meaning: `1 / 2` is 0, `"x"` is a name, lists count from 1. A session with [`GoogleSql`] speaks
//! GoogleSQL throughout: `1 / 2` is 0.5, `"x"` is text, `[0]` is the first item.

pub(crate) mod documented;
pub(crate) mod functions;
pub(crate) mod literals;
pub(crate) mod strict;
pub(crate) mod unnest;
pub(crate) mod values;

/// Between a column's name and a number that tells it from an equal name; no name of GoogleSQL has this character.
pub const DUPLICATE_MARK: char = '\u{1f}';

/// Marks sessions, in the extensions of their configuration, whose queries are GoogleSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoogleSql {
    /// Whether statements that Bigtable refuses are refused.
    pub(crate) strict: bool,
}
