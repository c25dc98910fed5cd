//! What grows when a table is kept longer, or has more entities or a higher rate than what was measured.
//!
//! A workload declares entities, a rate and how long rows are kept. [`Demand`] splits the growth of the data into these three
//! factors; what a layout does with each follows from the columns of its row key, its [`KeyShape`]:
//!
//! | growth | of a row | of what a query reads |
//! |---|---|---|
//! | entities | by the columns that the key lacks; in a row of one instant by those that write at one | by the columns that the query leaves open |
//! | rate of an entity | in full; rows of one instant do not grow | in full |
//! | time | until the bucket of time is full | by the length of the query's range of time, or in full |
//!
//! Shares that were measured are of entities and of slices, and are multiplied by the growth of what they are shares of. So are
//! counts of a sample of entities, its [`Sampled`]: the rows of one entity are all in it.

mod at_scale;
mod bounds;
mod demand;
mod key_shape;
mod reads;
mod sampled;

pub use at_scale::{Grown, at_scale, row_growth};
pub use bounds::QueryBounds;
pub use demand::{Demand, SourceRows};
pub use key_shape::{KeyPart, KeyShape};
pub use reads::{ReadAmount, ReadGrowth, read_growth};
pub use sampled::Sampled;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::demand::tests::{counted, profile, workload};
    pub(crate) use super::key_shape::tests::shape;
}
