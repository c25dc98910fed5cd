//! Bytes as the row keys of a stripe; and keys made of bytes, which are read as they were written.
//!
//! The first byte of the input chooses the tail of the keys, and whether the rest is to be read (two bytes for the number
//! of rows, then a key page) or to be written (lines are prefixes, and how long they are gives the tails).
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use tidetable_sstable::tools::fuzzing::{keys, keys_of};

fuzz_target!(|data: &[u8]| {
    let Some(([choice, low, high], rest)) = data.split_first_chunk::<3>() else { return };
    if choice & 0x10 == 0 {
        let rows = usize::from(u16::from_le_bytes([*low, *high]));
        if let Ok(read) = keys(rest, rows, *choice) {
            assert_eq!(read.len(), rows);
        }
        return;
    }
    let prefixes: BTreeSet<&[u8]> = rest.split(|byte| *byte == b'\n').take(300).collect();
    let tails: BTreeSet<u64> = rest.iter().take(usize::from(*low)).map(|byte| u64::from(*byte)).collect();
    let (prefixes, tails): (Vec<&[u8]>, Vec<u64>) = (prefixes.into_iter().collect(), tails.into_iter().collect());
    if let Some([written, read]) = keys_of(&prefixes, &tails, *choice, high & 1 == 1) {
        assert_eq!(written, read);
    }
});
