//! Row patterns: the qualifiers of a row's records, and their timestamps relative to the first.
//!
//! Rows that share a pattern store it once; a pattern that is another one without some records stores what it lacks. This is
//! dictionary encoding of whole rows: a fleet of meters that report every 15 minutes has one pattern of 96 records, whatever the
//! number of meters.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// The records of one group, borrowed from a block: what row patterns are detected in.
pub(crate) struct Records<'a> {
    /// The end of the records of each row; the next row's start there.
    pub(crate) ends: Vec<u32>,
    /// Qualifier code of each record of a dynamic group.
    pub(crate) codes: Option<&'a [u32]>,
    /// Timestamp of each record in microseconds, if the group stores them.
    pub(crate) timestamps: Option<&'a [i64]>,
    /// Whether several records of a row may have one timestamp.
    pub(crate) keeps_duplicates: bool,
}

impl Records<'_> {
    /// The number of records of all rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// The records of each row, as ranges of the lists above.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start as usize..*end as usize)
    }

    /// Whether no row has two records of one qualifier.
    pub(crate) fn one_version_each(&self) -> bool {
        self.rows().all(|row| match self.codes {
            Some(codes) => codes[row].is_sorted_by(|one, next| one < next),
            None => row.len() <= 1,
        })
    }

    /// Whether every row has at least one record of the group.
    pub(crate) fn fill_rows(&self) -> bool {
        self.rows().all(|row| !row.is_empty())
    }

    /// Whether the records of a row are sorted by qualifier, newest first, without duplicates unless these are kept.
    pub(crate) fn sorted(&self, row: Range<usize>) -> bool {
        let codes = self.codes.map(|codes| &codes[row.clone()]);
        let times = self.timestamps.map(|times| &times[row.clone()]);

        match (codes, times) {
            (Some(codes), Some(times)) => codes
                .windows(2)
                .zip(times.windows(2))
                .all(|(c, t)| c[0] < c[1] || (c[0] == c[1] && self.may_follow(t[0], t[1]))),
            (Some(codes), None) => codes.windows(2).all(|c| c[0] < c[1]),
            (None, Some(times)) => times.windows(2).all(|t| self.may_follow(t[0], t[1])),
            (None, None) => row.len() <= 1,
        }
    }

    /// Whether a record with timestamp `next` may follow one of the same qualifier with timestamp `time`.
    fn may_follow(&self, time: i64, next: i64) -> bool {
        time > next || (self.keeps_duplicates && time == next)
    }

    /// The records of one row, relative to `base`.
    fn list(&self, row: Range<usize>, base: i64) -> RecordList<'_> {
        RecordList {
            len: row.len(),
            codes: self.codes.map(|codes| &codes[row.clone()]),
            times: self.timestamps.map(|times| &times[row]),
            origin: base,
        }
    }
}

/// The records of one row or of one pattern. Both have the codes and timestamps that the group stores.
#[derive(Clone, Copy)]
struct RecordList<'a> {
    len: usize,
    codes: Option<&'a [u32]>,
    times: Option<&'a [i64]>,
    /// What is subtracted from `times` before they are compared.
    origin: i64,
}

impl RecordList<'_> {
    /// Whether both have the same records.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let shift = self.origin.wrapping_sub(other.origin);
        self.len == other.len
            && self.codes == other.codes
            && self.times.zip(other.times).is_none_or(|(times, others)| {
                // No early exit, so that the loop vectorises.
                let pairs = times.iter().zip(others);
                pairs.fold(0, |difference, (time, other)| difference | (time.wrapping_sub(shift) ^ other)) == 0
            })
    }

    /// Whether record `index` is record `other_index` of `other`.
    fn has_same(&self, index: usize, other: &Self, other_index: usize) -> bool {
        self.codes.zip(other.codes).is_none_or(|(codes, others)| codes[index] == others[other_index])
            && self.times.zip(other.times).is_none_or(|(times, others)| {
                times[index].wrapping_sub(self.origin) == others[other_index].wrapping_sub(other.origin)
            })
    }

    /// The records of `pattern` that this row lacks, ascending. `None` if it has others, or lacks most.
    fn removed_from(&self, pattern: &Self) -> Option<Vec<u32>> {
        let lacking = pattern.len.checked_sub(self.len).filter(|lacking| *lacking > 0 && *lacking < self.len)?;
        // The records of the pattern that may be the first of this row.
        let firsts = match (self.codes, pattern.codes) {
            (Some(codes), Some(pattern_codes)) => {
                let first = pattern_codes.partition_point(|code| *code < codes[0]);
                first..first + 1
            }
            _ => 0..lacking.min(SKIPPED) + 1,
        };

        firsts.into_iter().find_map(|first| self.removed_before(pattern, first, lacking))
    }

    /// As [`Self::removed_from`], if this row begins with record `first` of the pattern and lacks `lacking` records.
    fn removed_before(&self, pattern: &Self, first: usize, lacking: usize) -> Option<Vec<u32>> {
        let origin = pattern.times.map_or(0, |times| times.get(first).copied().unwrap_or_default());
        let pattern = RecordList { origin, ..*pattern };
        let mut removed: Vec<u32> = Vec::with_capacity(lacking);
        let mut record = 0;

        for index in 0..pattern.len {
            if index >= first && record < self.len && self.has_same(record, &pattern, index) {
                record += 1;
            } else if removed.len() < lacking {
                removed.push(index as u32);
            } else {
                return None;
            }
        }
        Some(removed)
    }

    /// A hash of the records. A collision only loses compression, so a simple hash suffices.
    fn hash(&self) -> u64 {
        let mut hash = self.len as u64 + 1;
        for code in self.codes.unwrap_or_default() {
            hash = mix(hash, u64::from(*code));
        }
        for time in self.times.unwrap_or_default() {
            hash = mix(hash, time.wrapping_sub(self.origin).cast_unsigned());
        }
        hash.wrapping_mul(ODD)
    }
}

/// The odd integer nearest to 2^64 divided by the golden ratio, as in Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(ODD).rotate_left(29)
}

/// The distinct patterns of some rows, and the pattern of each row.
#[derive(Debug, Default)]
pub(crate) struct RowPatterns {
    /// The number of records of each pattern.
    pub(crate) lens: Vec<u32>,
    /// The qualifier codes of all patterns, one after the other, in dynamic groups.
    pub(crate) codes: Vec<u32>,
    /// The timestamps of all patterns relative to the first of each, in groups that store them.
    pub(crate) offsets: Vec<i64>,
    /// For each pattern, what it lacks of another one; `None` for one that stands by itself.
    pub(crate) gaps: Vec<Option<Gaps>>,
    /// The number of the pattern of each row.
    pub(crate) ids: Vec<u32>,
    /// First timestamp of each row (stored timestamps); an empty row repeats the one before.
    pub(crate) bases: Vec<i64>,
}

/// A pattern as another one without some of its records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// The number of the other pattern.
    pub(crate) of: u32,
    /// The indices of the records that it lacks, ascending.
    pub(crate) removed: Vec<u32>,
}

/// A new pattern is compared with this many of the longest patterns, to find what it lacks.
const TEMPLATES: usize = 4;
/// A row of a group without qualifiers may lack up to this many of the first records of a pattern.
const SKIPPED: usize = 4;

impl RowPatterns {
    /// Detects the patterns of all rows. `None` if they do not pay: patterns that stand by themselves may have at most an eighth of
    /// the records, and the others may lack at most a quarter.
    pub(crate) fn detect(records: &Records<'_>) -> Option<Self> {
        let mut detector = Detector::new(records);
        let (mut last, mut base) = (u32::MAX, 0);

        for row in records.rows() {
            base = records.timestamps.and_then(|times| times[row.clone()].first().copied()).unwrap_or(base);
            let row = records.list(row, base);
            // Most rows have the pattern of the row before them.
            if !detector.is(last, &row) {
                last = detector.find_or_add(&row)?;
            }
            detector.patterns.ids.push(last);
            if records.timestamps.is_some() {
                detector.patterns.bases.push(base);
            }
        }
        Some(detector.patterns)
    }

    /// Whether a pattern is stored as another one with gaps.
    pub(crate) fn has_gaps(&self) -> bool {
        self.gaps.iter().any(Option::is_some)
    }
}

/// The state of [`RowPatterns::detect`].
struct Detector<'a> {
    records: &'a Records<'a>,
    patterns: RowPatterns,
    /// The start of each pattern in the lists of codes and offsets.
    starts: Vec<usize>,
    /// The longest patterns, longest first.
    templates: Vec<u32>,
    /// The pattern with each hash.
    known: HashMap<u64, u32, BuildHasherDefault<Folded>>,
    /// Records that further patterns may have.
    budget: usize,
    /// Records that further patterns may lack.
    gap_budget: usize,
    /// Records of all patterns so far.
    used: usize,
}

impl<'a> Detector<'a> {
    fn new(records: &'a Records<'a>) -> Self {
        Self {
            records,
            patterns: RowPatterns::default(),
            starts: Vec::new(),
            templates: Vec::new(),
            known: HashMap::default(),
            budget: records.len() / 8,
            gap_budget: records.len() / 4,
            used: 0,
        }
    }

    /// Whether a row has pattern `id`; false if there is no such pattern.
    #[inline]
    fn is(&self, id: u32, row: &RecordList<'_>) -> bool {
        self.pattern(id).is_some_and(|pattern| row.is(&pattern))
    }

    #[inline]
    fn pattern(&self, id: u32) -> Option<RecordList<'_>> {
        let start = *self.starts.get(id as usize)?;
        let len = self.patterns.lens[id as usize] as usize;
        Some(RecordList {
            len,
            codes: self.records.codes.map(|_| &self.patterns.codes[start..start + len]),
            times: self.records.timestamps.map(|_| &self.patterns.offsets[start..start + len]),
            origin: 0,
        })
    }

    /// The number of the row's pattern, which is added if it is new. `None` if a budget is exhausted or hashes collide.
    fn find_or_add(&mut self, row: &RecordList<'_>) -> Option<u32> {
        let hash = row.hash();
        match self.known.get(&hash) {
            Some(id) if self.is(*id, row) => Some(*id),
            Some(_) => None,
            None => {
                let id = self.add(row)?;
                self.known.insert(hash, id);
                Some(id)
            }
        }
    }

    fn add(&mut self, row: &RecordList<'_>) -> Option<u32> {
        let id = self.patterns.lens.len() as u32;
        let gaps = self.templates.iter().find_map(|of| {
            let removed = row.removed_from(&self.pattern(*of)?)?;
            Some(Gaps { of: *of, removed })
        });
        match &gaps {
            Some(gaps) => self.gap_budget = self.gap_budget.checked_sub(gaps.removed.len())?,
            None => {
                self.budget = self.budget.checked_sub(row.len)?;
                let lens = &self.patterns.lens;
                let place = self.templates.partition_point(|id| lens[*id as usize] as usize >= row.len);
                self.templates.insert(place, id);
                self.templates.truncate(TEMPLATES);
            }
        }

        self.starts.push(self.used);
        self.used += row.len;
        self.patterns.lens.push(row.len as u32);
        self.patterns.gaps.push(gaps);
        self.patterns.codes.extend_from_slice(row.codes.unwrap_or_default());
        let times = row.times.unwrap_or_default();
        self.patterns.offsets.extend(times.iter().map(|time| time.wrapping_sub(row.origin)));
        Some(id)
    }
}

/// The total number of records of patterns with these lengths, and the range of each among all. `None` if the total is over `most`,
/// so that damaged lengths allocate nothing.
pub(crate) fn spans(lens: &[u32], most: usize) -> Option<(usize, Vec<Range<usize>>)> {
    let mut total = 0usize;
    let mut spans = Vec::with_capacity(lens.len());
    for len in lens {
        let start = total;
        total += *len as usize;
        if total > most {
            return None;
        }
        spans.push(start..total);
    }
    Some((total, spans))
}

/// The identity hasher, for keys that are hashes already.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_pattern_share_a_shape() {
        let codes: Vec<u32> = (0..30).flat_map(|_| 0..4).collect();
        let times: Vec<i64> = (0..30).flat_map(|row| (0..4).map(move |i| row * 100 + i)).collect();
        let ends = (1..=30).map(|row| row * 4).collect();
        let records = Records { ends, codes: Some(&codes), timestamps: Some(&times), keeps_duplicates: false };
        let patterns = RowPatterns::detect(&records).unwrap();
        assert_eq!((patterns.lens, patterns.codes, patterns.offsets), (vec![4], vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
        assert_eq!(patterns.bases, (0..30).map(|row| row * 100).collect::<Vec<i64>>());
    }

    #[test]
    fn rows_with_gaps_share_a_pattern() {
        // Of every row but the first two, one record is missing, also the first and the last.
        let (mut codes, mut times, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..30i64 {
            for at in (0..10i64).filter(|at| row < 2 || *at != row % 10) {
                codes.push(at as u32);
                times.push(row * 1000 + at * at);
            }
            ends.push(codes.len() as u32);
        }
        for (codes, timestamps) in [(Some(&codes[..]), Some(&times[..])), (Some(&codes[..]), None)] {
            let records = Records { ends: ends.clone(), codes, timestamps, keeps_duplicates: false };
            let patterns = RowPatterns::detect(&records).unwrap();
            assert_eq!(patterns.lens.iter().filter(|len| **len == 10).count(), 1);
            let gaps: Vec<_> = patterns.gaps.iter().flatten().map(|gaps| (gaps.of, gaps.removed.clone())).collect();
            assert_eq!(gaps, (0..10).map(|at| (0, vec![(at + 2) % 10])).collect::<Vec<_>>());
        }
        // Without qualifiers the first record that is there has offset 0, whichever it is.
        let falling: Vec<i64> = times.iter().map(|time| -time).collect();
        let records = Records { ends, codes: None, timestamps: Some(&falling), keeps_duplicates: false };
        let patterns = RowPatterns::detect(&records).unwrap();
        assert_eq!(patterns.gaps.iter().filter(|gaps| gaps.is_none()).count(), 1);
    }

    #[test]
    fn rows_of_their_own_do_not() {
        let times: Vec<i64> = (0..100i64).map(|i| -i * i * i).collect();
        let ends = (1..=20).map(|row| row * 5).collect();
        let records = Records { ends, codes: None, timestamps: Some(&times), keeps_duplicates: false };
        assert!(RowPatterns::detect(&records).is_none());
    }

    #[test]
    fn equal_times_are_in_order_only_where_they_are_kept() {
        let times = [9, 9, 3];
        let records =
            |keeps_duplicates| Records { ends: vec![3], codes: None, timestamps: Some(&times), keeps_duplicates };
        assert!(records(true).sorted(0..3) && !records(false).sorted(0..3));
        let rising = Records { ends: vec![2], codes: None, timestamps: Some(&[3, 9]), keeps_duplicates: true };
        assert!(!rising.sorted(0..2));
    }
}
