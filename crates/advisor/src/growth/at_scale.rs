//! Rows of a layout at the declared scale, at the end of the time that they are kept.

use tidetable_layout::time::SECOND;

use crate::facts::{FieldFacts, RowGrowth, ScaleFacts};
use crate::growth::demand::Demand;
use crate::growth::key_shape::KeyShape;
use crate::spread::MOST_SLICES;

/// What was measured of the rows of a layout.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grown<'a> {
    /// Bytes of the largest row.
    pub row_bytes: u64,
    /// Most versions of a column of a row.
    pub versions: u64,
    /// Versions of a column that garbage collection leaves at most; `None` if rows grow otherwise, or without a bound.
    pub versions_kept: Option<u64>,
    /// Source rows a second of the busiest row, in the slice in which it is.
    pub row_rate: f64,
    /// Distinct seconds of the events of the row that has most.
    pub row_seconds: u64,
    /// Source rows a second of all rows.
    pub rate: f64,
    /// The values of columns of the row key, if they were counted.
    pub fields: &'a [FieldFacts],
}

/// By what the largest and the busiest row of a layout of this shape grow.
pub fn row_growth(shape: &KeyShape, demand: &Demand) -> RowGrowth {
    if shape.is_by_event() {
        return RowGrowth::default();
    }
    let entities = demand.entities_beside(&shape.columns());
    let step = shape.step().map_or(f64::INFINITY, |step| step as f64 / SECOND as f64);
    RowGrowth { entities, rate: demand.per_entity, time: step.min(demand.keep) / step.min(demand.span) }
}

/// The rows of a layout at scale.
pub fn at_scale(shape: &KeyShape, demand: &Demand, found: Grown<'_>) -> ScaleFacts {
    let growth = row_growth(shape, demand);
    let is_endless = shape.step().is_none();
    let kept = found.versions_kept.filter(|_| is_endless).map(|kept| kept as f64 / found.versions.max(1) as f64);
    let factor = kept.map_or(growth.factor(), |kept| growth.factor().min(kept.max(1.0)));
    let slices = found.row_seconds as f64 * growth.rate * growth.time;
    ScaleFacts {
        rate: demand.writes_per_second,
        is_rate_declared: demand.is_scaled,
        keep_days: demand.days(),
        row_growth: growth,
        row_bytes: found.row_bytes as f64 * factor,
        row_rate: found.row_rate * growth.entities * growth.rate,
        row_slices: if is_endless { slices.min(MOST_SLICES as f64) as u64 } else { 0 },
        series_rate: series_rate(shape, demand, found),
        is_time_first: shape.is_time_first(),
    }
}

/// Source rows a second behind the busiest values of the columns before the time: rows that are new all go to the end of
/// these, and no split divides them. `None` if keys hold no time, or the values were not counted.
fn series_rate(shape: &KeyShape, demand: &Demand, found: Grown<'_>) -> Option<f64> {
    shape.step()?;
    let leading = shape.leading();
    let share_of = |name: &&str| {
        let field = found.fields.iter().find(|field| field.name == **name)?;
        let all: u64 = field.values.iter().map(|value| value.rows).sum();
        let most = field.values.iter().map(|value| value.rows).max()?;
        Some(most as f64 / all.max(1) as f64)
    };
    // No pair of values has more rows than one of both.
    let share = leading.iter().map(share_of).try_fold(1.0_f64, |least, share| Some(least.min(share?)))?;
    let measured = found.rate * share;
    Some(measured * demand.entities_beside(&leading) * demand.per_entity / shape.salts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ValueFacts;
    use crate::growth::demand::tests::{profile, workload};
    use crate::growth::key_shape::tests::shape;

    /// 100 hosts wrote every 5 s for an hour, one of them a tenth of all; there will be 100,000, kept for a year.
    fn scaled(row_key: &str, found: Grown<'_>) -> ScaleFacts {
        let text = "keep = \"365d\"\n[scale]\nentities = { meter = 100_000 }\nevery = \"5s\"";
        let demand = Demand::new(&workload(text), &profile(&[("meter", 100)]), 72_000.0, (0, 3599));
        at_scale(&shape(row_key), &demand, found)
    }

    #[test]
    fn rows_grow_by_what_their_key_lacks() {
        let found = Grown { row_bytes: 1000, row_rate: 0.2, row_seconds: 720, rate: 20.0, ..Grown::default() };
        let event = scaled("{meter:010}#{ts:ms}", found);
        assert_eq!((event.row_bytes, event.row_rate, event.row_slices), (1000.0, 0.2, 0));
        // A day of which an hour was measured.
        let day = scaled("{meter:010}#{ts:%Y%m%d}", found);
        assert_eq!((day.row_bytes, day.row_rate), (24_000.0, 0.2));
        let endless = scaled("{meter:010}", found);
        assert_eq!((endless.row_bytes, endless.row_slices), (1000.0 * 8760.0, 720));
        assert_eq!(scaled("{meter:010}", Grown { versions: 720, versions_kept: Some(1), ..found }).row_bytes, 1000.0);
        // All meters in a row: a thousand times the meters.
        let all = scaled("{ts:%Y%m%d}", found);
        assert_eq!((all.row_bytes, all.row_rate, all.is_time_first), (24_000_000.0, 200.0, true));
    }

    #[test]
    fn the_busiest_series_has_the_share_of_its_values() {
        let value = |rows: u64| ValueFacts { rows, ..ValueFacts::default() };
        let fields = [FieldFacts { name: "meter".to_owned(), values: vec![value(1), value(9)], complete: true }];
        let found = Grown { rate: 20.0, fields: &fields, ..Grown::default() };
        // 20 rows a second x 0.9; the other meters are others.
        assert_eq!(scaled("{meter:010}#{ts:ms}", found).series_rate, Some(18.0));
        assert_eq!(scaled("{ts:ms}#{meter:010}", found).series_rate, Some(20_000.0));
        assert_eq!(scaled("{salt(ts, 4)}#{ts:ms}#{meter:010}", found).series_rate, Some(5000.0));
        assert_eq!(scaled("{region}#{ts:ms}#{meter:010}", found).series_rate, None);
        assert_eq!(scaled("{meter:010}", found).series_rate, None);
    }
}
