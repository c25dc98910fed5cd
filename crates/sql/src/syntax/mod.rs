//! Statements before they are planned: the dialect, bounds on their depth, and rewrites of the parsed tree.

pub(crate) mod depth;
pub(crate) mod dialect;
pub(crate) mod duckdb;
pub(crate) mod googlesql;
pub(crate) mod grouping_sets;
pub(crate) mod headings;
pub(crate) mod inner_headings;
pub(crate) mod only_reads;
pub(crate) mod relations;
pub(crate) mod rewrite;
pub(crate) mod script;
pub(crate) mod select_all;
pub(crate) mod select_lists;
pub(crate) mod statement;
pub(crate) mod volatile;
