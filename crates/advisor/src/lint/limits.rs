//! Limits of rows, by which rules judge the tables of a job, and proposals those that they would write into one.

use crate::cost::Prices;
use crate::lint::severity::Severity;

/// Slices of time in which a row is written that make it a counter, of 720 while it is kept.
const SLICES: u64 = 100;

/// A limit that a row passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Passed {
    /// Id of the rule that has the limit.
    pub(crate) rule: &'static str,
    pub(crate) severity: Severity,
    /// What the row amounts to, in the unit of the limit.
    pub(crate) measured: f64,
    pub(crate) limit: f64,
}

impl Passed {
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// R1: so many bytes in one row.
pub(crate) fn row_bytes(bytes: f64, prices: &Prices) -> Option<Passed> {
    let bound = prices.limits.row;
    let limit = bound.passed_by(bytes as u64)?;
    let severity = if limit == bound.limit { Severity::Error } else { Severity::Warn };
    Some(Passed { rule: "R1", severity, measured: bytes, limit: limit as f64 })
}

/// W2: so many source rows a second that write one row, of so many KiB each.
pub(crate) fn row_writes(rate: f64, kib: f64, prices: &Prices) -> Option<Passed> {
    let measured = rate * kib.max(1.0);
    prices.nodes_above_one(measured)?;
    Some(Passed { rule: "W2", severity: Severity::Error, measured, limit: prices.node.writes_per_second })
}

/// W1: so many source rows a second that go to the end of one series, of so many KiB each.
pub(crate) fn series_writes(rate: f64, kib: f64, prices: &Prices) -> Option<Passed> {
    Some(Passed { rule: "W1", ..row_writes(rate, kib, prices)? })
}

/// T1: so many tables of an instance.
pub(crate) fn tables(count: u64, prices: &Prices) -> Option<Passed> {
    let bound = prices.limits.tables;
    let limit = bound.passed_by(count)?;
    let severity = if limit == bound.limit { Severity::Error } else { Severity::Warn };
    Some(Passed { rule: "T1", severity, measured: count as f64, limit: limit as f64 })
}

/// K7: so many slices of the time that a row is kept in which it is written.
pub(crate) fn row_slices(slices: u64) -> Option<Passed> {
    let passed = Passed { rule: "K7", severity: Severity::Warn, measured: slices as f64, limit: SLICES as f64 };
    (slices >= SLICES).then_some(passed)
}

/// `14980 writes a second`, or `4000 writes of 5.00 KiB a second`.
pub(crate) fn writes_text(rate: f64, kib: f64) -> String {
    if kib > 1.0 { format!("{rate:.0} writes of {kib:.2} KiB a second") } else { format!("{rate:.0} writes a second") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_passed_by_more_than_it() {
        let prices = Prices::load(None).unwrap();
        let rules = |passed: [Option<Passed>; 3]| passed.map(|passed| passed.map(|it| (it.rule, it.severity)));
        let (warn, error) = (Severity::Warn, Severity::Error);
        let within = [row_bytes(100e6, &prices), row_writes(14_000.0, 1.0, &prices), row_slices(99)];
        assert_eq!(rules(within), [None; 3]);
        let passed = [row_bytes(100e6 + 1.0, &prices), row_writes(7_001.0, 2.0, &prices), row_slices(100)];
        assert_eq!(rules(passed), [Some(("R1", warn)), Some(("W2", error)), Some(("K7", warn))]);
        let of_tables = |count: u64| tables(count, &prices).map(|it| (it.limit, it.is_error()));
        assert_eq!(
            [100, 101, 1000, 1001].map(of_tables),
            [None, Some((100.0, false)), Some((100.0, false)), Some((1000.0, true))]
        );
        assert_eq!(row_bytes(300e6, &prices).map(|it| it.severity), Some(error));
    }
}
