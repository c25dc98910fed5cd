//! Everything that is known of each layout of a trial.

use rayon::prelude::*;

use crate::comparison::compared::Compared;
use crate::comparison::observe::{Extent, observe};
use crate::error::Result;
use crate::spread::Axis;
use crate::trial::{Outliers, Trial};

/// The layouts of a trial, on one time axis.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The slices that spread and heatmaps have in common.
    pub axis: Axis,
    /// Source rows that the axis leaves out: their times are far from those of all others.
    pub outliers: Option<Outliers>,
    /// In the order of the candidates.
    pub layouts: Vec<Compared>,
}

/// Measures the layouts of a trial, with slices at least `width` seconds wide.
///
/// # Errors
/// [`NoRows`](crate::AdvisorError::NoRows) if no layout holds a row, or if an encoded layout cannot be read.
pub fn compare(trial: &Trial, width: Option<i64>, extent: Extent) -> Result<Comparison> {
    let axis = Axis::of_trial(trial, width).ok_or_else(|| trial.no_rows())?;
    let layouts = trial.tables.par_iter().map(|table| observe(table, axis, extent)).collect::<Result<_>>()?;
    Ok(Comparison { axis, outliers: trial.profile.outliers, layouts })
}
