//! A layout read once for everything that is to be known of it.

use tidetable_layout::Block;
use tidetable_layout::cell::CellRef;

use crate::comparison::compared::{Compared, HottestRow};
use crate::error::Result;
use crate::facts::WriteFacts;
use crate::heatmap::{Heatmap, KeyList, KeysAt, patterns};
use crate::measure::Counts;
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
    let hot = [spread.hottest_row, spread.busiest_row].map(|row| row.map(|row| row.rank));
    let firsts = heatmap.first_ranks();
    let mut ranks: Vec<u32> = firsts.iter().copied().chain(hot.into_iter().flatten()).collect();
    ranks.sort_unstable();
    let mut names = KeysAt::new(&ranks);
    match keys {
        Some(keys) => keys.each(|key| names.see(key)),
        None => table.each_key(|key, _| {
            names.see(key);
            Ok(())
        })?,
    }
    let names = names.into_keys();
    let name = |rank: u32| ranks.binary_search(&rank).ok().and_then(|at| names.get(at)).cloned().unwrap_or_default();
    heatmap.buckets = firsts.into_iter().map(name).collect();
    let hottest_row = spread.hottest_row.map(|row| HottestRow {
        key: name(row.rank),
        second: axis.start_of(row.slice),
        share: row.share,
        rows: row.rows,
    });
    let facts = survey.map(|survey| {
        let mut facts = survey.finish();
        facts.overwritten = measured.overwritten;
        facts.writes = writes(&spread, axis, spread.busiest_row.map(|row| (row, name(row.rank))));
        facts
    });
    let (row_key, layout) = (table.layout.spec().row_key.clone(), table.layout.clone());
    Ok(Compared { row_key, layout, measured, patterns: patterns(&spread), spread, hottest_row, heatmap, facts })
}

/// The visitors of a pass.
struct Pass<'a> {
    counts: Counts<'a>,
    survey: Option<Survey<'a>>,
    log: WriteLog,
    /// `None` if they are too many to be held.
    keys: Option<KeyList>,
}

impl Extent {
    /// All of it.
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

fn writes(spread: &Spread, axis: Axis, busiest: Option<(HotRow, Vec<u8>)>) -> WriteFacts {
    let mut totals: Vec<u64> = spread.totals.iter().copied().filter(|total| *total > 0).collect();
    totals.sort_unstable();
    let rank = |per_cent: usize| {
        let rank = (totals.len() * per_cent).div_ceil(100).max(1);
        totals.get(rank - 1).copied().unwrap_or_default()
    };
    let (hottest_rows, hottest_key) = busiest.map_or((0, Vec::new()), |(row, key)| (row.rows, key));
    WriteFacts {
        slices: totals.len() as u64,
        cut_slices: spread.few.by_slice.len() as u64,
        top_share: spread.few.quantile(950),
        hottest_rate: hottest_rows as f64 / axis.width.max(1) as f64,
        hottest_key,
        median: rank(50),
        high: rank(95),
        declared: None,
    }
}
