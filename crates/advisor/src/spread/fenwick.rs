//! The row keys known so far, by rank.

/// A set of ranks that finds its n-th member: a binary indexed tree of counts.
#[derive(Debug)]
pub(super) struct KnownKeys {
    /// Counts of ranges that end at each index, from 1.
    tree: Vec<u32>,
    len: u32,
}

impl KnownKeys {
    /// No rank of `keys` yet.
    pub(super) fn new(keys: u32) -> Self {
        Self { tree: vec![0; keys as usize + 1], len: 0 }
    }

    /// Members.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds a rank that is not a member.
    pub(super) fn insert(&mut self, rank: u32) {
        self.len += 1;
        let mut at = rank as usize + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The member that has `below` members below it; the number of ranks if there are not so many.
    pub(super) fn nth(&self, below: u32) -> u32 {
        let mut left = below;
        let mut at = 0;
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if let Some(count) = self.tree.get(at + step).filter(|count| **count <= left) {
                left -= count;
                at += step;
            }
            step /= 2;
        }
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_place() {
        for keys in [1, 2, 7, 8, 9, 1000] {
            let mut known = KnownKeys::new(keys);
            let mut members = Vec::new();
            for rank in (0..keys).map(|at| at * 7919 % keys) {
                if members.contains(&rank) {
                    continue;
                }
                known.insert(rank);
                members.push(rank);
                members.sort_unstable();
                assert_eq!(known.len() as usize, members.len());
                for (below, member) in (0..).zip(&members) {
                    assert_eq!(known.nth(below), *member);
                }
                assert_eq!(known.nth(known.len()), keys);
            }
        }
    }
}
