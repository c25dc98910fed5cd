//! Pool of encoders, and the ranks of their interned names.

use std::sync::{Arc, Mutex, PoisonError};

use tidetable_layout::Layout;
use tidetable_layout::encode::Encoder;

use crate::sort::chunk::AllRanks;
use crate::sort::ranks::Ranks;

/// Pool of idle encoders, each with the number of its dictionaries.
pub(crate) struct Encoders<'a> {
    layout: &'a Layout,
    idle: Mutex<(Vec<(usize, Encoder<'a>)>, usize)>,
    /// Cached ranks, with the length of each dictionary at that time.
    known: Mutex<Option<(Vec<usize>, Arc<AllRanks>)>>,
}

impl<'a> Encoders<'a> {
    pub(crate) fn new(layout: &'a Layout) -> Self {
        Self { layout, idle: Mutex::default(), known: Mutex::default() }
    }

    pub(crate) fn take(&self) -> (usize, Encoder<'a>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.0.pop() {
            Some(encoder) => encoder,
            None => {
                idle.1 += 1;
                (idle.1 - 1, self.layout.encoder())
            }
        }
    }

    pub(crate) fn put(&self, encoder: (usize, Encoder<'a>)) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.push(encoder);
    }

    /// Approximate bytes of the names interned by idle encoders, and of their ranks.
    pub(crate) fn memory(&self) -> u64 {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = self.layout.stored().groups.len();
        let of = |(_, encoder): &(usize, Encoder<'_>)| {
            let qualifiers = (0..groups).filter_map(|group| encoder.qualifiers(group));
            let ranks: usize = qualifiers.chain([encoder.prefixes()]).map(Ranks::memory_of).sum();
            (encoder.memory() + ranks) as u64
        };
        idle.0.iter().map(of).sum()
    }

    /// Gives up all names. All encoders must be idle, and no waiting cell may refer to a name.
    pub(crate) fn forget(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = (Vec::new(), 0);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ranks over the dictionaries of all encoders, all of which must be idle. Cached until a new name is interned:
    /// entities are mostly known after their first reading.
    pub(crate) fn ranks(&self, groups: usize) -> Arc<AllRanks> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.0.sort_by_key(|(worker, _)| *worker);
        let prefixes: Vec<_> = idle.0.iter().map(|(_, encoder)| encoder.prefixes()).collect();
        let qualifiers: Vec<Vec<_>> = (0..groups)
            .map(|group| idle.0.iter().filter_map(|(_, encoder)| encoder.qualifiers(group)).collect())
            .collect();
        let names: Vec<usize> = prefixes.iter().chain(qualifiers.iter().flatten()).map(|names| names.len()).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|(before, _)| *before == names) {
            Some((_, ranks)) => Arc::clone(ranks),
            None => {
                // Frees the old ranks first: they are as large as all names.
                *known = None;
                let of = |all: &Vec<_>| (!all.is_empty()).then(|| Ranks::new(all));
                let qualifiers = qualifiers.iter().map(of).collect();
                let ranks = Arc::new(AllRanks { prefixes: Ranks::new(&prefixes), qualifiers });
                *known = Some((names, Arc::clone(&ranks)));
                ranks
            }
        }
    }
}
