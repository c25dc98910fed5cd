//! Abbreviations of time zones, such as CEST: the offsets of those that mean one thing.

use chrono::{MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, Tz};

/// An abbreviation, in upper case and padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZoneName([u8; LONGEST]);

const LONGEST: usize = 5;
const HOUR: i32 = 3600;

/// Abbreviations with their hours east of UTC. RFC 5322 defines those of North America; names that several zones share,
/// such as IST, are left out.
const OFFSETS: [(&str, i32); 28] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("Z", 0),
    ("WET", 0),
    ("WEST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("MEZ", 1),
    ("MESZ", 2),
    ("EET", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("AKST", -9),
    ("AKDT", -8),
    ("HST", -10),
    ("JST", 9),
    ("KST", 9),
    ("AEST", 10),
    ("AEDT", 11),
];

impl ZoneName {
    /// Takes an abbreviation of one to five letters, in any case.
    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (letters, after) = rest.split_at_checked(length).filter(|_| (1..=LONGEST).contains(&length))?;
        let mut name = [0; LONGEST];
        name.iter_mut().zip(letters).for_each(|(to, from)| *to = from.to_ascii_uppercase());
        *rest = after;
        Some(Self(name))
    }

    /// Seconds east of UTC of the local time `local`: as `zone` uses the abbreviation then, or as it is commonly used.
    pub fn offset(self, zone: Option<Tz>, local: &NaiveDateTime) -> Option<i32> {
        self.of_zone(zone?, local).or_else(|| self.common())
    }

    /// As [`Self::offset`] without a zone: as it is commonly used.
    pub fn common(self) -> Option<i32> {
        OFFSETS.iter().find(|(name, _)| self.is(name)).map(|(_, hours)| hours * HOUR)
    }

    fn of_zone(self, zone: Tz, local: &NaiveDateTime) -> Option<i32> {
        let (first, second) = match zone.offset_from_local_datetime(local) {
            MappedLocalTime::Single(offset) => (Some(offset), None),
            MappedLocalTime::Ambiguous(earlier, later) => (Some(earlier), Some(later)),
            MappedLocalTime::None => (None, None),
        };
        let named =
            first.into_iter().chain(second).find(|offset| offset.abbreviation().is_some_and(|name| self.is(name)));
        named.map(|offset| offset.fix().local_minus_utc())
    }

    fn is(self, name: &str) -> bool {
        let length = self.0.iter().take_while(|byte| **byte != 0).count();
        self.0.get(..length).is_some_and(|letters| letters.eq_ignore_ascii_case(name.as_bytes()))
    }
}
