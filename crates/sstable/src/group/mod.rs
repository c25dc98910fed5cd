//! One group of columns in a stripe: the records of each row, their qualifiers, timestamps and values.

mod encode;
mod head;
pub(crate) mod late_materialisation;
pub(crate) mod outliers;
mod pattern_table;
pub(crate) mod sums;

pub(crate) use encode::put;
pub(crate) use head::GroupHead;
pub use late_materialisation::RecordFilter;
