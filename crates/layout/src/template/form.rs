//! The forms in which a template prints a field.

use crate::template::percent::Escapes;
use crate::template::time_format::TimeFormat;

/// The form of a printed field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    ZeroPad(u8),
    SpacePad(u16),
    Time(TimeFormat),
    Epoch(Epoch),
    MsReversed,
    Reversed,
    Domain,
    BigEndian,
    Hash,
    Salt(u32),
    /// The bytes that hexadecimal digits name.
    Hex,
    /// Text with these bytes percent-encoded; the literals of the template are added when it is bound.
    Percent(Escapes),
}

/// The unit of an epoch timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epoch {
    Seconds,
    Millis,
    Micros,
}

impl Epoch {
    /// Microseconds per unit.
    pub(crate) fn size(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000,
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }

    /// Microseconds in the unit, rounded down.
    pub(crate) fn of_micros(self, time_us: i64) -> i64 {
        // Constant divisors compile to multiplications.
        match self {
            Self::Seconds => time_us.div_euclid(1_000_000),
            Self::Millis => time_us.div_euclid(1000),
            Self::Micros => time_us,
        }
    }

    /// The number of digits it is zero-padded to.
    pub(crate) fn width(self) -> u8 {
        match self {
            Self::Seconds => 10,
            Self::Millis => 13,
            Self::Micros => 16,
        }
    }
}
