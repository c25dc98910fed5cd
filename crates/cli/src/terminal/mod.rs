//! Text for people at a terminal: what could steer it is escaped, lines fit its width, and commands that a message names can be
//! pasted.

pub(crate) mod hints;
pub(crate) mod printable;
pub(crate) mod sentences;
pub(crate) mod wrap;
