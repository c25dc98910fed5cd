//! Moments of numbers: counts, means, and sums of the products of distances from the means. From them follow variances, deviations,
//! covariances and correlations.
//!
//! A batch is computed in two passes, its mean and the distances, in vector instructions; DataFusion 55.2 takes value by value, with a
//! division for each. Parts merge by the difference of their means (Chan, Golub and LeVeque, 1983), so that parts of one constant
//! have exactly its mean and no variance. DataFusion adds weighted means, which rounds, and its correlations of groups add squares, which
//! loses the digits of values that are far from 0, such as times.

/// Shorter runs of values are added one by one: lanes would cost more than they save.
const LEAST: usize = 32;
/// Values added in parallel, so that the compiler uses vector instructions.
const LANES: usize = 8;
/// The mean of a batch may overflow above: such values are taken one by one.
const MAX_MEAN: f64 = 1e100;

/// A function of moments; `sample`: of a sample, not of the population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    Variance { sample: bool },
    Deviation { sample: bool },
    Covariance { sample: bool },
    Correlation,
}

impl Statistic {
    pub(crate) fn has_two_arguments(self) -> bool {
        matches!(self, Self::Covariance { .. } | Self::Correlation)
    }

    /// The result; `None` for null: without values, and for samples of one. As in PostgreSQL the correlation with a constant is null, and
    /// what has a value that is not finite is NaN, in any order of the values.
    pub(crate) fn of(self, moments: &Moments) -> Option<f64> {
        let Moments { count, squares: [square, other_square], products, .. } = *moments;
        let divided = |sum: f64, sample: bool| {
            let divisor = if sample { count.saturating_sub(1) } else { count };
            (divisor > 0).then(|| sum / divisor as f64)
        };

        match self {
            Self::Variance { sample } => divided(square, sample),
            Self::Deviation { sample } => divided(square, sample).map(f64::sqrt),
            Self::Covariance { sample } => divided(if products.is_finite() { products } else { f64::NAN }, sample),
            Self::Correlation if square.is_nan() || other_square.is_nan() => Some(f64::NAN),
            Self::Correlation if count < 2 => None,
            Self::Correlation => {
                let [one, other] = [square, other_square].map(|square| (square / count as f64).sqrt());
                (one != 0.0 && other != 0.0).then(|| products / count as f64 / one / other)
            }
        }
    }
}

/// The moments of pairs of values, or of single ones as the first of pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    pub(crate) means: [f64; 2],
    /// Sums of the squares of the distances from the means.
    pub(crate) squares: [f64; 2],
    /// Sum of the products of the distances of both arguments from their means.
    pub(crate) products: f64,
}

impl Moments {
    /// Adds values, of which `second` has as many as `first`, or none.
    pub(crate) fn add(&mut self, first: &[f64], second: &[f64]) {
        if first.len() >= LEAST {
            let means = [mean(first), mean(second)];
            if means.iter().all(|mean| mean.abs() < MAX_MEAN) {
                return self.merge(&Self::of(first, second, means));
            }
        }
        for (at, value) in first.iter().enumerate() {
            self.push([*value, second.get(at).copied().unwrap_or_default()]);
        }
    }

    fn of(first: &[f64], second: &[f64], means: [f64; 2]) -> Self {
        let [one, other] = means;
        Self {
            count: first.len() as u64,
            means,
            squares: [products(first, first, [one, one]), products(second, second, [other, other])],
            products: products(first, second, means),
        }
    }

    /// Adds a pair of values, by Welford's update; of one argument the second is 0.
    pub(crate) fn push(&mut self, pair: [f64; 2]) {
        self.count += 1;
        let before = self.distances(pair);
        for (mean, distance) in self.means.iter_mut().zip(before) {
            *mean += distance / self.count as f64;
        }
        let [first, second] = self.distances(pair);
        self.squares[0] += before[0] * first;
        self.squares[1] += before[1] * second;
        self.products += before[0] * second;
    }

    /// Takes out a pair that was added before, as a sliding window does.
    pub(crate) fn take_out(&mut self, pair: [f64; 2]) {
        if self.count <= 1 {
            *self = Self::default();
            return;
        }
        self.count -= 1;
        let before = self.distances(pair);
        for (mean, distance) in self.means.iter_mut().zip(before) {
            *mean -= distance / self.count as f64;
        }
        let [first, second] = self.distances(pair);
        self.squares[0] -= before[0] * first;
        self.squares[1] -= before[1] * second;
        self.products -= before[0] * second;
    }

    fn distances(&self, [first, second]: [f64; 2]) -> [f64; 2] {
        [first - self.means[0], second - self.means[1]]
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return;
        }
        let (own, more) = (self.count as f64, other.count as f64);
        let share = more / (own + more);
        let [first, second] = self.distances(other.means).map(|distance| -distance);
        self.count += other.count;
        self.means[0] -= first * share;
        self.means[1] -= second * share;
        self.squares[0] += other.squares[0] + first * first * own * share;
        self.squares[1] += other.squares[1] + second * second * own * share;
        self.products += other.products + first * second * own * share;
    }
}

/// 0 without values. The mean of a constant is the constant: its sum may be rounded.
fn mean(values: &[f64]) -> f64 {
    let Some(first) = values.first() else { return 0.0 };
    if values.iter().all(|value| value == first) {
        return *first;
    }
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum::<f64>() / values.len() as f64
}

/// The sum of the products of the distances of two lists from their means.
fn products(first: &[f64], second: &[f64], [one, other]: [f64; 2]) -> f64 {
    let ((chunks, rest), (others, others_rest)) = (first.as_chunks::<LANES>(), second.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (chunk, second) in chunks.iter().zip(others) {
        let products = chunk.iter().zip(second).map(|(x, y)| (x - one) * (y - other));
        sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
    }
    let rest = rest.iter().zip(others_rest).map(|(x, y)| (x - one) * (y - other));
    sums.into_iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, factor: u64, offset: f64) -> Vec<f64> {
        (0..count as u64).map(|at| ((at * factor * factor + 7) % 10_007) as f64 / 8.0 + offset).collect()
    }

    fn one_by_one(first: &[f64], second: &[f64]) -> Moments {
        let mut moments = Moments::default();
        first.iter().zip(second).for_each(|(first, second)| moments.push([*first, *second]));
        moments
    }

    fn close(one: &Moments, other: &Moments) {
        assert_eq!(one.count, other.count);
        let all = |moments: &Moments| {
            let Moments { means, squares, products, .. } = *moments;
            [means[0], means[1], squares[0], squares[1], products]
        };
        for (one, other) in all(one).into_iter().zip(all(other)) {
            let is_close = (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
            assert!(one == other || one.is_nan() && other.is_nan() || is_close, "{one} and {other}");
        }
    }

    #[test]
    fn batches_have_the_moments_of_their_values() {
        for count in [0, 1, 2, 31, 32, 33, 39, 1000, 8191] {
            let (first, second) = (numbers(count, 3, 1e6), numbers(count, 11, -5.0));
            let mut moments = Moments::default();
            moments.add(&first, &second);
            close(&moments, &one_by_one(&first, &second));
            moments.add(&second, &first);
            let both = |one: &[f64], other: &[f64]| [one, other].concat();
            close(&moments, &one_by_one(&both(&first, &second), &both(&second, &first)));
            first.iter().zip(&second).for_each(|(first, second)| moments.take_out([*first, *second]));
            let mut rest = Moments::default();
            rest.add(&second, &first);
            let share = |moments: &Moments| Statistic::Deviation { sample: false }.of(moments).unwrap_or(0.0);
            assert!((share(&moments) - share(&rest)).abs() <= 1e-6 * share(&rest), "{count}");
        }
    }

    #[test]
    fn parts_of_a_constant_have_no_variance() {
        for constant in [0.1, 1e-300, 1e90, -7.3, 1_700_000_000.123] {
            let mut moments = Moments::default();
            for count in [1000, 3, 77, 1, 4096, 31] {
                moments.add(&vec![constant; count], &numbers(count, 3, 0.0));
                let mut part = Moments::default();
                part.add(&vec![constant; count], &numbers(count, 5, 9.0));
                moments.merge(&part);
            }
            assert_eq!((moments.means[0], moments.squares[0], moments.products), (constant, 0.0, 0.0));
            assert_eq!(Statistic::Deviation { sample: true }.of(&moments), Some(0.0));
            assert_eq!(Statistic::Correlation.of(&moments), None);
        }
    }

    #[test]
    fn values_that_are_not_finite_or_overflow_are_taken_one_by_one() {
        for odd in [f64::NAN, f64::INFINITY, 1.7e308, 1e300, -1e200] {
            for times in [1, 2, 100] {
                let mut first = numbers(100, 3, 0.0);
                first.iter_mut().rev().take(times).for_each(|value| *value = odd);
                let mut moments = Moments::default();
                moments.add(&first, &numbers(100, 5, 0.0));
                close(&moments, &one_by_one(&first, &numbers(100, 5, 0.0)));
            }
        }
    }

    #[test]
    fn what_is_not_finite_gives_nan_in_any_order_and_division() {
        let values = [[1.0, 1.0], [2.0, 2.0], [f64::INFINITY, 3.0]];
        for at in 0..3 {
            let mut turned = values;
            turned.rotate_left(at);
            let mut all = Moments::default();
            turned.iter().for_each(|pair| all.push(*pair));
            let mut merged = Moments::default();
            for pair in turned {
                let mut part = Moments::default();
                part.push(pair);
                merged.merge(&part);
            }
            for statistic in [Statistic::Correlation, Statistic::Covariance { sample: false }] {
                assert!([all, merged].iter().all(|moments| statistic.of(moments).is_some_and(f64::is_nan)), "{at}");
            }
        }
    }

    #[test]
    fn correlations_of_times_keep_their_digits() {
        let times = numbers(1000, 3, 1.7e9);
        let mut moments = Moments::default();
        times.chunks(7).for_each(|part| moments.add(part, part));
        let found = Statistic::Correlation.of(&moments).unwrap();
        assert!((found - 1.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn few_values_have_the_nulls_of_postgresql() {
        let of = |values: &[f64]| one_by_one(values, values);
        let statistics = [
            Statistic::Variance { sample: true },
            Statistic::Deviation { sample: false },
            Statistic::Covariance { sample: true },
            Statistic::Covariance { sample: false },
            Statistic::Correlation,
        ];
        let results = |values: &[f64]| statistics.map(|statistic| statistic.of(&of(values)));
        assert_eq!(results(&[]), [None; 5]);
        assert_eq!(results(&[3.0]), [None, Some(0.0), None, Some(0.0), None]);
        assert_eq!(results(&[3.0, 5.0]), [Some(2.0), Some(1.0), Some(2.0), Some(1.0), Some(1.0)]);
    }
}
