//! Everything that is known of each layout of a trial.

use rayon::prelude::*;

use crate::error::{AdvisorError, Result};
use crate::heatmap::{Heatmap, Pattern, patterns};
use crate::measure::{Measured, measure};
use crate::spread::{Axis, Spread, WriteLog, spread};
use crate::trial::{Trial, TrialTable};

/// The layouts of a trial, on one time axis.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The slices that spread and heatmaps have in common.
    pub axis: Axis,
    /// In the order of the candidates.
    pub layouts: Vec<Compared>,
}

/// What is known of a layout.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Template of its row key.
    pub row_key: String,
    /// What it holds.
    pub measured: Measured,
    /// How its writes spread.
    pub spread: Spread,
    /// The row of the greatest share of a slice.
    pub hottest_row: Option<HottestRow>,
    /// Patterns of the writes.
    pub patterns: Vec<Pattern>,
    /// Source rows by row key and time.
    pub heatmap: Heatmap,
}

/// The row of the greatest share of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct HottestRow {
    /// Its key.
    pub key: Vec<u8>,
    /// Start of the slice, seconds since the epoch.
    pub second: i64,
    /// Its share of the slice.
    pub share: f64,
    /// Its source rows in the slice.
    pub rows: u64,
}

/// Measures the layouts of a trial, with slices at least `width` seconds wide.
///
/// # Errors
/// [`AdvisorError::NoRows`] if no layout holds a row, or if an encoded layout cannot be read.
pub fn compare(trial: &Trial, width: Option<i64>) -> Result<Comparison> {
    let axis = Axis::of_trial(trial, width).ok_or_else(|| {
        let sum = |of: fn(&TrialTable) -> u64| trial.tables.iter().map(of).max().unwrap_or_default();
        AdvisorError::NoRows { read: sum(|it| it.stats.rows_read), rejected: sum(|it| it.stats.rows_rejected) }
    })?;
    let measured = trial.tables.par_iter().map(|table| measure(table, true)).collect::<Result<Vec<_>>>()?;
    // A log of writes is the largest thing in memory: one at a time.
    let layouts = trial.tables.iter().zip(measured).map(|(table, measured)| {
        let log = WriteLog::of_table(table, axis)?;
        let spread = spread(&log);
        let hottest = spread.hottest_row;
        let (mut rank, mut hot_key) = (0, Vec::new());
        let heatmap = Heatmap::of_log(&log, |name| {
            table.each_key(|key, _| {
                if hottest.is_some_and(|hottest| hottest.rank == rank) {
                    hot_key = key.to_vec();
                }
                rank += 1;
                name(key);
                Ok(())
            })
        })?;
        let hottest_row = hottest.map(|hottest| HottestRow {
            key: hot_key,
            second: axis.start_of(hottest.slice),
            share: hottest.share,
            rows: hottest.rows,
        });
        let row_key = table.layout.spec().row_key.clone();
        Ok(Compared { row_key, measured, patterns: patterns(&spread), spread, hottest_row, heatmap })
    });
    Ok(Comparison { axis, layouts: layouts.collect::<Result<_>>()? })
}
