//! Short lists of integers in a stripe head: row counts, tails, patterns.
//!
//! ```text
//! ints    codec u8 | setup block | page block          the count is stored elsewhere
//! ```

use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, PageExtent, Plan};
use crate::coding::{Input, put_block};
use crate::error::{ReadError, WriteError};
use crate::format::Codec;
use crate::options::Compression;

/// Appends `values` with the codec that suits them. Their count is not stored; the reader knows it from elsewhere in the head.
///
/// # Errors
/// If pco fails.
pub(crate) fn put<T: Lane>(out: &mut Vec<u8>, values: &[T], level: Compression) -> Result<(), WriteError> {
    let mut plan = Plan::choose(values, &[values.len()], false, level)?;
    out.push(plan.codec() as u8);

    let mut part = Vec::new();
    plan.setup(&mut part)?;
    put_block(out, &part);

    part.clear();
    plan.page(values, &mut part)?;
    put_block(out, &part);
    Ok(())
}

/// Reads the `count` values that [`put`] appended.
///
/// # Errors
/// If the bytes are damaged or are those of another number of values.
pub(crate) fn read<T: Lane>(input: &mut Input, count: usize) -> Result<Vec<T>, ReadError> {
    let corrupt = input.corrupt();
    let codec = input.u8()?;
    let setup = input.nested("integers")?;
    let page = input.block()?;

    let codec = Codec::of(codec).filter(|codec| (*codec == Codec::Absent) == (count == 0));
    match codec {
        Some(Codec::Absent) => Ok(Vec::new()),
        Some(codec) => {
            let mut values = vec![T::default(); count];
            Decoder::new(codec, setup)?
                .read(&page, PageExtent { first: 0, present: count }, 0, &mut values)
                .ok_or(corrupt)?;
            Ok(values)
        }
        None => Err(corrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_wrong_count() {
        for values in [vec![], vec![3u64], (0..500).map(|i| i * i % 71).collect()] {
            let mut out = Vec::new();
            put(&mut out, &values, Compression::Fresh).unwrap();
            let mut input = Input::new(out.into(), 0, "test");
            assert_eq!(read::<u64>(&mut input.clone(), values.len()).unwrap(), values);
            if values.is_empty() {
                assert!(read::<u64>(&mut input, 1).is_err());
            }
        }
    }
}
