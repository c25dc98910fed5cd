//! Bit masks of values, in words of 64.

/// The number of values that one word of a mask covers, a bit each.
const WORD: usize = 64;
/// If this many values of a word pass or more, a branchless copy of all 64 is faster than a loop over the set bits.
const BRANCHLESS_FROM: usize = 16;

/// Evaluates `passes` for each of `values`: bit `i % 64` of word `i / 64` is the result for value `i`. Unused bits of the last word
/// are zero.
#[inline]
pub(crate) fn bits<V: Copy>(values: &[V], passes: impl Fn(V) -> bool) -> Vec<u64> {
    let (full_words, rest) = values.as_chunks::<WORD>();
    let mut words = Vec::with_capacity(full_words.len() + 1);

    // An array of constant length, so that the compiler vectorises the loop.
    for values in full_words {
        words.push(word(values, &passes));
    }
    if !rest.is_empty() {
        words.push(word(rest, &passes));
    }
    words
}

/// The mask of at most 64 values.
#[inline]
fn word<V: Copy>(values: &[V], passes: impl Fn(V) -> bool) -> u64 {
    values.iter().enumerate().fold(0, |word, (bit, value)| word | (u64::from(passes(*value)) << bit))
}

/// Appends to `out` those of `values` whose bit is set in `words`, a mask as [`bits`] makes it.
pub(crate) fn compact<V: Copy + Default>(values: &[V], words: &[u64], out: &mut Vec<V>) {
    for (values, word) in values.chunks(WORD).zip(words) {
        let count = word.count_ones() as usize;
        if count == values.len() {
            out.extend_from_slice(values);
        } else if count < BRANCHLESS_FROM {
            let mut left = *word;
            while left != 0 {
                out.extend(values.get(left.trailing_zeros() as usize));
                left &= left - 1;
            }
        } else {
            let (mut packed, mut end) = ([V::default(); WORD], 0);
            for (at, value) in values.iter().enumerate() {
                packed[end % WORD] = *value;
                end += (word >> at & 1) as usize;
            }
            out.extend_from_slice(packed.get(..count).unwrap_or_default());
        }
    }
}
