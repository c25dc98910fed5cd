//! Ranges of stored integers.

/// Integers from `start` on, `more` after it, modulo 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerRange {
    start: i64,
    more: u64,
}

impl IntegerRange {
    pub(crate) const ALL: Self = Self { start: i64::MIN, more: u64::MAX };

    /// The integers between two, both included; `None` if there are none.
    pub(crate) fn between(least: i128, greatest: i128) -> Option<Self> {
        let (least, greatest) = (least.max(i64::MIN.into()), greatest.min(i64::MAX.into()));
        (least <= greatest).then_some(Self { start: least as i64, more: (greatest - least) as u64 })
    }

    /// The integers but those between two, both included; `None` if there are none.
    pub(crate) fn except(least: i128, greatest: i128) -> Option<Self> {
        let Some(Self { start, more }) = Self::between(least, greatest) else { return Some(Self::ALL) };
        let after = start.wrapping_add(more.cast_signed()).wrapping_add(1);
        more.checked_add(1).map(|count| Self { start: after, more: u64::MAX - count })
    }

    #[inline]
    pub(crate) fn has(self, value: i64) -> bool {
        value.wrapping_sub(self.start).cast_unsigned() <= self.more
    }

    /// Whether it has one of the integers from `start` on, `more` after it.
    pub(crate) fn meets(self, start: i64, more: u64) -> bool {
        self.has(start) || self.start.wrapping_sub(start).cast_unsigned() <= more
    }
}
