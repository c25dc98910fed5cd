//! Sorts names by numbers that their bytes make.
//!
//! Names of entities mostly differ in a few bytes, and those are digits: `plant-07/veh-0012345` in seven or eight of twenty. A key
//! is the number whose digits are these bytes, each of as many values as it takes among all names. A radix sort of keys of 32 bits
//! orders a million names in the time of one comparison of each with a neighbour.

use rayon::prelude::*;
use tidetable_layout::encode::Dictionary;

/// Bytes behind the common beginning that may be in a key.
const SPAN: usize = 64;
/// Names that are fetched together: some more than the dozen of misses that a processor waits for at a time.
const FETCHED: usize = 64;
/// Bits of a round of the radix sort.
const ROUND: u32 = 11;
/// Bits of the keys that the radix sort takes, and of the number of a name beside a key.
const RADIX_BITS: u32 = 32;
const NUMBER_BITS: u32 = 32;

/// How names become keys: keys do not descend where the names ascend. A name counts as going on with zeros behind its end.
#[derive(Debug)]
pub(crate) struct NameKeys {
    /// A name up to its last byte in the key; those that are no digits are the same in all names.
    frame: Vec<u8>,
    /// From left to right, so that the first decides.
    digits: Vec<Digit>,
    bits: u32,
    /// Whether names are of several lengths.
    ends: bool,
    /// Whether a key tells its name: names go on behind no key, and zeros are no bytes of names of several lengths.
    tell_all: bool,
}

/// A byte of names, as a digit of their keys.
#[derive(Debug, Clone, Copy)]
struct Digit {
    at: usize,
    /// The least byte there, which is the digit 0.
    least: u8,
    /// Values that the digit may have: the base of the number there.
    values: u64,
}

/// The number of a name with its key, in the order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyedName {
    key: u64,
    number: u32,
}

impl KeyedName {
    /// Of an entry of the radix sort: the key is in its upper half, the number in the lower one.
    fn unpacked(entry: u64) -> Self {
        Self { key: entry >> NUMBER_BITS, number: entry as u32 }
    }
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

    /// Reads the beginning of each of these names, which lie far from each other: a processor that does nothing else meanwhile waits
    /// for many of them at a time.
    fn fetch(&self, numbers: impl Iterator<Item = u32>) {
        let beginnings = numbers.map(|number| u32::from(self.get(number).first().copied().unwrap_or_default()));
        std::hint::black_box(beginnings.sum::<u32>());
    }

    /// All names, in the order of their numbers.
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.dictionaries.iter().flat_map(|dictionary| dictionary.iter())
    }
}

/// Where a name is: the dictionary of which worker, and its code there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamePlace {
    pub(crate) dictionary: usize,
    pub(crate) code: u32,
}

impl NameKeys {
    /// Calls `each` for `names` in byte order: with the number of a name, and with the name, unless it is that of the call before.
    pub(crate) fn in_order(names: &NumberedNames<'_>, each: impl FnMut(u32, Option<&[u8]>)) {
        let keys = Self::of(names);
        let numbered = (0u32..).zip(names.iter());
        if keys.bits <= RADIX_BITS {
            let entries = numbered.map(|(number, name)| keys.key(name) << NUMBER_BITS | u64::from(number));
            let entries = radix(entries.collect(), keys.bits);
            return keys.visit(names, entries, |entry| KeyedName::unpacked(*entry), each);
        }

        let entries = numbered.map(|(number, name)| KeyedName { key: keys.key(name), number });
        let mut entries: Vec<KeyedName> = entries.collect();
        entries.par_sort_unstable();
        keys.visit(names, entries, |entry| *entry, each);
    }

    /// As [`Self::in_order`], of entries that are sorted by key.
    fn visit<T>(
        &self,
        names: &NumberedNames<'_>,
        entries: Vec<T>,
        of: impl Fn(&T) -> KeyedName,
        each: impl FnMut(u32, Option<&[u8]>),
    ) {
        match self.tell_all {
            true => self.restored(entries.iter().map(of), each),
            false => compared(names, entries, of, each),
        }
    }

    /// As [`Self::in_order`], of names that their keys tell: reading them back from a dictionary would miss the cache for each.
    fn restored(&self, entries: impl Iterator<Item = KeyedName>, mut each: impl FnMut(u32, Option<&[u8]>)) {
        let mut name = self.frame.clone();
        let mut last = None;
        for KeyedName { key, number } in entries {
            if last == Some(key) {
                each(number, None);
                continue;
            }
            last = Some(key);
            self.restore(key, &mut name);
            let zeros = match self.ends {
                true => name.iter().rev().take_while(|byte| **byte == 0).count(),
                false => 0,
            };
            each(number, Some(&name[..name.len() - zeros]));
        }
    }

    /// Sets the bytes of `name` that are digits of `key`.
    fn restore(&self, key: u64, name: &mut [u8]) {
        let mut rest = key;
        for digit in self.digits.iter().rev() {
            // Most keys have 32 bits, which are divided faster than 64.
            let value = match u32::try_from(rest) {
                Ok(narrow) => {
                    let values = digit.values as u32;
                    rest = u64::from(narrow / values);
                    u64::from(narrow % values)
                }
                Err(_) => {
                    let value = rest % digit.values;
                    rest /= digit.values;
                    value
                }
            };
            name[digit.at] = digit.least + value as u8;
        }
    }

    /// Finds the bytes in which names differ: those behind their common beginning, as many as fit into a key of 64 bits.
    fn of(names: &NumberedNames<'_>) -> Self {
        let first = names.iter().next().unwrap_or_default();
        let mut common = first.len();
        let (mut shortest, mut longest) = (first.len(), first.len());
        for name in names.iter() {
            if !name.starts_with(&first[..common]) {
                common = first.iter().zip(name).take_while(|(one, other)| one == other).count();
            }
            shortest = shortest.min(name.len());
            longest = longest.max(name.len());
        }

        let ends = shortest < longest;
        let mut ranges = [ByteRange { least: u8::MAX, greatest: 0 }; SPAN];
        let mut has_zeros = false;
        for name in names.iter() {
            for (range, byte) in ranges.iter_mut().zip(&name[common..]) {
                range.least = range.least.min(*byte);
                range.greatest = range.greatest.max(*byte);
            }
            has_zeros |= ends && name.contains(&0);
        }

        let mut frame = first[..common].to_vec();
        let (mut digits, mut all) = (Vec::new(), 1u64);
        for (range, at) in ranges.iter().zip(common..longest) {
            let least = if at < shortest { range.least } else { 0 };
            let values = u64::from(range.greatest - least) + 1;
            let Some(more) = all.checked_mul(values) else { break };
            all = more;
            frame.push(least);
            if values > 1 {
                digits.push(Digit { at, least, values });
            }
        }
        let tell_all = frame.len() == longest && !has_zeros;
        Self { frame, digits, bits: u64::BITS - (all - 1).leading_zeros(), ends, tell_all }
    }

    fn key(&self, name: &[u8]) -> u64 {
        let mut key = 0;
        for digit in &self.digits {
            let byte = name.get(digit.at).copied().unwrap_or(0);
            key = key * digit.values + u64::from(byte - digit.least);
        }
        key
    }
}

/// The bytes that names have at a place.
#[derive(Clone, Copy)]
struct ByteRange {
    least: u8,
    greatest: u8,
}

/// As [`NameKeys::in_order`], of entries that are sorted by key. Names with one key are compared: they may differ behind it.
fn compared<T>(
    names: &NumberedNames<'_>,
    mut entries: Vec<T>,
    of: impl Fn(&T) -> KeyedName,
    mut each: impl FnMut(u32, Option<&[u8]>),
) {
    let mut last = None;
    for some in blocks_mut(&mut entries, |entry| of(entry).key) {
        names.fetch(some.iter().take(FETCHED).map(|entry| of(entry).number));
        for alike in some.chunk_by_mut(|one, next| of(one).key == of(next).key) {
            if alike.len() > 1 {
                alike.sort_by(|one, other| names.get(of(one).number).cmp(names.get(of(other).number)));
            }

            for entry in alike.iter() {
                let number = of(entry).number;
                let name = names.get(number);
                each(number, (last != Some(name)).then_some(name));
                last = Some(name);
            }
        }
    }
}

/// Some entries after each other, of which those with one key are in one block.
fn blocks_mut<T>(mut entries: &mut [T], key: impl Fn(&T) -> u64) -> impl Iterator<Item = &mut [T]> {
    std::iter::from_fn(move || {
        let mut end = FETCHED.min(entries.len());
        while (1..entries.len()).contains(&end) && key(&entries[end]) == key(&entries[end - 1]) {
            end += 1;
        }
        let (block, rest) = std::mem::take(&mut entries).split_at_mut(end);
        entries = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// Sorts entries by their keys of so many bits, which are in the upper half: from the lowest digit of [`ROUND`] bits to the
/// highest, each by counting (LSD radix sort).
fn radix(mut entries: Vec<u64>, bits: u32) -> Vec<u64> {
    let mut other = vec![0; entries.len()];
    for shift in (NUMBER_BITS..NUMBER_BITS + bits).step_by(ROUND as usize) {
        let mut next = [0usize; (1 << ROUND) + 1];
        entries.iter().for_each(|entry| next[radix_digit(*entry, shift) + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }

        for entry in &entries {
            let place = &mut next[radix_digit(*entry, shift)];
            other[*place] = *entry;
            *place += 1;
        }
        std::mem::swap(&mut entries, &mut other);
    }
    entries
}

fn radix_digit(entry: u64, shift: u32) -> usize {
    (entry >> shift) as usize & ((1 << ROUND) - 1)
}
