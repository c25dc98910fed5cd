//! Whether the holder of a lease lives, by watching the lease: two clocks are never compared.

use std::time::{Duration, Instant};

use tidetable_record::Lease;

/// Duration of a lease that does not say it, as a damaged one.
const UNKNOWN: Duration = Duration::from_secs(60);

/// What a look at a lease tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was not watched for long enough.
    Unknown,
    /// It was written since the first look.
    Lives,
    /// It was not written for as long as it holds.
    Expired,
}

/// What was seen of a lease.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last renewal, and when it was first seen.
    seen: Option<(String, Instant)>,
    lives: bool,
}

impl Watch {
    /// Notes the lease as it is at `now` by the clock of this process.
    pub(super) fn look(&mut self, lease: &Lease, now: Instant) -> Verdict {
        let holds = holds(lease);
        match &self.seen {
            Some((renewal, since)) if *renewal == lease.renewal => {
                if now.saturating_duration_since(*since) >= holds {
                    return Verdict::Expired;
                }
            }
            before => {
                self.lives = before.is_some();
                self.seen = Some((lease.renewal.clone(), now));
            }
        }
        if self.lives { Verdict::Lives } else { Verdict::Unknown }
    }

    /// How long a lease that was [looked at](Self::look) holds from `now`, unless it is renewed.
    pub(super) fn left(&self, lease: &Lease, now: Instant) -> Option<Duration> {
        let (_, since) = self.seen.as_ref()?;
        Some(holds(lease).saturating_sub(now.saturating_duration_since(*since)))
    }
}

fn holds(lease: &Lease) -> Duration {
    if lease.seconds == 0 { UNKNOWN } else { Duration::from_secs(lease.seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_expires_when_it_was_seen_unchanged_for_its_time() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let lease = |renewal: &str| Lease { renewal: renewal.to_owned(), seconds: 60, ..Lease::default() };
        let mut watch = Watch::default();
        assert_eq!(watch.look(&lease("1"), at(0)), Verdict::Unknown);
        assert_eq!(watch.look(&lease("1"), at(59)), Verdict::Unknown);
        assert_eq!(watch.look(&lease("2"), at(59)), Verdict::Lives);
        assert_eq!(watch.look(&lease("2"), at(118)), Verdict::Lives);
        assert_eq!(watch.look(&lease("2"), at(119)), Verdict::Expired);
        assert_eq!(watch.look(&lease("3"), at(120)), Verdict::Lives, "renewed at the last instant");
        assert_eq!(watch.look(&lease("3"), at(180)), Verdict::Expired);
    }

    #[test]
    fn a_damaged_lease_expires_too() {
        let begin = Instant::now();
        let mut watch = Watch::default();
        assert_eq!(watch.look(&Lease::default(), begin), Verdict::Unknown);
        assert_eq!(watch.look(&Lease::default(), begin + UNKNOWN), Verdict::Expired);
    }
}
