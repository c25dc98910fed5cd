//! Parses times and dates from bytes: formats are compiled once, zone lookups are cached.

mod civil;
mod fixed;
mod format;
mod stamp;
#[cfg(test)]
mod tests;
mod zone;

use chrono_tz::Tz;
use civil::Civil;
use fixed::{Fixed, Words};
use format::{Item, Moment};
use tidetable_layout::time::{DAY, LocalOffset, SECOND};
use zone::ZoneCache;

pub use format::FormatFault;
pub(crate) use format::Unit;
pub use stamp::TimeCounts;
pub(crate) use stamp::{Remarks, Stamp, TimeFault};

const RFC_3339: &str = "RFC 3339";

/// The time format of a column.
#[derive(Debug)]
pub(crate) struct TimeRule {
    written: String,
    shape: Shape,
    fixed: Vec<Fixed>,
    zone: Option<Tz>,
}

#[derive(Debug)]
enum Shape {
    Epoch(Unit),
    Items(Vec<Item>),
}

/// The caches of one column.
#[derive(Default)]
pub(crate) struct Clock {
    last: Option<(usize, Words, i64)>,
    zones: ZoneCache,
}

impl TimeRule {
    pub fn timestamp(format: Option<&str>, zone: Option<Tz>) -> Result<Self, FormatFault> {
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
                Ok(Self { written: RFC_3339.to_owned(), shape: Shape::Items(format::rfc_3339()), fixed, zone })
            }
            Some(text) => Self::declared(text, zone),
        }
    }

    pub fn date(format: Option<&str>) -> Result<Self, FormatFault> {
        Self::declared(format.unwrap_or("%Y-%m-%d"), None)
    }

    fn declared(text: &str, zone: Option<Tz>) -> Result<Self, FormatFault> {
        if let Some(unit) = Unit::named(text) {
            return Ok(Self { written: text.to_owned(), shape: Shape::Epoch(unit), fixed: Vec::new(), zone });
        }
        let items = format::compile(text)?;
        format::check(&items)?;
        let fixed = Fixed::new(&items, false).into_iter().collect();
        Ok(Self { written: text.to_owned(), shape: Shape::Items(items), fixed, zone })
    }

    /// The format, for messages.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The time of an epoch integer; `None` if the format is not an epoch unit.
    pub fn epoch(&self, count: i64) -> Option<Result<Stamp, TimeFault>> {
        match self.shape {
            Shape::Epoch(unit) => Some(unit.stamp(count).ok_or(TimeFault::Range).and_then(Stamp::within)),
            Shape::Items(_) => None,
        }
    }

    /// Converts local microseconds to UTC.
    #[inline(always)]
    pub fn local(&self, local: i64, clock: &mut Clock) -> Result<Stamp, TimeFault> {
        let Some(zone) = self.zone else { return Stamp::at(local).within() };
        let meant = clock.zones.meant(zone, local.div_euclid(SECOND)).ok_or(TimeFault::Range)?;
        let offset = meant.offset().ok_or(TimeFault::Skipped(zone))?;
        let repeated = matches!(meant, LocalOffset::Ambiguous(_));
        Stamp { repeated, ..Stamp::at(local - i64::from(offset) * SECOND) }.within()
    }

    /// Parses a field.
    pub fn stamp(&self, text: &[u8], clock: &mut Clock) -> Result<Stamp, TimeFault> {
        match &self.shape {
            Shape::Epoch(_) => {
                let count = crate::number::parse_i64(text).map_err(|_| TimeFault::Form)?;
                self.epoch(count).unwrap_or(Err(TimeFault::Form))
            }
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
                    let micros = civil.micros().ok_or(TimeFault::Form)?;
                    leap(&civil, micros)?;
                    civil.days()
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
            let Stamp { micros, repeated: false, .. } = self.settle(&civil, fixed.utc().then_some(0), clock).ok()?
            else {
                return None;
            };
            clock.last = Some((index, words, micros));
            return Some(micros);
        }
        None
    }

    /// As [`Self::short_micros`], in days.
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
        leap(&civil, civil.micros()?).ok()?;
        clock.last = Some((0, words, civil.days()));
        i32::try_from(civil.days()).ok()
    }

    #[inline(always)]
    fn settle(&self, civil: &Civil, offset: Option<i32>, clock: &mut Clock) -> Result<Stamp, TimeFault> {
        let local = civil.micros().ok_or(TimeFault::Form)?;
        let stamp = match offset {
            Some(seconds) => Stamp::at(local - i64::from(seconds) * SECOND).within()?,
            None => self.local(local, clock)?,
        };
        leap(civil, stamp.micros)?;
        Ok(stamp)
    }
}

/// Second 60 is valid only where a leap second can be: at the end of a UTC day. It counts as the first second of the next day.
#[inline(always)]
fn leap(civil: &Civil, micros: i64) -> Result<(), TimeFault> {
    if civil.second < 60 || micros.div_euclid(SECOND) % (DAY / SECOND) == 0 { Ok(()) } else { Err(TimeFault::Form) }
}
