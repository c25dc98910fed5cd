//! Layouts compared by numbers: what each holds, what it costs, how writes spread over its key space, and what it
//! breaks of the rules of Bigtable's schema-design guides.
//!
//! A [`trial::Trial`] reads the inputs of a job once and encodes every candidate layout into a temporary store, so that
//! each number comes from the cells that a run would write, and nothing of the job is touched. [`measure::measure`] counts
//! rows, cells and bytes of a layout, [`spread::spread`] how writes spread over its key space. [`lint`] checks the tables of a job file against the rules, with the job's data
//! where it is given.

mod error;
pub mod lint;
pub mod measure;
pub mod spread;
pub mod trial;

pub use error::{AdvisorError, Result};
