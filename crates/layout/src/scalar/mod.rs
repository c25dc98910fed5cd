//! Single values: owned, borrowed from a column, and columns built of them.

mod builder;
mod value;
mod view;

pub(crate) use builder::ColumnBuilder;
pub use value::Scalar;
pub(crate) use value::ScalarRef;
pub(crate) use view::{ColumnView, RawIntegers, column_views};
