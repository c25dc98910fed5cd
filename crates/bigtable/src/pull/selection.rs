//! Which rows and cells of a table are pulled.

use std::fmt;

use chrono::{DateTime, SecondsFormat};
use tidetable_layout::KeyRange;

use crate::proto::data::row_filter::{Chain, Filter};
use crate::proto::data::{RowFilter, TimestampRange};

/// What is read of a table.
///
/// Lists of pulls of earlier builds hold its `Debug` form, so that names and order of the fields stay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PullSelection {
    /// The row keys that are pulled.
    pub range: KeyRange,
    /// Only cells of these families; all if empty.
    pub families: Vec<String>,
    /// Only cells with a timestamp from here on, microseconds.
    pub from: Option<i64>,
    /// Only cells with a timestamp before this.
    pub to: Option<i64>,
    /// At most this many cells of each column, the newest.
    pub versions: Option<u32>,
    /// The share of rows that is read, at random.
    pub sample: Option<f64>,
}

impl PullSelection {
    /// The filter of its requests; none if all cells are wanted.
    pub fn filter(&self) -> Option<RowFilter> {
        let mut filters = Vec::new();
        if let Some(share) = self.sample {
            filters.push(Filter::RowSampleFilter(share));
        }
        if !self.families.is_empty() {
            let names: Vec<String> = self.families.iter().map(|name| name.replace('.', "\\.")).collect();
            filters.push(Filter::FamilyNameRegexFilter(names.join("|")));
        }
        if self.from.is_some() || self.to.is_some() {
            filters.push(Filter::TimestampRangeFilter(TimestampRange {
                start_timestamp_micros: self.from.unwrap_or(0).max(0),
                end_timestamp_micros: self.to.unwrap_or(0),
            }));
        }
        if let Some(most) = self.versions {
            filters.push(Filter::CellsPerColumnLimitFilter(i32::try_from(most).unwrap_or(i32::MAX)));
        }

        let mut filters: Vec<RowFilter> =
            filters.into_iter().map(|filter| RowFilter { filter: Some(filter) }).collect();
        match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(RowFilter { filter: Some(Filter::Chain(Chain { filters })) }),
        }
    }
}

impl fmt::Display for PullSelection {
    /// The options of the command that select the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = Vec::new();
        if !self.range.start.is_empty() {
            options.push(format!("--start {}", key(&self.range.start)));
        }
        if let Some(end) = &self.range.end {
            options.push(format!("--end {}", key(end)));
        }
        options.extend(self.sample.map(|share| format!("--sample {share}")));
        let mut families: Vec<&String> = self.families.iter().collect();
        families.sort();
        families.dedup();
        options.extend(families.into_iter().map(|family| format!("--family {family}")));
        options.extend(self.from.map(|from| format!("--from {}", time(from))));
        options.extend(self.to.map(|to| format!("--to {}", time(to))));
        options.extend(self.versions.map(|most| format!("--cells-per-column {most}")));
        if options.is_empty() { f.write_str("all cells") } else { f.write_str(&options.join(" ")) }
    }
}

fn key(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// A timestamp as the command takes it.
fn time(micros: i64) -> String {
    let time = DateTime::from_timestamp_micros(micros);
    time.map_or_else(|| micros.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_shown_as_its_options() {
        assert_eq!(PullSelection::default().to_string(), "all cells");
        let some = PullSelection {
            range: KeyRange::prefix(b"k\x01"),
            families: vec!["b".to_owned(), "a.b".to_owned(), "b".to_owned()],
            from: Some(0),
            to: Some(1_500_000),
            versions: Some(2),
            sample: Some(0.5),
        };
        let shown = r#"--start "k\x01" --end "k\x02" --sample 0.5 --family a.b --family b --from 1970-01-01T00:00:00Z --to 1970-01-01T00:00:01.500Z --cells-per-column 2"#;
        assert_eq!(some.to_string(), shown);
    }

    #[test]
    fn lists_of_earlier_builds_are_known_again() {
        let held = "PullSelection { range: KeyRange { start: [], end: None }, families: [], from: None, to: None, versions: None, sample: None }";
        assert_eq!(format!("{:?}", PullSelection::default()), held);
    }
}
