//! Formats with fixed offsets, such as `%Y-%m-%dT%H:%M:%SZ`: checked eight bytes at a time, each word at once.

use crate::number::not_digits;
use crate::time::civil::Civil;
use crate::time::format::Item;

const BLOCK: usize = 32;

/// The bytes of a field in words, zero where they are neither literals nor digits.
pub(super) type Words = [u64; BLOCK / 8];

/// The position of the digits of an item; count 0 if absent.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    at: usize,
    count: usize,
}

/// A format whose items have fixed widths, as masks of its literals and digits.
#[derive(Debug)]
pub(super) struct Fixed {
    width: usize,
    literals: Words,
    literal_mask: Words,
    digit_mask: Words,
    year: Place,
    month: Place,
    day: Place,
    hour: Place,
    minute: Place,
    second: Place,
    fraction: Place,
    utc: bool,
}

impl Fixed {
    /// `None` if an item has no fixed width, is repeated, or the format exceeds 32 bytes.
    pub fn new(items: &[Item], utc: bool) -> Option<Self> {
        let mut literals = [0u8; BLOCK];
        let mut literal_mask = [0u8; BLOCK];
        let mut digit_mask = [0u8; BLOCK];
        let [mut year, mut month, mut day, mut hour, mut minute, mut second, mut fraction] = [Place::default(); 7];
        let mut width = 0;

        for item in items {
            let (place, count) = match *item {
                Item::Literal(byte) => {
                    *literals.get_mut(width)? = byte;
                    *literal_mask.get_mut(width)? = 0xFF;
                    width += 1;
                    continue;
                }
                Item::Year => (&mut year, 4),
                Item::Month => (&mut month, 2),
                Item::Day => (&mut day, 2),
                Item::Hour => (&mut hour, 2),
                Item::Minute => (&mut minute, 2),
                Item::Second => (&mut second, 2),
                Item::Fraction { least, most } if least == most => (&mut fraction, most),
                _ => return None,
            };
            if place.count > 0 {
                return None;
            }
            *place = Place { at: width, count };
            digit_mask.get_mut(width..width + count)?.fill(0xFF);
            width += count;
        }

        if year.count == 0 || month.count == 0 || day.count == 0 {
            return None;
        }
        let [literals, literal_mask, digit_mask] = [literals, literal_mask, digit_mask].map(|bytes| words(&bytes));
        Some(Self { width, literals, literal_mask, digit_mask, year, month, day, hour, minute, second, fraction, utc })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the format itself says UTC, by its Z.
    pub fn utc(&self) -> bool {
        self.utc
    }

    #[inline(always)]
    pub fn words(&self, rest: &[u8]) -> Option<Words> {
        let mut read = words(rest.first_chunk::<BLOCK>()?);
        for ((word, literal), digit) in read.iter_mut().zip(&self.literal_mask).zip(&self.digit_mask) {
            *word &= literal | digit;
        }
        Some(read)
    }

    /// The fields of `rest`, whose words are `words`; `None` if a literal or a digit is something else, or a digit beyond the
    /// microsecond is not 0.
    #[inline(always)]
    pub fn civil(&self, rest: &[u8], words: &Words) -> Option<Civil> {
        const ZEROS: u64 = 0x3030_3030_3030_3030;
        let mut wrong = 0;
        let masks = self.literals.iter().zip(&self.literal_mask).zip(&self.digit_mask);
        for (word, ((literal, literal_mask), digit_mask)) in words.iter().zip(masks) {
            wrong |= (word ^ literal) & literal_mask;
            wrong |= not_digits((word & digit_mask) | (ZEROS & !digit_mask));
        }
        if wrong != 0 {
            return None;
        }

        let pairs = pairs(words);
        let pair = |at: usize| u32::from(pairs[at % BLOCK]);
        let two = |place: Place| if place.count == 0 { 0 } else { pair(place.at) };
        Some(Civil {
            year: pair(self.year.at) * 100 + pair(self.year.at + 2),
            month: two(self.month),
            day: two(self.day),
            hour: two(self.hour),
            minute: two(self.minute),
            second: two(self.second),
            micros: self.micros(rest)?,
        })
    }

    /// The digits of the fraction as microseconds; `None` if one beyond them is not 0.
    #[inline(always)]
    fn micros(&self, rest: &[u8]) -> Option<u32> {
        if self.fraction.count == 0 {
            return Some(0);
        }
        let block = rest.first_chunk::<BLOCK>()?;
        let mut micros = 0;
        for index in 0..6 {
            let digit = u32::from(block[(self.fraction.at + index) % BLOCK] & 0x0F);
            micros = micros * 10 + if index < self.fraction.count { digit } else { 0 };
        }
        let beyond = self.fraction.at + 6..self.fraction.at + self.fraction.count.max(6);
        block.get(beyond)?.iter().all(|digit| *digit == b'0').then_some(micros)
    }
}

/// Beside each digit's place, the number it makes with the next digit: one load a field.
#[inline(always)]
fn pairs(words: &Words) -> [u8; BLOCK] {
    const DIGITS: u64 = 0x0F0F_0F0F_0F0F_0F0F;
    let mut pairs = [0u8; BLOCK];
    for (index, pair) in pairs.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let following = words.get(index + 1).map_or(0, |word| word << 56);
        let tens = words[index] & DIGITS;
        let ones = (words[index] >> 8 | following) & DIGITS;
        *pair = (tens * 10 + ones).to_le_bytes();
    }
    pairs
}

#[inline]
fn words(bytes: &[u8; BLOCK]) -> Words {
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut words = [0; BLOCK / 8];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}
