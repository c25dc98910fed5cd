//! Tests of whole layouts, with a small loader in place of the store.

mod aggregates;
mod fingerprints;
mod forms;
mod keys;
mod loader;
mod packed;
mod push_down;
mod reading;
mod refusals;
mod round_trip;
