//! HTTP/1.1: requests, replies, and the connection between them.

mod line;
mod request;
mod response;

pub(crate) use line::Line;
pub(crate) use request::{Head, Method, Request};
pub(crate) use response::Response;
