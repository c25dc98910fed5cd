//! Offsets of a zone, remembered: a lookup in the zone database costs as much as parsing ten rows.

use chrono::DateTime;
use chrono_tz::Tz;
use tidetable_layout::time::LocalOffset;

/// Seconds of local time that share a slot.
const SPAN: i64 = 6 * 3600;
/// Clock changes happen on such multiples; no zone has two of them closer together.
const STEP: i64 = 15 * 60;
const SLOTS: usize = 256;

/// Offsets of the last used spans of local time. Of one zone: a column has one.
#[derive(Default)]
pub(super) struct ZoneCache {
    slots: Vec<Option<(i64, i32)>>,
}

impl ZoneCache {
    /// Resolves a local time in seconds; `None` beyond chrono's range.
    #[inline]
    pub fn meant(&mut self, zone: Tz, local: i64) -> Option<LocalOffset> {
        let span = local.div_euclid(SPAN);
        let slot = span.rem_euclid(SLOTS as i64) as usize;
        if let Some(Some((kept, offset))) = self.slots.get(slot)
            && *kept == span
        {
            return Some(LocalOffset::Unique(*offset));
        }
        if let Some(offset) = constant(zone, span * SPAN) {
            self.slots.resize(SLOTS, None);
            if let Some(free) = self.slots.get_mut(slot) {
                *free = Some((span, offset));
            }
            return Some(LocalOffset::Unique(offset));
        }
        look_up(zone, local)
    }
}

/// The offset that holds without doubt over the whole span from `start`.
fn constant(zone: Tz, start: i64) -> Option<i32> {
    let first = unique(zone, start)?;
    let steps = (1..=SPAN / STEP).map(|step| start + step * STEP);
    // The second before each step too: a change may begin right on it.
    steps.flat_map(|at| [at - 1, at]).all(|at| unique(zone, at) == Some(first)).then_some(first)
}

/// The offset of a local time that is there once.
fn unique(zone: Tz, local: i64) -> Option<i32> {
    match look_up(zone, local)? {
        LocalOffset::Unique(offset) => Some(offset),
        _ => None,
    }
}

fn look_up(zone: Tz, local: i64) -> Option<LocalOffset> {
    Some(LocalOffset::resolve(&zone, &DateTime::from_timestamp(local, 0)?.naive_utc()))
}
