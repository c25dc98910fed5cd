//! The row keys of a stripe, stored in its head.
//!
//! ```text
//! keys      prefix count varint | prefixes block | tails (if keys have any; else each prefix is a key)
//! prefixes  kind 0: list of byte strings
//!           kind 1: lead block | digits u8 | trail block | ints       lead 0000000001 trail, counted
//! tails     kind 0: rows of each prefix: ints | tails: ints
//!           kind 1: pattern count varint | lengths: ints | tails less the first: ints
//!                   | pattern of each prefix: ints | first tail of each prefix: ints
//! ```

pub(crate) mod row_patterns;

use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::Keys;
use tidetable_layout::schema::KeyTail;

use crate::codec::front_coding::{ByteList, shared};
use crate::codec::{front_coding, integer_list};
use crate::coding::{Input, put_block, put_varint};
use crate::error::{ReadError, WriteError};
use crate::format::MAX_RAW_BYTES;
use crate::keys::row_patterns::{Records, RowPatterns, spans};
use crate::options::Compression;

/// Kind of prefixes: any byte strings, by front coding.
const LISTED: u8 = 0;
/// Kind of prefixes: equal but for one number of a fixed count of digits.
const COUNTED: u8 = 1;
/// Kind of tails: one by one.
const TAILS_EXPLICIT: u8 = 0;
/// Kind of tails: as row patterns of the rows of a prefix.
const TAILS_PATTERNS: u8 = 1;
/// The most digits of a counted number: any 19 digits fit in 64 bits.
const MAX_DIGITS: usize = 19;

/// Appends the keys of rows `rows` to a section of the stripe head, after checking that they ascend strictly.
///
/// # Errors
/// [`WriteError::UnsortedKeys`], or those of an encoder.
pub(crate) fn put(out: &mut Vec<u8>, keys: &Keys, rows: Range<usize>, level: Compression) -> Result<(), WriteError> {
    let of = &keys.prefix_of()[rows.clone()];
    let (Some(first), Some(last)) = (of.first(), of.last()) else { return Err(WriteError::NoRows) };
    let prefixes = *first as usize..*last as usize + 1;
    let runs = runs(keys, &rows)?;

    put_varint(out, prefixes.len() as u64);
    let mut part = Vec::new();
    match counted(keys, &prefixes) {
        Some(form) => {
            part.push(COUNTED);
            put_block(&mut part, form.lead);
            part.push(form.digits as u8);
            put_block(&mut part, form.trail);
            integer_list::put(&mut part, &form.numbers, level)?;
        }
        None => {
            part.push(LISTED);
            front_coding::put(&mut part, prefixes.map(|prefix| keys.prefix(prefix)), level)?;
        }
    }
    put_block(out, &part);

    if keys.tail_shape().parts.is_empty() { Ok(()) } else { put_tails(out, &runs, &keys.tails()[rows], level) }
}

/// Appends the tails of all rows; `runs` has the number of rows of each prefix. Tails such as days repeat for every prefix, so they
/// are stored as row patterns if that pays.
fn put_tails(out: &mut Vec<u8>, runs: &[u32], tails: &[u64], level: Compression) -> Result<(), WriteError> {
    let mut end = 0;
    let ends = runs.iter().map(|run| {
        end += run;
        end
    });
    let signed: Vec<i64> = tails.iter().copied().map(u64::cast_signed).collect();

    let records = Records { ends: ends.collect(), codes: None, timestamps: Some(&signed), keeps_duplicates: false };
    let Some(patterns) = RowPatterns::detect(&records) else {
        out.push(TAILS_EXPLICIT);
        integer_list::put(out, runs, level)?;
        return integer_list::put(out, tails, level);
    };

    out.push(TAILS_PATTERNS);
    put_varint(out, patterns.lens.len() as u64);
    integer_list::put(out, &patterns.lens, level)?;
    integer_list::put(out, &patterns.offsets, level)?;
    integer_list::put(out, &patterns.ids, level)?;
    integer_list::put(out, &patterns.bases, level)
}

/// The number of rows of each prefix. Checks that keys ascend strictly as byte strings.
fn runs(keys: &Keys, rows: &Range<usize>) -> Result<Vec<u32>, WriteError> {
    let of = &keys.prefix_of()[rows.clone()];
    let tails = keys.tails();
    let mut runs = vec![1u32];

    for (row, pair) in of.windows(2).enumerate() {
        let row = row + 1;
        if pair[0] == pair[1] {
            let before = tails.get(rows.start + row - 1);
            if before.is_none() || before >= tails.get(rows.start + row) {
                return Err(WriteError::UnsortedKeys { row });
            }
            if let Some(run) = runs.last_mut() {
                *run += 1;
            }
            continue;
        }

        let (before, after) = (keys.prefix(pair[0] as usize), keys.prefix(pair[1] as usize));
        // If one prefix were a prefix of another, tails would decide the byte order.
        if before >= after || pair[1] != pair[0] + 1 || (!tails.is_empty() && after.starts_with(before)) {
            return Err(WriteError::UnsortedKeys { row });
        }
        runs.push(1);
    }
    Ok(runs)
}

/// Prefixes of the form lead, number, trail.
struct Counted<'a> {
    lead: &'a [u8],
    /// The number of digits of each number, with leading zeros.
    digits: usize,
    trail: &'a [u8],
    numbers: Vec<u64>,
}

/// The form of prefixes that differ only in one run of digits; `None` for others.
fn counted<'a>(keys: &'a Keys, prefixes: &Range<usize>) -> Option<Counted<'a>> {
    let (first, last) = (keys.prefix(prefixes.start), keys.prefix(prefixes.end - 1));
    let len = first.len();
    // In sorted order all share the common prefix of first and last.
    let start = shared(first, last);

    let mut end = start;
    for prefix in prefixes.clone().map(|prefix| keys.prefix(prefix)) {
        if prefix.len() != len {
            return None;
        }
        let common = prefix[start..].iter().rev().zip(first[start..].iter().rev()).take_while(|(a, b)| a == b).count();
        end = end.max(len - common);
    }
    if end - start > MAX_DIGITS {
        return None;
    }

    let mut numbers = Vec::with_capacity(prefixes.len());
    for prefix in prefixes.clone().map(|prefix| keys.prefix(prefix)) {
        let mut number = 0u64;
        for byte in &prefix[start..end] {
            if !byte.is_ascii_digit() {
                return None;
            }
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        }
        numbers.push(number);
    }
    Some(Counted { lead: &first[..start], digits: end - start, trail: &first[end..], numbers })
}

/// Reads the keys of `rows` rows, whose tails have the shape `tail`.
///
/// # Errors
/// If the bytes are damaged.
pub(crate) fn read(input: &mut Input, rows: usize, tail: &Arc<KeyTail>) -> Result<Keys, ReadError> {
    let count = input.count(rows)?;
    let mut part = input.nested("key prefixes")?;
    let prefixes = match part.u8()? {
        LISTED => front_coding::read(&mut part, count)?,
        COUNTED => read_counted(&mut part, count)?,
        _ => return Err(part.corrupt()),
    };

    let corrupt = input.corrupt();
    let (prefix_of, tails) = match tail.parts.is_empty() {
        true if count == rows => ((0..rows as u32).collect(), Vec::new()),
        true => return Err(corrupt),
        false => read_tails(input, count, rows)?,
    };
    Keys::from_parts(Arc::clone(tail), prefixes.ends, prefixes.bytes, prefix_of, tails).ok_or(corrupt)
}

/// Reads the prefix number and the tail of each of `rows` rows; there are `count` prefixes.
fn read_tails(input: &mut Input, count: usize, rows: usize) -> Result<(Vec<u32>, Vec<u64>), ReadError> {
    let mut prefix_of = Vec::new();

    match input.u8()? {
        TAILS_EXPLICIT => {
            let runs = integer_list::read::<u32>(input, count)?;
            if !add_up_to(runs.iter().copied(), rows) {
                return Err(input.corrupt());
            }

            prefix_of.reserve(rows);
            for (prefix, run) in runs.iter().enumerate() {
                prefix_of.resize(prefix_of.len() + *run as usize, prefix as u32);
            }
            Ok((prefix_of, integer_list::read(input, rows)?))
        }
        TAILS_PATTERNS => {
            let patterns = input.count(count)?;
            let lens = integer_list::read::<u32>(input, patterns)?;
            let (total, spans) = spans(&lens, rows).ok_or_else(|| input.corrupt())?;
            let offsets = integer_list::read::<i64>(input, total)?;
            let ids = integer_list::read::<u32>(input, count)?;
            let bases = integer_list::read::<i64>(input, count)?;
            let runs = ids.iter().map(|id| lens.get(*id as usize).copied().unwrap_or(u32::MAX));
            if !add_up_to(runs, rows) {
                return Err(input.corrupt());
            }

            prefix_of.reserve(rows);
            let mut tails = Vec::with_capacity(rows);
            for ((prefix, id), base) in ids.iter().enumerate().zip(bases) {
                let pattern = spans.get(*id as usize).and_then(|span| offsets.get(span.clone())).unwrap_or_default();
                prefix_of.resize(prefix_of.len() + pattern.len(), prefix as u32);
                tails.extend(pattern.iter().map(|offset| base.wrapping_add(*offset).cast_unsigned()));
            }
            Ok((prefix_of, tails))
        }
        _ => Err(input.corrupt()),
    }
}

/// Whether prefixes of as many rows as `runs` says have `rows` rows together, so that lists can be allocated for them.
fn add_up_to(runs: impl Iterator<Item = u32>, rows: usize) -> bool {
    runs.map(u64::from).sum::<u64>() == rows as u64
}

/// Reads `count` prefixes of the form lead, number, trail, and writes them out.
fn read_counted(part: &mut Input, count: usize) -> Result<ByteList, ReadError> {
    let lead = part.block()?;
    let digits = usize::from(part.u8()?);
    let trail = part.block()?;

    let len = lead.len() + digits + trail.len();
    let total = count.checked_mul(len).filter(|total| *total <= MAX_RAW_BYTES);
    let Some(total) = total.filter(|_| digits <= MAX_DIGITS) else { return Err(part.corrupt()) };
    let numbers = integer_list::read::<u64>(part, count)?;
    part.finish()?;

    let mut list = ByteList { ends: Vec::with_capacity(count), bytes: Vec::with_capacity(total) };
    for number in numbers {
        let mut text = [b'0'; MAX_DIGITS];
        let mut rest = number;
        for digit in text.iter_mut().rev().take(digits) {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }

        list.bytes.extend_from_slice(&lead);
        list.bytes.extend_from_slice(&text[MAX_DIGITS - digits..]);
        list.bytes.extend_from_slice(&trail);
        list.ends.push(list.bytes.len() as u32);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use tidetable_layout::schema::TailPart;

    use super::*;

    fn keys(prefixes: &[&str], tails: &[u64]) -> Keys {
        let parts = if tails.is_empty() { vec![] } else { vec![TailPart::Digits(4)] };
        let mut keys = Keys::new(Arc::new(KeyTail { parts }));
        for prefix in prefixes {
            for tail in if tails.is_empty() { &[0] } else { tails } {
                keys.push(prefix.as_bytes(), *tail);
            }
        }
        keys
    }

    fn round_trip(keys: &Keys) -> usize {
        let mut out = Vec::new();
        put(&mut out, keys, 0..keys.len(), Compression::Fresh).unwrap();
        let back = read(&mut Input::new(out.clone().into(), 0, "test"), keys.len(), keys.tail_shape()).unwrap();
        assert!((0..keys.len()).all(|row| keys.get(row) == back.get(row)));
        assert!(read(&mut Input::new(out.clone().into(), 0, "test"), keys.len() + 1, keys.tail_shape()).is_err());
        out.len()
    }

    #[test]
    fn prefixes_of_every_form_round_trip() {
        round_trip(&keys(&[""], &[]));
        round_trip(&keys(&["", "a", "aa", "b"], &[]));
        round_trip(&keys(&["a#"], &[0, 5, 9999]));
        round_trip(&keys(&["AAPL  #", "IBM   #", "MSFT  #"], &[1, 2]));
        round_trip(&keys(&["x1y#", "x2z#"], &[1]));
        round_trip(&keys(&["1#2#", "1#3#", "2#2#"], &[1]));
        round_trip(&keys(&["19", "20"], &[1]));
    }

    #[test]
    fn counting_prefixes_cost_next_to_nothing() {
        let names: Vec<String> = (1..=5000).map(|meter| format!("m{meter:010}#")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(round_trip(&keys(&names, &[1726])) < 100);
        assert!(round_trip(&keys(&names, &[1724, 1725, 1726, 1801])) < 200);
    }

    #[test]
    fn unsorted_keys_are_refused() {
        for (prefixes, tails) in
            [(&["b#", "a#"][..], &[1][..]), (&["a"], &[2, 1]), (&["a"], &[1, 1]), (&["a", "ab"], &[1])]
        {
            let keys = keys(prefixes, tails);
            let refused = put(&mut Vec::new(), &keys, 0..keys.len(), Compression::Fresh);
            assert!(matches!(refused, Err(WriteError::UnsortedKeys { .. })));
        }
    }
}
