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
    /// Rows, of which each may have grown.
    pub rows: f64,
}

impl ReadGrowth {
    /// By what to multiply cells and bytes.
    pub fn bytes(&self) -> f64 {
        self.entities * self.rate * self.time
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
    let mut seconds = None;
    for part in &shape.parts {
        match part {
            KeyPart::Salt(_) => {}
            KeyPart::Column(name) if bounds.fixed.contains(name) => fixed.push(name),
            KeyPart::Column(_) => break,
            KeyPart::Time { step, .. } => {
                let Some(covered) = bounds.covered(*step) else { break };
                seconds = Some(covered);
                if covered * SECOND as f64 / *step as f64 > MOST_STEPS {
                    break;
                }
            }
        }
    }

    let entities = demand.entities_beside(&fixed) * sampled.beside(&fixed);
    let time = seconds.map_or(demand.time(), |seconds| seconds.min(demand.keep) / seconds.min(demand.span));
    let bytes = entities * demand.per_entity * time;
    ReadGrowth { entities, rate: demand.per_entity, time, rows: bytes / row.factor() }
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
        let found = read_growth(&shape, &demand, &QueryBounds { fixed, time }, Sampled::default(), row);
        (found.entities, found.time, found.rows)
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
    fn a_sample_lacks_the_rows_of_what_a_query_leaves_open() {
        let entity = ["meter".to_owned()];
        let sampled = Sampled { factor: 50.0, entity: &entity };
        let entities = |row_key: &str, fixed: &str| {
            let bounds = QueryBounds { fixed: [fixed.to_owned()].into(), time: None };
            read_growth(&shape(row_key), &demand(), &bounds, sampled, RowGrowth::default()).entities
        };
        // 10 times the regions, 1,000 times the meters.
        assert_eq!(entities("{meter:010}#{ts:ms}", "meter"), 10.0);
        assert_eq!(entities("{region}#{ts:ms}", "region"), 1000.0 * 50.0);
        assert_eq!(entities("{ts:ms}#{meter:010}", "meter"), 10_000.0 * 50.0);
    }
}
