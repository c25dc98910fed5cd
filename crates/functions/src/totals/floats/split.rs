//! Floats as decimals, where they are the floats nearest to decimals of few digits.
//!
//! A float `v` is the decimal `i / 10^s` if that division gives `v` bit for bit, for an `s` of at most [`SCALE`] and an `|i|` of at
//! most 2^51. Such a decimal is unique: decimals of one scale below 2^51 are further apart than floats are. If there is
//! one, there is one for the greatest `s` that keeps `|v| * 10^s` below 2^51, so one trial decides. A batch is tried at
//! the scale of its greatest value, in vector instructions; values that fail there are tried at their own.

use std::ops::Range;

use arrow::array::{Array, Decimal128Array, Float64Array, Int64Array};
use arrow::datatypes::DataType;

/// The decimals of the unit in which decimals are added: 10^-9.
pub(crate) const SCALE: i8 = 9;
/// Type of a sum of decimals. A value is below 2^81 units, so fewer than 2^45 values cannot overflow it.
pub(crate) const DECIMALS: DataType = DataType::Decimal128(38, SCALE);

/// 10^0 to 10^[`SCALE`]. All are exact, so dividing an integer by one gives the float nearest to the decimal.
const POWERS: [f64; SCALE as usize + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// 1.5 * 2^52: adding it to a float moves the integer part into the low bits of the mantissa.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// 2^51: up to this magnitude adding [`MAGIC`] rounds to the nearest integer.
const LIMIT: f64 = 2_251_799_813_685_248.0;
/// Values compared in parallel, so that the compiler uses vector instructions.
const LANES: usize = 8;
/// Integers of up to 2^51 whose sum fits 64 bits.
const CHUNK: usize = 1 << 11;

/// An array of floats, as decimals where they are such.
pub(crate) struct Split {
    /// The values in units of 10^-`scale`. 0, so that it adds nothing, for nulls and exceptions.
    pub(crate) integers: Int64Array,
    /// The scale of the greatest value, and so the one of most values.
    scale: usize,
    /// The values that are no decimals of this scale, ascending. Zeros are not among them: they add nothing.
    pub(crate) exceptions: Vec<Exception>,
}

/// A value of an array that is not among the integers of its [`Split`].
pub(crate) struct Exception {
    /// Its position.
    pub(crate) at: usize,
    pub(crate) value: Exceptional,
}

pub(crate) enum Exceptional {
    /// A decimal of more decimals than the others, in units of 10^-[`SCALE`].
    Decimal(i128),
    /// No decimal.
    Other(f64),
}

impl Split {
    pub(crate) fn of(floats: &Float64Array) -> Self {
        let values = floats.values();
        let scale = scale_of(greatest(values));
        let power = POWERS[scale];

        let mut wrong = 0;
        let mut integers: Vec<i64> = Vec::with_capacity(values.len());
        integers.extend(values.iter().map(|value| {
            let scaled = Scaled::new(*value, power);
            wrong |= scaled.wrong;
            scaled.integer
        }));

        if floats.null_count() > 0 {
            for (at, integer) in integers.iter_mut().enumerate() {
                *integer *= i64::from(floats.is_valid(at));
            }
        }
        let mut exceptions = Vec::new();
        if wrong != 0 {
            for (at, (value, integer)) in values.iter().zip(&mut integers).enumerate() {
                if floats.is_valid(at) && Scaled::new(*value, power).wrong != 0 {
                    *integer = 0;
                    exceptions.extend(Exceptional::of(*value).map(|value| Exception { at, value }));
                }
            }
        }

        Self { integers: Int64Array::new(integers.into(), floats.nulls().cloned()), scale, exceptions }
    }

    /// How many units of 10^-[`SCALE`] one of the integers is.
    pub(crate) fn unit(&self) -> i128 {
        unit_of(self.scale)
    }

    /// The sum of the integers of the positions `range`, in units of 10^-[`SCALE`].
    pub(crate) fn sum_of(&self, range: Range<usize>) -> i128 {
        let mut sum = 0_i128;
        for chunk in self.integers.values().get(range).unwrap_or_default().chunks(CHUNK) {
            sum += i128::from(chunk.iter().sum::<i64>());
        }
        sum * self.unit()
    }

    /// Whether there is a value at one of the positions `range`.
    pub(crate) fn has_value(&self, range: Range<usize>) -> bool {
        match self.integers.nulls() {
            Some(nulls) => nulls.slice(range.start, range.len()).null_count() < range.len(),
            None => !range.is_empty(),
        }
    }

    /// Each value by itself: the decimals, 0 for others, null for nulls.
    pub(crate) fn decimals(&self) -> Decimal128Array {
        let unit = self.unit();
        let mut decimals: Vec<i128> =
            self.integers.values().iter().map(|integer| i128::from(*integer) * unit).collect();
        for exception in &self.exceptions {
            if let (Exceptional::Decimal(value), Some(decimal)) = (&exception.value, decimals.get_mut(exception.at)) {
                *decimal = *value;
            }
        }
        Decimal128Array::new(decimals.into(), self.integers.nulls().cloned()).with_data_type(DECIMALS)
    }
}

impl Exceptional {
    /// `None` for zeros, which add nothing.
    fn of(value: f64) -> Option<Self> {
        let scale = scale_of(value.abs());
        let scaled = Scaled::new(value, POWERS[scale]);
        match scaled.wrong {
            0 => Some(Self::Decimal(i128::from(scaled.integer) * unit_of(scale))),
            _ if value == 0.0 => None,
            _ => Some(Self::Other(value)),
        }
    }
}

/// A float times a power of ten, as the nearest integer.
struct Scaled {
    integer: i64,
    /// Not 0 unless the integer, divided by the power, gives the float bit for bit. It excludes -0.0.
    wrong: u64,
}

impl Scaled {
    fn new(value: f64, power: f64) -> Self {
        let shifted = value * power + MAGIC;
        let whole = shifted - MAGIC;
        let is_out = (whole.abs() > LIMIT) | whole.is_nan();
        Self {
            integer: shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed(),
            wrong: ((whole / power).to_bits() ^ value.to_bits()) | u64::from(is_out),
        }
    }
}

/// The greatest scale at which `magnitude` stays below [`LIMIT`]; 0 if none does, as for what is not finite.
fn scale_of(magnitude: f64) -> usize {
    POWERS.iter().rposition(|power| magnitude * power < LIMIT).unwrap_or(0)
}

/// How many units of 10^-[`SCALE`] one of 10^-`scale` is.
fn unit_of(scale: usize) -> i128 {
    10_i128.pow((SCALE as usize - scale) as u32)
}

/// The greatest magnitude below [`LIMIT`] among `values`; 0 without any.
fn greatest(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = greater(*lane, value.abs());
        }
    }
    lanes.into_iter().chain(rest.iter().map(|value| value.abs())).fold(0.0, greater)
}

fn greater(one: f64, other: f64) -> f64 {
    if other > one && other < LIMIT { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decimals, and the positions of values that are none.
    fn split(values: &[f64]) -> (Vec<i128>, Vec<usize>) {
        let split = Split::of(&Float64Array::from(values.to_vec()));
        let is_other = |exception: &&Exception| matches!(exception.value, Exceptional::Other(_));
        let others = split.exceptions.iter().filter(is_other).map(|exception| exception.at).collect();
        (split.decimals().values().to_vec(), others)
    }

    #[test]
    fn decimals_are_those_that_were_written() {
        let written =
            ["0.1", "-12.3", "0.000000001", "-2251799.813685247", "123456789.012345", "2251799813685247", "7"];
        for text in written {
            let value: f64 = text.parse().unwrap();
            let digits: String = text.chars().filter(|digit| *digit != '.').collect();
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let expected = digits.parse::<i128>().unwrap() * 10_i128.pow(9 - decimals as u32);
            assert_eq!(split(&[value]), (vec![expected], vec![]), "{text}");
        }
    }

    #[test]
    fn a_value_is_what_it_is_beside_any_others() {
        let values = [
            0.1,
            0.3,
            1e-9,
            1.5e-10,
            1.0 / 3.0,
            0.1 + 0.2,
            2_251_799.8,
            2_251_799.813_685_247,
            22_517_998.136_852_48,
            2_251_799_813_685_247.0,
            2_251_799_813_685_248.0,
            2_251_799_813_685_249.5,
            9_007_199_254_740_993.0,
            1e300,
            5e-324,
            f64::NAN,
            f64::INFINITY,
        ];
        for one in values.into_iter().chain(values.map(|value| -value)) {
            let alone = split(&[one]);
            for other in values {
                let (decimals, others) = split(&[other, one, other]);
                assert_eq!(decimals[1], alone.0[0], "{one} beside {other}");
                assert_eq!(others.contains(&1), !alone.1.is_empty(), "{one} beside {other}");
            }
        }
        assert_eq!(split(&[1.0 / 3.0, 0.1 + 0.2, f64::NAN]).1, [0, 1, 2]);
    }

    #[test]
    fn zeros_and_nulls_add_nothing() {
        assert_eq!(split(&[0.0, -0.0, 1.0 / 3.0]), (vec![0, 0, 0], vec![2]));
        let floats = Float64Array::new(vec![f64::NAN, 0.5].into(), Some(vec![false, true].into()));
        let split = Split::of(&floats);
        assert_eq!((split.decimals().null_count(), split.exceptions.len()), (1, 0));
        assert_eq!((split.decimals().value(1), split.sum_of(0..2)), (500_000_000, 500_000_000));
        assert!(split.has_value(0..2) && !split.has_value(0..1));
    }
}
