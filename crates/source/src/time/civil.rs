//! Calendar fields of the proleptic Gregorian calendar, and their distance from 1970-01-01, in years that start in March, after
//! Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013).

/// Fields as they were written; nothing is checked before [`Civil::micros`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub micros: u32,
}

impl Civil {
    pub const MIDNIGHT: Self = Self { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0, micros: 0 };

    /// Microseconds since the epoch if the fields are zone-less; `None` if there is no such day or time of day. Second 60, a
    /// leap second where there is one, is the first of the next minute.
    #[inline(always)]
    pub fn micros(&self) -> Option<i64> {
        let day_exists = (1..=12).contains(&self.month) && self.day >= 1 && self.day <= self.days_in_month();
        if !day_exists || self.hour > 23 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let seconds = u64::from(self.hour * 3600 + self.minute * 60 + self.second).cast_signed();
        Some((self.days() * 86_400 + seconds) * 1_000_000 + i64::from(self.micros))
    }

    /// The start of the day, if the time of day is 24:00, the midnight that ends it.
    #[inline(always)]
    pub fn before_midnight(&self) -> Option<Self> {
        let is_midnight = self.hour == 24 && self.minute == 0 && self.second == 0 && self.micros == 0;
        is_midnight.then_some(Self { hour: 0, ..*self })
    }

    fn days_in_month(&self) -> u32 {
        match self.month {
            2 if self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400)) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Days since the epoch. In years that start in March the leap day is a year's last.
    #[inline(always)]
    pub fn days(&self) -> i64 {
        // One whole cycle of the calendar earlier, so that nothing is negative.
        const CYCLE_YEARS: u32 = 400;
        const DAYS_BEFORE_1970: i64 = 719_468 + 146_097;
        let year = self.year + CYCLE_YEARS - u32::from(self.month <= 2);
        let month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let leap_days = year / 4 - year / 100 + year / 400;
        let days = 365 * year + leap_days + (153 * month + 2) / 5 + self.day - 1;
        i64::from(days) - DAYS_BEFORE_1970
    }
}
