//! How much more there will be than what was measured.

use tidetable_job::workload::Workload;
use tidetable_layout::time::{DAY, SECOND};

use crate::trial::Profile;

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
    /// Whether it declares a scale, or how long rows are kept.
    pub is_declared: bool,
    /// Seconds that were measured.
    pub span: f64,
    /// Seconds that rows are kept.
    pub keep: f64,
    /// By what the rate of one entity is multiplied.
    pub per_entity: f64,
    /// By what the values of columns are multiplied.
    entities: Vec<(String, f64)>,
}

impl Demand {
    /// The demand of a workload. `rows` source rows were measured over `seconds` (first and last, since the epoch).
    ///
    /// `scale.entities` multiplies the values of columns, and the rate with them unless the workload declares that. Without a
    /// scale the measured rate holds, without `keep` the measured span.
    pub fn new(workload: &Workload, profile: &Profile, rows: f64, seconds: (i64, i64)) -> Self {
        let scale = &workload.scale;
        let span = (seconds.1 - seconds.0 + 1).max(1) as f64;
        let measured = rows / span;
        let values = scale.entities.iter().map(|(name, number)| (name.clone(), number / profile.distinct(name)));
        let entities: Vec<(String, f64)> = values.collect();
        let more: f64 = entities.iter().map(|(_, factor)| factor).product();

        let number: f64 = scale.entities.iter().map(|(_, number)| number).product();
        let by_entity = scale.every.filter(|_| !scale.entities.is_empty());
        let by_entity = by_entity.map(|every| number * SECOND as f64 / every as f64);
        let writes_per_second = scale.rows_per_second.or(by_entity).unwrap_or(measured * more);
        let keep = workload.keep.map_or(span, |keep| keep as f64 / SECOND as f64);
        let kept_rows = writes_per_second * keep;
        let is_scaled = scale.rows_per_second.is_some() || !scale.entities.is_empty();
        let per_entity = if measured > 0.0 { writes_per_second / measured / more } else { 1.0 };
        Self {
            writes_per_second,
            kept_rows,
            factor: if rows > 0.0 { kept_rows / rows } else { 0.0 },
            is_scaled,
            is_declared: is_scaled || workload.keep.is_some(),
            span,
            keep,
            per_entity,
            entities,
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
        let others = self.entities.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
        others.map(|(_, factor)| factor).product()
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::trial::ColumnProfile;

    pub(crate) fn workload(text: &str) -> Workload {
        Workload::parse(Path::new("q.toml"), format!("{text}\n[query.q]\nwhere = \"true\"\n")).unwrap()
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
        let demand = Demand::new(&workload(text), &profile(&[("meter", 90)]), 100.0, (0, 99));
        // 9,000 / 900 s = 10 rows a second, kept for 1,000 s.
        assert_eq!((demand.writes_per_second, demand.kept_rows, demand.factor), (10.0, 10_000.0, 100.0));
        // 100 times the meters, each a tenth as often, ten times as long.
        assert_eq!((demand.entities_beside(&[]), demand.entities_beside(&["meter"])), (100.0, 1.0));
        assert_eq!((demand.per_entity, demand.time()), (0.1, 10.0));
        assert_eq!(demand.factor, demand.entities_beside(&[]) * demand.per_entity * demand.time());
    }

    #[test]
    fn more_entities_write_more() {
        let demand =
            Demand::new(&workload("[scale]\nentities = { host = 1000 }"), &profile(&[("host", 10)]), 100.0, (0, 99));
        assert_eq!((demand.writes_per_second, demand.per_entity, demand.time()), (100.0, 1.0, 1.0));
        let same = Demand::new(&workload(""), &profile(&[]), 100.0, (0, 99));
        assert_eq!((same.factor, same.is_declared, same.days()), (1.0, false, 100.0 / 86_400.0));
    }
}
