//! The failure of a unit, as it comes back, and of the way there.

use serde::{Deserialize, Serialize};

/// Why a unit failed in another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (on {executor})")]
pub struct UnitFailure {
    /// The error, in words.
    pub message: String,
    /// Name of the executor that ran it.
    pub executor: String,
    /// Whether a retry may succeed.
    pub transient: bool,
    /// Whether it is the executor that does not fit the run, as one of another root: others may do the unit.
    pub unfit: bool,
}

/// Why units were not all answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// The run was asked to stop.
    #[error("stopped by signal {signal}")]
    Stopped {
        /// Number of the signal.
        signal: u8,
    },
    /// The scheduler does not answer.
    #[error(
        "the scheduler at {place} cannot be reached: {reason}; start it with `tidetable scheduler`, or correct the address. \
         What is committed stays: run the job again"
    )]
    Unreachable {
        /// Address of the scheduler.
        place: String,
        /// What failed, in words.
        reason: String,
    },
    /// The scheduler refused the units.
    #[error("the scheduler at {place} refused: {reason}")]
    Refused {
        /// Address of the scheduler.
        place: String,
        /// What it answered, in words.
        reason: String,
    },
    /// Some units were sent several times without an answer.
    #[error(
        "{missing} of {all} units were not done, although they were sent {times} times: {}; see the logs of the \
         executors. What is committed stays: run the job again",
        source.plain()
    )]
    Unanswered {
        /// Units without an answer.
        missing: usize,
        /// Number of all units.
        all: usize,
        /// How often they were sent.
        times: u32,
        /// The last failure of one of them.
        source: LostUnit,
    },
}

/// Why a unit came back without an answer, as the libraries of the way there said it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LostUnit(pub String);

/// What the texts of these libraries say, in plain words; the first that fits counts.
const CAUSES: [(&[&str], &str); 5] = [
    (&["no space left"], "its disk is full: free some of it"),
    (
        &["resources exhausted", "out of memory", "resourceexhausted"],
        "its memory was full: give it more, or a lower --memory",
    ),
    (&["deadline", "timed out", "timeout"], "it did not answer in time: it hangs, or the network does"),
    (
        &["connection refused", "tcp connect", "dns error"],
        "it cannot be reached: it has ended, or the network is closed",
    ),
    (
        &[
            "transport error",
            "h2 protocol",
            "broken pipe",
            "connection reset",
            "stream closed",
            "executor lost",
            "executorlost",
        ],
        "the connection to it broke: it ended, or was started again",
    ),
];
/// Most characters of a text that is shown as it is.
const SHOWN: usize = 200;

impl LostUnit {
    /// The reason in a sentence, with the name of the executor where it is known; a text that is not known is cut.
    pub fn plain(&self) -> String {
        // Named by the driver: `executor ID at HOST:PORT: ..`.
        let named = self.0.strip_prefix("executor ").and_then(|rest| rest.split_once(": "));
        let (who, said) = match named {
            Some((who, said)) => (format!("executor {who}"), said),
            None => ("the executor".to_owned(), self.0.as_str()),
        };

        let lower = said.to_lowercase();
        let cause = CAUSES.iter().find(|(signs, _)| signs.iter().any(|sign| lower.contains(sign)));
        if let Some((_, plain)) = cause {
            return format!("{who}: {plain}");
        }

        let line = said.lines().next().unwrap_or_default();
        let (line, _) = line.split_once(", details: [").unwrap_or((line, ""));
        let short: String = line.chars().take(SHOWN).collect();
        if named.is_some() { format!("{who}: {short}") } else { short }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_libraries_become_sentences() {
        let plain = |text: &str| LostUnit(text.to_owned()).plain();
        let broken = "executor e1 at 10.0.0.7:50051: status: Unknown, message: \"transport error\", details: [], metadata: \
                      MetadataMap { headers: {} }";
        assert_eq!(
            plain(broken),
            "executor e1 at 10.0.0.7:50051: the connection to it broke: it ended, or was started again"
        );
        let refused = "Grpc error: tcp connect error: Connection refused (os error 111)";
        assert_eq!(plain(refused), "the executor: it cannot be reached: it has ended, or the network is closed");
        // What tidetable says itself stays.
        assert_eq!(plain("the scheduler ended"), "the scheduler ended");
        assert_eq!(plain(&format!("odd {}", "x".repeat(900))).len(), SHOWN);
        let failed = CarryError::Unanswered { missing: 1, all: 2, times: 8, source: LostUnit(broken.to_owned()) };
        assert!(!failed.to_string().contains("MetadataMap"), "{failed}");
        assert!(std::error::Error::source(&failed).unwrap().to_string().contains("MetadataMap"));
    }
}
