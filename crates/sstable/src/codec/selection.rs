//! Selection: tests encoded values against a range before they are converted to values of their type.

use std::ops::Range;

use bytes::Bytes;

use crate::codec::bit_mask::{bits, compact};
use crate::codec::decimal_scaling::Scale;
use crate::codec::integer_range::IntegerRange;
use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, unpack};
use crate::codec::pfor;
use crate::stripe::ValueRange;

/// Decodes those values of a stream that are in a range.
pub(crate) struct Selector<T: Lane> {
    decoder: Decoder<T>,
    /// What is stored of them: scaled integers, or the ordinals of values.
    wanted: Option<IntegerRange>,
    /// Scaled integers that are wanted.
    kept: Vec<i64>,
    scratch: Vec<T>,
}

impl<T: Lane> Selector<T> {
    /// `None` if `wanted` is of another type.
    pub(crate) fn new(decoder: Decoder<T>, wanted: ValueRange) -> Option<Self> {
        if wanted.has_floats() != T::FLOATS {
            return None;
        }
        let (least, greatest) = wanted.ends();
        let wanted = match &decoder {
            Decoder::Pfor(scale, ..) | Decoder::DecimalScaling(scale, ..) => scale.integers::<T>(wanted),
            _ if T::FLOATS => IntegerRange::between(least, greatest),
            _ => Scale::PLAIN.integers::<T>(wanted),
        };
        Some(Self { decoder, wanted, kept: Vec::new(), scratch: Vec::new() })
    }

    /// Of the values `some` of a page, a bit for each whether it is in the range; appends those that are to `out`. `payload`,
    /// `first` and `present` as for [`Decoder::read`]. `None` if the page is damaged.
    pub(crate) fn read(
        &mut self,
        payload: &Bytes,
        (first, present): (usize, usize),
        some: Range<usize>,
        out: &mut Vec<T>,
    ) -> Option<Vec<u64>> {
        let room = Decoder::<T>::room(some.end, present);
        let Some(wanted) = self.wanted else { return Some(vec![0; some.len().div_ceil(64)]) };
        let (integers, scale) = match &mut self.decoder {
            Decoder::Pfor(scale, order, integers) => {
                integers.resize(room, 0);
                let may_have = |start, more| wanted.meets(start, more);
                pfor::read_where(payload, *order, present, some.start, integers, may_have)?;
                (integers.get(some)?, *scale)
            }
            Decoder::DecimalScaling(scale, chunk, integers) => {
                integers.resize(room, 0);
                unpack(chunk, payload, present, integers)?;
                (integers.get(some)?, *scale)
            }
            decoder => {
                self.scratch.resize(room, T::default());
                decoder.read(payload, first, present, some.start, &mut self.scratch)?;
                let values = self.scratch.get(some)?;
                let words = bits(values, |value| wanted.has(value.ordinal()));
                compact(values, &words, out);
                return Some(words);
            }
        };
        let words = bits(integers, |value| wanted.has(value));
        self.kept.clear();
        compact(integers, &words, &mut self.kept);
        let start = out.len();
        out.resize(start + self.kept.len(), T::default());
        scale.apply(&self.kept, out.get_mut(start..)?);
        Some(words)
    }
}
