//! Sorting the events of a window: chunks, their order, and the blocks made of them.

pub(crate) mod chunk;
pub(crate) mod order;
pub(crate) mod ranks;
pub(crate) mod rows;
pub(crate) mod take;
pub(crate) mod upsert;
