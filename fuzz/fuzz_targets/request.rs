//! Requests of Bigtable's clients from bytes: filters, rows, parameters and tokens. What is answered can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_bigtable::serve::fuzzing::request;

fuzz_target!(|bytes: &[u8]| assert!(request(bytes), "an answer cannot be read"));
