//! Bytes as an SST: whatever they are, reading them ends in rows or in an error. Checksums are not looked at here, so that
//! what lies behind them is reached.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tidetable_layout::Projection;
use tidetable_sstable::Reader;

fuzz_target!(|data: &[u8]| {
    let Ok(reader) = Reader::open(Arc::new(Bytes::copy_from_slice(data))) else { return };
    let all = Projection::all(reader.schema());
    let mut sums = all.clone();
    sums.groups.iter_mut().flatten().for_each(|group| group.sums = true);
    let _ = reader.may_contain(b"0000000001#20170726");
    let _ = reader.verify();
    let _ = reader.inspect();
    let middle = reader.stripes().first().map(|stripe| stripe.first_key.to_vec()).unwrap_or_default();
    let _ = reader.stripes_in(&middle, None);
    for stripe in 0..reader.stripes().len().min(4) {
        if let Ok(block) = reader.read_stripe(stripe, &all) {
            // What was read as a whole reads the same from its middle on.
            let half = block.keys.len() / 2;
            let part = reader.stripe(stripe).and_then(|stripe| stripe.read(half..block.keys.len(), &all));
            if let Ok(part) = part {
                assert_eq!(part.keys.len(), block.keys.len() - half);
            }
        }
        let _ = reader.read_rows(stripe, &middle, Some(b"9"), &all);
        let _ = reader.read_stripe(stripe, &sums);
    }
});
