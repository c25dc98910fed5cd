//! Types of PostgreSQL, and those that columns of results have.

mod columns;
mod pg_type;

pub(crate) use columns::{Column, TYPE_KEY, columns, kind_of};
pub(crate) use pg_type::{Base, Entry, PgType, TYPES};
