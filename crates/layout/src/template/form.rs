//! The forms in which a template prints a field.

use crate::template::percent::Escapes;
use crate::template::time_format::TimeFormat;

/// The form in which a template prints a field, bound to nothing yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// The text of the value, as in cells.
    Text,
    /// Zero-padded to this many digits.
    ZeroPad(u8),
    /// Space-padded to this many bytes.
    SpacePad(u16),
    /// Parts of a time.
    Time(TimeFormat),
    /// A time since 1970 in this unit, zero-padded.
    Epoch(Epoch),
    /// `i64::MAX` less the milliseconds since 1970, so that the newest sorts first.
    MsReversed,
    /// The characters of the text in reversed order.
    Reversed,
    /// The labels of a domain name in reversed order.
    Domain,
    /// Eight bytes, big-endian.
    BigEndian,
    /// The hash of the text, 16 hexadecimal digits.
    Hash,
    /// A number from 1 to this one, by the hash of the text.
    Salt(u32),
    /// The bytes that the text names by hexadecimal digits.
    Hex,
    /// Text with these bytes percent-encoded; the literals of the template are added when it is bound.
    Percent(Escapes),
}

/// The unit of an epoch timestamp in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epoch {
    Seconds,
    Millis,
    Micros,
}

impl Epoch {
    /// The microseconds of one unit.
    pub(crate) fn size(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000,
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }

    /// A time in microseconds in this unit, rounded down.
    pub(crate) fn of_micros(self, time_us: i64) -> i64 {
        // Constant divisors compile to multiplications.
        match self {
            Self::Seconds => time_us.div_euclid(1_000_000),
            Self::Millis => time_us.div_euclid(1000),
            Self::Micros => time_us,
        }
    }

    /// The number of digits that it is zero-padded to.
    pub(crate) fn width(self) -> u8 {
        match self {
            Self::Seconds => 10,
            Self::Millis => 13,
            Self::Micros => 16,
        }
    }
}
