//! The file around the stripes: header, filter, meta and footer, written front to back and read from the end.

pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod header;
pub(crate) mod meta;
pub(crate) mod reader;
mod summary;
mod writer;

pub use reader::Reader;
pub use summary::FileSummary;
pub use writer::Writer;
