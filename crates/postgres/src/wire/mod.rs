//! Messages on a connection.
//!
//! Messages to clients are pgwire's. Those from clients are read here: pgwire's decoder trusts the lengths inside a message, and ends
//! with a panic, or reads into the next message, where they are wrong.

mod incoming;
mod outgoing;
mod read;
mod request;

pub(crate) use incoming::{Incoming, LENGTH};
pub(crate) use outgoing::Outgoing;
pub(crate) use read::Body;
pub(crate) use request::{First, Request, Target, first_of, request_of};
