//! A table for each day of a layout.

use tidetable_job::workload::Need;
use tidetable_layout::time::{DAY, SECOND};

use super::pairing::{Pairing, Second, SecondTable, TableLoad, event_bytes, serves};
use crate::advice::job_text::without_time;
use crate::cost::{KIB, QueryLoad};
use crate::growth::KeyShape;
use crate::lint::limits::{row_bytes, tables};

/// Days of which tables are read for one query at most.
const MOST_DAYS: f64 = 7.0;
const SECONDS_A_DAY: f64 = (DAY / SECOND) as f64;

/// The tables of the days of a layout: a range of days is read by its tables alone.
pub(super) fn days(pairing: &Pairing<'_>, at: usize) -> Option<SecondTable> {
    let (layout, cost) = (pairing.comparison.layouts.get(at)?, pairing.economy.costs.get(at)?);
    let (demand, measured) = (&pairing.economy.demand, &layout.measured);
    let shape = KeyShape::of(&layout.layout);
    let of_day = measured.factor * demand.factor / demand.days().max(f64::MIN_POSITIVE);
    let bytes = measured.bytes.total() as f64 * of_day;
    let scale = pairing.economy.scales.get(at)?;

    // A key that names no day has one row in each day in which it is written, however long its bucket is.
    let columns = shape.columns();
    let rows = match shape.step() {
        Some(step) if step > DAY => distinct(demand.combinations(&columns), demand.writes_per_second * SECONDS_A_DAY),
        _ => measured.rows as f64 * of_day / scale.row_growth.factor(),
    };

    // More tables than are advised are for whole days: for a part of one, a table with the fixed column first is one table.
    let is_crowded = tables(demand.days().ceil() as u64, pairing.prices).is_some();
    let loads = pairing.asked(at).map(|(query, answer)| {
        let asked = answer.asked.as_ref()?;
        if is_crowded && asked.bounds.fixed.iter().any(|name| pairing.columns.is_key(name)) {
            return None;
        }
        let seconds = asked.bounds.covered(DAY)?;
        let days = (seconds / SECONDS_A_DAY).ceil().max(1.0);
        if days > MOST_DAYS || shape.is_one_series(&asked.bounds) || !serves(query, Need::Range) {
            return None;
        }
        let fixed: Vec<&str> = columns.iter().copied().take_while(|name| asked.bounds.fixed.contains(*name)).collect();
        let part = days / demand.combinations(&fixed);
        Some(QueryLoad::new(query.per_second, days, rows * part, bytes * part))
    });

    let kib_a_row = (bytes / rows.max(1.0) / KIB).max(1.0);
    let kept = TableLoad {
        writes_per_second: rows / SECONDS_A_DAY,
        write_kib: kib_a_row,
        write_load: rows / SECONDS_A_DAY * kib_a_row / pairing.prices.node.writes_per_second,
        rewrite_load: 0.0,
        stored: cost.stored.1,
    };

    let event = event_bytes(measured);
    let too_large = scale.entity_rate.and_then(|rate| {
        let passed = row_bytes(rate * SECONDS_A_DAY * event, pairing.prices)?;
        let message = format!(
            "the largest row of a day will have {:.0} bytes: {rate:.1} rows a second x {SECONDS_A_DAY:.0} x {event:.0} bytes",
            passed.measured
        );
        Some((passed.rule, message))
    });

    Some(SecondTable {
        second: Second::Days,
        name: format!("{}_{{day:%Y%m%d}}", measured.layout),
        row_key: without_time(&layout.layout),
        key: Vec::new(),
        loads: loads.collect(),
        kept,
        is_whole: true,
        passed: too_many(pairing).or(too_large),
    })
}

/// The limit of an instance, if the days that rows are kept are more tables than it takes.
fn too_many(pairing: &Pairing<'_>) -> Option<(&'static str, String)> {
    let days = pairing.economy.demand.days();
    let passed = tables(days.ceil() as u64, pairing.prices).filter(|passed| passed.is_error())?;
    let message = format!("{days:.0} days are {days:.0} tables, and an instance has {:.0} at most", passed.limit);
    Some((passed.rule, message))
}

/// How many of `keys` are among so many `events` that fall on them evenly.
fn distinct(keys: f64, events: f64) -> f64 {
    keys * (1.0 - (-events / keys.max(f64::MIN_POSITIVE)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_day_are_not_those_of_a_month_by_its_days() {
        // 231 matches a second of 5 million players in 3 games are 1.33 a day of each: 11 million keys of 15 million.
        let keys = distinct(15e6, 231.48 * 86_400.0);
        assert!((keys / 15e6 - (1.0 - (-1.3333_f64).exp())).abs() < 1e-4, "{keys}");
        // A third of them is 3.7 million of a game, and not 5,000,000 / 31.
        assert!((keys / 3.0 - 3.68e6).abs() < 0.01e6, "{keys}");
        assert!((distinct(10.0, 1e9) - 10.0).abs() < 1e-9 && (distinct(1e9, 10.0) - 10.0).abs() < 1e-6);
    }
}
