//! Parses times and dates from bytes. Formats are compiled once (`format`), those of fixed width are read in words (`fixed`), and
//! lookups of zones are cached (`zone`). Times are microseconds since the epoch, in UTC.

mod ambiguous;
mod civil;
mod epochs;
mod fixed;
mod format;
mod month_names;
mod stamp;
#[cfg(test)]
mod tests;
mod zone;
mod zone_names;

use chrono::DateTime;
use chrono_tz::Tz;
use civil::Civil;
use fixed::{Fixed, Words};
use format::{Item, Moment, WrittenOffset};
use tidetable_layout::time::{DAY, LocalOffset, SECOND};
use zone::ZoneCache;

use crate::number;
use crate::number::Exact;

pub use ambiguous::Ambiguous;
pub(crate) use epochs::EpochColumn;
pub use epochs::{EpochNotes, OddEpoch};
pub use format::FormatFault;
pub(crate) use format::Unit;
pub use stamp::TimeCounts;
pub(crate) use stamp::{Adjusted, Remarks, Stamp, TimeFault};

/// The form of times in rejects: what is expected, with an example.
const RFC_3339: &str = "RFC 3339, such as 2026-01-31T18:30:00Z";

/// How the times or days of a column are read: its format and its zone.
#[derive(Debug)]
pub(crate) struct TimeRule {
    written: String,
    shape: Shape,
    fixed: Vec<Fixed>,
    zone: Option<Tz>,
    /// Which instant a local time is that occurs twice.
    ambiguous: Ambiguous,
    /// Whether the rules of the first reader version hold: no 24:00, no fractions of epoch numbers.
    is_old: bool,
}

#[derive(Debug)]
enum Shape {
    Epoch(Unit),
    Items(Vec<Item>),
}

/// What was found for the last values of a column: telemetry repeats its times.
#[derive(Default)]
pub(crate) struct Clock {
    last: Option<(usize, Words, i64)>,
    zones: ZoneCache,
}

impl TimeRule {
    /// The rule of a timestamp column; `is_old` selects the rules of the first reader version.
    pub fn timestamp(format: Option<&str>, zone: Option<Tz>, is_old: bool) -> Result<Self, FormatFault> {
        let zone = zone.filter(|zone| *zone != Tz::UTC && *zone != Tz::Etc__UTC);
        match format {
            None => {
                // `true`: the Z is an RFC 3339 offset, not a literal.
                let common = [
                    ("%Y-%m-%dT%H:%M:%SZ", true),
                    ("%Y-%m-%d %H:%M:%S", false),
                    ("%Y-%m-%dT%H:%M:%S", false),
                    ("%Y-%m-%dT%H:%M:%S.%3fZ", true),
                    ("%Y-%m-%dT%H:%M:%S.%6fZ", true),
                ];
                let fixed =
                    common.iter().filter_map(|(text, utc)| Fixed::new(&format::compile(text).ok()?, *utc)).collect();
                let shape = Shape::Items(format::rfc_3339(is_old));
                Ok(Self { written: RFC_3339.to_owned(), shape, fixed, zone, ambiguous: Ambiguous::Earlier, is_old })
            }
            Some(text) => Self::declared(text, zone, is_old),
        }
    }

    /// The rule of a date column, whose format is `%Y-%m-%d` by default.
    pub fn date(format: Option<&str>, is_old: bool) -> Result<Self, FormatFault> {
        Self::declared(format.unwrap_or("%Y-%m-%d"), None, is_old)
    }

    fn declared(text: &str, zone: Option<Tz>, is_old: bool) -> Result<Self, FormatFault> {
        if let Some(unit) = Unit::named(text) {
            let (written, shape) = (text.to_owned(), Shape::Epoch(unit));
            return Ok(Self { written, shape, fixed: Vec::new(), zone, ambiguous: Ambiguous::Earlier, is_old });
        }
        let mut items = format::compile(text)?;
        if is_old {
            for item in items.iter_mut().filter(|item| **item == Item::MonthName) {
                *item = Item::EnglishMonth;
            }
        }
        format::check(&items)?;
        let fixed = Fixed::new(&items, false).into_iter().collect();
        let (written, shape) = (text.to_owned(), Shape::Items(items));
        Ok(Self { written, shape, fixed, zone, ambiguous: Ambiguous::Earlier, is_old })
    }

    /// The same, with another instant for local times that occur twice.
    pub fn with_ambiguous(self, ambiguous: Ambiguous) -> Self {
        Self { ambiguous, ..self }
    }

    /// The format as it is declared, for messages.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The time of an epoch integer; `None` if the format is not an epoch unit.
    pub fn epoch(&self, count: i64, clock: &mut Clock) -> Option<Result<Stamp, TimeFault>> {
        let Shape::Epoch(unit) = self.shape else { return None };
        Some(self.counted(unit, unit.stamp(count), clock))
    }

    /// The time of an epoch number in a double; `None` if the format is not an epoch unit.
    pub fn epoch_float(&self, count: f64, clock: &mut Clock) -> Option<Result<Stamp, TimeFault>> {
        let Shape::Epoch(unit) = self.shape else { return None };
        Some(self.counted(unit, unit.float(count), clock))
    }

    /// Whether the format is an epoch unit.
    pub fn is_epoch(&self) -> bool {
        matches!(self.shape, Shape::Epoch(_))
    }

    fn counted(&self, unit: Unit, stamp: Option<Stamp>, clock: &mut Clock) -> Result<Stamp, TimeFault> {
        let stamp = stamp.ok_or(TimeFault::Range)?;
        match unit {
            // A spreadsheet has local times.
            Unit::ExcelDays => Ok(Stamp { cut: stamp.cut, ..self.local(stamp.micros, clock)? }),
            _ => stamp.within(),
        }
    }

    /// Converts microseconds of the column's zone to UTC.
    #[inline(always)]
    pub fn local(&self, local: i64, clock: &mut Clock) -> Result<Stamp, TimeFault> {
        let Some(zone) = self.zone else { return Stamp::at(local).within() };
        let meant = clock.zones.meant(zone, local.div_euclid(SECOND)).ok_or(TimeFault::Range)?;
        let offset = match self.ambiguous {
            Ambiguous::Earlier | Ambiguous::ByOrder => meant.offset(),
            Ambiguous::Later => meant.later_offset(),
        };
        let offset = offset.ok_or(TimeFault::Skipped(zone))?;
        // Of a column that says which is meant there is nothing to tell.
        let repeated = matches!(meant, LocalOffset::Ambiguous { .. }) && self.ambiguous != Ambiguous::Later;
        Stamp { repeated, ..Stamp::at(local - i64::from(offset) * SECOND) }.within()
    }

    /// Parses a field without surrounding blanks, in any form that the format allows.
    pub fn stamp(&self, text: &[u8], clock: &mut Clock) -> Result<Stamp, TimeFault> {
        match &self.shape {
            Shape::Epoch(unit) => match number::parse_i64(text) {
                Ok(count) => self.counted(*unit, unit.stamp(count), clock),
                Err(_) if self.is_old => Err(TimeFault::Form),
                Err(_) => {
                    let point = if text.contains(&b',') { b',' } else { b'.' };
                    let count = Exact::parse(text, point).ok_or(TimeFault::Form)?;
                    self.counted(*unit, unit.exact(count), clock)
                }
            },
            Shape::Items(items) => {
                let (moment, cut) = format::read(items, text).ok_or(TimeFault::Form)?;
                let stamp = match moment {
                    Moment::Instant(micros) => Stamp::at(micros).within()?,
                    Moment::Civil(civil, offset) => self.settle(&civil, offset, clock)?,
                };
                Ok(Stamp { cut, ..stamp })
            }
        }
    }

    /// Parses a field to days since the epoch.
    pub fn days(&self, text: &[u8]) -> Result<i32, TimeFault> {
        let days = match &self.shape {
            Shape::Epoch(_) => self.stamp(text, &mut Clock::default())?.micros.div_euclid(DAY),
            Shape::Items(items) => match format::read(items, text).ok_or(TimeFault::Form)?.0 {
                Moment::Instant(micros) => micros.div_euclid(DAY),
                Moment::Civil(civil, _) => {
                    let (local, civil) = self.local_micros(&civil)?;
                    leap(&civil, local)?;
                    local.div_euclid(DAY)
                }
            },
        };
        i32::try_from(days).map_err(|_| TimeFault::Form)
    }

    /// Parses the first `length` bytes of `rest` if the format has a fixed width and enough bytes follow.
    #[inline]
    pub fn short_micros(&self, rest: &[u8], length: usize, clock: &mut Clock) -> Option<i64> {
        for (index, fixed) in self.fixed.iter().enumerate() {
            if fixed.width() != length {
                continue;
            }
            let words = fixed.words(rest)?;
            // Neighbouring rows of telemetry usually share their time.
            if let Some((last_index, last_words, micros)) = clock.last
                && last_index == index
                && last_words == words
            {
                return Some(micros);
            }
            let Some(civil) = fixed.civil(rest, &words) else { continue };
            // Ambiguous times are left to the complete parser, which counts them.
            let Stamp { micros, repeated: false, .. } =
                self.settle(&civil, fixed.utc().then_some(WrittenOffset::Seconds(0)), clock).ok()?
            else {
                return None;
            };
            clock.last = Some((index, words, micros));
            return Some(micros);
        }
        None
    }

    /// As [`Self::short_micros`] of a date column, in days since the epoch.
    #[inline]
    pub fn short_days(&self, rest: &[u8], length: usize, clock: &mut Clock) -> Option<i32> {
        let fixed = self.fixed.first().filter(|fixed| fixed.width() == length)?;
        let words = fixed.words(rest)?;
        if let Some((_, last_words, days)) = clock.last
            && last_words == words
        {
            return i32::try_from(days).ok();
        }
        let civil = fixed.civil(rest, &words)?;
        let (local, civil) = self.local_micros(&civil).ok()?;
        leap(&civil, local).ok()?;
        let days = local.div_euclid(DAY);
        clock.last = Some((0, words, days));
        i32::try_from(days).ok()
    }

    #[inline(always)]
    fn settle(&self, civil: &Civil, offset: Option<WrittenOffset>, clock: &mut Clock) -> Result<Stamp, TimeFault> {
        let (local, civil) = self.local_micros(civil)?;
        let stamp = match offset {
            Some(WrittenOffset::Seconds(seconds)) => Stamp::at(local - i64::from(seconds) * SECOND).within()?,
            Some(WrittenOffset::Name(name)) => {
                let written = DateTime::from_timestamp_micros(local).ok_or(TimeFault::Range)?.naive_utc();
                let seconds = match self.zone {
                    Some(_) => name.offset(self.zone, &written),
                    None => name.common(),
                };
                Stamp::at(local - i64::from(seconds.ok_or(TimeFault::Form)?) * SECOND).within()?
            }
            None => self.local(local, clock)?,
        };
        leap(&civil, stamp.micros)?;
        Ok(stamp)
    }

    /// The fields as microseconds since the epoch, without regard to zones; 24:00 is the midnight that ends the day.
    #[inline(always)]
    fn local_micros(&self, civil: &Civil) -> Result<(i64, Civil), TimeFault> {
        if let Some(micros) = civil.micros() {
            return Ok((micros, *civil));
        }
        let civil = civil.before_midnight().filter(|_| !self.is_old).ok_or(TimeFault::Form)?;
        let start = civil.micros().ok_or(TimeFault::Form)?;
        Ok((start + DAY, civil))
    }
}

/// The later instant of a local time of `zone` whose earlier instant is `earlier`, in microseconds; the same where there is one.
pub(crate) fn later_instant(zone: Tz, earlier: i64) -> i64 {
    let later = DateTime::from_timestamp_micros(earlier).and_then(|instant| {
        let local = instant.with_timezone(&zone).naive_local();
        let offset = LocalOffset::resolve(&zone, &local).later_offset()?;
        Some(local.and_utc().timestamp_micros() - i64::from(offset) * SECOND)
    });
    later.unwrap_or(earlier)
}

/// Second 60 is valid only where a leap second can be: at the end of a UTC day. It counts as the first second of the next day.
#[inline(always)]
fn leap(civil: &Civil, micros: i64) -> Result<(), TimeFault> {
    if civil.second < 60 || micros.div_euclid(SECOND) % (DAY / SECOND) == 0 { Ok(()) } else { Err(TimeFault::Form) }
}
