//! A layout of a comparison.

use tidetable_layout::Layout;

use crate::facts::TableFacts;
use crate::heatmap::{Heatmap, Pattern};
use crate::measure::Measured;
use crate::spread::Spread;

/// A layout of a comparison, with what was measured of the rows of the trial in it.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Template of its row key.
    pub row_key: String,
    /// The compiled layout, without the counter that a trial adds.
    pub layout: Layout,
    /// Rows, cells and bytes, and the distributions of these.
    pub measured: Measured,
    /// How its writes spread.
    pub spread: Spread,
    /// The row of the greatest share of a slice.
    pub hottest_row: Option<HottestRow>,
    /// Patterns of the writes.
    pub patterns: Vec<Pattern>,
    /// Source rows by row key and time.
    pub heatmap: Heatmap,
    /// What rules ask of its data, if that was asked for.
    pub facts: Option<TableFacts>,
}

/// The row of the greatest share of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct HottestRow {
    /// Its row key, as bytes.
    pub key: Vec<u8>,
    /// Start of the slice, seconds since the epoch.
    pub second: i64,
    /// Its share of the slice.
    pub share: f64,
    /// Its source rows in the slice.
    pub rows: u64,
}
