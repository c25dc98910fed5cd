//! Validity of the records of a page: which are not null.
//!
//! ```text
//! validity  0 no nulls | 1 all null | 2, bitmap of the page's records | 3, run lengths: varints, valid runs first
//! ```

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::util::bit_util;

use crate::coding::{Input, put_varint};
use crate::error::ReadError;

const ALL: u8 = 0;
const NONE: u8 = 1;
const BITMAP: u8 = 2;
const RUNS: u8 = 3;

/// Appends the validity of a page's records: run lengths if they are shorter than a bitmap.
pub(crate) fn put(out: &mut Vec<u8>, nulls: &NullBuffer) {
    match nulls.null_count() {
        0 => return out.push(ALL),
        absent if absent == nulls.len() => return out.push(NONE),
        _ => {}
    }

    let mut runs = vec![RUNS];
    let (mut at, bitmap_len) = (0, nulls.len().div_ceil(8));
    for (start, end) in nulls.valid_slices() {
        if start > at {
            if at == 0 {
                put_varint(&mut runs, 0);
            }
            put_varint(&mut runs, (start - at) as u64);
        }
        put_varint(&mut runs, (end - start) as u64);
        at = end;
        if runs.len() > bitmap_len {
            break;
        }
    }

    if runs.len() <= bitmap_len {
        if at < nulls.len() {
            put_varint(&mut runs, (nulls.len() - at) as u64);
        }
        out.extend_from_slice(&runs);
        return;
    }

    out.push(BITMAP);
    let start = out.len();
    out.resize(start + bitmap_len, 0);
    for index in nulls.valid_indices() {
        bit_util::set_bit(&mut out[start..], index);
    }
}

/// Reads the validity of a page of `records` records; `None` if all have a value.
///
/// # Errors
/// If the bytes are damaged or are those of another number of records.
pub(crate) fn read(input: &mut Input, records: usize) -> Result<Option<BooleanBuffer>, ReadError> {
    match input.u8()? {
        ALL => Ok(None),
        NONE => Ok(Some(BooleanBuffer::new_unset(records))),
        BITMAP => {
            let bytes = input.take(records.div_ceil(8))?;
            Ok(Some(BooleanBuffer::new(bytes.to_vec().into(), 0, records)))
        }
        RUNS => {
            let mut bits = BooleanBufferBuilder::new(records);
            let (mut at, mut has) = (0, true);

            while at < records {
                let run = input.count(records - at)?;
                // Only the first run may be empty, which bounds the number of runs.
                if run == 0 && !(at == 0 && has) {
                    return Err(input.corrupt());
                }
                bits.append_n(run, has);
                at += run;
                has = !has;
            }
            Ok(Some(bits.finish()))
        }
        _ => Err(input.corrupt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_round_trips() {
        let forms: [(Vec<bool>, u8); 6] = [
            (vec![true; 9], ALL),
            (vec![false; 9], NONE),
            ((0..99).map(|i| i % 3 == 0).collect(), BITMAP),
            ((0..99).map(|i| i > 50).collect(), RUNS),
            ((0..99).map(|i| i < 50).collect(), RUNS),
            ((0..99).map(|i| !(30..60).contains(&i)).collect(), RUNS),
        ];
        for (bits, form) in forms {
            let mut out = Vec::new();
            put(&mut out, &NullBuffer::from(bits.clone()));
            assert_eq!(out[0], form);
            let mut input = Input::new(out.clone().into(), 0, "test");
            let back = read(&mut input, bits.len()).unwrap();
            input.finish().unwrap();
            assert!(back.map_or(vec![true; bits.len()], |back| back.iter().collect()) == bits);
            out[0] = 9;
            assert!(read(&mut Input::new(out.into(), 0, "test"), bits.len()).is_err());
        }
    }
}
