//! Merges the dictionaries of several workers: the rank of every distinct name in byte order.
//!
//! Each worker interns row-key prefixes and qualifiers by itself; sorting cells needs one order. Only distinct names
//! are compared; cells are sorted by counting. Names of millions of entities are mostly numbers of one width that begin alike, so
//! they are sorted by the bytes in which they differ.

use tidetable_layout::encode::Dictionary;

use crate::sort::name_keys::{NameKeys, NamePlace, NumberedNames};

/// Approximate bytes that the hash of a name takes while the filter of an SST is made.
const FILTERED: usize = 24;

/// The merged order of the dictionaries of all workers.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    names: Names,
    /// For each worker, the rank of each of its codes.
    of: Vec<Vec<u32>>,
}

/// Distinct names in ascending byte order; a rank is an index here.
#[derive(Debug, Default)]
struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Ranks {
    /// Ranks the names of `dictionaries`, one for each worker.
    pub(crate) fn new(dictionaries: &[&Dictionary]) -> Self {
        let mut of: Vec<Vec<u32>> = dictionaries.iter().map(|dictionary| vec![0; dictionary.len()]).collect();
        let mut names = Names::default();
        let numbered = NumberedNames::new(dictionaries);
        NameKeys::in_order(&numbered, |number, new| {
            if let Some(name) = new {
                names.bytes.extend_from_slice(name);
                names.ends.push(names.bytes.len());
            }
            let NamePlace { dictionary, code } = numbered.place(number);
            of[dictionary][code as usize] = names.ends.len() as u32 - 1;
        });
        names.bytes.shrink_to_fit();
        names.ends.shrink_to_fit();
        Self { names, of }
    }

    /// Approximate bytes that are made of the names of a dictionary: a copy of each, its end, its rank, twice an entry to sort, and a
    /// hash in the filter of an SST.
    pub(crate) fn memory_of(dictionary: &Dictionary) -> usize {
        let each = size_of::<usize>() + size_of::<u32>() + 2 * size_of::<u64>() + FILTERED;
        dictionary.bytes() + dictionary.len() * each
    }

    /// Number of distinct names, and so the end of the ranks.
    pub(crate) fn len(&self) -> usize {
        self.names.ends.len()
    }

    pub(crate) fn name(&self, rank: u32) -> &[u8] {
        self.names.get(rank as usize)
    }

    /// Rank of each code of `worker`.
    pub(crate) fn of(&self, worker: usize) -> &[u32] {
        &self.of[worker]
    }
}

impl Names {
    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_rank_by_their_bytes() {
        let widths = [("", 10), ("", 0), ("meter-", 4), ("plant-", 0), ("a long beginning of names ", 12)];
        for (begin, width) in widths {
            let names = |from: u64, step: u64| {
                let mut all = Dictionary::new();
                (0..500).for_each(|at| {
                    let number = (from + at * step) * 7919 % 10_000;
                    all.intern(format!("{begin}{number:0width$}").as_bytes());
                    all.intern(format!("{begin}{:02}/veh-{:09}", number % 17, number * number).as_bytes());
                });
                all
            };
            let mut odd = Dictionary::new();
            let others =
                [&b"zz"[..], b"", begin.as_bytes(), b"a", b"a\0", b"a\0\0\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\0\0\0b"];
            others.iter().for_each(|name| {
                odd.intern(name);
            });
            let all = [names(0, 1), names(250, 3), odd];
            for dictionaries in [&all[..1], &all[..2], &all[..]] {
                let dictionaries: Vec<&Dictionary> = dictionaries.iter().collect();
                let ranks = Ranks::new(&dictionaries);
                let mut expected: Vec<&[u8]> = dictionaries.iter().flat_map(|dictionary| dictionary.iter()).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!((0..ranks.len() as u32).map(|rank| ranks.name(rank)).collect::<Vec<_>>(), expected);
                for (worker, dictionary) in dictionaries.iter().enumerate() {
                    let found = ranks.of(worker).iter().map(|rank| ranks.name(*rank));
                    assert!(found.eq(dictionary.iter()));
                }
            }
        }
        assert_eq!(Ranks::new(&[]).len(), 0);
    }
}
