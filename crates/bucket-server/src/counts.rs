//! Counts of requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kind::Kind;

/// Requests received since the start, or since counts were last reset; those of `/_/` do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of requests of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// Requests that met a fault.
    pub faults: u64,
    /// Bytes of request bodies.
    pub received: u64,
    /// Bytes of reply bodies.
    pub sent: u64,
    /// From the headers of a request to the begin of its reply, microseconds since the start of the server.
    pub(crate) spans: Vec<(u64, u64)>,
}

impl Counts {
    /// The number of requests of all kinds.
    pub fn total(&self) -> u64 {
        self.kinds.values().sum()
    }

    /// Requests of one kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// The most requests of which each began after the reply to the one before it: round trips in sequence. Requests that
    /// were sent at once overlap only if replies are delayed, so without a delay this is an upper bound.
    pub fn sequential(&self) -> u64 {
        let mut spans = self.spans.clone();
        spans.sort_unstable_by_key(|(_, end)| *end);
        let (mut count, mut last) = (0, 0);
        for (begin, end) in spans {
            if count == 0 || begin >= last {
                (count, last) = (count + 1, end);
            }
        }
        count
    }

    /// As JSON: `requests` by kind, `total`, `sequential`, `faults`, `received`, `sent`.
    pub(crate) fn json(&self) -> Value {
        let kinds: BTreeMap<String, u64> = self.kinds.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
        json!({
            "requests": kinds, "total": self.total(), "sequential": self.sequential(),
            "faults": self.faults, "received": self.received, "sent": self.sent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_one_round_trip() {
        let of = |spans: &[(u64, u64)]| Counts { spans: spans.to_vec(), ..Counts::default() }.sequential();
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(0, 30), (1, 31), (2, 29)]), 1);
        assert_eq!(of(&[(0, 30), (30, 60), (31, 61), (62, 90), (5, 100)]), 3);
    }
}
