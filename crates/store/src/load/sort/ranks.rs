//! Merges the dictionaries of several workers: the rank of every distinct name in byte order.
//!
//! Each worker interns row-key prefixes and qualifiers by itself; sorting cells needs one order. Only distinct names
//! are compared; cells are sorted by counting.

use tidetable_layout::encode::Dictionary;

/// The merged order of the dictionaries of all workers.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// Distinct names in ascending byte order; a rank is an index here.
    pub(crate) names: Vec<Box<[u8]>>,
    /// For each worker, the rank of each of its codes.
    of: Vec<Vec<u32>>,
}

impl Ranks {
    /// Ranks the names of `dictionaries`, one for each worker.
    pub(crate) fn new(dictionaries: &[&Dictionary]) -> Self {
        let total = dictionaries.iter().map(|dictionary| dictionary.len()).sum();
        let mut entries: Vec<(&[u8], u32, u32)> = Vec::with_capacity(total);
        for (worker, dictionary) in dictionaries.iter().enumerate() {
            entries.extend((0..dictionary.len() as u32).map(|code| (dictionary.get(code), worker as u32, code)));
        }
        entries.sort_unstable();
        let mut of: Vec<Vec<u32>> = dictionaries.iter().map(|dictionary| vec![0; dictionary.len()]).collect();
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for (name, worker, code) in entries {
            if names.last().is_none_or(|last| last.as_ref() != name) {
                names.push(name.into());
            }
            of[worker as usize][code as usize] = names.len() as u32 - 1;
        }
        Self { names, of }
    }

    /// Rank of each code of `worker`.
    pub(crate) fn of(&self, worker: usize) -> &[u32] {
        &self.of[worker]
    }
}
