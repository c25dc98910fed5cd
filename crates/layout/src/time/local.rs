//! Local times in a time zone: one policy for inputs, templates and queries.
//!
//! Where the clocks go back, the earlier of two instants is used, and runs count such times, unless a column says otherwise. A local
//! time that the clocks skip has no instant: input rows are rejected, and conversions in SQL return an error, or null for
//! `TRY_CAST`.

use chrono::{NaiveDateTime, Offset, TimeZone};

/// The UTC offset of a local time in a zone, in seconds east of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalOffset {
    /// The local time is that of one instant.
    Unique(i32),
    /// The clocks go back, so the local time occurs twice. The earlier instant is used, unless another is asked for.
    Ambiguous {
        /// The offset of the earlier instant.
        earlier: i32,
        /// The offset of the later instant.
        later: i32,
    },
    /// The clocks go forward over the local time, which does not exist.
    Skipped,
}

impl LocalOffset {
    /// Resolves the local time `local` in `zone`, by the policy above.
    pub fn resolve<Z: TimeZone>(zone: &Z, local: &NaiveDateTime) -> Self {
        use chrono::MappedLocalTime as Mapped;
        match zone.offset_from_local_datetime(local).map(|offset| offset.fix().local_minus_utc()) {
            Mapped::Single(offset) => Self::Unique(offset),
            // `MappedLocalTime::Ambiguous` is (earliest, latest).
            Mapped::Ambiguous(earlier, later) => Self::Ambiguous { earlier, later },
            Mapped::None => Self::Skipped,
        }
    }

    /// The offset in seconds east of UTC; `None` if the local time does not exist.
    pub fn offset(self) -> Option<i32> {
        match self {
            Self::Unique(offset) | Self::Ambiguous { earlier: offset, .. } => Some(offset),
            Self::Skipped => None,
        }
    }

    /// The offset of the later of two instants, as [`Self::offset`] is that of the earlier.
    pub fn later_offset(self) -> Option<i32> {
        match self {
            Self::Ambiguous { later, .. } => Some(later),
            other => other.offset(),
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
            LocalOffset::resolve(&Paris, &local)
        };
        assert_eq!(at(3, 28, 1), LocalOffset::Unique(3600));
        assert_eq!(at(3, 28, 2), LocalOffset::Skipped);
        assert_eq!(at(3, 28, 3), LocalOffset::Unique(7200));
        assert_eq!(at(10, 31, 2), LocalOffset::Ambiguous { earlier: 7200, later: 3600 });
        assert_eq!(at(10, 31, 3), LocalOffset::Unique(3600));
        assert_eq!(at(10, 31, 2).offset(), Some(7200));
    }
}
