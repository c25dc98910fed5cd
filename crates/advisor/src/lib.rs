//! Layouts compared by numbers: what each holds, what it costs, how writes spread over its key space, and what it
//! breaks of the rules of Bigtable's schema-design guides.
//!
//! A [`trial::Trial`] reads the inputs of a job once and encodes every candidate layout into a temporary store, so that
//! each number comes from the cells that a run would write, and nothing of the job is touched. [`comparison::compare`] puts
//! the layouts side by side:
//!
//! | module | contents |
//! |---|---|
//! | [`trial`] | layouts with the rows of a job's inputs |
//! | [`measure`] | rows, cells and bytes |
//! | [`mod@spread`] | how writes spread over the key space as time goes by |
//! | [`heatmap`] | row keys by time, and the patterns in it; also of a loaded table |
//! | [`queries`] | what queries read of a layout |
//! | [`growth`] | rows and reads at the declared scale |
//! | [`cost`] | what a layout costs |
//! | [`advice`] | layouts proposed for a workload |
//! | [`lint`] | the tables of a job file checked against the rules, with the job's data where it is given |

pub mod advice;
pub mod comparison;
pub mod cost;
mod error;
mod facts;
pub mod growth;
pub mod heatmap;
pub mod lint;
pub mod measure;
pub mod queries;
pub mod spread;
pub mod trial;
mod visit;

pub use error::{AdvisorError, Result};
