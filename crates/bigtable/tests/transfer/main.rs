//! Tables go to Bigtable, and their cells become blocks again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod against_emulator;
mod parse;
mod support;
