//! Bit masks of values, in words of 64.

/// Values of a word.
const WORD: usize = 64;
/// From so many values of a word on, taking them one by one costs more than looking at all.
const MANY: usize = 16;

/// A bit for each of `values`: whether it passes. The last word has zeros after them.
#[inline]
pub(crate) fn bits<V: Copy>(values: &[V], passes: impl Fn(V) -> bool) -> Vec<u64> {
    let word = |values: &[V]| {
        values.iter().enumerate().fold(0u64, |word, (at, value)| word | (u64::from(passes(*value)) << at))
    };
    let (words, rest) = values.as_chunks::<WORD>();
    let mut out = Vec::with_capacity(words.len() + 1);
    // The constant length lets the loop run in vector instructions.
    out.extend(words.iter().map(|values| word(&values[..])));
    if !rest.is_empty() {
        out.push(word(rest));
    }
    out
}

/// Appends those of `values` whose bit is set in `words`.
pub(crate) fn compact<V: Copy + Default>(values: &[V], words: &[u64], out: &mut Vec<V>) {
    for (values, word) in values.chunks(WORD).zip(words) {
        let count = word.count_ones() as usize;
        if count == values.len() {
            out.extend_from_slice(values);
        } else if count < MANY {
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
