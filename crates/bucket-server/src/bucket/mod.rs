//! Buckets in memory: objects, conditions, lists, uploads.

mod condition;
mod content;
mod list;
mod object;
mod refusal;
mod state;
mod upload;

pub(crate) use condition::Condition;
pub(crate) use content::Content;
pub(crate) use list::ListQuery;
pub(crate) use object::{Attributes, Object};
pub(crate) use refusal::Refusal;
pub(crate) use state::{Place, State};
pub(crate) use upload::NamedPart;
