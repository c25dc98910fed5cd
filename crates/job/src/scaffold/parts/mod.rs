//! Columns that are part of the event time.
//!
//! - `clock` chooses the time of day that goes with a day, `fraction` the milliseconds that go with a time.
//! - `count` reads days and ticks that are counted from another epoch.

pub(crate) mod clock;
pub(crate) mod count;
pub(crate) mod fraction;
