//! Ranges of stored integers, for filters that are evaluated on encoded values.

/// The integers `start`, `start + 1`, .., `start + more`, modulo 2^64. A range may wrap around, which unsigned integers stored by
/// their bits need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerRange {
    start: i64,
    more: u64,
}

impl IntegerRange {
    /// Every 64-bit integer.
    pub(crate) const ALL: Self = Self { start: i64::MIN, more: u64::MAX };

    /// The 64-bit integers from `least` to `greatest`, both included; `None` if there are none.
    pub(crate) fn between(least: i128, greatest: i128) -> Option<Self> {
        let (least, greatest) = (least.max(i64::MIN.into()), greatest.min(i64::MAX.into()));
        (least <= greatest).then_some(Self { start: least as i64, more: (greatest - least) as u64 })
    }

    /// The 64-bit integers outside `least..=greatest`; `None` if there are none.
    pub(crate) fn except(least: i128, greatest: i128) -> Option<Self> {
        let Some(Self { start, more }) = Self::between(least, greatest) else { return Some(Self::ALL) };

        let after = start.wrapping_add(more.cast_signed()).wrapping_add(1);
        more.checked_add(1).map(|count| Self { start: after, more: u64::MAX - count })
    }

    /// Whether `value` is in the range, with one comparison.
    #[inline]
    pub(crate) fn has(self, value: i64) -> bool {
        value.wrapping_sub(self.start).cast_unsigned() <= self.more
    }

    /// Whether the range has one of the integers `start`, `start + 1`, .., `start + more`.
    pub(crate) fn meets(self, start: i64, more: u64) -> bool {
        self.has(start) || self.start.wrapping_sub(start).cast_unsigned() <= more
    }
}
