//! Tests of whole layouts, with a reference loader in place of the store.

mod aggregates;
mod fingerprints;
mod forms;
mod keys;
mod packed;
mod push_down;
mod reading;
mod reference_loader;
mod refusals;
mod round_trip;
