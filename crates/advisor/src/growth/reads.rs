//! By what grows what a query reads.

use tidetable_layout::time::SECOND;

use crate::facts::RowGrowth;
use crate::growth::bounds::QueryBounds;
use crate::growth::demand::Demand;
use crate::growth::key_shape::{KeyPart, KeyShape};
use crate::growth::sampled::Sampled;

/// Steps of time that are looked up one by one, so that columns behind the time narrow what is read.
const MOST_STEPS: f64 = 1000.0;

/// The factors from what a query read of the measured rows to what it will read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadGrowth {
    /// Of entities that it does not fix.
    pub entities: f64,
    /// Of the rate of an entity.
    pub rate: f64,
    /// Of the time that it reads.
    pub time: f64,
    /// By what a row grows.
    pub row: f64,
    /// Source rows that a read of what was measured could expect; `None` if the values of what it fixes were not counted.
    pub expected: Option<f64>,
    /// By what the records grow that match all that the query fixes, also behind what it leaves open.
    pub matching: f64,
    /// Row keys that there will be in what it reads, if rows hold what comes together in a bucket of time.
    pub keys: Option<f64>,
}

/// Source rows of a row up to which another one is likely to be in a row of its own.
const FEW_TOGETHER: f64 = 3.0;

/// What a query reads each time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadAmount {
    /// Source rows.
    pub events: f64,
    /// Rows of the table.
    pub rows: f64,
    /// Bytes as cells.
    pub bytes: f64,
}

impl ReadGrowth {
    /// By what to multiply cells and bytes.
    pub fn bytes(&self) -> f64 {
        self.entities * self.rate * self.time
    }

    /// What was read of the measured rows, as a mean of what was drawn, at scale.
    ///
    /// A window that is drawn around a source row holds this one: of what is found in it, one is there because it was drawn,
    /// unless it could be expected. What could be expected grows. Where more is written to few rows than was measured, these fill
    /// up the row keys that there are.
    pub fn at_scale(&self, found: ReadAmount) -> ReadAmount {
        let expected =
            self.expected.map_or(found.events, |expected| expected.max(found.events - 1.0).min(found.events));
        let events = found.events - expected + expected * self.bytes();
        let part = if found.events > 0.0 { events / found.events } else { self.bytes() };

        let rows = found.rows * part / self.row;
        let met = self.keys.map(|keys| keys * (1.0 - (-events / keys).exp()));
        let rows = match met {
            Some(met) if self.rate > 1.0 && found.events < FEW_TOGETHER * found.rows => met,
            // What is written less often than it was measured leaves some of them empty.
            Some(met) if self.rate < 1.0 => rows.min(met),
            _ => rows,
        };
        ReadAmount { events, rows: rows.max(found.rows.min(1.0)), bytes: found.bytes * part }
    }
}

/// What grows of a query's answer in a layout of this shape, whose rows grow by `row`. What was measured is of a sample.
///
/// The row key is followed from left to right: a fixed column narrows what is read to its values, a range of time to the
/// buckets that it touches, and the first part that the query leaves open ends it.
pub fn read_growth(
    shape: &KeyShape,
    demand: &Demand,
    bounds: &QueryBounds,
    sampled: Sampled<'_>,
    row: RowGrowth,
) -> ReadGrowth {
    let mut fixed: Vec<&str> = Vec::new();
    let (mut seconds, mut steps) = (None, None);
    for part in &shape.parts {
        match part {
            KeyPart::Salt(_) => {}
            KeyPart::Column(name) if bounds.fixed.contains(name) => fixed.push(name),
            KeyPart::Column(_) => break,
            KeyPart::Time { step, .. } => {
                let Some(covered) = bounds.covered(*step) else { break };
                seconds = Some(covered);
                steps = Some(covered * SECOND as f64 / *step as f64);
                if covered * SECOND as f64 / *step as f64 > MOST_STEPS {
                    break;
                }
            }
        }
    }

    let entities = demand.entities_beside(&fixed) * sampled.beside(&fixed);
    let time = seconds.map_or(demand.time(), |seconds| seconds.min(demand.keep) / seconds.min(demand.span));
    let measured = seconds.map_or(demand.span, |seconds| seconds.min(demand.span));
    let expected = demand.drawn_rate(&fixed).map(|rate| rate * measured / sampled.beside(&fixed));

    let bounded: Vec<&str> = bounds.fixed.iter().map(String::as_str).collect();
    let matching = demand.entities_beside(&bounded) * sampled.beside(&bounded) * demand.per_entity * time;

    let buckets = shape.step().filter(|_| !shape.is_by_event()).map(|step| {
        let kept = (demand.keep * SECOND as f64 / step as f64).max(1.0);
        steps.map_or(kept, |steps: f64| steps.min(kept).max(1.0))
    });
    let keys = buckets.map(|buckets| {
        let columns = shape.columns();
        buckets * demand.combinations(&columns) / demand.combinations(&fixed)
    });
    ReadGrowth { entities, rate: demand.per_entity, time, row: row.all(), expected, matching, keys }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::at_scale::{Grown, row_growth};
    use crate::growth::demand::tests::{counted, profile, workload};
    use crate::growth::key_shape::tests::shape;

    /// 10 meters of 2 regions were measured for nine days; there will be 10,000 in 20, kept for a year.
    fn demand() -> Demand {
        let text = "keep = \"360d\"\n[scale]\nentities = { meter = 10_000, region = 20 }";
        Demand::new(&workload(text), &profile(&[("meter", 10), ("region", 2)]), counted(7776.0, 0, 9 * 86_400 - 1))
    }

    fn factors(row_key: &str, fixed: &[&str], seconds: Option<f64>) -> (f64, f64, f64) {
        let fixed = fixed.iter().map(|name| (*name).to_owned()).collect();
        let time = seconds.map(|seconds| (0, (seconds * SECOND as f64) as i64));
        let (shape, demand) = (shape(row_key), demand());
        let row = row_growth(&shape, &demand, Grown::default());
        let found =
            read_growth(&shape, &demand, &QueryBounds { fixed, time, is_ended: false }, Sampled::default(), row);
        (found.entities, found.time, found.bytes() / found.row)
    }

    #[test]
    fn what_a_query_leaves_open_grows() {
        let minute = Some(60.0);
        // 360 / 9 days.
        assert_eq!(factors("{meter:010}#{ts:ms}", &["meter"], None), (10.0, 40.0, 400.0));
        assert_eq!(factors("{region}#{meter:010}#{ts:ms}", &["meter", "region"], None), (1.0, 40.0, 40.0));
        assert_eq!(factors("{region}#{meter:010}#{ts:ms}", &["meter", "region"], minute), (1.0, 1.0, 1.0));
        // The fleet's minute: all meters in a time-first key, the whole table behind the meter.
        assert_eq!(factors("{ts:ms}#{region}#{meter:010}", &[], minute), (10_000.0, 1.0, 10_000.0));
        assert_eq!(factors("{region}#{meter:010}#{ts:ms}", &[], minute), (10_000.0, 40.0, 400_000.0));
        // Days are looked up one by one, so the region behind them narrows the range.
        assert_eq!(factors("{ts:%Y%m%d}#{region}#{meter:010}", &["region"], minute), (1000.0, 1.0, 1000.0));
        assert_eq!(factors("{ts:ms}#{region}#{meter:010}", &["region"], minute), (10_000.0, 1.0, 10_000.0));
        // A row for all time: one row, which grows.
        assert_eq!(factors("{region}#{meter:010}", &["meter", "region"], minute), (1.0, 40.0, 1.0));
        // A month of which nine days were measured: 31 / 9 of its bytes, in one row.
        let (entities, time, rows) = factors("{region}#{meter:010}#{ts:%Y%m}", &["meter", "region"], minute);
        assert!(entities == 1.0 && (time - 31.0 / 9.0).abs() < 1e-3 && (rows - 1.0).abs() < 1e-3, "{time} {rows}");
    }

    #[test]
    fn a_drawn_window_holds_the_reading_by_which_it_was_drawn() {
        let growth = |expected: f64, keys: Option<f64>| ReadGrowth {
            entities: 1000.0,
            rate: 50.0,
            time: 1.0,
            row: 1.0,
            expected: Some(expected),
            matching: 1.0,
            keys,
        };
        let drawn = ReadAmount { events: 1.002, rows: 1.002, bytes: 100.2 };
        // The drawn one stays one, and 0.002 become 100: not 50,100.
        let found = growth(0.002, None).at_scale(drawn);
        assert!((found.events - 101.0).abs() < 1e-6 && (found.rows - 101.0).abs() < 1e-6, "{found:?}");
        assert!((found.bytes - 10_100.0).abs() < 1e-3, "{found:?}");
        // 24 readings of a day are there because a day has 24: each grows.
        let day = ReadAmount { events: 24.0, rows: 1.0, bytes: 960.0 };
        assert_eq!(growth(24.0, None).at_scale(day).events, 24.0 * 50_000.0);
        // What comes to 36 rows fills them, and no more than these.
        let filled = growth(0.002, Some(36.0)).at_scale(drawn);
        assert!((filled.rows - 36.0 * (1.0 - (-101.0_f64 / 36.0).exp())).abs() < 1e-6 && filled.bytes == found.bytes);
        // A day in which each of 10 players was there twice, who will play 0.7 times: 5 of 10 are.
        let players =
            ReadGrowth { entities: 1.0, rate: 0.35, row: 0.35, expected: Some(20.0), ..growth(0.0, Some(10.0)) };
        let found = players.at_scale(ReadAmount { events: 20.0, rows: 10.0, bytes: 1000.0 });
        assert!(
            (found.rows - 10.0 * (1.0 - (-0.7_f64).exp())).abs() < 1e-9 && (found.bytes - 350.0).abs() < 1e-9,
            "{found:?}"
        );
        // Nothing grows where nothing else is declared.
        let same = ReadGrowth { entities: 1.0, rate: 1.0, ..growth(0.002, Some(36.0)) };
        assert_eq!(same.at_scale(drawn), drawn);
    }

    #[test]
    fn a_sample_lacks_the_rows_of_what_a_query_leaves_open() {
        let entity = ["meter".to_owned()];
        let sampled = Sampled { factor: 50.0, entity: &entity };
        let entities = |row_key: &str, fixed: &str| {
            let bounds = QueryBounds { fixed: [fixed.to_owned()].into(), time: None, is_ended: false };
            read_growth(&shape(row_key), &demand(), &bounds, sampled, RowGrowth::default()).entities
        };
        // 10 times the regions, 1,000 times the meters.
        assert_eq!(entities("{meter:010}#{ts:ms}", "meter"), 10.0);
        assert_eq!(entities("{region}#{ts:ms}", "region"), 1000.0 * 50.0);
        assert_eq!(entities("{ts:ms}#{meter:010}", "meter"), 10_000.0 * 50.0);
    }
}
