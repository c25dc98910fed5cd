//! Times, dates and windows.

pub(crate) mod calendar;
mod local;
pub(crate) mod text;
mod window;

use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

pub use calendar::{DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, iso_week};
pub use local::LocalOffset;
pub use window::{window_bounds, window_name, window_of};

/// The range of timestamp columns, in microseconds since the epoch: the years 1 to 9999, which have four digits wherever they
/// are written.
pub const TIMESTAMP_RANGE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// Microseconds since the epoch, negative before it. (`chrono::Utc::now` panics for a clock before 1970.)
pub fn micros_since_epoch(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_before_1970_is_negative() {
        assert_eq!(micros_since_epoch(UNIX_EPOCH + Duration::from_micros(7)), 7);
        assert_eq!(micros_since_epoch(UNIX_EPOCH - Duration::from_secs(1)), -SECOND);
    }
}
