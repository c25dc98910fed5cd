//! A layout read once for everything that is to be known of it.

use tidetable_layout::Block;
use tidetable_layout::cell::CellRef;

use crate::comparison::compared::{Compared, HottestRow};
use crate::error::Result;
use crate::facts::WriteFacts;
use crate::heatmap::{Heatmap, KeyList, KeysAt, patterns};
use crate::measure::{Counts, Distribution};
use crate::spread::{Axis, HotRow, Spread, WriteLog, spread};
use crate::trial::{Row, TrialTable, Visitor};
use crate::visit::Survey;

/// What to find besides rows, cells, bytes and the spread of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Packed sizes, which take time.
    pub packed: bool,
    /// What rules ask of the data.
    pub facts: bool,
}

/// Reads a layout of a trial, with slices of `axis`.
///
/// # Errors
/// If the encoded layout cannot be read.
pub(crate) fn observe(table: &TrialTable, axis: Axis, extent: Extent) -> Result<Compared> {
    let mut pass = Pass {
        counts: Counts::new(table, extent.packed)?,
        survey: extent.facts.then(|| Survey::new(table, axis)),
        log: WriteLog::new(axis),
        keys: Some(KeyList::default()),
    };
    table.visit(&mut pass)?;

    let Pass { counts, survey, log, keys } = pass;
    let measured = counts.finish()?;
    let spread = spread(&log);
    let mut heatmap = Heatmap::of_log(&log);
    drop(log);

    // The names of the buckets, then those of the two rows.
    let firsts = heatmap.first_ranks();
    let hot = [spread.hottest_row, spread.busiest_row].into_iter().flatten().map(|row| row.rank);
    let names = KeyNames::read(table, keys.as_ref(), firsts.iter().copied().chain(hot).collect())?;
    heatmap.buckets = firsts.into_iter().map(|rank| names.of(rank)).collect();
    let hottest_row = spread.hottest_row.map(|row| HottestRow {
        key: names.of(row.rank),
        second: axis.start_of(row.slice),
        share: row.share,
        rows: row.rows,
    });

    let facts = survey.map(|survey| {
        let mut facts = survey.finish();
        facts.overwritten = measured.overwritten;
        facts.writes = writes(&spread, axis, spread.busiest_row.map(|row| (row, names.of(row.rank))));
        facts
    });

    let (row_key, layout) = (table.layout.spec().row_key.clone(), table.layout.clone());
    Ok(Compared { row_key, layout, measured, patterns: patterns(&spread), spread, hottest_row, heatmap, facts })
}

/// The row keys of some ranks.
struct KeyNames {
    /// Ascending.
    ranks: Vec<u32>,
    keys: Vec<Vec<u8>>,
}

impl KeyNames {
    /// The keys of `ranks`: from `keys` where all keys are held in memory, else by another pass over the table.
    fn read(table: &TrialTable, keys: Option<&KeyList>, mut ranks: Vec<u32>) -> Result<Self> {
        ranks.sort_unstable();
        let mut names = KeysAt::new(&ranks);
        match keys {
            Some(keys) => keys.each(|key| names.see(key)),
            None => table.each_key(|key, _| {
                names.see(key);
                Ok(())
            })?,
        }
        let keys = names.into_keys();
        Ok(Self { ranks, keys })
    }

    /// The key of a rank; empty if it was not asked for.
    fn of(&self, rank: u32) -> Vec<u8> {
        let at = self.ranks.binary_search(&rank).ok();
        at.and_then(|at| self.keys.get(at)).cloned().unwrap_or_default()
    }
}

/// The visitors that one pass over the cells serves together.
struct Pass<'a> {
    counts: Counts<'a>,
    survey: Option<Survey<'a>>,
    log: WriteLog,
    /// `None` if they are too many to be held.
    keys: Option<KeyList>,
}

impl Extent {
    /// Packed sizes and facts, besides what is always found.
    pub const ALL: Self = Self { packed: true, facts: true };
}

impl Visitor for Pass<'_> {
    fn block(&mut self, block: &Block) {
        self.counts.block(block);
    }

    fn cell(&mut self, cell: &CellRef<'_>) -> Result<()> {
        if let Some(survey) = &mut self.survey {
            survey.cell(cell)?;
        }
        self.counts.cell(cell)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        if let Some(survey) = &mut self.survey {
            survey.row(row)?;
        }
        if !row.writes.is_empty() {
            self.log.add_key(row.writes);
            self.keys = self.keys.take().and_then(|keys| keys.with(row.key));
        }
        self.counts.row(row)
    }
}

/// How the writes of a table spread. `busiest` is the row with the most source rows in one slice, with its key.
fn writes(spread: &Spread, axis: Axis, busiest: Option<(HotRow, Vec<u8>)>) -> WriteFacts {
    let mut totals = Distribution::default();
    spread.totals.iter().filter(|total| **total > 0).for_each(|total| totals.add(*total));
    let (hottest_rows, hottest_key) = busiest.map_or((0, Vec::new()), |(row, key)| (row.rows, key));
    WriteFacts {
        slices: totals.count(),
        cut_slices: spread.few.by_slice.len() as u64,
        top_share: spread.few.quantile(950),
        hottest_rate: hottest_rows as f64 / axis.width.max(1) as f64,
        hottest_key,
        median: totals.quantile(500),
        high: totals.quantile(950),
        declared: None,
    }
}
