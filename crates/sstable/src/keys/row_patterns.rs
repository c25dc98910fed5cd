//! Row patterns: the qualifiers of a row's records, and their timestamps relative to the first. Rows that share a pattern store it
//! once; a pattern that is another one without some records stores what it lacks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// The records of one group, borrowed from a block.
pub(crate) struct Records<'a> {
    /// End of the records of each row.
    pub(crate) ends: Vec<u32>,
    /// Qualifier code of each record of a dynamic group.
    pub(crate) codes: Option<&'a [u32]>,
    /// Timestamp of each record, if stored.
    pub(crate) timestamps: Option<&'a [i64]>,
    /// Whether several records of a row may have one timestamp.
    pub(crate) keeps_duplicates: bool,
}

impl Records<'_> {
    pub(crate) fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// The records of each row.
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

    /// Whether every row has a record.
    pub(crate) fn fill_rows(&self) -> bool {
        self.rows().all(|row| !row.is_empty())
    }

    /// Whether the records of a row are sorted by qualifier, newest first, without duplicates unless these are kept.
    pub(crate) fn sorted(&self, row: Range<usize>) -> bool {
        let codes = self.codes.map(|codes| &codes[row.clone()]);
        let times = self.timestamps.map(|times| &times[row.clone()]);
        let falls = |t: &[i64]| t[0] > t[1] || (self.keeps_duplicates && t[0] == t[1]);
        match (codes, times) {
            (Some(codes), Some(times)) => {
                codes.windows(2).zip(times.windows(2)).all(|(c, t)| c[0] < c[1] || (c[0] == c[1] && falls(t)))
            }
            (Some(codes), None) => codes.windows(2).all(|c| c[0] < c[1]),
            (None, Some(times)) => times.windows(2).all(falls),
            (None, None) => row.len() <= 1,
        }
    }
}

/// The distinct patterns of some rows, and the pattern of each row.
#[derive(Debug, Default)]
pub(crate) struct RowPatterns {
    /// The number of records of each pattern.
    pub(crate) lens: Vec<u32>,
    /// The qualifier codes of all patterns (dynamic groups).
    pub(crate) codes: Vec<u32>,
    /// The relative timestamps of all patterns (stored timestamps).
    pub(crate) offsets: Vec<i64>,
    /// For each pattern, what it lacks of another one; `None` for one that stands by itself.
    pub(crate) gaps: Vec<Option<Gaps>>,
    /// The pattern of each row.
    pub(crate) ids: Vec<u32>,
    /// First timestamp of each row (stored timestamps); an empty row repeats the one before.
    pub(crate) bases: Vec<i64>,
}

/// A pattern as another one without some of its records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// The other pattern.
    pub(crate) of: u32,
    /// The records that it lacks, ascending.
    pub(crate) removed: Vec<u32>,
}

/// Patterns that others are compared with: the longest.
const TEMPLATES: usize = 4;
/// First records that a row of a constant group may lack.
const SKIPPED: usize = 4;

impl RowPatterns {
    /// The patterns of all rows, if those that stand by themselves have at most an eighth of the records, and the others lack at
    /// most a quarter.
    pub(crate) fn detect(records: &Records<'_>) -> Option<Self> {
        let (mut budget, mut gap_budget) = (records.len() / 8, records.len() / 4);
        let mut patterns = Self::default();
        let mut starts: Vec<usize> = Vec::new();
        let mut templates: Vec<u32> = Vec::new();
        let mut known: HashMap<u64, u32, BuildHasherDefault<Folded>> = HashMap::default();
        let (mut last, mut base, mut used) = (u32::MAX, 0, 0);
        for row in records.rows() {
            base = records.timestamps.and_then(|times| times[row.clone()].first().copied()).unwrap_or(base);
            let same = |id: u32| {
                starts.get(id as usize).is_some_and(|start| patterns.is(records, id, *start, row.clone(), base))
            };
            if !same(last) {
                let hash = hash(records, row.clone(), base);
                match known.get(&hash) {
                    Some(id) if same(*id) => last = *id,
                    Some(_) => return None,
                    None => {
                        let gaps = templates.iter().find_map(|of| {
                            let removed = patterns.removed(records, *of, starts[*of as usize], row.clone(), base)?;
                            Some(Gaps { of: *of, removed })
                        });
                        last = patterns.lens.len() as u32;
                        match &gaps {
                            Some(gaps) => gap_budget = gap_budget.checked_sub(gaps.removed.len())?,
                            None => {
                                budget = budget.checked_sub(row.len())?;
                                let longer = |id: &u32| patterns.lens[*id as usize] as usize >= row.len();
                                templates.insert(templates.partition_point(longer), last);
                                templates.truncate(TEMPLATES);
                            }
                        }
                        known.insert(hash, last);
                        starts.push(used);
                        used += row.len();
                        patterns.lens.push(row.len() as u32);
                        patterns.gaps.push(gaps);
                        patterns.codes.extend(records.codes.map_or(&[][..], |codes| &codes[row.clone()]));
                        let times = records.timestamps.map_or(&[][..], |times| &times[row.clone()]);
                        patterns.offsets.extend(times.iter().map(|time| time.wrapping_sub(base)));
                    }
                }
            }
            patterns.ids.push(last);
            if records.timestamps.is_some() {
                patterns.bases.push(base);
            }
        }
        Some(patterns)
    }

    /// Whether a pattern lacks records of another.
    pub(crate) fn has_gaps(&self) -> bool {
        self.gaps.iter().any(Option::is_some)
    }

    /// The records of pattern `id`, which starts at `start`, that a row lacks; `None` if it has others, or lacks most.
    fn removed(&self, records: &Records<'_>, id: u32, start: usize, row: Range<usize>, base: i64) -> Option<Vec<u32>> {
        let len = self.lens[id as usize] as usize;
        let lacking = len.checked_sub(row.len()).filter(|lacking| *lacking > 0 && *lacking < row.len())?;
        let own = records.codes.map(|codes| &codes[row.clone()]);
        let codes = own.map(|_| &self.codes[start..start + len]);
        let times = records.timestamps.map(|times| &times[row.clone()]);
        let offsets = times.map(|_| &self.offsets[start..start + len]);
        let firsts = match (own, codes) {
            (Some(own), Some(codes)) => {
                let first = codes.partition_point(|code| *code < own[0]);
                first..first + 1
            }
            _ => 0..lacking.min(SKIPPED) + 1,
        };
        firsts.into_iter().find_map(|first| {
            let shift = offsets.map_or(0, |offsets| offsets.get(first).copied().unwrap_or_default());
            let is = |place: usize, record: usize| {
                own.zip(codes).is_none_or(|(own, codes)| own[record] == codes[place])
                    && times.zip(offsets).is_none_or(|(times, offsets)| {
                        times[record].wrapping_sub(base) == offsets[place].wrapping_sub(shift)
                    })
            };
            let mut removed: Vec<u32> = Vec::with_capacity(lacking);
            let mut record = 0;
            for place in 0..len {
                if place >= first && record < row.len() && is(place, record) {
                    record += 1;
                } else if removed.len() < lacking {
                    removed.push(place as u32);
                } else {
                    return None;
                }
            }
            Some(removed)
        })
    }

    fn is(&self, records: &Records<'_>, id: u32, start: usize, row: Range<usize>, base: i64) -> bool {
        let len = self.lens[id as usize] as usize;
        len == row.len()
            && records.codes.is_none_or(|codes| codes[row.clone()] == self.codes[start..start + len])
            && records.timestamps.is_none_or(|times| {
                let pairs = times[row].iter().zip(&self.offsets[start..start + len]);
                // No early exit, so that the loop vectorises.
                pairs.fold(0, |off, (time, offset)| off | (time.wrapping_sub(base) ^ offset)) == 0
            })
    }
}

/// The total number of records of the patterns, and the range of each; `None` if over `most`.
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

/// A hash collision only loses compression, so a simple hash suffices.
fn hash(records: &Records<'_>, row: Range<usize>, base: i64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(ODD).rotate_left(29);
    let codes = records.codes.map_or(&[][..], |codes| &codes[row.clone()]);
    let times = records.timestamps.map_or(&[][..], |times| &times[row.clone()]);
    let hash = codes.iter().fold(row.len() as u64 + 1, |hash, code| mix(hash, u64::from(*code)));
    times.iter().fold(hash, |hash, time| mix(hash, time.wrapping_sub(base).cast_unsigned())).wrapping_mul(ODD)
}

/// The identity hasher.
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
