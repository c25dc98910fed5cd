//! Bytes as a manifest or a checkpoint: an error, or a version that is written and read back the same. Bytes as a step
//! upon a version: an error, or a version that a step leads to. Checksums are not looked at.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tidetable_store::Version;
use tidetable_store::fuzzing::{
    decode, decode_checkpoint, decode_delta, encode, encode_checkpoint, encode_delta, next_seqno,
};

static BEFORE: LazyLock<Version> = LazyLock::new(|| {
    let golden = include_bytes!("../../crates/store/golden/manifest-v1.json");
    decode(golden, 3).expect("the golden manifest can be read")
});

fn look_at(version: &Version) {
    let _ = version.ssts().count();
    let _ = next_seqno(version);
}

fuzz_target!(|data: &[u8]| {
    if let Ok(version) = decode(data, 1) {
        let bytes = encode(&version).expect("a version that was read can be written");
        assert_eq!(decode(&bytes, 1).as_ref(), Ok(&version));
        look_at(&version);
    }
    if let Ok(version) = decode_checkpoint(data, 1) {
        let bytes = encode_checkpoint(&version).expect("a version that was read can be written");
        assert_eq!(decode_checkpoint(&bytes, 1).as_ref(), Ok(&version));
        look_at(&version);
    }
    if let Ok(next) = decode_delta(data, 4, &BEFORE) {
        let bytes = encode_delta(&BEFORE, &next).expect("a step that was read can be written");
        assert_eq!(decode_delta(&bytes, 4, &BEFORE).as_ref(), Ok(&next));
        look_at(&next);
    }
});
