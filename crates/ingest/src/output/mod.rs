//! Writing of sorted windows as SSTs, and finishing of these.

pub(crate) mod finish;
pub(crate) mod write;
