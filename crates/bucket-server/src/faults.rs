//! Faults of replies, by a seed.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::kind::Kind;

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset before the request is read.
    Reset,
    /// Not executed: 500 `InternalError`.
    InternalError,
    /// Not executed: 503 `SlowDown`.
    SlowDown,
    /// A conditional write that is not executed: 409 `ConditionalRequestConflict`, as two concurrent ones may get.
    Conflict,
    /// A conditional write that is not executed: 412 `PreconditionFailed`, though the condition holds.
    Precondition,
    /// Executed, and 500 is the answer.
    ErrorAfter,
    /// Executed, and the connection closed or reset before the reply.
    LostReply,
    /// Executed, and the connection closed within the reply's body.
    Truncated,
    /// Executed, and the reply comes late.
    Slow,
    /// Not executed: 403 `AccessDenied`. Clients do not ask again, so only a [watch](crate::Watch) causes it.
    Denied,
    /// An upload is begun twice; the other one, a week old and with a part, is never finished.
    StaleUpload,
}

const NAMES: [(Fault, &str); 10] = [
    (Fault::Reset, "reset"),
    (Fault::InternalError, "500"),
    (Fault::SlowDown, "503"),
    (Fault::Conflict, "409"),
    (Fault::Precondition, "412"),
    (Fault::ErrorAfter, "error-after"),
    (Fault::LostReply, "lost-reply"),
    (Fault::Truncated, "truncated"),
    (Fault::Slow, "slow"),
    (Fault::StaleUpload, "stale-upload"),
];

/// How often each fault happens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    rates: [f64; NAMES.len()],
}

/// A list of faults that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongFaults {
    part: String,
}

impl fmt::Display for WrongFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        let known = names.join(", ");
        write!(f, "{:?}: give NAME=RATE,.. with a sum of rates up to 1, of all or {known}", self.part)
    }
}

impl std::error::Error for WrongFaults {}

impl FromStr for Faults {
    type Err = WrongFaults;

    /// Reads `503=0.05,lost-reply=0.01`; `all=0.01` stands for each; empty text is none.
    fn from_str(text: &str) -> Result<Self, WrongFaults> {
        let mut faults = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            faults.set(part).ok_or_else(|| WrongFaults { part: part.to_owned() })?;
        }
        if faults.rates.iter().sum::<f64>() > 1.0 + 1e-9 {
            return Err(WrongFaults { part: text.to_owned() });
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.rates.iter().zip(NAMES).filter(|(rate, _)| **rate > 0.0);
        let parts: Vec<String> = set.map(|(rate, (_, name))| format!("{name}={rate}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl Faults {
    /// Sets the rate of `NAME=RATE`; `None` if that is not one.
    fn set(&mut self, part: &str) -> Option<()> {
        let (name, rate) = part.split_once('=')?;
        let rate: f64 = rate.parse().ok().filter(|rate| (0.0..=1.0).contains(rate))?;
        let mut met = None;
        for (slot, (_, known)) in self.rates.iter_mut().zip(NAMES) {
            if name == known || name == "all" {
                (*slot, met) = (rate, Some(()));
            }
        }
        met
    }

    /// The fault of request `number`, if it has one; a function of seed and number.
    pub(crate) fn draw(&self, seed: u64, number: u64, kind: Kind, conditional: bool) -> Option<Fault> {
        if self.rates.iter().all(|rate| *rate == 0.0) {
            return None;
        }
        // 53 bits, as many as a float holds.
        let mut drawn = (xxh3_64_with_seed(&number.to_le_bytes(), seed) >> 11) as f64 / (1_u64 << 53) as f64;
        for (rate, (fault, _)) in self.rates.iter().zip(NAMES) {
            if drawn < *rate {
                return fault.befalls(kind, conditional).then_some(fault);
            }
            drawn -= rate;
        }
        None
    }
}

impl Fault {
    /// Whether a request of this kind can meet it.
    fn befalls(self, kind: Kind, conditional: bool) -> bool {
        match self {
            Self::Conflict | Self::Precondition => conditional,
            Self::StaleUpload => kind == Kind::CreateUpload,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        let faults: Faults = "503=0.05,lost-reply=0.01".parse().unwrap();
        assert_eq!(faults.to_string(), "503=0.05,lost-reply=0.01");
        assert_eq!("".parse(), Ok(Faults::default()));
        let all: Faults = "all=0.1".parse().unwrap();
        assert_eq!(all.to_string().matches("=0.1").count(), NAMES.len());
        for wrong in ["503", "503=x", "503=2", "503=-1", "404=0.1", "503=0.6,500=0.6", "all=0.2"] {
            assert!(wrong.parse::<Faults>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_faults_at_the_rate_given() {
        let faults: Faults = "503=0.05,lost-reply=0.01,409=0.02".parse().unwrap();
        let draw = |seed| -> Vec<Option<Fault>> {
            (0..100_000).map(|number| faults.draw(seed, number, Kind::PutObject, false)).collect()
        };
        let (one, other) = (draw(1), draw(2));
        assert!(one == draw(1) && one != other);
        let count = |fault| one.iter().filter(|drawn| **drawn == Some(fault)).count();
        assert!((4_500..5_500).contains(&count(Fault::SlowDown)), "{}", count(Fault::SlowDown));
        assert!((800..1_200).contains(&count(Fault::LostReply)), "{}", count(Fault::LostReply));
        assert_eq!(count(Fault::Conflict), 0, "of unconditional writes");
        assert!((0..1000).any(|number| faults.draw(1, number, Kind::PutObject, true) == Some(Fault::Conflict)));
    }
}
