//! Reports as self-contained HTML pages: no network, readable without script, in both themes.
//!
//! Plain structs in ([`view`]), one HTML string out; the same input gives the same bytes. [`layouts_page`] shows layouts
//! measured against each other, [`runs_page`] the runs of a job, [`table_page`] a table.

mod embed;
mod error;
mod figures;
mod frame;
mod heat;
mod layouts;
mod runs;
mod table;
mod time_chart;
pub mod view;

pub use error::PageError;
pub use layouts::{MOST_BYTES, layouts_page};
pub use runs::runs_page;
pub use table::table_page;
