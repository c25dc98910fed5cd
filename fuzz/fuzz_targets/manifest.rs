//! Bytes as a manifest: an error, or a version that is written and read back the same. The checksum is not looked at.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_store::fuzzing::{decode, encode};

fuzz_target!(|data: &[u8]| {
    let Ok(version) = decode(data, 1) else { return };
    let bytes = encode(&version).expect("a version that was read can be written");
    assert_eq!(decode(&bytes, 1).as_ref(), Ok(&version));
    let _ = version.ssts().count();
    let _ = version.next_sequence();
});
