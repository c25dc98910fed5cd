//! Units and answers as bytes.
//!
//! ```text
//! unit   = "TTUNIT1\n" build "\n" JSON
//! answer = JSON
//! ```
//!
//! The build comes first, so that another one refuses a unit without understanding it.

use serde::{Deserialize, Serialize};

use crate::fault::unit_failure::UnitFailure;
use crate::units::work::{CompactAnswer, CompactWork, LoadAnswer, LoadWork, ParkedPart, PublishWork};

/// What a unit begins with: kind and version of the format.
const MAGIC: &str = "TTUNIT1";

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The root, as the driver names it.
    pub(crate) root: String,
    /// The run, which holds the lock of its job; empty for a unit of no run.
    pub(crate) run: String,
    /// Logical time, microseconds since the epoch.
    pub(crate) now: i64,
    /// The job; `None` for a compaction.
    pub(crate) job: Option<JobReference>,
    pub(crate) work: Work,
}

/// A job, as the machine that runs the unit finds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct JobReference {
    pub(crate) name: String,
    /// Path of its file, relative to the project directory where it lies below.
    pub(crate) path: String,
    /// Fingerprint of all that units use of it.
    pub(crate) fingerprint: String,
}

/// What a unit does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    Load(LoadWork),
    Publish(Box<PublishWork>),
    Compact(CompactWork),
    /// Waits so many milliseconds: measures what a carrier costs.
    Wait(u64),
}

/// The result of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Name of the executor that ran the unit.
    pub executor: String,
    /// How long the unit took, in seconds.
    pub seconds: f64,
    pub(crate) done: Result<Done, UnitFailure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Done {
    Load(LoadAnswer),
    Publish(Box<ParkedPart>),
    Compact(CompactAnswer),
    Wait,
}

impl Unit {
    /// A unit that waits `millis` milliseconds, to measure what its way costs.
    pub fn waiting(root: &str, millis: u64) -> Self {
        let (root, run) = (root.to_owned(), String::new());
        Self { root, run, now: 0, job: None, work: Work::Wait(millis) }
    }

    /// A unit of the run `run` of a job, in a root, at the logical time `now` in microseconds since the epoch.
    pub(crate) fn of_run(root: &str, run: &str, now: i64, job: Option<&JobReference>, work: Work) -> Self {
        Self { root: root.to_owned(), run: run.to_owned(), now, job: job.cloned(), work }
    }

    /// What kind of work it is, for people.
    pub fn kind(&self) -> &'static str {
        match &self.work {
            Work::Load(_) => "load",
            Work::Publish(_) => "publish",
            Work::Compact(_) => "compact",
            Work::Wait(_) => "wait",
        }
    }

    /// The unit as bytes for a process of this `build`.
    ///
    /// # Errors
    /// If JSON cannot represent it.
    pub fn encode(&self, build: &str) -> serde_json::Result<Vec<u8>> {
        let mut bytes = format!("{MAGIC}\n{build}\n").into_bytes();
        serde_json::to_writer(&mut bytes, self)?;
        Ok(bytes)
    }

    /// Decodes a unit.
    ///
    /// # Errors
    /// [`UnreadableUnit`].
    pub(crate) fn decode(bytes: &[u8], build: &str) -> Result<Self, UnreadableUnit> {
        let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
        let (magic, theirs) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if magic != MAGIC.as_bytes() {
            return Err(UnreadableUnit::NoUnit);
        }
        if theirs != build.as_bytes() {
            let driver = String::from_utf8_lossy(theirs).chars().take(80).collect();
            return Err(UnreadableUnit::OtherBuild { driver, executor: build.to_owned() });
        }
        serde_json::from_slice(lines.next().unwrap_or_default())
            .map_err(|error| UnreadableUnit::Damaged { reason: error.to_string() })
    }
}

impl Answer {
    /// Why the executor takes no part in the run, if it does not fit it: the unit is not done, and others may do it.
    pub fn unfit(&self) -> Option<&str> {
        self.done.as_ref().err().filter(|failure| failure.unfit).map(|failure| failure.message.as_str())
    }

    /// The answer as bytes.
    ///
    /// # Errors
    /// If JSON cannot represent it.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// If the bytes are not an answer of this build.
    pub fn decode(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }
}

/// Why bytes are not run as a unit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadableUnit {
    /// Bytes that are not a unit.
    #[error("the scheduler sent something else than a unit of tidetable: use a scheduler for tidetable alone")]
    NoUnit,
    /// Another build planned it.
    #[error(
        "the run is of build {driver}, this executor of build {executor}: install the same tidetable on all machines"
    )]
    OtherBuild { driver: String, executor: String },
    /// It does not decode.
    #[error("the unit cannot be read: {reason}")]
    Damaged { reason: String },
}

impl UnreadableUnit {
    /// Whether an executor of the run's build would read it.
    pub(crate) fn is_unfit(&self) -> bool {
        matches!(self, Self::OtherBuild { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_build_reads_a_unit() {
        let unit = Unit::waiting("/root", 7);
        let bytes = unit.encode("1-a").unwrap();
        assert!(bytes.starts_with(b"TTUNIT1\n1-a\n{"));
        assert_eq!(Unit::decode(&bytes, "1-a").unwrap(), unit);
        let other = UnreadableUnit::OtherBuild { driver: "1-a".to_owned(), executor: "1-b".to_owned() };
        assert_eq!(Unit::decode(&bytes, "1-b"), Err(other));
        assert_eq!(Unit::decode(b"", "1-a"), Err(UnreadableUnit::NoUnit));
        for end in 0..bytes.len() {
            assert!(Unit::decode(&bytes[..end], "1-a").is_err(), "{end}");
        }
    }
}
