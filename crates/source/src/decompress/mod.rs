//! The content of files, without their compression.

mod decompression;
mod gzip;
mod zip_archive;

pub(crate) use decompression::{AsFound, Content, Decoded};
