//! Reads ranges of spilled windows back as chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_layout::encode::{Dictionary, KeyNumbers};
use tidetable_layout::schema::QualifierKind;
use tidetable_store::Result;

use crate::sort::chunk::{AllRanks, Chunk, Prefixes};
use crate::sort::ranks::Ranks;
use crate::spill::file::{PageEntry, Spill};
use crate::spill::names::Names;
use crate::spill::page::PageEvents;
use crate::spill::ranges::KeyRange;

/// The events of a range of row keys, as they came.
pub(crate) struct RangeEvents {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) ranks: AllRanks,
}

/// The names of a spill in a range.
struct SpillNames {
    prefixes: Dictionary,
    qualifiers: Vec<Option<Dictionary>>,
}

impl RangeEvents {
    /// Reads the events of `range` from the spills of window `window`, of a layout whose keys have these numbers.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn read(
        schema: &StoredSchema,
        spills: &[Spill],
        window: i64,
        range: &KeyRange,
        numbers: Option<&Arc<KeyNumbers>>,
    ) -> Result<Self> {
        let read = spills.par_iter().map(|spill| read_spill(schema, spill, range, numbers.map(Arc::as_ref)));
        let mut read: Vec<Vec<PageEvents>> = read.collect::<Result<_>>()?;
        // Row keys become numbers during a load: those before that are made numbers, too.
        let numbers = numbers.filter(|_| read.iter().flatten().any(|page| page.are_numbers));
        if let Some(numbers) = numbers {
            read.iter_mut().flatten().try_for_each(|page| page.make_numbers(numbers))?;
        }

        let (mut names, mut chunks) = (Vec::new(), Vec::new());
        for (number, pages) in read.into_iter().enumerate() {
            let (of_spill, more) = chunks_of(schema, pages, number, window);
            names.push(of_spill);
            chunks.extend(more);
        }
        let prefixes: Vec<&Dictionary> = names.iter().map(|names| &names.prefixes).collect();
        let prefixes = match numbers {
            Some(numbers) => Prefixes::Numbers(Arc::clone(numbers)),
            None => Prefixes::Names(Ranks::new(&prefixes)),
        };

        let mut qualifiers = Vec::new();
        for group in 0..schema.groups.len() {
            let of_group = names.iter().filter_map(|names| names.qualifiers[group].as_ref());
            let of_group: Vec<&Dictionary> = of_group.collect();
            qualifiers.push((!of_group.is_empty()).then(|| Ranks::new(&of_group)));
        }
        Ok(Self { chunks, ranks: AllRanks { prefixes, qualifiers } })
    }
}

/// Reads the events of a spill that are in `range`, page by page.
fn read_spill(
    schema: &StoredSchema,
    spill: &Spill,
    range: &KeyRange,
    numbers: Option<&KeyNumbers>,
) -> Result<Vec<PageEvents>> {
    let pages: Vec<&PageEntry> = spill.pages.iter().filter(|page| range.has_any(page)).collect();
    pages.into_par_iter().map(|page| read_in(schema, spill, page, range, numbers)).collect()
}

/// Reads the events of a page that are in `range`.
fn read_in(
    schema: &StoredSchema,
    spill: &Spill,
    page: &PageEntry,
    range: &KeyRange,
    numbers: Option<&KeyNumbers>,
) -> Result<PageEvents> {
    let mut events = spill.read(schema, page)?;
    if !range.has_all(page) {
        let start = range.start.as_ref().map_or(0, |start| events.before(start, numbers));
        let end = range.end.as_ref().map_or(events.len(), |end| events.before(end, numbers));
        events.keep(start..end);
    }
    Ok(events)
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
        let PageEvents { prefixes, qualifiers, mut encoded, units, .. } = events;
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
