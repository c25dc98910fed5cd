//! Columns that are part of the event time.
//!
//! - `clock` chooses the time of day that goes with a day, `fraction` the milliseconds that go with a time.
//! - `date` puts a time together from columns with its parts, which `columns` finds.
//! - `count` reads days and ticks that are counted from another epoch, `digits` numbers that are times by their digits.

pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod count;
pub(crate) mod date;
pub(crate) mod digits;
pub(crate) mod fraction;
