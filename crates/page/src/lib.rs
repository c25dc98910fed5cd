//! Reports as self-contained HTML pages: no network, readable without script, in both themes.
//!
//! Plain structs in ([`view`]), one HTML string out; the same input gives the same bytes.

pub mod view;
