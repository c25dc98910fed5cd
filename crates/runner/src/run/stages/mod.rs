//! The stages of a run.

pub(crate) mod allowed;
pub(crate) mod derived;
pub(crate) mod exports;
pub(crate) mod load;
mod looks;
pub(crate) mod owner;
pub(crate) mod pulled;
pub(crate) mod push;
mod reading_notes;
pub(crate) mod tables;
pub(crate) mod unfinished;
pub(crate) mod unread;
mod value_notes;
pub(crate) mod without;
