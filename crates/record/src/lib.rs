//! Records of runs.
//!
//! - [`RunRecord`] is the record of a run: loads ([`LoadRecord`]), compactions, parts of exports, checks, and failed
//!   attempts ([`AttemptRecord`]).
//! - [`Runs`] reads the records of a store.
//! - [`FailingRow`] is a row that broke a check; [`failing_rows`] reads those of a run.
//! - [`Failures`] are the parts and days of a job that are still to be done, from all runs.
//! - [`Seen`] are the gone and copied inputs that the last run of a job saw, so that they are reported once.
//! - [`Holder`] is the process that runs a job now ([`holder`]); a `running` record without one is of a killed run. In a
//!   bucket it holds a [`Lease`].
//! - [`PullOrigins`] are the tables of Bigtable that the rows of a table were pulled from.
//! - [`PushState`] is what was pushed of a table into Bigtable, and how far a push came.
//! - [`rejected_rows`] reads the rejected rows of a run.
//!
//! ```
//! use tidetable_record::{RunRecord, Runs};
//! use tidetable_blobs::LocalBlobs;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let blobs = LocalBlobs::new(root.path().to_owned());
//! let record = RunRecord { run: "01B".to_owned(), job: "j".to_owned(), ..RunRecord::default() };
//! record.save(&blobs)?;
//! assert_eq!(Runs::of(&blobs).last("j")?.map(|last| last.run), Some("01B".to_owned()));
//! # Ok(())
//! # }
//! ```

mod attempt;
mod compaction;
mod executor;
mod failing;
mod failures;
mod known_versions;
mod load;
mod lock;
mod part;
mod pull;
mod push;
mod rejects;
mod run;
mod runs;
mod seen;

pub use attempt::AttemptRecord;
pub use compaction::CompactionRecord;
pub use executor::ExecutorRecord;
pub use failing::{FailingRow, failing_path, failing_rows, keep_failing_rows, runs_with_failing_rows};
pub use failures::{Failure, Failures};
pub use known_versions::{KnownVersions, LostVersion, NewestVersions, first_run};
pub use load::{Added, InputRecord, InputState, LoadRecord, OwedRecord, OwingInput};
pub use lock::holder::{FailedRun, Holder, lock_name, lock_path, read_holder};
pub use lock::lease::Lease;
pub use lock::state::{holder, last_holder, state_of, unrecorded};
pub use part::{CheckRecord, ExportRecord, PartState, Severity};
pub use pull::PullOrigins;
pub use push::{PushBase, PushCounts, PushProgress, PushRange, PushRecord, PushState};
pub use rejects::{rejected_lines, rejected_rows, rejects_path};
pub use run::{DamageRecord, FORMAT, Outcome, RunRecord, RunRequest};
pub use runs::{RunFound, Runs};
pub use seen::Seen;
