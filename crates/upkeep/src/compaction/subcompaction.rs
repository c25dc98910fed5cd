//! Subcompactions: splits a merge into pieces that are moved, copied or merged in parallel. Pure: uses keys and sizes
//! only.

use std::ops::Range;

use tidetable_layout::KeyRange;

/// A part of an input: a stripe, or the whole SST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPart<'a> {
    /// Index of the SST among the inputs.
    pub(crate) sst: usize,
    /// The stripe; `None` for a whole SST that may be moved.
    pub(crate) stripe: Option<usize>,
    pub(crate) first: &'a [u8],
    pub(crate) last: &'a [u8],
    /// Its bytes in the file.
    pub(crate) bytes: u64,
    /// Whether it may be copied as bytes where nothing overlaps it.
    pub(crate) keeps: bool,
    /// Whether it is short and better merged with its neighbours.
    pub(crate) short: bool,
}

/// A piece of a merge; pieces ascend by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subcompaction {
    /// Trivial move: an SST that becomes part of the output unchanged.
    TrivialMove { sst: usize },
    /// Stripes of one SST, copied as bytes.
    Copy { sst: usize, stripes: Range<usize> },
    /// The rows of all inputs in a key range, merged.
    Merge { keys: KeyRange },
}

/// Overlapping parts, and whether they are merged.
struct Cluster<'p, 'a> {
    parts: &'p [InputPart<'a>],
    merges: bool,
}

/// Splits `parts` into pieces of about `bytes` bytes, at the first keys of parts.
pub(crate) fn subcompactions(mut parts: Vec<InputPart<'_>>, bytes: u64) -> Vec<Subcompaction> {
    parts.sort_by(|a, b| (a.first, a.last).cmp(&(b.first, b.last)));
    let mut pieces = Subcompactions { done: Vec::new(), bytes: 0, limit: bytes };
    for cluster in clusters(&parts) {
        match cluster {
            Cluster { parts: [only], merges: false } => pieces.take(only),
            Cluster { parts, .. } => parts.iter().for_each(|part| pieces.merge(part)),
        }
    }
    pieces.done
}

/// Groups parts, which ascend by key, so that parts of two groups do not overlap.
fn clusters<'p, 'a>(parts: &'p [InputPart<'a>]) -> Vec<Cluster<'p, 'a>> {
    let mut clusters: Vec<Cluster<'p, 'a>> = Vec::new();
    let (mut start, mut last): (usize, &[u8]) = (0, &[]);
    for (at, part) in parts.iter().enumerate() {
        if at > start && part.first > last {
            clusters.push(Cluster::new(&parts[start..at]));
            start = at;
        }
        last = if at == start { part.last } else { last.max(part.last) };
    }
    if start < parts.len() {
        clusters.push(Cluster::new(&parts[start..]));
    }

    // Short stripes are merged with short or decoded neighbours.
    let short: Vec<bool> = clusters.iter().map(|cluster| !cluster.merges && cluster.parts[0].short).collect();
    for at in 0..clusters.len() {
        let (before, after) = (at.checked_sub(1), Some(at + 1));
        let mut neighbours = [before, after].into_iter().flatten();
        if short[at]
            && neighbours
                .any(|other| short.get(other) == Some(&true) || clusters.get(other).is_some_and(|other| other.merges))
        {
            clusters[at].merges = true;
        }
    }

    clusters
}

impl<'p, 'a> Cluster<'p, 'a> {
    fn new(parts: &'p [InputPart<'a>]) -> Self {
        Self { parts, merges: !matches!(parts, [only] if only.keeps || only.stripe.is_none()) }
    }
}

/// The pieces so far; the last may still grow.
struct Subcompactions {
    done: Vec<Subcompaction>,
    bytes: u64,
    limit: u64,
}

impl Subcompactions {
    /// Adds a part that nothing overlaps.
    fn take(&mut self, part: &InputPart<'_>) {
        self.close(part.first);
        let full = self.bytes >= self.limit;
        match (part.stripe, self.done.last_mut()) {
            (None, _) => self.push(Subcompaction::TrivialMove { sst: part.sst }, part),
            (Some(stripe), Some(Subcompaction::Copy { sst, stripes }))
                if *sst == part.sst && stripes.end == stripe && !full =>
            {
                stripes.end += 1;
                self.bytes += part.bytes;
            }
            (Some(stripe), _) => self.push(Subcompaction::Copy { sst: part.sst, stripes: stripe..stripe + 1 }, part),
        }
    }

    /// Adds a part to be merged.
    fn merge(&mut self, part: &InputPart<'_>) {
        match self.done.last() {
            Some(Subcompaction::Merge { keys }) if self.bytes < self.limit || keys.start == part.first => {
                self.bytes += part.bytes;
            }
            _ => {
                self.close(part.first);
                self.push(Subcompaction::Merge { keys: KeyRange { start: part.first.to_vec(), end: None } }, part);
            }
        }
    }

    fn push(&mut self, piece: Subcompaction, part: &InputPart<'_>) {
        self.done.push(piece);
        self.bytes = part.bytes;
    }

    /// Ends the last piece before the key `next`, if it is a merge.
    fn close(&mut self, next: &[u8]) {
        if let Some(Subcompaction::Merge { keys }) = self.done.last_mut() {
            keys.end = Some(next.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part<'a>(sst: usize, stripe: Option<usize>, first: &'a str, last: &'a str) -> InputPart<'a> {
        let (first, last) = (first.as_bytes(), last.as_bytes());
        InputPart { sst, stripe, first, last, bytes: 10, keeps: true, short: false }
    }

    fn merge(start: &str, end: Option<&str>) -> Subcompaction {
        Subcompaction::Merge { keys: KeyRange { start: start.into(), end: end.map(Into::into) } }
    }

    #[test]
    fn what_nothing_overlaps_is_copied() {
        let parts = vec![
            part(0, Some(0), "a", "c"),
            part(0, Some(1), "d", "f"),
            part(0, Some(2), "g", "i"),
            part(1, Some(0), "e", "e"),
            part(2, None, "j", "k"),
            part(0, Some(3), "l", "m"),
        ];
        let copy = |stripes| Subcompaction::Copy { sst: 0, stripes };
        let pieces = subcompactions(parts.clone(), 100);
        assert_eq!(
            pieces,
            [copy(0..1), merge("d", Some("g")), copy(2..3), Subcompaction::TrivialMove { sst: 2 }, copy(3..4)]
        );
        // Only short neighbours are encoded again with a merged part.
        let mut fresh = parts.clone();
        fresh[0].keeps = false;
        assert_eq!(subcompactions(fresh, 100)[..2], [merge("a", Some("g")), copy(2..3)]);
        let mut short = parts;
        (short[0].short, short[2].short) = (true, true);
        assert_eq!(subcompactions(short, 100)[..2], [merge("a", Some("j")), Subcompaction::TrivialMove { sst: 2 }]);
    }

    #[test]
    fn a_short_stripe_alone_stays() {
        let mut parts = vec![part(0, Some(0), "a", "c"), part(1, Some(0), "d", "f"), part(0, Some(1), "g", "i")];
        parts[1].short = true;
        assert!(subcompactions(parts.clone(), 100).iter().all(|piece| matches!(piece, Subcompaction::Copy { .. })));
        parts[2].short = true;
        assert_eq!(subcompactions(parts, 100), [Subcompaction::Copy { sst: 0, stripes: 0..1 }, merge("d", None)]);
    }

    #[test]
    fn pieces_end_where_a_part_begins() {
        let parts = |keeps: bool| {
            let names = ["a", "b", "c", "d", "e", "f"].windows(2).enumerate();
            names.map(|(at, pair)| InputPart { keeps, ..part(at, Some(0), pair[0], pair[1]) }).collect::<Vec<_>>()
        };
        assert_eq!(subcompactions(parts(true), 20), [merge("a", Some("c")), merge("c", Some("e")), merge("e", None)]);
        let alone: Vec<_> = (0..5).map(|at| part(0, Some(at), &"abcde"[at..=at], &"abcde"[at..=at])).collect();
        let copied = [0..2, 2..4, 4..5].map(|stripes| Subcompaction::Copy { sst: 0, stripes });
        assert_eq!(subcompactions(alone, 20), copied);
    }

    /// SST, place in it, first and last key, keeps, short.
    type Stripe = (usize, usize, [u8; 1], [u8; 1], bool, bool);

    proptest! {
        /// Every key of every part is in one piece, and pieces ascend.
        #[test]
        fn no_row_is_lost_or_doubled(
            runs in prop::collection::vec(prop::collection::vec((1u8..4, 0u8..3, any::<bool>(), any::<bool>()), 1..8), 1..5),
            limit in 1u64..60,
        ) {
            // (gap before, length, keeps, short) of each stripe.
            let mut keys: Vec<Stripe> = Vec::new();
            for (sst, run) in runs.iter().enumerate() {
                let mut at = 0;
                for (stripe, (gap, len, keeps, short)) in run.iter().enumerate() {
                    let first = at + gap;
                    at = first + len;
                    keys.push((sst, stripe, [first], [at], *keeps, *short));
                }
            }
            let parts: Vec<InputPart<'_>> = keys
                .iter()
                .map(|(sst, stripe, first, last, keeps, short)| InputPart {
                    sst: *sst, stripe: Some(*stripe), first, last, bytes: 10, keeps: *keeps, short: *short,
                })
                .collect();
            let pieces = subcompactions(parts.clone(), limit);
            let mut end = 0u8;
            for piece in &pieces {
                let (first, after) = match piece {
                    Subcompaction::Copy { sst, stripes } => {
                        let own: Vec<_> = parts
                            .iter()
                            .filter(|part| part.sst == *sst && part.stripe.is_some_and(|at| stripes.contains(&at)))
                            .collect();
                        prop_assert!(own.iter().all(|part| part.keeps));
                        let inside = |other: &InputPart<'_>| own[0].first <= other.last && other.first <= own[own.len() - 1].last;
                        prop_assert_eq!(parts.iter().filter(|part| inside(part)).count(), own.len(), "overlapped");
                        (own[0].first[0], own[own.len() - 1].last[0] + 1)
                    }
                    Subcompaction::Merge { keys } => (keys.start[0], keys.end.as_ref().map_or(u8::MAX, |end| end[0])),
                    Subcompaction::TrivialMove { .. } => unreachable!(),
                };
                prop_assert!(end <= first && first < after, "{:?}", pieces);
                end = after;
            }
            for key in parts.iter().flat_map(|part| [part.first, part.last]) {
                let holds = |piece: &&Subcompaction| match piece {
                    Subcompaction::Merge { keys } => keys.contains(key),
                    Subcompaction::Copy { sst, stripes } => parts.iter().any(|part| {
                        part.sst == *sst
                            && part.stripe.is_some_and(|at| stripes.contains(&at))
                            && part.first <= key
                            && key <= part.last
                    }),
                    Subcompaction::TrivialMove { .. } => false,
                };
                prop_assert_eq!(pieces.iter().filter(holds).count(), 1);
            }
        }
    }
}
