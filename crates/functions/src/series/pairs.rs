//! Encodings of pairs of key and value whose greatest pair is the wanted one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use arrow::row::{RowConverter, RowParser, SortField};
use datafusion::common::internal_err;
use datafusion::error::Result;

/// Which pair is wanted of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// That with the least key; of equal keys, that with the least value.
    Least,
    /// That with the greatest key; of equal keys, that with the greatest value.
    Greatest,
}

/// Encodes pairs so that the wanted pair is the greatest. Pairs without a key or without a value are left out.
pub(super) trait Pairs: Send + Sync + 'static {
    /// An encoded pair.
    type Pair: Ord + Clone + Send + Sync;

    /// The pairs of all rows.
    ///
    /// # Errors
    /// If the columns have other types.
    fn encode(&self, values: &ArrayRef, keys: &ArrayRef) -> Result<Vec<Option<Self::Pair>>> {
        let mut pairs = vec![None; values.len()];
        self.keep_best(values, keys, Some, &mut pairs)?;
        Ok(pairs)
    }

    /// Replaces `best[group]` by each greater pair of a row in `group`; rows for which `group_of` is `None` are left out.
    ///
    /// # Errors
    /// If the columns have other types.
    fn keep_best(
        &self,
        values: &ArrayRef,
        keys: &ArrayRef,
        group_of: impl Fn(usize) -> Option<usize>,
        best: &mut [Option<Self::Pair>],
    ) -> Result<()>;

    /// The values and keys of pairs, null where there is none.
    ///
    /// # Errors
    /// If the pairs are of another encoding.
    fn decode(&self, pairs: &[Option<Self::Pair>]) -> Result<[ArrayRef; 2]>;

    /// Bytes on the heap of a pair.
    fn heap_size(pair: &Self::Pair) -> usize;

    /// Bytes on the heap of all pairs, estimated by the first few.
    fn heap_size_of_all(pairs: &[Option<Self::Pair>]) -> usize {
        const SAMPLE: usize = 64;
        let sampled: usize = pairs.iter().take(SAMPLE).flatten().map(Self::heap_size).sum();
        sampled * pairs.len() / pairs.len().clamp(1, SAMPLE)
    }
}

/// Numbers and times of at most 64 bits, as words in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Signed,
    Unsigned,
    Float,
}

impl Words {
    fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Timestamp(..) => {
                Some(Self::Signed)
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Some(Self::Unsigned),
            DataType::Float32 | DataType::Float64 => Some(Self::Float),
            _ => None,
        }
    }

    fn encode(self, array: &ArrayRef) -> Result<Vec<u64>> {
        Ok(match self {
            Self::Signed => {
                let integers = cast(array, &DataType::Int64)?;
                integers.as_primitive::<Int64Type>().values().iter().map(|value| signed_word(*value)).collect()
            }
            Self::Unsigned => {
                let integers = cast(array, &DataType::UInt64)?;
                integers.as_primitive::<UInt64Type>().values().to_vec()
            }
            Self::Float => {
                let floats = cast(array, &DataType::Float64)?;
                floats.as_primitive::<Float64Type>().values().iter().map(|value| float_word(*value)).collect()
            }
        })
    }

    fn decode(self, words: impl Iterator<Item = Option<u64>>, kind: &DataType) -> Result<ArrayRef> {
        let wide: ArrayRef = match self {
            Self::Signed => Arc::new(words.map(|word| word.map(signed_of)).collect::<Int64Array>()),
            Self::Unsigned => Arc::new(words.collect::<UInt64Array>()),
            Self::Float => Arc::new(words.map(|word| word.map(float_of)).collect::<Float64Array>()),
        };
        Ok(cast(&wide, kind)?)
    }
}

const SIGN: u64 = 1 << 63;

fn signed_word(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

fn signed_of(word: u64) -> i64 {
    (word ^ SIGN).cast_signed()
}

/// A word in the order of floats: -0.0 before 0.0, and NaN, of which there is one, after all.
pub(super) fn float_word(value: f64) -> u64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The float of a word of [`float_word`].
pub(super) fn float_of(word: u64) -> f64 {
    f64::from_bits(if word & SIGN == 0 { !word } else { word & !SIGN })
}

/// Pairs of numbers or times as one integer: the word of the key above that of the value.
pub(super) struct WordPairs {
    kinds: [DataType; 2],
    values: Words,
    keys: Words,
    /// Inverts all bits if the least pair is wanted.
    mask: u128,
}

impl WordPairs {
    /// `None` if one of the types is no number or time of at most 64 bits.
    pub(super) fn new(value: &DataType, key: &DataType, end: End) -> Option<Self> {
        let mask = match end {
            End::Least => u128::MAX,
            End::Greatest => 0,
        };
        let (values, keys) = (Words::of(value)?, Words::of(key)?);
        Some(Self { kinds: [value.clone(), key.clone()], values, keys, mask })
    }
}

impl Pairs for WordPairs {
    type Pair = u128;

    fn keep_best(
        &self,
        values: &ArrayRef,
        keys: &ArrayRef,
        group_of: impl Fn(usize) -> Option<usize>,
        best: &mut [Option<u128>],
    ) -> Result<()> {
        let nulls = null_rows(values, keys);
        let is_present = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let (value_words, key_words) = (self.values.encode(values)?, self.keys.encode(&comparable(keys)?)?);

        for (row, (value, key)) in value_words.into_iter().zip(key_words).enumerate() {
            let pair = (u128::from(key) << 64 | u128::from(value)) ^ self.mask;
            if let Some(group) = group_of(row).filter(|_| is_present(row))
                && let Some(known) = best.get_mut(group)
                && known.is_none_or(|known| pair > known)
            {
                *known = Some(pair);
            }
        }
        Ok(())
    }

    fn decode(&self, pairs: &[Option<u128>]) -> Result<[ArrayRef; 2]> {
        let plain = || pairs.iter().map(|pair| pair.map(|pair| pair ^ self.mask));
        let [value, key] = &self.kinds;
        let values = self.values.decode(plain().map(|pair| pair.map(|pair| pair as u64)), value)?;
        let keys = self.keys.decode(plain().map(|pair| pair.map(|pair| (pair >> 64) as u64)), key)?;
        Ok([values, keys])
    }

    fn heap_size(_: &u128) -> usize {
        0
    }
}

/// Pairs of any types that can be sorted, as bytes of Arrow's row format.
pub(super) struct RowPairs {
    converter: RowConverter,
    parser: RowParser,
}

impl RowPairs {
    /// # Errors
    /// If one of the types cannot be sorted.
    pub(super) fn new(value: &DataType, key: &DataType, end: End) -> Result<Self> {
        let options = SortOptions { descending: end == End::Least, nulls_first: true };
        let field = |kind: &DataType| SortField::new_with_options(kind.clone(), options);
        let converter = RowConverter::new(vec![field(key), field(value)])?;
        let parser = converter.parser();
        Ok(Self { converter, parser })
    }
}

impl Pairs for RowPairs {
    type Pair = Box<[u8]>;

    fn keep_best(
        &self,
        values: &ArrayRef,
        keys: &ArrayRef,
        group_of: impl Fn(usize) -> Option<usize>,
        best: &mut [Option<Box<[u8]>>],
    ) -> Result<()> {
        let nulls = null_rows(values, keys);
        let is_present = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let rows = self.converter.convert_columns(&[comparable(keys)?, one_nan(values)?])?;

        for (row, pair) in rows.iter().enumerate() {
            if let Some(group) = group_of(row).filter(|_| is_present(row))
                && let Some(known) = best.get_mut(group)
                && known.as_deref().is_none_or(|known| pair.as_ref() > known)
            {
                *known = Some(Box::from(pair.as_ref()));
            }
        }
        Ok(())
    }

    fn decode(&self, pairs: &[Option<Box<[u8]>>]) -> Result<[ArrayRef; 2]> {
        // The row format cannot say that a pair is missing but by its values.
        let present = pairs.iter().flatten().map(|pair| self.parser.parse(pair));
        let columns = self.converter.convert_rows(present)?;
        let [keys, values] = columns.as_slice() else { return internal_err!("a pair has two columns") };

        let mut next = 0;
        let places: UInt64Array = pairs
            .iter()
            .map(|pair| {
                pair.as_ref().map(|_| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        Ok([take(values, &places, None)?, take(keys, &places, None)?])
    }

    fn heap_size(pair: &Box<[u8]>) -> usize {
        pair.len()
    }
}

/// The rows that lack a value or a key.
fn null_rows(values: &ArrayRef, keys: &ArrayRef) -> Option<NullBuffer> {
    NullBuffer::union(values.logical_nulls().as_ref(), keys.logical_nulls().as_ref())
}

/// Keys in which equal floats have equal bits: one zero and one NaN.
pub(super) fn comparable(keys: &ArrayRef) -> Result<ArrayRef> {
    floats(keys, |key| if key.is_nan() { f64::NAN } else { key + 0.0 })
}

/// Values in which all NaN have equal bits.
fn one_nan(values: &ArrayRef) -> Result<ArrayRef> {
    floats(values, |value| if value.is_nan() { f64::NAN } else { value })
}

/// Replaces each float of an array; arrays of other types are returned as they are.
fn floats(array: &ArrayRef, replace: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    if !matches!(array.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64) {
        return Ok(Arc::clone(array));
    }
    let wide = cast(array, &DataType::Float64)?;
    let replaced: Float64Array = wide.as_primitive::<Float64Type>().unary(replace);
    Ok(cast(&replaced, array.data_type())?)
}

/// Whether `filter` keeps a row.
pub(super) fn keeps(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_the_order_of_floats() {
        let sorted = [f64::NEG_INFINITY, -2.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, f64::INFINITY, f64::NAN];
        let words: Vec<u64> = sorted.iter().map(|value| float_word(*value)).collect();
        assert!(words.is_sorted_by(|left, right| left < right));
        assert_eq!(float_word(-f64::NAN), float_word(f64::NAN));
        for value in sorted {
            assert_eq!(float_of(float_word(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn integers_at_their_ends_return() {
        for value in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(signed_of(signed_word(value)), value);
        }
    }
}
