//! The family that counts the source rows of each row key by time.
//!
//! It sums a column of ones. In most layouts the cell timestamp is the second of the event; in a table with
//! `upsert = "row"`, where newer rows replace cells with timestamps, the qualifier is the minute and the timestamp 0.

use tidetable_layout::schema::{Encoding, Merge};
use tidetable_layout::spec::{ColumnSpec, FamilySpec, PackedSpec, TimestampSpec};
use tidetable_layout::time::{MINUTE, SECOND, TIMESTAMP_RANGE, days_from_civil};
use tidetable_layout::{Field, FieldType, SourceSchema, TableSpec, Window};

/// Names that neither the source nor a layout uses.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    /// The family that holds the counts.
    pub(super) family: String,
    /// A source column: the second of the event.
    pub(super) second: String,
    /// A source column of ones.
    pub(super) one: String,
    /// The event time of the source.
    pub(super) time: String,
}

/// Seconds from before the first timestamp to the epoch: cells cannot have negative timestamps, and 0 says that the qualifier
/// holds the time.
const SHIFT: i64 = 1 - TIMESTAMP_RANGE.start().div_euclid(SECOND);
/// Timestamp units of a second: milliseconds, the coarsest granularity.
const UNIT: i64 = 1000;

impl Counter {
    /// A counter for the layouts `specs` of a source.
    pub(super) fn new<'a>(source: &SourceSchema, specs: impl Iterator<Item = &'a TableSpec>) -> Self {
        let families: Vec<&str> = specs.flat_map(|spec| &spec.families).map(|family| family.name.as_str()).collect();
        let columns: Vec<&str> = source.fields.iter().map(|field| field.name.as_str()).collect();
        Self {
            family: unused("tidetable_writes", &families),
            second: unused("tidetable_second", &columns),
            one: unused("tidetable_one", &columns),
            time: source.fields.get(source.time).map(|field| field.name.clone()).unwrap_or_default(),
        }
    }

    /// The source with the counter's columns.
    pub(super) fn schema(&self, source: &SourceSchema) -> SourceSchema {
        let mut source = source.clone();
        source.fields.push(Field { name: self.second.clone(), kind: FieldType::Timestamp });
        source.fields.push(Field { name: self.one.clone(), kind: FieldType::Int64 });
        source
    }

    /// The layout with the counter's family, in one window: nothing of a trial is replaced later.
    pub(super) fn spec(&self, spec: &TableSpec) -> TableSpec {
        let mut spec = TableSpec { window: Window::None, ..spec.clone() };
        for column in spec.families.iter_mut().flat_map(|family| &mut family.columns) {
            if column.each || column.packed == PackedSpec::Json {
                column.except.extend([self.second.clone(), self.one.clone()]);
            }
        }

        let (qualifier, timestamp) = match spec.upsert {
            true => (format!("{{{}:%Y%m%d%H%M}}", self.time), TimestampSpec::Zero),
            false => ("rows".to_owned(), TimestampSpec::Field(self.second.clone())),
        };
        let value = format!("{{{}}}", self.one);
        let column = ColumnSpec { qualifier, value, timestamp, encoding: Encoding::Int64, ..ColumnSpec::default() };
        spec.families.push(FamilySpec { name: self.family.clone(), columns: vec![column], kind: Merge::Sum });
        spec
    }

    /// The timestamp of the counter's cell for an event at `time`, microseconds.
    pub(super) fn timestamp(time: i64) -> i64 {
        (time.div_euclid(SECOND) + SHIFT) * UNIT
    }

    /// The second that a cell of the counter is for, since the epoch.
    pub(super) fn second_of(qualifier: &[u8], timestamp: i64) -> i64 {
        if timestamp != 0 {
            return timestamp.div_euclid(UNIT) - SHIFT;
        }

        let [year, month, day, hour, minute] =
            [0..4, 4..6, 6..8, 8..10, 10..12].map(|place| number(qualifier.get(place).unwrap_or_default()));
        let [month, day] = [month, day].map(|number| u32::try_from(number).unwrap_or(1));
        days_from_civil(year, month, day) * (24 * 60 * MINUTE / SECOND) + hour * 3600 + minute * 60
    }
}

/// A name that is not taken: `name`, with underscores at its end where it is.
fn unused(name: &str, taken: &[&str]) -> String {
    let mut name = name.to_owned();
    while taken.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The number that ASCII digits write.
fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_come_back() {
        for time in [0, -1, 1_614_947_696_123_456, *TIMESTAMP_RANGE.start(), *TIMESTAMP_RANGE.end()] {
            let timestamp = Counter::timestamp(time);
            assert!(timestamp > 0 && TIMESTAMP_RANGE.contains(&timestamp), "{time}");
            assert_eq!(Counter::second_of(b"", timestamp), time.div_euclid(SECOND));
        }
        assert_eq!(Counter::second_of(b"202103051234", 0), 1_614_947_640);
    }
}
