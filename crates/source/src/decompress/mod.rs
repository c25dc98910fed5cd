//! The content of files, without their compression.

mod decompression;
mod gzip;
mod plain_content;
mod zip_archive;

pub(crate) use decompression::{AsFound, Content, Decoded};
pub use plain_content::PlainContent;
