//! Loser tree (tournament tree): the least source, with one comparison per level after a change.

/// A loser tree over the sources `0..len`. The caller compares two sources; only the winner's position may change,
/// after which [`LoserTree::replay`] must be called.
#[derive(Debug)]
pub(crate) struct LoserTree {
    /// The winner, then the loser of each match; the match at `n` is played by the winners of `2n` and `2n + 1`, and
    /// source `s` enters at `len + s`.
    nodes: Vec<usize>,
}

impl LoserTree {
    /// Plays all matches of `len` sources; `before` compares two by their indexes.
    pub fn new(len: usize, before: impl Fn(usize, usize) -> bool) -> Self {
        let mut winners: Vec<usize> = (0..2 * len).map(|node| node.saturating_sub(len)).collect();
        let mut nodes = vec![0; len.max(1)];
        for node in (1..len).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if before(right, left) { (right, left) } else { (left, right) };
            (winners[node], nodes[node]) = (winner, loser);
        }
        nodes[0] = winners.get(1).copied().unwrap_or(0);
        Self { nodes }
    }

    /// Index of the least source; meaningless without sources.
    pub(crate) fn winner(&self) -> usize {
        self.nodes[0]
    }

    /// The least source except the winner; `None` if there is no other.
    pub(crate) fn runner_up(&self, before: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut best = None;
        let mut node = (self.nodes[0] + self.nodes.len()) / 2;
        while node > 0 {
            let loser = self.nodes[node];
            if best.is_none_or(|best| before(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best
    }

    /// Replays the matches of the winner after it has moved.
    pub(crate) fn replay(&mut self, before: impl Fn(usize, usize) -> bool) {
        let mut winner = self.nodes[0];
        let mut node = (winner + self.nodes.len()) / 2;
        while node > 0 {
            if before(self.nodes[node], winner) {
                std::mem::swap(&mut self.nodes[node], &mut winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_least_comes_first(lists in prop::collection::vec(prop::collection::vec(0u8..20, 0..9), 1..12)) {
            let mut lists = lists;
            lists.iter_mut().for_each(|list| list.sort_unstable_by(|a, b| b.cmp(a)));
            let mut expected: Vec<(u8, usize)> =
                lists.iter().enumerate().flat_map(|(at, list)| list.iter().map(move |value| (*value, at))).collect();
            expected.sort_unstable();
            // Empty lists sort last; of equal values the first list wins.
            let key = |lists: &[Vec<u8>], at: usize| (lists[at].last().map_or(u16::MAX, |value| u16::from(*value)), at);
            let mut tree = LoserTree::new(lists.len(), |a, b| key(&lists, a) < key(&lists, b));
            let mut merged = Vec::new();
            while let Some(value) = lists[tree.winner()].last().copied() {
                let second = tree.runner_up(|a, b| key(&lists, a) < key(&lists, b));
                let others = (0..lists.len()).filter(|at| *at != tree.winner());
                prop_assert_eq!(second, others.min_by_key(|at| key(&lists, *at)));
                merged.push((value, tree.winner()));
                lists[tree.winner()].pop();
                tree.replay(|a, b| key(&lists, a) < key(&lists, b));
            }
            prop_assert_eq!(merged, expected);
        }
    }
}
