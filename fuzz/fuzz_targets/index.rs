//! Bytes as what finds rows in a file: an index that is read is written and read the same; a filter only answers.
//!
//! The first byte of the input says which: 3 an index, which ends at the four bytes that follow; else a filter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_sstable::tools::fuzzing::{filter, index};

fuzz_target!(|data: &[u8]| {
    let Some(([kind, offset @ ..], rest)) = data.split_first_chunk::<5>() else { return };
    if kind % 4 < 3 {
        for key in [&b""[..], b"1", b"0000000001#20170726", offset] {
            let _ = filter(rest, *kind % 4, key);
        }
    } else if let Ok([read, again]) = index(rest, u64::from(u32::from_le_bytes(*offset))) {
        assert_eq!(read, again);
    }
});
