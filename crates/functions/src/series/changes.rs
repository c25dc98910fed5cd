//! What the change of a series is: its difference, its growth and its slope.

const MICROS: f64 = 1e6;

/// What is computed of the samples of a group. All need two times at least, and are NULL otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SampleFunction {
    /// Last value minus first value.
    Delta,
    /// Growth of a counter. A value below the one before it is a restart from 0, as in Prometheus and TimescaleDB's `counter_agg`;
    /// unlike Prometheus, nothing is extrapolated beyond the samples.
    Increase,
    /// `Increase` per second between the first and the last sample, as TimescaleDB's `rate(counter_agg(..))`.
    Rate,
    /// Slope per second of the least squares line, as Prometheus' `deriv`.
    Derivative,
}

impl SampleFunction {
    /// The result for a series: times in microseconds, ascending and distinct, and values. `None` for fewer than two samples.
    pub(super) fn of(self, series: &[(i64, f64)]) -> Option<f64> {
        let ((start, first), (end, last)) = match series {
            [first, .., last] => (*first, *last),
            _ => return None,
        };
        // Also where it is neither first nor last.
        if series.iter().any(|(_, value)| value.is_nan()) {
            return Some(f64::NAN);
        }
        Some(match self {
            Self::Delta => last - first,
            Self::Increase => increase(series, last - first),
            Self::Rate => increase(series, last - first) / ((end as f64 - start as f64) / MICROS),
            Self::Derivative => slope(series, start),
        })
    }
}

/// `difference` of the last and the first value, and what the counter had counted before each restart.
fn increase(series: &[(i64, f64)], difference: f64) -> f64 {
    let before_restarts: f64 =
        series.array_windows().filter(|[(_, before), (_, after)]| after < before).map(|[(_, before), _]| before).sum();
    difference + before_restarts
}

/// The slope per second of the line of least squares.
fn slope(series: &[(i64, f64)], start: i64) -> f64 {
    let count = series.len() as f64;
    let points = || series.iter().map(|(time, value)| ((*time as f64 - start as f64) / MICROS, *value));
    let mean_time = points().map(|(time, _)| time).sum::<f64>() / count;
    let mean_value = points().map(|(_, value)| value).sum::<f64>() / count;

    let products: f64 = points().map(|(time, value)| (time - mean_time) * (value - mean_value)).sum();
    let squares: f64 = points().map(|(time, _)| (time - mean_time).powi(2)).sum();
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of so many values, ten seconds apart.
    fn series(values: &[f64]) -> Vec<(i64, f64)> {
        values.iter().enumerate().map(|(at, value)| (at as i64 * 10_000_000, *value)).collect()
    }

    #[test]
    fn counters_that_restart_count_on() {
        // 5 until the restart, 3 after it, and 4 more.
        let counter = series(&[10.0, 15.0, 3.0, 7.0]);
        assert_eq!(SampleFunction::Increase.of(&counter), Some(12.0));
        assert_eq!(SampleFunction::Rate.of(&counter), Some(0.4));
        assert_eq!(SampleFunction::Delta.of(&counter), Some(-3.0));
    }

    #[test]
    fn a_line_has_its_slope() {
        assert_eq!(SampleFunction::Derivative.of(&series(&[1.0, 21.0, 41.0])), Some(2.0));
        let noisy = SampleFunction::Derivative.of(&series(&[0.0, 10.0, 0.0, 10.0])).unwrap();
        assert!((noisy - 0.2).abs() < 1e-12, "{noisy}");
    }

    #[test]
    fn one_sample_does_not_change() {
        for function in
            [SampleFunction::Delta, SampleFunction::Increase, SampleFunction::Rate, SampleFunction::Derivative]
        {
            assert_eq!(function.of(&series(&[1.0])), None);
            assert_eq!(function.of(&[]), None);
            assert!(function.of(&series(&[1.0, f64::NAN, 2.0])).unwrap().is_nan());
        }
    }
}
