//! Micro-benchmarks of the parts of loads and reads: `just bench-micro [NAME]`.
//!
//! Inputs are made in the target directory before measuring, and are in memory or in the page cache by then.
#![expect(clippy::unwrap_used, reason = "a failure ends the benchmark")]

mod commit;
mod files;
mod order;
mod parse;
mod read;
mod stripe;
mod verify;

fn main() {
    divan::main();
}
