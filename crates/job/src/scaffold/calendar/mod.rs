//! How files write parts of times: times of day, and names of clocks and months.
//!
//! - `clock_name` tells times of day from durations by the name of their column, `day_time` reads them.
//! - `months` knows the names of months, `year_part` codes such as `M01` and `Q1`, `part_name` names of columns of days and hours.

pub(crate) mod clock_name;
pub(crate) mod day_time;
pub(crate) mod months;
pub(crate) mod part_name;
pub(crate) mod year_part;
