//! The number types that streams hold.

use pco::data_types::Number;

use crate::codec::float_decimals;

/// A number type of streams. Codecs are written once for all of them: they see values as 64 bits, and floats by their ordinals.
pub(crate) trait Lane: Number + Default {
    /// The size of a raw value in bytes.
    const WIDTH: usize;
    /// The value as 64 bits: floats by their IEEE bits, narrow signed integers sign-extended.
    fn bits(self) -> u64;
    /// The inverse of [`Self::bits`]; surplus high bits are ignored.
    fn of_bits(bits: u64) -> Self;
    /// Appends [`Self::WIDTH`] bytes, little-endian.
    fn put(self, out: &mut Vec<u8>);
    /// The value of [`Self::WIDTH`] bytes; the default for any other length.
    fn of_bytes(bytes: &[u8]) -> Self;
    /// Whether the type is a floating-point type, whose values codecs may scale to integers.
    const FLOATS: bool;
    /// The least number of decimals that makes all of `values` integers, and the integers; `None` if there is none. For integer types
    /// 0 and the values.
    fn decimals(values: &[Self]) -> Option<(u8, Vec<i64>)>;
    /// An integer for each value; of floats in their order, of integers the same bits.
    fn ordinal(self) -> i64;
    /// Least and greatest integer of the type; of floats, of their ordinals.
    const ENDS: (i128, i128);
    /// The value of a scaled integer; `power` is 10 to the number of decimals.
    fn of_decimal(integer: i64, power: f64) -> Self;
}

macro_rules! lane {
    ($type:ty, $integer:ty, $to:expr, $of:expr, $floats:expr, $ordinal:expr, $decimals:expr, $of_decimal:expr) => {
        impl Lane for $type {
            const WIDTH: usize = size_of::<$type>();
            fn bits(self) -> u64 {
                $to(self)
            }
            fn of_bits(bits: u64) -> Self {
                $of(bits)
            }
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn of_bytes(bytes: &[u8]) -> Self {
                bytes.first_chunk().copied().map(Self::from_le_bytes).unwrap_or_default()
            }
            const FLOATS: bool = $floats;
            fn decimals(values: &[Self]) -> Option<(u8, Vec<i64>)> {
                $decimals(values)
            }
            #[inline]
            fn ordinal(self) -> i64 {
                $ordinal(self)
            }
            const ENDS: (i128, i128) = (<$integer>::MIN as i128, <$integer>::MAX as i128);
            fn of_decimal(integer: i64, power: f64) -> Self {
                $of_decimal(integer, power)
            }
        }
    };
}

macro_rules! integer_lane {
    ($type:ty, $to:expr, $of:expr) => {
        lane!(
            $type,
            $type,
            $to,
            $of,
            false,
            |value: $type| value.bits().cast_signed(),
            |values: &[$type]| Some((0, values.iter().map(|value| value.bits().cast_signed()).collect())),
            |integer: i64, _| Self::of_bits(integer.cast_unsigned())
        );
    };
}

integer_lane!(u64, |v| v, |bits| bits);
integer_lane!(i64, i64::cast_unsigned, u64::cast_signed);
integer_lane!(u32, u64::from, |bits| bits as u32);
integer_lane!(i32, |v| i64::from(v).cast_unsigned(), |bits: u64| bits as u32 as i32);
lane!(f64, i64, f64::to_bits, f64::from_bits, true, ordinal, float_decimals::float_decimals, float_decimals::quotient);

/// An integer for each float, in their total order; both zeros have 0.
#[inline]
pub(crate) fn ordinal(value: f64) -> i64 {
    // Adding turns -0.0 into 0.0, and keeps the sign of a NaN.
    let bits = (value + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}
