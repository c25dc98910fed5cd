//! Selection: tests encoded values against a range before they are converted to values of their type.

use std::ops::Range;

use bytes::Bytes;

use crate::codec::bit_mask::{bits, compact};
use crate::codec::decimal_scaling::Scale;
use crate::codec::integer_range::IntegerRange;
use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, PageExtent, unpack};
use crate::codec::pfor;
use crate::codec::value_range::ValueRange;

/// Decodes those values of a stream that are in a range. Values are compared as stored, and only those in the range are converted:
/// with selective filters the conversion of floats would take most of the time.
pub(crate) struct Selector<T: Lane> {
    decoder: Decoder<T>,
    /// The range in terms of what the decoder has before conversion: scaled integers, or ordinals. `None` if no value can be in it.
    wanted: Option<IntegerRange>,
    /// Scratch: the scaled integers of the page that are in the range.
    kept: Vec<i64>,
    scratch: Vec<T>,
}

impl<T: Lane> Selector<T> {
    /// A selector for the values in `wanted`; `None` if that is a range of floats and `T` is not, or the reverse.
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

    /// Tests the values `some` of a page, appends those in the range to `out`, and returns a mask with a bit for each (see
    /// [`bits`]). `payload` and `page` are as for [`Decoder::read`]. `None` if the page is damaged.
    pub(crate) fn read(
        &mut self,
        payload: &Bytes,
        page: PageExtent,
        some: Range<usize>,
        out: &mut Vec<T>,
    ) -> Option<Vec<u64>> {
        let present = page.present;
        let room = Decoder::<T>::room(some.end, present);
        let Some(wanted) = self.wanted else { return Some(vec![0; some.len().div_ceil(64)]) };

        let (integers, scale) = match &mut self.decoder {
            Decoder::Pfor(scale, order, integers) => {
                integers.resize(room, 0);
                pfor::read_where(payload, *order, present, some.start, integers, |start, more| {
                    wanted.meets(start, more)
                })?;
                (integers.get(some)?, *scale)
            }
            Decoder::DecimalScaling(scale, chunk, integers) => {
                integers.resize(room, 0);
                unpack(chunk, payload, present, integers)?;
                (integers.get(some)?, *scale)
            }
            decoder => {
                self.scratch.resize(room, T::default());
                decoder.read(payload, page, some.start, &mut self.scratch)?;
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

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::lane::ordinal;
    use crate::codec::numbers::Plan;
    use crate::coding::Input;
    use crate::options::Compression;

    const PAGE: usize = 300;

    /// Values that a range selects of encoded ones are those that it has; `place` is where the range looks for a value.
    fn check<T: Lane>(values: &[T], wanted: ValueRange, place: impl Fn(T) -> i128) {
        let (least, greatest) = wanted.ends();
        let is_in = |value: &T| (least..=greatest).contains(&place(*value));
        let pages: Vec<usize> = values.chunks(PAGE).map(<[T]>::len).collect();
        for level in [Compression::Fresh, Compression::Dense] {
            let mut plan = Plan::choose(values, &pages, false, level).unwrap();
            let mut setup = Vec::new();
            plan.setup(&mut setup).unwrap();
            let decoder = Decoder::<T>::new(plan.codec(), Input::new(setup.into(), 0, "test")).unwrap();
            let mut selector = Selector::new(decoder, wanted).unwrap();
            let mut first = 0;
            for page in values.chunks(PAGE) {
                let mut payload = Vec::new();
                plan.page(page, &mut payload).unwrap();
                let payload = Bytes::from(payload);
                for some in
                    [0..page.len(), page.len() / 3..page.len(), 0..page.len() / 2, 7.min(page.len())..page.len()]
                {
                    let mut out = Vec::new();
                    let words = selector
                        .read(&payload, PageExtent { first, present: page.len() }, some.clone(), &mut out)
                        .unwrap();
                    let bits: Vec<bool> = (0..some.len()).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect();
                    let own = &page[some];
                    assert_eq!(bits, own.iter().map(is_in).collect::<Vec<_>>(), "{wanted:?} {:?}", plan.codec());
                    let expected: Vec<u64> =
                        own.iter().filter(|value| is_in(value)).map(|value| value.bits()).collect();
                    assert_eq!(out.iter().map(|value| value.bits()).collect::<Vec<_>>(), expected);
                }
                first += page.len();
            }
        }
    }

    fn floats(values: &[f64], low: Bound<f64>, high: Bound<f64>) {
        check(values, ValueRange::floats(low, high), |value| ordinal(value).into());
    }

    fn of_every_type(integers: &[i64], step: u64, least: i128, greatest: i128) {
        let wanted = ValueRange::integers(least, greatest);
        let scaled: Vec<i64> = integers.iter().map(|value| value.wrapping_mul(step.cast_signed())).collect();
        check(&scaled, wanted, i128::from);
        check(&scaled.iter().map(|value| value.cast_unsigned()).collect::<Vec<_>>(), wanted, i128::from);
        check(&scaled.iter().map(|value| *value as i32).collect::<Vec<_>>(), wanted, i128::from);
        check(&scaled.iter().map(|value| *value as u32).collect::<Vec<_>>(), wanted, i128::from);
    }

    #[test]
    fn ends_of_types_and_empty_ranges() {
        let integers = [0, 1, -1, i64::MIN, i64::MAX, 2, 3, i64::MIN + 1, i64::MAX - 1, 1 << 62, -(1 << 62)];
        let many: Vec<i64> = integers.iter().copied().cycle().take(700).collect();
        let mut ends: Vec<i128> = integers.iter().map(|value| i128::from(*value)).collect();
        ends.extend([i128::MIN, i128::MAX, u64::MAX.into(), i128::from(u64::MAX) - 1, 1 << 63, (1 << 63) - 1]);
        for least in &ends {
            for greatest in &ends {
                of_every_type(&many, 1, *least, *greatest);
            }
        }
        let odd = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -5e-324, f64::MAX, 0.25];
        let decimals = [0.0, 0.25, -0.25, 1.0, 99.75, -99.75, 0.5];
        for low in odd {
            for high in odd {
                for values in [&odd[..], &decimals] {
                    let values: Vec<f64> = values.iter().copied().cycle().take(700).collect();
                    floats(&values, Bound::Included(low), Bound::Included(high));
                    floats(&values, Bound::Excluded(low), Bound::Excluded(high));
                    floats(&values, Bound::Unbounded, Bound::Excluded(high));
                    floats(&values, Bound::Included(low), Bound::Unbounded);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
        #[test]
        fn selected_values_are_those_in_the_range(
            wide in prop::collection::vec(any::<i64>(), 1..700),
            narrow in prop::collection::vec(prop_oneof![9 => -300i64..300, 1 => any::<i64>()], 1..700),
            step in 1u64..5000, ends in (-400i64..400, 0i64..500), cents in -400i64..400, more in 0i64..300,
        ) {
            let (least, greatest) = (i128::from(ends.0), i128::from(ends.0 + ends.1));
            of_every_type(&narrow, 1, least, greatest);
            of_every_type(&narrow, step, least * i128::from(step), greatest * i128::from(step) + 1);
            of_every_type(&wide, 1, wide[0].min(wide[wide.len() / 2]).into(), wide[0].max(wide[wide.len() / 2]).into());
            let small: Vec<i64> = narrow.iter().map(|value| value % 1000).collect();
            let decimals: Vec<f64> = small.iter().map(|value| *value as f64 / 100.0).collect();
            let (low, high) = (cents as f64 / 100.0, (cents + more) as f64 / 100.0);
            floats(&decimals, Bound::Included(low), Bound::Included(high));
            floats(&decimals, Bound::Excluded(low), Bound::Excluded(high));
            floats(&decimals, Bound::Excluded(low.next_down()), Bound::Excluded(high.next_up()));
            floats(&decimals, Bound::Included(low / 3.0), Bound::Unbounded);
            floats(&small.iter().map(|value| *value as f64 / 7.0).collect::<Vec<_>>(), Bound::Included(low), Bound::Excluded(high));
        }
    }
}
