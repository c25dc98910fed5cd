//! Resolution of local times: one rule for files, expressions and queries.

use chrono::{NaiveDateTime, Offset, TimeZone};

/// A local time resolved in a zone. Offsets are seconds east of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTime {
    /// One instant.
    Once(i32),
    /// Ambiguous: the clocks go back. The offset of the first of the two instants, which is taken.
    Twice(i32),
    /// Nonexistent: the clocks go forward over it.
    Skipped,
}

impl LocalTime {
    /// Resolves `local` in `zone`.
    pub fn of<Z: TimeZone>(zone: &Z, local: &NaiveDateTime) -> Self {
        use chrono::MappedLocalTime as Mapped;
        match zone.offset_from_local_datetime(local).map(|offset| offset.fix().local_minus_utc()) {
            Mapped::Single(offset) => Self::Once(offset),
            // Chrono orders the two by instant.
            Mapped::Ambiguous(first, _) => Self::Twice(first),
            Mapped::None => Self::Skipped,
        }
    }

    /// The offset in seconds east of UTC; `None` if the local time does not exist.
    pub fn offset(self) -> Option<i32> {
        match self {
            Self::Once(offset) | Self::Twice(offset) => Some(offset),
            Self::Skipped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;
    use chrono_tz::Europe::Paris;

    use super::*;

    #[test]
    fn hours_of_clock_changes() {
        let at = |month, day, hour| {
            let local = NaiveDate::from_ymd_opt(2021, month, day).unwrap().and_hms_opt(hour, 30, 0).unwrap();
            LocalTime::of(&Paris, &local)
        };
        assert_eq!(at(3, 28, 1), LocalTime::Once(3600));
        assert_eq!(at(3, 28, 2), LocalTime::Skipped);
        assert_eq!(at(3, 28, 3), LocalTime::Once(7200));
        assert_eq!(at(10, 31, 2), LocalTime::Twice(7200));
        assert_eq!(at(10, 31, 3), LocalTime::Once(3600));
        assert_eq!(at(10, 31, 2).offset(), Some(7200));
    }
}
