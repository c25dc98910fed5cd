//! Bytes as packed bytes, a list of byte strings, or which records have a value; and the same made of bytes, which are
//! read as they were written.
//!
//! The first byte of the input says which, the two that follow how many there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_sstable::tools::fuzzing::{list, list_of, packed_of, present, present_of, unpacked};

fuzz_target!(|data: &[u8]| {
    let Some(([choice, low, high], rest)) = data.split_first_chunk::<3>() else { return };
    let count = usize::from(u16::from_le_bytes([*low, *high]));
    let dense = low & 1 == 1;
    match choice % 6 {
        0 => drop(unpacked(rest)),
        1 => {
            if let Ok(read) = list(rest, count) {
                assert_eq!(read.len(), count);
                let read: Vec<&[u8]> = read.iter().map(Vec::as_slice).collect();
                assert_eq!(list_of(&read, dense).expect("a list that was read can be written"), read);
            }
        }
        2 => {
            if let Ok(read) = present(rest, count % 4097) {
                assert_eq!(read.len(), count % 4097);
                assert_eq!(present_of(&read).expect("what was read can be written"), read);
            }
        }
        3 => assert_eq!(packed_of(rest, dense).expect("bytes can be packed"), rest),
        4 => {
            let items: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
            assert_eq!(list_of(&items, dense).expect("a list can be written"), items);
        }
        _ => {
            let records: Vec<bool> = rest.iter().take(4096).map(|byte| byte & 1 == 1).collect();
            assert_eq!(present_of(&records).expect("it can be written"), records);
        }
    }
});
