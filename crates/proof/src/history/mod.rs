//! Histories of a folder: files come, change, are copied, renamed and removed, and a table follows.
//!
//! [`Folder`] is what there is, [`Names`] the rule of names in its plainest form: which name has which sequence, and
//! which of the names that hold a content brings its rows.

mod folder;
mod names;

pub use folder::{Change, Folder};
pub use names::{Names, Ran};
