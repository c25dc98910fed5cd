//! Sorts names by the eight bytes behind what all have in common.
//!
//! Where these bytes are digits, a few bits tell them apart, and a radix sort of three rounds orders a million names in the time
//! of one comparison of each with a neighbour.

use rayon::prelude::*;
use tidetable_layout::encode::Dictionary;

/// Bytes of a key.
const BYTES: usize = 8;
/// Bits of a round of the radix sort.
const ROUND: u32 = 11;
/// Bits of the keys that the radix sort takes, and of the number of a name beside a key.
const RADIX_BITS: u32 = 32;
const NUMBER_BITS: u32 = 32;

/// How names become keys: keys do not descend where the names ascend.
#[derive(Debug)]
pub(crate) struct NameKeys {
    /// Bytes that all names begin with.
    common: usize,
    /// For each byte of the key the least and the greatest value.
    ranges: [(u8, u8); BYTES],
    /// Bits of the keys.
    bits: u32,
    /// Whether names are of one length, and none goes on behind its key.
    tell_all: bool,
}

/// The names of several dictionaries with a number each: those of the first dictionary come before those of the next.
pub(crate) struct NumberedNames<'a> {
    dictionaries: &'a [&'a Dictionary],
    /// The number of the first name of each.
    starts: Vec<u32>,
}

impl<'a> NumberedNames<'a> {
    pub(crate) fn new(dictionaries: &'a [&'a Dictionary]) -> Self {
        let mut starts = Vec::with_capacity(dictionaries.len());
        let mut next = 0;
        for dictionary in dictionaries {
            starts.push(next);
            next += dictionary.len() as u32;
        }
        Self { dictionaries, starts }
    }

    /// The dictionary and the code of the name with a number.
    pub(crate) fn place(&self, number: u32) -> NamePlace {
        let after = self.starts.partition_point(|start| *start <= number);
        let dictionary = after.saturating_sub(1);
        let start = self.starts.get(dictionary).copied().unwrap_or_default();
        NamePlace { dictionary, code: number - start }
    }

    /// The name with a number; empty if there is none.
    fn get(&self, number: u32) -> &'a [u8] {
        let NamePlace { dictionary, code } = self.place(number);
        self.dictionaries.get(dictionary).map_or(&[], |dictionary| dictionary.get(code))
    }

    /// All names, in the order of their numbers.
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.dictionaries.iter().flat_map(|dictionary| dictionary.iter())
    }
}

/// Where a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamePlace {
    pub(crate) dictionary: usize,
    pub(crate) code: u32,
}

impl NameKeys {
    /// Calls `each` for `names` in byte order: with the number of a name, and with the name, unless it is that of the call before.
    pub(crate) fn in_order(names: &NumberedNames<'_>, each: impl FnMut(u32, Option<&[u8]>)) {
        let keys = Self::of(names);
        let numbered = || (0u32..).zip(names.iter());
        if keys.bits <= RADIX_BITS {
            let entries = numbered().map(|(number, name)| keys.key(name) << NUMBER_BITS | u64::from(number));
            let entries = radix(entries.collect(), keys.bits);
            let parts = |entry: &u64| (entry >> NUMBER_BITS, *entry as u32);
            return if keys.tell_all {
                keys.restored(names, entries.iter().map(parts), each);
            } else {
                compared(names, entries, parts, each);
            };
        }
        let mut entries: Vec<(u64, u32)> = numbered().map(|(number, name)| (keys.key(name), number)).collect();
        entries.par_sort_unstable();
        compared(names, entries, |entry| *entry, each);
    }

    /// As [`Self::in_order`], of names that their keys tell: reading them back from a dictionary would miss the cache for each.
    fn restored(
        &self,
        names: &NumberedNames<'_>,
        entries: impl Iterator<Item = (u64, u32)>,
        mut each: impl FnMut(u32, Option<&[u8]>),
    ) {
        let mut name = names.get(0).to_vec();
        let mut last = None;
        for (key, number) in entries {
            if last == Some(key) {
                each(number, None);
                continue;
            }
            last = Some(key);
            let mut rest = key as u32;
            for (at, (least, greatest)) in self.ranges.iter().enumerate().rev() {
                let values = u32::from(greatest - least) + 1;
                if let Some(byte) = name.get_mut(self.common + at) {
                    *byte = least + (rest % values) as u8;
                }
                rest /= values;
            }
            each(number, Some(&name));
        }
    }

    fn of(names: &NumberedNames<'_>) -> Self {
        let first = names.iter().next().unwrap_or_default();
        let mut common = first.len();
        for name in names.iter() {
            if !name.starts_with(&first[..common]) {
                common = first.iter().zip(name).take_while(|(one, other)| one == other).count();
            }
        }
        let mut ranges = [(u8::MAX, 0); BYTES];
        let mut tell_all = first.len() <= common + BYTES;
        for name in names.iter() {
            tell_all &= name.len() == first.len();
            for ((least, greatest), byte) in ranges.iter_mut().zip(bytes(name, common)) {
                (*least, *greatest) = ((*least).min(byte), (*greatest).max(byte));
            }
        }
        let values = |(least, greatest): &(u8, u8)| u64::from(greatest.saturating_sub(*least)) + 1;
        let all = ranges.iter().try_fold(1u64, |all, range| all.checked_mul(values(range)));
        let bits = all.map_or(u64::BITS, |all| u64::BITS - (all - 1).leading_zeros());
        Self { common, ranges, bits, tell_all }
    }

    /// The key of a name: the number that its bytes make when each has as many digits as it has values.
    fn key(&self, name: &[u8]) -> u64 {
        let bytes = bytes(name, self.common);
        if self.bits > RADIX_BITS {
            return u64::from_be_bytes(bytes);
        }
        bytes
            .iter()
            .zip(&self.ranges)
            .fold(0, |key, (byte, (least, greatest))| key * (u64::from(greatest - least) + 1) + u64::from(byte - least))
    }
}

/// The bytes of a name behind the first `common`; 0 beyond its end.
fn bytes(name: &[u8], common: usize) -> [u8; BYTES] {
    let rest = name.get(common..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk() {
        return *bytes;
    }
    let mut bytes = [0; BYTES];
    bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    bytes
}

/// As [`NameKeys::in_order`], of entries that are sorted by key, of which `of` gives key and number. Names with one key are compared: they
/// may differ behind it.
fn compared<T>(
    names: &NumberedNames<'_>,
    mut entries: Vec<T>,
    of: impl Fn(&T) -> (u64, u32),
    mut each: impl FnMut(u32, Option<&[u8]>),
) {
    let name = |entry: &T| names.get(of(entry).1);
    let mut last = None;
    for alike in entries.chunk_by_mut(|one, next| of(one).0 == of(next).0) {
        if alike.len() > 1 {
            alike.sort_by(|one, other| name(one).cmp(name(other)));
        }
        for entry in alike.iter() {
            let own = name(entry);
            each(of(entry).1, (last != Some(own)).then_some(own));
            last = Some(own);
        }
    }
}

/// Sorts entries by their keys of so many bits, which are in the upper half.
fn radix(mut entries: Vec<u64>, bits: u32) -> Vec<u64> {
    let mut other = vec![0; entries.len()];
    for shift in (NUMBER_BITS..NUMBER_BITS + bits).step_by(ROUND as usize) {
        let digit = |entry: u64| (entry >> shift) as usize & ((1 << ROUND) - 1);
        let mut next = [0usize; (1 << ROUND) + 1];
        entries.iter().for_each(|entry| next[digit(*entry) + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        for entry in &entries {
            let place = &mut next[digit(*entry)];
            other[*place] = *entry;
            *place += 1;
        }
        std::mem::swap(&mut entries, &mut other);
    }
    entries
}
