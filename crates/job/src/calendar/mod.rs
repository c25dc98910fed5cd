//! Days of a time zone, the periods of parts, and names with dates.

pub mod day;
pub(crate) mod per;
pub(crate) mod period;
pub mod template;
