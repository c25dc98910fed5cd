//! Sorting the events of a window: chunks, their partition into pieces, and the blocks made of these.

pub(crate) mod chunk;
pub(crate) mod lane;
pub(crate) mod name_keys;
pub(crate) mod order;
pub(crate) mod partition;
pub(crate) mod piece;
pub(crate) mod ranks;
pub(crate) mod rows;
pub(crate) mod take;
pub(crate) mod upsert;
