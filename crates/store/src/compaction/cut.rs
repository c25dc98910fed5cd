//! Which parts of a merge are copied and which are decoded, in pieces that can be done side by side. Pure: looks at keys
//! and sizes alone.

use std::ops::Range;

use tidetable_layout::KeyRange;

/// A part of an input: one of its stripes, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The SST, by its place among the inputs.
    pub(super) sst: usize,
    /// The stripe; `None` for an SST that stays the file it is.
    pub(super) stripe: Option<usize>,
    pub(super) first: &'a [u8],
    pub(super) last: &'a [u8],
    /// Bytes of it in its file.
    pub(super) bytes: u64,
    /// Whether its bytes may be taken as they are where nothing overlaps it.
    pub(super) keeps: bool,
    /// Whether it is so short that it had better be joined with its neighbours.
    pub(super) short: bool,
}

/// Some rows of the output; in a list of them each comes after those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// An SST that becomes part of the output as it is.
    Move { sst: usize },
    /// Stripes of one SST that are taken as bytes.
    Copy { sst: usize, stripes: Range<usize> },
    /// The rows of all inputs in a range of keys.
    Merge { keys: KeyRange },
}

/// Parts of which each overlaps another, and their fate.
struct Cluster<'p, 'a> {
    parts: &'p [Part<'a>],
    merges: bool,
}

/// Cuts `parts` into pieces of about so many bytes, at the first keys of parts.
pub(super) fn cut(mut parts: Vec<Part<'_>>, bytes: u64) -> Vec<Piece> {
    parts.sort_by(|a, b| (a.first, a.last).cmp(&(b.first, b.last)));
    let mut pieces = Pieces { done: Vec::new(), bytes: 0, limit: bytes };
    for cluster in clusters(&parts) {
        match cluster {
            Cluster { parts: [only], merges: false } => pieces.take(only),
            Cluster { parts, .. } => parts.iter().for_each(|part| pieces.merge(part)),
        }
    }
    pieces.done
}

fn clusters<'p, 'a>(parts: &'p [Part<'a>]) -> Vec<Cluster<'p, 'a>> {
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
    // Short stripes beside others that are decoded anyway, or beside short ones, make one.
    let short: Vec<bool> = clusters.iter().map(|cluster| !cluster.merges && cluster.parts[0].short).collect();
    for at in 0..clusters.len() {
        let joins = |other: Option<usize>| {
            other.is_some_and(|other| short.get(other) == Some(&true) || clusters.get(other).is_some_and(|c| c.merges))
        };
        if short[at] && (joins(at.checked_sub(1)) || joins(Some(at + 1))) {
            clusters[at].merges = true;
        }
    }
    clusters
}

impl<'p, 'a> Cluster<'p, 'a> {
    fn new(parts: &'p [Part<'a>]) -> Self {
        Self { parts, merges: !matches!(parts, [only] if only.keeps || only.stripe.is_none()) }
    }
}

/// The pieces so far; the last is still growing.
struct Pieces {
    done: Vec<Piece>,
    bytes: u64,
    limit: u64,
}

impl Pieces {
    /// A part that nothing overlaps.
    fn take(&mut self, part: &Part<'_>) {
        self.close(part.first);
        let full = self.bytes >= self.limit;
        match (part.stripe, self.done.last_mut()) {
            (None, _) => self.push(Piece::Move { sst: part.sst }, part),
            (Some(stripe), Some(Piece::Copy { sst, stripes }))
                if *sst == part.sst && stripes.end == stripe && !full =>
            {
                stripes.end += 1;
                self.bytes += part.bytes;
            }
            (Some(stripe), _) => self.push(Piece::Copy { sst: part.sst, stripes: stripe..stripe + 1 }, part),
        }
    }

    /// A part that is decoded.
    fn merge(&mut self, part: &Part<'_>) {
        match self.done.last() {
            Some(Piece::Merge { keys }) if self.bytes < self.limit || keys.start == part.first => {
                self.bytes += part.bytes;
            }
            _ => {
                self.close(part.first);
                self.push(Piece::Merge { keys: KeyRange { start: part.first.to_vec(), end: None } }, part);
            }
        }
    }

    fn push(&mut self, piece: Piece, part: &Part<'_>) {
        self.done.push(piece);
        self.bytes = part.bytes;
    }

    /// Ends the last piece, if it is a range of keys, before the row `next`.
    fn close(&mut self, next: &[u8]) {
        if let Some(Piece::Merge { keys }) = self.done.last_mut() {
            keys.end = Some(next.to_vec());
        }
    }
}
