//! Statements as drivers send them: which are queries, and which are about the session.
//!
//! | module | contents |
//! |---|---|
//! | `split` | the statements of a text |
//! | `kinds`, `classify` | what a statement asks for |
//! | `cursors`, `copy` | `DECLARE` and `FETCH`, `COPY` |
//! | `settings` | `SET`, and the settings of a session |

mod classify;
mod copy;
mod cursors;
mod kinds;
mod settings;
mod split;

pub(crate) use classify::classify;
pub(crate) use copy::{CopyFormat, CopyOptions, ForcedQuotes};
pub(crate) use kinds::{Discarded, Fetched, Statement};
pub(crate) use settings::{SCHEMAS, Setting, Settings, Told, VERSION};
pub(crate) use split::{first_word, split};
