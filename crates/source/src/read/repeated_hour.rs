//! Tells by the order of a file which instant a local time is that occurs twice, because the clocks go back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use chrono_tz::Tz;

use crate::read::parsed_chunk::{Decoded, ParsedChunk};
use crate::spec::SourceSpec;
use crate::time::{Ambiguous, later_instant};

/// The times of a file so far, of the columns that are [`Ambiguous::ByOrder`].
pub(super) struct RepeatedHours {
    columns: Vec<OrderedColumn>,
    /// Places of the columns whose values tell series apart.
    series: Vec<usize>,
    keys: RowConverter,
}

struct OrderedColumn {
    place: usize,
    zone: Tz,
    /// Whether most times of the file fall, by its first rows.
    file_falls: Option<bool>,
    /// The last time of each series, by the values of its columns.
    last: HashMap<Box<[u8]>, SeriesTime>,
}

/// The last time of a series.
#[derive(Clone, Copy)]
struct SeriesTime {
    micros: i64,
    /// Its earlier reading, if its local time occurs twice, and whether it was taken as the later one.
    repeated: Option<(i64, bool)>,
    /// How many of the last steps rose, at most [`STEPS`]; less than 0 if they fell.
    rises: i8,
    /// The last step of local time that was not 0, in microseconds; 0 if there was none.
    step: i64,
}

/// Steps after which a series that turned back rises, or falls.
const STEPS: i8 = 3;

impl RepeatedHours {
    /// For the columns of `spec`; `None` if none is by order, in a zone.
    pub fn new(spec: &SourceSpec) -> Result<Option<Self>, ArrowError> {
        let (mut columns, mut series, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for (place, column) in spec.columns.iter().enumerate() {
            if let Some(zone) = column.timezone.filter(|_| column.ambiguous == Ambiguous::ByOrder) {
                columns.push(OrderedColumn { place, zone, file_falls: None, last: HashMap::new() });
            }
            if spec.series.contains(&column.name) {
                series.push(place);
                kinds.push(SortField::new(column.kind.arrow()));
            }
        }
        if columns.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { columns, keys: RowConverter::new(kinds)?, series }))
    }

    /// Replaces the earlier instants of a chunk, the next of the file, by those that its order tells.
    pub fn settle(&mut self, decoded: Decoded) -> Result<ParsedChunk, ArrowError> {
        let Decoded { mut chunk, repeated: found } = decoded;
        let rows = chunk.batch.num_rows();
        let parts: Vec<ArrayRef> = self.series.iter().map(|place| Arc::clone(chunk.batch.column(*place))).collect();
        let keys = if parts.is_empty() { None } else { Some(self.keys.convert_columns(&parts)?) };
        let mut arrays = chunk.batch.columns().to_vec();

        for column in &mut self.columns {
            let Some(slot) = arrays.get_mut(column.place) else { continue };
            let times = slot.as_primitive::<TimestampMicrosecondType>();
            column.file_falls = column.file_falls.or_else(|| falls(times));
            let mut repeated = found.get(column.place).into_iter().flatten().copied().peekable();
            let settled: TimestampMicrosecondArray = (0..rows)
                .map(|row| {
                    let is_repeated = repeated.next_if_eq(&(row as u32)).is_some();
                    let earlier = times.is_valid(row).then(|| times.value(row))?;
                    let key = keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
                    Some(column.next(key, earlier, is_repeated))
                })
                .collect();
            chunk.times.repeated -= found.get(column.place).map_or(0, |rows| rows.len() as u64);
            *slot = Arc::new(settled.with_data_type(slot.data_type().clone()));
        }
        chunk.batch = RecordBatch::try_new(chunk.batch.schema(), arrays)?;
        Ok(chunk)
    }
}

impl OrderedColumn {
    /// The instant of the next time of a series.
    fn next(&mut self, key: &[u8], earlier: i64, is_repeated: bool) -> i64 {
        let before = self.last.get_mut(key);
        let later = if is_repeated { later_instant(self.zone, earlier) } else { earlier };
        let is_later = is_repeated
            && match &before {
                None => self.file_falls == Some(true),
                Some(before) => before.is_followed_by_later(earlier, later - earlier),
            };
        let micros = if is_later { later } else { earlier };
        let repeated = is_repeated.then_some((earlier, is_later));

        match before {
            Some(before) => before.go_on(micros, repeated),
            None => {
                let rises = if self.file_falls == Some(true) { -1 } else { 1 };
                self.last.insert(key.into(), SeriesTime { micros, repeated, rises, step: 0 });
            }
        }
        micros
    }
}

impl SeriesTime {
    /// Whether a local time that occurs twice, whose first instant is `earlier` and whose second is `shift` later, is the second as the
    /// next of this series.
    fn is_followed_by_later(self, earlier: i64, shift: i64) -> bool {
        let same_hour = self.repeated.filter(|(before, _)| (earlier - before).abs() < shift);
        let Some((before, was_later)) = same_hour else { return self.micros > earlier };

        // A pass ends where the clock goes back by half of the hour or more; less is a row that comes late. The same time again is
        // another row of that time, unless the series has one reading an hour.
        let step = earlier - before;
        let falls = self.rises < 0;
        let ends = match step {
            0 => self.step == 0 || self.step.abs() >= shift,
            step if falls => step >= shift / 2,
            step => step <= -shift / 2,
        };
        // Behind the last pass the series begins again.
        was_later != ends
    }

    fn go_on(&mut self, micros: i64, repeated: Option<(i64, bool)>) {
        let step = match (self.repeated, repeated) {
            (Some((before, _)), Some((earlier, _))) => earlier - before,
            _ => micros - self.micros,
        };
        if micros != self.micros {
            let rise = if micros > self.micros { 1 } else { -1 };
            self.rises = (self.rises + rise).clamp(-STEPS, STEPS);
            if self.rises == 0 {
                self.rises = rise;
            }
        }
        self.step = if step == 0 { self.step } else { step };
        (self.micros, self.repeated) = (micros, repeated);
    }
}

/// Whether most steps between neighbouring times fall; `None` if there are none.
fn falls(times: &TimestampMicrosecondArray) -> Option<bool> {
    let (mut rise, mut fall) = (0_usize, 0_usize);
    for (one, other) in times.iter().flatten().zip(times.iter().flatten().skip(1)) {
        rise += usize::from(other > one);
        fall += usize::from(other < one);
    }
    (rise + fall > 0).then_some(fall > rise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Europe::Paris;

    /// 2021-10-31T00:00Z: in Paris 02:00. The hour from there to 03:00 occurs twice.
    const TWO: i64 = 1_635_638_400;
    const MINUTE: i64 = 60;

    /// The instants, in minutes behind 00:00Z, of local times in minutes behind 02:00.
    fn instants(locals: &[i64]) -> Vec<i64> {
        let earlier: Vec<i64> = locals.iter().map(|local| if *local >= 60 { local + 60 } else { *local }).collect();
        let file_falls = falls(&TimestampMicrosecondArray::from(earlier));
        let mut column = OrderedColumn { place: 0, zone: Paris, file_falls, last: HashMap::new() };
        let mut next = |local: &i64| {
            // Behind the repeated hour the offset is an hour less.
            let earlier = if *local >= 60 { local + 60 } else { *local };
            let micros = column.next(b"", (TWO + earlier * MINUTE) * 1_000_000, (0..60).contains(local));
            (micros / 1_000_000 - TWO) / MINUTE
        };
        locals.iter().map(&mut next).collect()
    }

    #[test]
    fn passes_of_the_hour_are_told_apart_upwards_and_downwards() {
        assert_eq!(instants(&[-60, 0, 0, 60]), [-60, 0, 60, 120]);
        assert_eq!(instants(&[-15, 0, 30, 0, 30, 60]), [-15, 0, 30, 60, 90, 120]);
        assert_eq!(instants(&[75, 60, 30, 0, 30, 0, -15]), [135, 120, 90, 60, 30, 0, -15]);
        assert_eq!(instants(&[60, 0, 0, -60]), [120, 60, 0, -60]);
        // A file may begin within the hour, and a series again.
        assert_eq!(instants(&[0, 30, 0, 30]), [0, 30, 60, 90]);
        assert_eq!(instants(&[0, 30, 0, 30, 0]), [0, 30, 60, 90, 0]);
        assert_eq!(instants(&[45, 30, 15, 0, 45, 30, 15, 0, -15]), [105, 90, 75, 60, 45, 30, 15, 0, -15]);
    }

    #[test]
    fn rows_of_one_time_and_late_rows_stay_in_their_pass() {
        let told = instants(&[-15, 0, 15, 15, 30, 45, 0, 15, 30, 45, 60]);
        assert_eq!(told, [-15, 0, 15, 15, 30, 45, 60, 75, 90, 105, 120]);
        let told = instants(&[-15, 0, 30, 15, 45, 0, 15, 30, 45, 60]);
        assert_eq!(told, [-15, 0, 30, 15, 45, 60, 75, 90, 105, 120]);
        // A late row behind the hour is of the second pass.
        assert_eq!(instants(&[-30, 0, 30, 0, 60, 30, 90]), [-30, 0, 30, 60, 120, 90, 150]);
        // One reading an hour.
        assert_eq!(instants(&[-120, -60, 0, 0, 60]), [-120, -60, 0, 60, 120]);
    }
}
