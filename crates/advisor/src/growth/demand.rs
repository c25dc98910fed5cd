//! How much more there will be than what was measured.

use tidetable_job::workload::Workload;
use tidetable_layout::time::{DAY, SECOND};

use crate::trial::Profile;

/// Source rows that were counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceRows {
    /// Rows; of a sample of entities, those of all entities as it tells.
    pub rows: f64,
    /// First and last second, since the epoch.
    pub seconds: (i64, i64),
}

impl SourceRows {
    /// Seconds from the first row to the last, both included.
    pub fn span(&self) -> f64 {
        (self.seconds.1 - self.seconds.0 + 1).max(1) as f64
    }

    /// Rows a second: the mean over the span.
    pub fn rate(&self) -> f64 {
        self.rows / self.span()
    }
}

/// How much will be written and kept, in all layouts, and how that differs from what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Source rows a second.
    pub writes_per_second: f64,
    /// Source rows that are kept.
    pub kept_rows: f64,
    /// By what the measured source rows were multiplied to get these.
    pub factor: f64,
    /// Whether the workload declares a scale.
    pub is_scaled: bool,
    /// Whether there will be other rows than those that were measured: the workload declares a scale or how long rows are kept,
    /// or a part of the time was measured.
    pub is_declared: bool,
    /// Seconds that were measured.
    pub span: f64,
    /// Seconds that rows are kept.
    pub keep: f64,
    /// Seconds of which all event times are multiples.
    pub grid: f64,
    /// By what the rate of one entity is multiplied.
    pub per_entity: f64,
    /// By what the values of columns are multiplied.
    entities: Vec<(String, f64)>,
    /// What the source holds.
    profile: Profile,
}

impl Demand {
    /// The demand of a workload, of whose source all rows were measured.
    pub fn new(workload: &Workload, profile: &Profile, measured: SourceRows) -> Self {
        Self::of_part(workload, profile, measured, measured)
    }

    /// The demand of a workload. `whole` are all rows of the source; `measured` are those that were measured, in a part of the
    /// time of `whole` or in all of it.
    ///
    /// `scale.entities` multiplies the values of columns, and the rate with them unless the workload declares that. Of a column
    /// that the values of another one fix, as sensors have one tenant each, there are more values, and no more entities. Without a
    /// scale the rate of the whole source holds, without `keep` its span: which part of it was measured changes no demand.
    pub fn of_part(workload: &Workload, profile: &Profile, whole: SourceRows, measured: SourceRows) -> Self {
        let scale = &workload.scale;
        let values = scale.entities.iter().map(|(name, number)| (name.clone(), number / profile.distinct(name)));
        let entities: Vec<(String, f64)> = values.collect();
        let more = product_of(profile, &entities, |_| true);

        let number = product_of(profile, &scale.entities, |_| true);
        let by_entity = scale.every.filter(|_| !scale.entities.is_empty());
        let by_entity = by_entity.map(|every| number * SECOND as f64 / every as f64);
        let writes_per_second = scale.rows_per_second.or(by_entity).unwrap_or(whole.rate() * more);

        let keep = workload.keep.map_or(whole.span(), |keep| keep as f64 / SECOND as f64);
        let kept_rows = writes_per_second * keep;
        let is_scaled = scale.rows_per_second.is_some() || !scale.entities.is_empty();
        let rate = measured.rate();
        Self {
            writes_per_second,
            kept_rows,
            factor: if measured.rows > 0.0 { kept_rows / measured.rows } else { 0.0 },
            is_scaled,
            is_declared: is_scaled || workload.keep.is_some() || whole.span() > measured.span(),
            span: measured.span(),
            keep,
            grid: profile.grid.max(1) as f64 / SECOND as f64,
            per_entity: if rate > 0.0 { writes_per_second / rate / more } else { 1.0 },
            entities,
            profile: profile.clone(),
        }
    }

    /// Days that rows are kept.
    pub fn days(&self) -> f64 {
        self.keep * SECOND as f64 / DAY as f64
    }

    /// By what the measured time is multiplied.
    pub fn time(&self) -> f64 {
        self.keep / self.span
    }

    /// By what the values of all other columns than these are multiplied.
    pub fn entities_beside(&self, columns: &[&str]) -> f64 {
        let all = product_of(&self.profile, &self.entities, |_| true);
        let others = product_of(&self.profile, &self.entities, |name| !columns.contains(&name));
        let own = product_of(&self.profile, &self.entities, |name| columns.contains(&name));
        // Where no column is within another the factors of the others are all there is.
        if (own * others / all - 1.0).abs() < 1e-9 { others } else { all / own }
    }

    /// Different values of `columns` together, as there will be: those that were counted, by what these columns are multiplied.
    pub fn combinations(&self, columns: &[&str]) -> f64 {
        let mut number = 1.0;
        for (at, name) in columns.iter().enumerate() {
            // With each column come as many values as with the one before that has the fewest of it.
            let before = columns.iter().take(at);
            let beside = before.map(|other| self.profile.distinct_pairs(name, other) / self.profile.distinct(other));
            number *= beside.fold(self.profile.distinct(name), f64::min);
        }
        number * product_of(&self.profile, &self.entities, |name| columns.contains(&name))
    }

    /// Source rows a second with the most frequent values of `columns`; `None` if those of one were not counted.
    pub fn busiest(&self, columns: &[&str]) -> Option<f64> {
        let shares = columns.iter().map(|name| self.profile.greatest_share(name));
        let share = shares.collect::<Option<Vec<f64>>>()?.into_iter().fold(1.0, f64::min);
        let own = product_of(&self.profile, &self.entities, |name| columns.contains(&name));
        Some(self.writes_per_second * share / own)
    }

    /// Source rows a second, of those that were measured, with the values of `columns` that a row has which is drawn; `None` if
    /// those of one were not counted.
    pub fn drawn_rate(&self, columns: &[&str]) -> Option<f64> {
        let mut share = 1.0;
        for name in columns {
            // A column that follows from another one of them takes nothing away.
            if !columns.iter().any(|other| self.profile.is_within(other, name)) {
                share *= self.profile.drawn_share(name)?;
            }
        }
        let more = product_of(&self.profile, &self.entities, |_| true);
        Some(self.writes_per_second / (self.per_entity * more).max(f64::MIN_POSITIVE) * share)
    }

    /// The same with so many times the writes of each entity.
    #[must_use]
    pub fn writing(&self, times: f64) -> Self {
        let (writes_per_second, kept_rows) = (self.writes_per_second * times, self.kept_rows * times);
        Self {
            writes_per_second,
            kept_rows,
            factor: self.factor * times,
            per_entity: self.per_entity * times,
            ..self.clone()
        }
    }

    /// The same with rows kept so many times as long.
    #[must_use]
    pub fn keeping(&self, times: f64) -> Self {
        let (keep, kept_rows) = (self.keep * times, self.kept_rows * times);
        Self { keep, kept_rows, factor: self.factor * times, ..self.clone() }
    }
}

/// The product of the numbers of the columns that `is_wanted`, without those that another one of them fixes: each sensor has one
/// tenant, so a sensor more is no tenant more, and a tenant more no further sensor.
fn product_of(profile: &Profile, numbers: &[(String, f64)], is_wanted: impl Fn(&str) -> bool) -> f64 {
    let mut product = 1.0;
    for (at, (name, number)) in numbers.iter().enumerate() {
        let mut others = numbers.iter().enumerate().filter(|(_, (other, _))| is_wanted(other));
        // Of two that fix each other the first counts.
        let is_fixed = others.any(|(place, (other, _))| {
            profile.is_within(other, name) && (place < at || !profile.is_within(name, other))
        });
        if is_wanted(name) && !is_fixed {
            product *= number;
        }
    }
    product
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::trial::{ColumnProfile, PairProfile};

    pub(crate) fn workload(text: &str) -> Workload {
        Workload::parse(Path::new("q.toml"), format!("{text}\n[query.q]\nwhere = \"true\"\n")).unwrap()
    }

    /// So many rows over these seconds.
    pub(crate) fn counted(rows: f64, first: i64, last: i64) -> SourceRows {
        SourceRows { rows, seconds: (first, last) }
    }

    pub(crate) fn profile(columns: &[(&str, u64)]) -> Profile {
        let column = |(name, distinct): &(&str, u64)| ColumnProfile {
            name: (*name).to_owned(),
            distinct: *distinct,
            ..ColumnProfile::default()
        };
        Profile { columns: columns.iter().map(column).collect(), ..Profile::default() }
    }

    #[test]
    fn growth_has_three_factors() {
        // 90 meters were measured for 100 s, one row a second together.
        let text = "keep = \"1000s\"\n[scale]\nentities = { meter = 9_000 }\nevery = \"15m\"";
        let demand = Demand::new(&workload(text), &profile(&[("meter", 90)]), counted(100.0, 0, 99));
        // 9,000 / 900 s = 10 rows a second, kept for 1,000 s.
        assert_eq!((demand.writes_per_second, demand.kept_rows, demand.factor), (10.0, 10_000.0, 100.0));
        // 100 times the meters, each a tenth as often, ten times as long.
        assert_eq!((demand.entities_beside(&[]), demand.entities_beside(&["meter"])), (100.0, 1.0));
        assert_eq!((demand.per_entity, demand.time()), (0.1, 10.0));
        assert_eq!(demand.factor, demand.entities_beside(&[]) * demand.per_entity * demand.time());
    }

    #[test]
    fn tenants_of_sensors_are_no_more_sensors() {
        let text = "keep = \"730d\"\n[scale]\nentities = { sensor = 400_000, tenant = 900 }\nevery = \"1m\"";
        let mut profile = profile(&[("sensor", 40), ("tenant", 9)]);
        let columns = ["sensor".to_owned(), "tenant".to_owned()];
        (profile.rows, profile.pairs) = (400, vec![PairProfile { columns, distinct: 40 }]);
        let demand = Demand::new(&workload(text), &profile, counted(400.0, 0, 399));
        // 400,000 sensors write once a minute, whatever tenants there are.
        assert_eq!(demand.writes_per_second.round(), 6667.0);
        assert_eq!((demand.entities_beside(&[]), demand.entities_beside(&["sensor"])), (10_000.0, 1.0));
        // 10,000 times the sensors in 100 times the tenants.
        assert_eq!((demand.entities_beside(&["tenant"]), demand.entities_beside(&["tenant", "sensor"])), (100.0, 1.0));
        assert_eq!(demand.combinations(&["tenant", "sensor"]), 400_000.0);
        // 40 x 9 pairs: a sensor has several tenants, and each pair writes.
        profile.pairs.clear();
        let demand = Demand::new(&workload(text), &profile, counted(400.0, 0, 399));
        assert_eq!(demand.writes_per_second.round(), 6_000_000.0);
        assert_eq!(demand.combinations(&["tenant", "sensor"]), 360_000_000.0);
    }

    #[test]
    fn more_entities_write_more() {
        let text = "[scale]\nentities = { host = 1000 }";
        let demand = Demand::new(&workload(text), &profile(&[("host", 10)]), counted(100.0, 0, 99));
        assert_eq!((demand.writes_per_second, demand.per_entity, demand.time()), (100.0, 1.0, 1.0));
        let same = Demand::new(&workload(""), &profile(&[]), counted(100.0, 0, 99));
        assert_eq!((same.factor, same.is_declared, same.days()), (1.0, false, 100.0 / 86_400.0));
    }

    #[test]
    fn the_part_that_was_measured_does_not_change_the_demand() {
        // 1,000 rows in 1,000 s, of which the first 100 s have 20.
        let (whole, part) = (counted(1000.0, 0, 999), counted(20.0, 0, 99));
        let demand = Demand::of_part(&workload(""), &profile(&[]), whole, part);
        assert_eq!((demand.writes_per_second, demand.keep, demand.kept_rows), (1.0, 1000.0, 1000.0));
        // What was measured grows to it: 5 times the rate, 10 times the time.
        assert_eq!((demand.per_entity, demand.time(), demand.factor), (5.0, 10.0, 50.0));
        assert!(demand.is_declared && !demand.is_scaled);
        let declared = workload("keep = \"50s\"\n[scale]\nrows_per_second = 7");
        let demand = Demand::of_part(&declared, &profile(&[]), whole, part);
        assert_eq!((demand.writes_per_second, demand.kept_rows), (7.0, 350.0));
    }
}
