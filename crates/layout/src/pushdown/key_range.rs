//! Ranges of row keys.

/// The row keys from `start` to before `end`, in the order of their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key of the range, included.
    pub start: Vec<u8>,
    /// First key after the range; `None` if it has no end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Sorts ranges and merges those that overlap or touch.
    #[must_use]
    pub fn disjoint(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.retain(|range| range.end.as_ref().is_none_or(|end| *end > range.start));
        ranges.sort_by(|a, b| a.start.cmp(&b.start));

        let mut out: Vec<Self> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match out.last_mut() {
                Some(last) if last.end.as_ref().is_none_or(|end| *end >= range.start) => {
                    // `None` is unbounded, so it is the greatest end.
                    let later = match (&last.end, &range.end) {
                        (Some(end), Some(other)) => other > end,
                        (Some(_), None) => true,
                        (None, _) => false,
                    };
                    if later {
                        last.end = range.end;
                    }
                }
                _ => out.push(range),
            }
        }
        out
    }

    /// The range of all keys, without an end.
    pub fn all() -> Self {
        Self { start: Vec::new(), end: None }
    }

    /// The range of every key that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_vec(), end: successor(prefix) }
    }

    /// The range of the one key `key`.
    pub fn of_key(key: &[u8]) -> Self {
        let mut end = key.to_vec();
        end.push(0);
        Self { start: key.to_vec(), end: Some(end) }
    }

    /// The only key of the range, if there is only one.
    pub fn only_key(&self) -> Option<&[u8]> {
        let rest = self.end.as_deref()?.strip_prefix(self.start.as_slice())?;
        (rest == [0]).then_some(&self.start)
    }

    /// Whether the range contains all keys from `first` to `last`, both inclusive.
    pub fn covers(&self, first: &[u8], last: &[u8]) -> bool {
        self.contains(first) && self.contains(last)
    }

    /// Whether the range contains `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }
}

/// The smallest byte string greater than all that start with `prefix`; `None` if there is none.
pub(super) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut out = prefix.get(..=last)?.to_vec();
    if let Some(byte) = out.last_mut() {
        *byte += 1;
    }
    Some(out)
}
