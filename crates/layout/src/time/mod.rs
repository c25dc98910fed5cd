//! Times, dates and windows.

pub(crate) mod calendar;
mod local;
pub(crate) mod text;
mod window;

use std::ops::RangeInclusive;

pub use calendar::{DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, iso_week};
pub use local::LocalOffset;
pub use window::{window_bounds, window_name, window_of};

/// The range of timestamp columns, in microseconds since the epoch: the years 1 to 9999, which have four digits wherever they
/// are written.
pub const TIMESTAMP_RANGE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;
