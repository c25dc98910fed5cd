//! Layouts of the repository's jobs and of random jobs, measured.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advice;
mod generated;
mod samples;
