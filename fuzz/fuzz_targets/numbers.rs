//! Bytes as a page of numbers in any codec: an error, or values the first of which are the same when fewer are asked for.
//! And numbers made of bytes, which are read as they were written.
//!
//! The input: what to do and the type, the codec, how many values there are and are wanted, the length of the setup, the
//! setup, the page. For numbers that are written: what to do, the type, and how wide each is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_sstable::tools::fuzzing::{numbers, numbers_of};

fuzz_target!(|data: &[u8]| {
    let Some(([choice, codec, low, high, wanted, setup], rest)) = data.split_first_chunk::<6>() else { return };
    if choice & 0x10 == 0 {
        let present = usize::from(u16::from_le_bytes([*low, *high])) % 4097;
        let (setup, page) = rest.split_at(rest.len().min(usize::from(*setup)));
        if let Ok([all, some]) = numbers([*codec, choice & 0xf], [present, usize::from(*wanted)], setup, page) {
            assert_eq!(all.len(), present);
            assert!(some.len() >= present.min(usize::from(*wanted)) && all.starts_with(&some));
        }
        return;
    }
    let width = 1 + usize::from(codec % 8);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let scale = u64::from(*low).max(1);
    let mut bits: Vec<u64> = rest.chunks(width).map(|bytes| number(bytes).wrapping_mul(scale)).collect();
    if choice & 0xf == 4 && high & 1 == 1 {
        // Floats that are decimals, as telemetry has them.
        bits.iter_mut().for_each(|bits| *bits = (*bits as i32 as f64 / 100.0).to_bits());
    }
    let [written, read] = numbers_of(choice & 0xf, &bits, wanted & 1 == 1);
    assert_eq!(written, read);
});
