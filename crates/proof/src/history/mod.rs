//! Histories of a directory: files are added, changed, copied, renamed and removed, and a table follows.
//!
//! [`Folder`] is the directory, [`Names`] a simple model of the rules for names: the sequence number of each name,
//! and which of the names with equal content brings its rows.

mod folder;
mod names;

pub use folder::{Change, Folder};
pub use names::{Names, Ran};
