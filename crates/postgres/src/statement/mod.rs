//! Statements as drivers send them: which are queries, and which are about the session.

mod classify;
mod copy;
mod lexer;
mod settings;
mod split;

pub(crate) use classify::{Fetched, Statement, classify};
pub(crate) use copy::{CopyFormat, CopyOptions};
pub(crate) use lexer::tokens;
pub(crate) use settings::{Setting, Settings, VERSION};
pub(crate) use split::split;
