//! A sum of floats in fixed point, wide enough for every float, of which only the words in use are held.
//!
//! It is the small superaccumulator of Neal ("Fast exact summation using small and large superaccumulators", 2015), in two's
//! complement, and as long as the exponents of its values require: readings of one sensor fit in three or four words.

use num_bigint::{BigInt, BigUint, Sign};

/// The exponent of bit 0 of word 0, which is a multiple of the word's size below that of the least float, 2^-1074.
const LEAST: i32 = -1088;
/// The exponent of the lowest mantissa bit of subnormal and of the least normal floats.
const SUBNORMAL: i32 = -1074;
const WORD: usize = u64::BITS as usize;
const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
const EXPONENTS: u64 = 0x7ff;

/// An exact sum of floats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Superaccumulator {
    /// Index of the first of `words`; bit 0 of word `i` is 2^(64 `i` + [`LEAST`]).
    low: usize,
    /// Two's complement, lowest word first. The last word is room for carries.
    words: Vec<u64>,
    not_finite: NotFinite,
}

/// How many values were infinite or NaN. Counts, so that a window can take values out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct NotFinite {
    nan: u64,
    positive: u64,
    negative: u64,
}

/// The words of a finite float: `mantissa * 2^(64 * word + LEAST)`.
struct Placed {
    mantissa: u128,
    word: usize,
}

impl Placed {
    /// The magnitude of a finite `value`.
    fn new(value: f64) -> Self {
        let bits = value.to_bits();
        let (exponent, fraction) = (bits >> MANTISSA & EXPONENTS, bits & ((1 << MANTISSA) - 1));
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << MANTISSA };

        let bit = exponent.saturating_sub(1) as usize + (SUBNORMAL - LEAST) as usize;
        Self { mantissa: u128::from(mantissa) << (bit % WORD), word: bit / WORD }
    }
}

impl NotFinite {
    fn of(value: f64) -> Self {
        let is = u64::from;
        Self { nan: is(value.is_nan()), positive: is(value == f64::INFINITY), negative: is(value == f64::NEG_INFINITY) }
    }

    fn merge(&mut self, other: Self) {
        self.nan = self.nan.wrapping_add(other.nan);
        self.positive = self.positive.wrapping_add(other.positive);
        self.negative = self.negative.wrapping_add(other.negative);
    }

    fn negated(self) -> Self {
        let Self { nan, positive, negative } = self;
        Self { nan: nan.wrapping_neg(), positive: positive.wrapping_neg(), negative: negative.wrapping_neg() }
    }
}

impl Superaccumulator {
    pub(crate) fn add(&mut self, value: f64) {
        match value.is_finite() {
            true => self.add_finite(value, value.is_sign_negative()),
            false => self.not_finite.merge(NotFinite::of(value)),
        }
    }

    /// Takes out a value that was added before.
    pub(crate) fn take_out(&mut self, value: f64) {
        match value.is_finite() {
            true => self.add_finite(value, value.is_sign_positive()),
            false => self.not_finite.merge(NotFinite::of(value).negated()),
        }
    }

    fn add_finite(&mut self, value: f64, is_negative: bool) {
        let Placed { mantissa, word } = Placed::new(value);
        // Two words of the value, and one for carries.
        self.reserve(word, word + 3);
        let own = self.words.get_mut(word - self.low..).unwrap_or_default();
        combine(own, mantissa, if is_negative { u64::borrowing_sub } else { u64::carrying_add });
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.not_finite.merge(other.not_finite);
        let Some(last) = other.words.last() else { return };
        self.reserve(other.low, other.low + other.words.len() + 1);

        let more = other.words.iter().copied().chain(std::iter::repeat(sign_of(*last)));
        let own = self.words.get_mut(other.low - self.low..).unwrap_or_default();
        let mut carry = false;
        for (own, more) in own.iter_mut().zip(more) {
            let (sum, over) = own.carrying_add(more, carry);
            (*own, carry) = (sum, over);
        }
    }

    /// Grows to hold the words `low..high`.
    fn reserve(&mut self, low: usize, high: usize) {
        let Some(last) = self.words.last().copied() else {
            self.low = low;
            self.words = vec![0; high - low];
            return;
        };
        if low < self.low {
            self.words.splice(0..0, std::iter::repeat_n(0, self.low - low));
            self.low = low;
        }
        if high > self.low + self.words.len() {
            self.words.resize(high - self.low, sign_of(last));
        }
    }

    /// NaN or an infinity, if the sum is one.
    pub(crate) fn not_finite(&self) -> Option<f64> {
        match self.not_finite {
            NotFinite { nan: 0, positive: 0, negative: 0 } => None,
            NotFinite { nan: 0, negative: 0, .. } => Some(f64::INFINITY),
            NotFinite { nan: 0, positive: 0, .. } => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// The sum of the finite values, as an integer of 2^-[`fraction_bits`](Self::fraction_bits); the exponent may be positive.
    pub(crate) fn integer(&self) -> BigInt {
        let is_negative = self.words.last().is_some_and(|last| sign_of(*last) != 0);
        let mut digits = Vec::with_capacity(2 * self.words.len());
        let mut carry = is_negative;
        for word in &self.words {
            let (word, over) = if is_negative { (!word).overflowing_add(u64::from(carry)) } else { (*word, false) };
            carry = over;
            digits.extend([word as u32, (word >> 32) as u32]);
        }
        BigInt::from_biguint(if is_negative { Sign::Minus } else { Sign::Plus }, BigUint::new(digits))
    }

    /// The number of bits behind the binary point in [`integer`](Self::integer); negative if it counts multiples of 2.
    pub(crate) fn fraction_bits(&self) -> i32 {
        -(LEAST + (self.low * WORD) as i32)
    }

    /// Bytes that it holds beside itself.
    pub(crate) fn size(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Its bytes as a partial state: the index of the first word, counts of what is not finite, and the words, all little-endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let NotFinite { nan, positive, negative } = self.not_finite;
        let lead = [self.low as u64, nan, positive, negative];
        lead.iter().chain(&self.words).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads a partial state; `None` if the bytes are none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (&[low, nan, positive, negative], words) = words.split_first_chunk()?;
        Some(Self { low: low as usize, words: words.to_vec(), not_finite: NotFinite { nan, positive, negative } })
    }
}

/// A word of the sign of a number whose highest word is `last`.
fn sign_of(last: u64) -> u64 {
    if last.cast_signed() < 0 { u64::MAX } else { 0 }
}

/// Adds `value` to a number, or subtracts it, by `step`: the sum or difference of words with a carry or borrow.
fn combine(words: &mut [u64], value: u128, step: fn(u64, u64, bool) -> (u64, bool)) {
    let mut rest = [value as u64, (value >> 64) as u64].into_iter();
    let mut carry = false;
    for word in words {
        let more = rest.next();
        if more.is_none() && !carry {
            return;
        }
        (*word, carry) = step(*word, more.unwrap_or(0), carry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 12] = [
        1.0 / 3.0,
        -0.1,
        5e-324,
        -5e-324,
        f64::MAX,
        -f64::MAX,
        1e-300,
        -1e16,
        2.5,
        4_503_599_627_370_497.5,
        1e22,
        -1e22,
    ];

    fn of(values: &[f64]) -> Superaccumulator {
        let mut sum = Superaccumulator::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    /// The sum in units of 2^[`LEAST`], whichever words hold it.
    fn number(sum: &Superaccumulator) -> BigInt {
        sum.integer() << (sum.low * WORD)
    }

    #[test]
    fn sums_are_exact_in_any_order() {
        for first in VALUES {
            for second in VALUES {
                for third in VALUES {
                    let exact = [first, second, third].map(|value| number(&of(&[value]))).into_iter().sum();
                    assert_eq!(number(&of(&[first, second, third])), exact, "{first} {second} {third}");
                    let mut merged = of(&[first]);
                    merged.merge(&of(&[second, third]));
                    assert_eq!(number(&merged), exact, "{first} and {second} {third}");
                }
            }
        }
    }

    #[test]
    fn a_value_is_a_multiple_of_the_least_float() {
        assert_eq!(number(&of(&[5e-324])), BigInt::from(1) << 14);
        assert_eq!(number(&of(&[-1.0])), BigInt::from(-1) << 1088);
        assert_eq!(number(&of(&[f64::MIN_POSITIVE])), BigInt::from(1) << (52 + 14));
    }

    #[test]
    fn values_can_be_taken_out() {
        let mut sum = of(&VALUES);
        sum.add(f64::NAN);
        sum.add(f64::INFINITY);
        assert!(sum.not_finite().unwrap().is_nan());
        sum.take_out(f64::NAN);
        assert_eq!(sum.not_finite(), Some(f64::INFINITY));
        sum.take_out(f64::INFINITY);
        assert_eq!(sum.not_finite(), None);
        VALUES.iter().for_each(|value| sum.take_out(*value));
        assert_eq!(number(&sum), BigInt::ZERO);
    }

    #[test]
    fn infinities_of_both_signs_are_nan() {
        assert_eq!(of(&[f64::NEG_INFINITY, 1.0]).not_finite(), Some(f64::NEG_INFINITY));
        assert!(of(&[f64::NEG_INFINITY, f64::INFINITY]).not_finite().unwrap().is_nan());
    }

    #[test]
    fn states_are_read_back() {
        let mut sum = of(&VALUES);
        sum.add(f64::NAN);
        assert_eq!(Superaccumulator::from_bytes(&sum.to_bytes()), Some(sum));
        assert_eq!(Superaccumulator::from_bytes(&[0; 31]), None);
        assert_eq!(Superaccumulator::from_bytes(&[0; 24]), None);
    }

    #[test]
    fn many_values_carry_into_the_last_word() {
        let mut sum = Superaccumulator::default();
        (0..100_000).for_each(|_| sum.add(-f64::MAX));
        let one = number(&of(&[-f64::MAX]));
        assert_eq!(number(&sum), one * 100_000);
    }
}
