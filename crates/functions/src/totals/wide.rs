//! Sums in 128 bits: their types, bounds and errors, and the loops that add many values.

use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, exec_datafusion_err, exec_err};
use datafusion::error::Result;

/// Type of integer sums in progress: a sum leaves 64 bits long before its last value brings it back.
pub(super) const WIDE: DataType = DataType::Decimal128(38, 0);

/// Type of a sum in progress for this result type.
pub(super) fn state(kind: &DataType) -> DataType {
    if kind.is_integer() { WIDE } else { kind.clone() }
}

/// The error of a sum that no integer of 64 bits holds.
pub fn sum_overflow() -> DataFusionError {
    exec_datafusion_err!("a sum does not fit into {WIDE}: CAST the argument to DOUBLE")
}

/// Returns `sum` if it fits the type `kind`, else an error.
pub(super) fn fitting(sum: i128, kind: &DataType) -> Result<i128> {
    let fits = match kind {
        DataType::Int64 => i64::try_from(sum).is_ok(),
        DataType::UInt64 => u64::try_from(sum).is_ok(),
        _ => sum.unsigned_abs() < 10_u128.pow(38),
    };
    match (fits, kind) {
        (true, _) => Ok(sum),
        (false, DataType::Int64 | DataType::UInt64) => exec_err!(
            "the sum {sum} does not fit into {}: write sum(CAST(.. AS DECIMAL(38, 0)))",
            kind.to_string().to_lowercase()
        ),
        _ => Err(sum_overflow()),
    }
}

/// Number of 32-bit halves whose sum fits 64 bits.
const HALVES: usize = 1 << 30;

/// The sum of values as 64-bit numbers, which `moved` makes of them.
pub(super) fn sum_of<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, moved: impl Fn(T) -> u64) -> i128 {
    let parts = values.chunks(HALVES).enumerate().map(|(at, part)| match nulls {
        None => halves(part.iter().map(|value| moved(*value))),
        Some(nulls) => {
            let there = nulls.slice(at * HALVES, part.len());
            let pairs = part.iter().zip(there.iter());
            halves(pairs.map(|(value, there)| if there { moved(*value) } else { 0 }))
        }
    });
    parts.sum()
}

/// Adds low and high halves separately, so that the loop vectorizes.
fn halves(values: impl Iterator<Item = u64>) -> i128 {
    let (mut low, mut high) = (0_u64, 0_u64);
    for value in values {
        low += value & 0xffff_ffff;
        high += value >> 32;
    }
    (i128::from(high) << 32) + i128::from(low)
}

/// The sum of decimals; `None` if it does not fit.
pub(super) fn decimal_sum(values: &[i128], nulls: Option<&NullBuffer>) -> Option<i128> {
    let mut sum = 0_i128;

    for (at, part) in values.chunks(HALVES).enumerate() {
        let mut quarters = Quarters::default();
        match nulls.map(|nulls| nulls.inner().slice(at * HALVES, part.len())) {
            None => quarters.add(part.iter().copied()),
            Some(valid) => {
                let bits = valid.bit_chunks();
                for (values, bits) in part.chunks(64).zip(bits.iter_padded()) {
                    match bits {
                        u64::MAX => quarters.add(values.iter().copied()),
                        0 => {}
                        _ => {
                            let values = values.iter().enumerate();
                            quarters.add(values.map(|(at, value)| value & i128::from((bits >> at) & 1).wrapping_neg()));
                        }
                    }
                }
            }
        }

        sum = sum.checked_add(quarters.total()?)?;
    }
    Some(sum)
}

/// Sums of the 32-bit quarters of decimals, lowest first; the last one is biased by 2^31, so that none is negative and
/// loops over them vectorize.
#[derive(Default)]
struct Quarters {
    sums: [u64; 4],
    count: u64,
}

impl Quarters {
    fn add(&mut self, values: impl ExactSizeIterator<Item = i128>) {
        let [mut a, mut b, mut c, mut d] = self.sums;
        self.count += values.len() as u64;
        for value in values {
            let (low, high) = (value as u64, (value >> 64) as u64 ^ (1 << 63));
            a += low & 0xffff_ffff;
            b += low >> 32;
            c += high & 0xffff_ffff;
            d += high >> 32;
        }
        self.sums = [a, b, c, d];
    }

    /// The sum of the quarters, each at its place; `None` if it does not fit.
    fn total(&self) -> Option<i128> {
        let [a, b, c, d] = self.sums.map(i128::from);
        let low = (b << 32) + a;
        let high = ((d - (i128::from(self.count) << 31)) << 32) + c + (low >> 64);
        Some((i128::from(i64::try_from(high).ok()?) << 64) | i128::from(low as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_sums_are_exact_and_overflow_is_found() {
        let extreme = 10_i128.pow(38) - 1;
        let values: Vec<i128> = (0..1000_i128)
            .map(|at| (at - 500) * 7_i128.pow((at % 40) as u32) % 10_i128.pow(35))
            .chain([extreme, -extreme, -1, 1 << 96, -(1 << 64), i128::from(u64::MAX)])
            .collect();
        for step in [0, 1, 2, 3, 64, 65] {
            let nulls: Option<NullBuffer> = (step > 0).then(|| (0..values.len()).map(|at| at % step != 0).collect());
            let there = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
            let expected = values.iter().enumerate().filter(|(at, _)| there(*at)).map(|(_, value)| value).sum();
            assert_eq!(decimal_sum(&values, nulls.as_ref()), Some(expected), "{step}");
        }
        assert_eq!(decimal_sum(&[extreme, extreme], None), None);
        assert_eq!(decimal_sum(&[-extreme, -extreme], None), None);
        assert_eq!(decimal_sum(&[-extreme, -extreme, extreme], None), Some(-extreme));
    }
}
