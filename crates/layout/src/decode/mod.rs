//! Blocks back to records of the source's columns.

mod align;
mod columns;
mod key_times;
mod prefix_runs;
mod projection;
mod record_alignment;
mod records;
mod rows;

pub use record_alignment::is_one_each;
pub use rows::{RowValues, record_counts};
