//! The row keys known so far, by rank.

/// Ranks of a block.
const BLOCK: usize = 4096;
/// Ranks of a word: a bit each.
const WORD: usize = u64::BITS as usize;

/// A set of ranks that finds its n-th member: a bit for each rank, and a binary indexed tree (Fenwick 1994) of the members of
/// each block. The tree stays in a cache where one of all ranks would not.
#[derive(Debug)]
pub(super) struct KnownKeys {
    keys: u32,
    len: u32,
    bits: Vec<u64>,
    /// Members of ranges of blocks that end at each index, from 1.
    tree: Vec<u32>,
}

impl KnownKeys {
    /// No rank of `keys` yet.
    pub(super) fn new(keys: u32) -> Self {
        let words = (keys as usize).div_ceil(WORD);
        Self { keys, len: 0, bits: vec![0; words], tree: vec![0; (keys as usize).div_ceil(BLOCK) + 1] }
    }

    /// The number of ranks that were added.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds a rank that is not a member.
    pub(super) fn insert(&mut self, rank: u32) {
        let rank = rank as usize;
        let Some(word) = self.bits.get_mut(rank / WORD) else { return };
        *word |= 1 << (rank % WORD);
        self.len += 1;
        let mut at = rank / BLOCK + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The member that has `below` members below it; the number of ranks if there are not so many.
    pub(super) fn nth(&self, below: u32) -> u32 {
        if below >= self.len {
            return self.keys;
        }

        let (mut left, mut block) = (below, 0);
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if let Some(count) = self.tree.get(block + step).filter(|count| **count <= left) {
                left -= count;
                block += step;
            }
            step /= 2;
        }

        let start = block * (BLOCK / WORD);
        for (at, word) in self.bits.iter().enumerate().skip(start) {
            let ones = word.count_ones();
            if left < ones {
                return (at * WORD) as u32 + nth_bit(*word, left);
            }
            left -= ones;
        }
        self.keys
    }
}

/// The place of the bit of `word` that has `below` bits below it.
fn nth_bit(mut word: u64, below: u32) -> u32 {
    for _ in 0..below {
        word &= word.wrapping_sub(1);
    }
    word.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_place() {
        for (keys, step) in [(1, 1), (2, 1), (7, 1), (8, 1), (9, 1), (1000, 1), (4096, 7), (4097, 5), (30_000, 61)] {
            let mut known = KnownKeys::new(keys);
            let mut members = Vec::new();
            for rank in (0..keys).step_by(step).map(|at| at * 7919 % keys) {
                let Err(at) = members.binary_search(&rank) else { continue };
                known.insert(rank);
                members.insert(at, rank);
                assert_eq!(known.len() as usize, members.len());
                assert_eq!(known.nth(known.len()), keys);
                // All members while they are few, and then some.
                let some = 1 + members.len() / 50;
                for (below, member) in (0..).zip(&members).step_by(some) {
                    assert_eq!(known.nth(below), *member);
                }
            }
        }
    }
}
