//! Tables go to Bigtable, and their cells become blocks again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod against_emulator;
mod parse;
mod support;
