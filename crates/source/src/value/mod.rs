//! Values from the bytes of fields.

mod column_builder;
pub(crate) mod field;
pub(crate) mod number;

pub(crate) use column_builder::ColumnBuilder;
