//! Layouts compared by numbers: what each holds, what it costs, how writes spread over its key space, and what it
//! breaks of the rules of Bigtable's schema-design guides.
//!
//! [`lint`] checks the tables of a job file against the rules, with the job's data where it is given.

pub mod lint;
