//! What a local time means: the one rule for it, of files, expressions and queries.

use chrono::{NaiveDateTime, Offset, TimeZone};

/// What a local time means in a zone. Offsets are seconds east of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTime {
    /// One moment.
    Once(i32),
    /// Two moments, because the clocks go back: the first is meant, whose offset this is.
    Twice(i32),
    /// No moment: the clocks go forward over it. Not a time, as 30 February is not a day.
    Skipped,
}

impl LocalTime {
    /// What `local` means in `zone`.
    pub fn of<Z: TimeZone>(zone: &Z, local: &NaiveDateTime) -> Self {
        use chrono::MappedLocalTime as Mapped;
        match zone.offset_from_local_datetime(local).map(|offset| offset.fix().local_minus_utc()) {
            Mapped::Single(offset) => Self::Once(offset),
            // Chrono puts the two in the order of their moments.
            Mapped::Ambiguous(first, _) => Self::Twice(first),
            Mapped::None => Self::Skipped,
        }
    }

    /// Seconds east of UTC of the moment that is meant.
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
