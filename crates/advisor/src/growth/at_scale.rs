//! Rows of a layout at the declared scale, at the end of the time that they are kept.

use tidetable_layout::time::SECOND;

use crate::facts::{FieldFacts, RowGrowth, ScaleFacts};
use crate::growth::demand::Demand;
use crate::growth::key_shape::KeyShape;
use crate::growth::sampled::Sampled;
use crate::spread::MOST_SLICES;

/// How seldom something happens in all rows that chance does not explain.
const UNLIKELY: f64 = 0.01;
/// Events in one row that are never chance, where half of them or fewer are expected.
const MOST_BY_CHANCE: u64 = 200;

/// What was measured of the rows of a layout.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grown<'a> {
    /// Bytes of the largest row.
    pub row_bytes: u64,
    /// Source rows that wrote it.
    pub row_events: u64,
    /// The number of rows.
    pub rows: u64,
    /// Source rows of a row, as a source row finds it: the mean, in which a row counts as often as it has source rows.
    pub events_together: f64,
    /// Most versions of a column of a row.
    pub versions: u64,
    /// Versions of a column that garbage collection leaves at most; `None` if rows grow otherwise, or without a bound.
    pub versions_kept: Option<u64>,
    /// Source rows a second of the busiest row, in the slice in which it is.
    pub row_rate: f64,
    /// Slices of time in which the row is written that most slices write.
    pub row_slices: u64,
    /// KiB that a source row writes, at least 1.
    pub write_kib: f64,
    /// Whether a row is a message that is read and written again for each source row.
    pub rewrites: bool,
    /// Source rows a second of all rows.
    pub rate: f64,
    /// The values of columns of the row key, if they were counted.
    pub fields: &'a [FieldFacts],
    /// The sample of which all this is.
    pub sampled: Sampled<'a>,
}

/// By what the largest and the busiest row of a layout of this shape grow.
pub fn row_growth(shape: &KeyShape, demand: &Demand, found: Grown<'_>) -> RowGrowth {
    let columns = shape.columns();
    let entities = demand.entities_beside(&columns) * found.sampled.beside(&columns);
    if shape.is_by_event() {
        return RowGrowth { entities: at_one_instant(shape, demand, found, entities), ..RowGrowth::default() };
    }
    let step = shape.step().map_or(f64::INFINITY, |step| step as f64 / SECOND as f64);
    let time = step.min(demand.keep) / step.min(demand.span);
    let expected = expected_part(&columns, demand, found, step.min(demand.span));
    RowGrowth { entities, rate: demand.per_entity, time, expected }
}

/// The part of the source rows of the fullest row that its busiest values lead to expect in so many `seconds`. It is all of them
/// unless twice as many are there as that, and chance explains so many in one of all rows: where few rows of the source were
/// measured, each bucket of time that is found holds the one by which it was found.
fn expected_part(columns: &[&str], demand: &Demand, found: Grown<'_>, seconds: f64) -> f64 {
    let Some(rate) = busiest_rate(columns, demand, found).filter(|_| found.row_events > 0) else { return 1.0 };
    let more = demand.entities_beside(columns) * demand.per_entity * found.sampled.beside(columns);
    let (expected, events) = (rate / more.max(f64::MIN_POSITIVE) * seconds, found.row_events as f64);
    let is_chance = || tail(found.row_events, expected) * found.rows.max(1) as f64 > UNLIKELY;
    if 2.0 * expected < events && is_chance() { expected / events } else { 1.0 }
}

/// How likely it is that so many events or more come together where a mean of `expected` does: a sum of Poisson's distribution.
fn tail(events: u64, expected: f64) -> f64 {
    if events > MOST_BY_CHANCE {
        return 0.0;
    }
    let (mut term, mut below) = ((-expected).exp(), 0.0);
    for at in 0..events {
        below += term;
        term *= expected / (at + 1) as f64;
    }
    (1.0 - below).max(0.0)
}

/// By what a row of one instant grows where there are so many times the `entities` below it: by all of them if they write at
/// the same instants, by nothing if each writes at its own.
///
/// How many share an instant follows from the rows that did, and from the grid that all times are on: a busier table has more
/// events at each point of it. The greater of both counts, and no more than all.
fn at_one_instant(shape: &KeyShape, demand: &Demand, found: Grown<'_>, entities: f64) -> f64 {
    let events = found.row_events.max(1) as f64;
    let shared = if events > 1.0 { (found.events_together - 1.0) / (events - 1.0) } else { 0.0 };
    let met = 1.0 + (entities - 1.0) * shared.clamp(0.0, 1.0);
    let on_grid = busiest_rate(&shape.columns(), demand, found).map_or(0.0, |rate| rate * demand.grid / events);
    met.max(on_grid).clamp(1.0, entities.max(1.0))
}

/// The rows of a layout at scale.
pub fn at_scale(shape: &KeyShape, demand: &Demand, found: Grown<'_>) -> ScaleFacts {
    let growth = row_growth(shape, demand, found);
    let is_endless = shape.step().is_none();
    let kept = found.versions_kept.filter(|_| is_endless).map(|kept| kept as f64 / found.versions.max(1) as f64);
    let factor = kept.map_or(growth.factor(), |kept| growth.factor().min(kept.max(1.0)));
    let rewritten = if found.rewrites { growth.factor() } else { 1.0 };
    let leading = shape.leading();
    let entity_rate = busiest_rate(&shape.columns(), demand, found);
    let is_by_chance = growth.expected < 1.0;
    ScaleFacts {
        rate: demand.writes_per_second,
        is_rate_declared: demand.is_scaled,
        keep_days: demand.days(),
        row_growth: growth,
        row_bytes: found.row_bytes as f64 * if is_by_chance { factor.max(1.0) } else { factor },
        // A second that holds one of few source rows says nothing of the seconds at scale.
        row_rate: entity_rate.filter(|_| is_by_chance).unwrap_or(found.row_rate * growth.entities * growth.rate),
        write_kib: (found.write_kib * rewritten).max(1.0),
        row_slices: if is_endless { slices_kept(demand, found) } else { 0 },
        series_rate: shape.step().and_then(|_| busiest_rate(&leading, demand, found)).map(|rate| rate / shape.salts()),
        entity_rate,
        is_time_first: shape.is_time_first(),
    }
}

/// Slices in which a row without a time in its key is written while it is kept, of the 720 that this time is cut into.
fn slices_kept(demand: &Demand, found: Grown<'_>) -> u64 {
    let written = found.row_slices as f64 * demand.per_entity * demand.time();
    written.min(MOST_SLICES as f64) as u64
}

/// Source rows a second behind the busiest values of `columns`; `None` if the values of one were not counted.
///
/// Rows that are new all go to the end of these where the time follows in the key, and no split divides them.
fn busiest_rate(columns: &[&str], demand: &Demand, found: Grown<'_>) -> Option<f64> {
    let mut share = 1.0_f64;
    for name in columns {
        let field = found.fields.iter().find(|field| field.name == *name)?;
        let all: u64 = field.values.iter().map(|value| value.rows).sum();
        let most = field.values.iter().map(|value| value.rows).max()?;
        // No pair of values has more rows than one of both.
        share = share.min(most as f64 / all.max(1) as f64);
    }
    Some(found.rate * share * found.sampled.share(columns) * demand.entities_beside(columns) * demand.per_entity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ValueFacts;
    use crate::growth::demand::tests::{counted, profile, workload};
    use crate::growth::key_shape::tests::shape;
    use crate::trial::Profile;

    /// 100 hosts wrote every 5 s for an hour, one of them a tenth of all; there will be 100,000, kept for a year.
    fn scaled(row_key: &str, found: Grown<'_>) -> ScaleFacts {
        let text = "keep = \"365d\"\n[scale]\nentities = { meter = 100_000 }\nevery = \"5s\"";
        let demand = Demand::new(&workload(text), &profile(&[("meter", 100)]), counted(72_000.0, 0, 3599));
        at_scale(&shape(row_key), &demand, found)
    }

    fn field(name: &str, rows: &[u64]) -> FieldFacts {
        let values = rows.iter().map(|rows| ValueFacts { rows: *rows, ..ValueFacts::default() }).collect();
        FieldFacts { name: name.to_owned(), values, complete: true }
    }

    #[test]
    fn rows_grow_by_what_their_key_lacks() {
        let found = Grown { row_bytes: 1000, row_rate: 0.2, row_slices: 720, rate: 20.0, ..Grown::default() };
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
    fn a_row_of_one_instant_holds_all_that_write_at_it() {
        // 50 meters of each of two regions wrote at the same instant, 60 bytes each: 1,000 times as many will.
        let fields = [field("region", &[36_000, 36_000])];
        let at_once = Grown { row_bytes: 3000, row_events: 50, events_together: 50.0, ..Grown::default() };
        let found = scaled("{region}#{ts:ms}", at_once);
        assert_eq!((found.row_growth.entities, found.row_bytes), (1000.0, 3_000_000.0));
        // One of 50 finds half of the others beside it, as a mean.
        let half = scaled("{region}#{ts:ms}", Grown { events_together: 25.5, ..at_once });
        assert_eq!(half.row_growth.entities, 500.5);
        // Each at its own millisecond: 20,000 a second, half of them in the busiest region, are 10 in a millisecond.
        let apart =
            Grown { row_bytes: 60, row_events: 1, events_together: 1.0, rate: 20.0, fields: &fields, ..at_once };
        let demand = |grid: i64| {
            let text = "keep = \"365d\"\n[scale]\nentities = { meter = 100_000 }\nevery = \"5s\"";
            let profile = Profile { grid, ..profile(&[("meter", 100)]) };
            Demand::new(&workload(text), &profile, counted(72_000.0, 0, 3599))
        };
        let of_grid = |grid: i64| row_growth(&shape("{region}#{ts:ms}"), &demand(grid), apart).entities;
        assert_eq!(of_grid(1000), 10.0);
        // All times are multiples of 50 ms, or of 5 s: then there are all.
        assert_eq!((of_grid(50_000), of_grid(5_000_000)), (500.0, 1000.0));
        // The key names the meter: others are other rows.
        assert_eq!(row_growth(&shape("{region}#{meter:010}#{ts:ms}"), &demand(5_000_000), apart).entities, 1.0);
    }

    #[test]
    fn the_busiest_series_has_the_share_of_its_values() {
        let fields = [field("meter", &[1, 9])];
        let found = Grown { rate: 20.0, fields: &fields, ..Grown::default() };
        // 20 rows a second x 0.9; the other meters are others.
        assert_eq!(scaled("{meter:010}#{ts:ms}", found).series_rate, Some(18.0));
        assert_eq!(scaled("{ts:ms}#{meter:010}", found).series_rate, Some(20_000.0));
        assert_eq!(scaled("{ts:ms}#{meter:010}", found).entity_rate, Some(18.0));
        assert_eq!(scaled("{salt(ts, 4)}#{ts:ms}#{meter:010}", found).series_rate, Some(5000.0));
        assert_eq!(scaled("{region}#{ts:ms}#{meter:010}", found).series_rate, None);
        assert_eq!(scaled("{meter:010}", found).series_rate, None);
        assert_eq!(scaled("{meter:010}", found).entity_rate, Some(18.0));
    }

    #[test]
    fn a_share_of_a_sample_is_a_share_of_its_entities() {
        // 2 of 100 even hosts of one region were measured: 0.4 of 20 rows a second.
        let (fields, entity) = ([field("region", &[40]), field("meter", &[20, 20])], ["meter".to_owned()]);
        let sampled = Sampled { factor: 50.0, entity: &entity };
        let found = Grown { rate: 20.0, row_bytes: 100, row_rate: 0.4, fields: &fields, sampled, ..Grown::default() };
        let own = scaled("{meter:010}#{ts:%Y%m%d}", found);
        assert_eq!((own.series_rate, own.row_bytes, own.row_rate), (Some(0.2), 2400.0, 0.4));
        // The rows of a region are there as far as its hosts are: 50 times as many, and 1,000 times as many of these.
        let region = scaled("{region}#{ts:%Y%m%d}", found);
        assert_eq!((region.series_rate, region.row_bytes), (Some(20_000.0), 100.0 * 50.0 * 1000.0 * 24.0));
    }

    #[test]
    fn of_a_reading_that_is_alone_only_what_is_expected_grows() {
        // 289 meters wrote 289 rows in 100 hours, the busiest two of them: 0.02 an hour. They will write 2,525 a second.
        let text = "keep = \"90d\"\n[scale]\nrows_per_second = 2_525";
        let demand = Demand::new(&workload(text), &profile(&[("meter", 289)]), counted(289.0, 0, 359_999));
        let fields = [field("meter", &[&[2][..], &[1; 287]].concat())];
        let thin = Grown {
            row_bytes: 250,
            row_events: 1,
            rows: 289,
            rate: 289.0 / 360_000.0,
            fields: &fields,
            ..Grown::default()
        };
        let found = at_scale(&shape("{meter:010}#{ts:%Y%m%d%H}"), &demand, Grown { row_rate: 0.2, ..thin });
        // 2,525 / 289 x 2 = 17.5 a second, 62,900 an hour of 250 bytes; not 250 x 3,145,328 = 786 MB.
        assert!((found.row_bytes / (2525.0 / 289.0 * 2.0 * 3600.0 * 250.0) - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.row_rate - 2525.0 / 289.0 * 2.0).abs() < 1e-9, "{found:?}");
        // 30 in one hour are a burst, which stays one.
        let burst = at_scale(&shape("{meter:010}#{ts:%Y%m%d%H}"), &demand, Grown { row_events: 30, ..thin });
        assert_eq!(burst.row_growth.expected, 1.0);
        // 0.02 are expected, and two in one of so many rows are chance; so are 24 where 20 are.
        assert!(tail(1, 0.02) > 0.019 && tail(2, 0.02) < 0.0002 && tail(24, 20.0) > 0.2, "{}", tail(24, 20.0));
    }

    #[test]
    fn seconds_of_a_slice_are_one_slice() {
        // 200 seconds of an hour, in 60 of its slices of 5 s; kept for 62 minutes.
        let demand = Demand::new(&workload("keep = \"3720s\""), &profile(&[]), counted(72_000.0, 0, 3599));
        let slices =
            |row_slices: u64| at_scale(&shape("{meter:010}"), &demand, Grown { row_slices, ..Grown::default() });
        assert_eq!(slices(60).row_slices, 62);
        assert_eq!(slices(720).row_slices, 720);
    }
}
