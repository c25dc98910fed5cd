//! Bytes as the first and the last of a file. Checksums are not looked at.
//!
//! The first eight bytes of the input say how long the file is; then come its header and its footer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_sstable::tools::fuzzing::ends;

fuzz_target!(|data: &[u8]| {
    let Some((len, rest)) = data.split_first_chunk::<8>() else { return };
    let (first, last) = rest.split_at(rest.len().min(32));
    if let Ok(same) = ends(first, last, u64::from_le_bytes(*len)) {
        assert!(same, "a footer that was read is written otherwise");
    }
});
