//! Reads ranges of spilled windows back as chunks.

use std::collections::BTreeMap;

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_layout::encode::Dictionary;
use tidetable_layout::schema::QualifierKind;
use tidetable_store::Result;

use crate::sort::chunk::{AllRanks, Chunk};
use crate::sort::ranks::Ranks;
use crate::spill::file::Spill;
use crate::spill::names::Names;
use crate::spill::page::PageEvents;
use crate::spill::ranges::KeyRange;

/// The events of a range of row keys, as they came.
pub(crate) struct RangeEvents {
    /// Those of earlier spills first.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) ranks: AllRanks,
}

/// The names of a spill in a range.
struct SpillNames {
    prefixes: Dictionary,
    qualifiers: Vec<Option<Dictionary>>,
}

impl RangeEvents {
    /// Reads the events of `range` from the spills of window `window`.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn read(schema: &StoredSchema, spills: &[Spill], window: i64, range: &KeyRange) -> Result<Self> {
        let numbered: Vec<(usize, &Spill)> = spills.iter().enumerate().collect();
        let of_spill = |(number, spill): (usize, &Spill)| {
            let pages: Vec<_> = spill.pages.iter().filter(|page| range.has_any(page)).collect();
            let read = |page| {
                let mut events = spill.read(schema, page)?;
                if !range.has_all(page) {
                    let start = range.start.as_ref().map_or(0, |start| events.before(start));
                    let end = range.end.as_ref().map_or(events.len(), |end| events.before(end));
                    events.keep(start..end);
                }
                Ok(events)
            };
            let pages: Vec<PageEvents> = pages.into_par_iter().map(read).collect::<Result<_>>()?;
            Ok(chunks_of(schema, pages, number, window))
        };
        let read: Vec<(SpillNames, Vec<Chunk>)> = numbered.into_par_iter().map(of_spill).collect::<Result<_>>()?;

        let (names, chunks): (Vec<SpillNames>, Vec<Vec<Chunk>>) = read.into_iter().unzip();
        let prefixes: Vec<&Dictionary> = names.iter().map(|names| &names.prefixes).collect();
        let qualifiers = (0..schema.groups.len()).map(|group| {
            let of_group: Vec<&Dictionary> =
                names.iter().filter_map(|names| names.qualifiers[group].as_ref()).collect();
            (!of_group.is_empty()).then(|| Ranks::new(&of_group))
        });
        let ranks = AllRanks { qualifiers: qualifiers.collect(), prefixes: Ranks::new(&prefixes) };
        Ok(Self { chunks: chunks.into_iter().flatten().collect(), ranks })
    }
}

/// Makes a chunk of each page, with the names of all of them in one place. These are not distinct: a name may go on
/// behind the end of a page.
fn chunks_of(schema: &StoredSchema, pages: Vec<PageEvents>, spill: usize, window: i64) -> (SpillNames, Vec<Chunk>) {
    let mut names = SpillNames { prefixes: Dictionary::new(), qualifiers: Vec::new() };
    for group in &schema.groups {
        let is_dynamic = group.qualifier == QualifierKind::Dynamic;
        names.qualifiers.push(is_dynamic.then(Dictionary::new));
    }

    let mut chunks = Vec::with_capacity(pages.len());
    for (page, events) in pages.into_iter().enumerate() {
        let PageEvents { prefixes, qualifiers, mut encoded, units } = events;
        add_names(&mut names.prefixes, &prefixes, &mut encoded.prefix);
        for (at, group) in encoded.groups.iter_mut().enumerate() {
            if let (Some(all), Some(own), Some(codes)) =
                (&mut names.qualifiers[at], &qualifiers[at], &mut group.qualifier)
            {
                add_names(all, own, codes);
            }
        }
        let all = 0..encoded.prefix.len();
        let windows = BTreeMap::from([(window, Vec::from([all]))]);
        chunks.push(Chunk { place: (spill as u64, page as u64), worker: spill, bytes: 0, encoded, units, windows });
    }
    (names, chunks)
}

/// Appends names to a dictionary, and moves the codes that refer to them.
fn add_names(all: &mut Dictionary, own: &Names, codes: &mut [u32]) {
    let first = all.len() as u32;
    own.iter().for_each(|name| {
        all.push(name);
    });
    codes.iter_mut().for_each(|code| *code += first);
}
