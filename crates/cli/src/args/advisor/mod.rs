//! Commands that measure layouts.

mod advise;
mod compare;
mod heatmap;

pub use advise::Advise;
pub use compare::Compare;
pub use heatmap::{Heatmap, HeatmapMetric};
