//! Values from the bytes of fields.

pub(crate) mod blanks;
mod column_builder;
pub(crate) mod column_plan;
pub(crate) mod field;
pub(crate) mod fields;
pub(crate) mod notation;

pub(crate) use column_builder::ColumnBuilder;
pub(crate) use column_plan::ColumnPlan;
pub(crate) use fields::Slices;
