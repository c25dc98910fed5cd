//! The parts of a load and of reading, one by one: `just bench-micro [NAME]`.
//!
//! Inputs are made in the target folder before anything is measured, and are in memory or in the page cache by then.
#![expect(clippy::unwrap_used, reason = "a part that fails has no speed")]

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
