//! Tells by the order of a file which instant a local time is that occurs twice, because the clocks go back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use chrono_tz::Tz;

use crate::read::parsed_chunk::ParsedChunk;
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
    /// The last time of each series, by the values of its columns.
    last: HashMap<Box<[u8]>, Last>,
}

/// The last time of a series.
#[derive(Clone, Copy)]
struct Last {
    micros: i64,
    /// Whether it is earlier than the one before; `None` if there was none.
    falls: Option<bool>,
}

impl RepeatedHours {
    /// For the columns of `spec`; `None` if none is by order, in a zone.
    pub fn new(spec: &SourceSpec) -> Result<Option<Self>, ArrowError> {
        let (mut columns, mut series, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for (place, column) in spec.columns.iter().enumerate() {
            if let Some(zone) = column.timezone.filter(|_| column.ambiguous == Ambiguous::ByOrder) {
                columns.push(OrderedColumn { place, zone, last: HashMap::new() });
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
    pub fn settle(&mut self, chunk: &mut ParsedChunk) -> Result<(), ArrowError> {
        let rows = chunk.batch.num_rows();
        let parts: Vec<ArrayRef> = self.series.iter().map(|place| Arc::clone(chunk.batch.column(*place))).collect();
        let keys = if parts.is_empty() { None } else { Some(self.keys.convert_columns(&parts)?) };
        let mut arrays = chunk.batch.columns().to_vec();

        for column in &mut self.columns {
            let Some(slot) = arrays.get_mut(column.place) else { continue };
            let times = slot.as_primitive::<TimestampMicrosecondType>();
            let mut repeated = chunk.repeated.get(column.place).into_iter().flatten().copied().peekable();
            let settled: TimestampMicrosecondArray = (0..rows)
                .map(|row| {
                    let is_repeated = repeated.next_if_eq(&(row as u32)).is_some();
                    let earlier = times.is_valid(row).then(|| times.value(row))?;
                    let key = keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
                    Some(column.next(key, earlier, is_repeated))
                })
                .collect();
            chunk.times.repeated -= chunk.repeated.get(column.place).map_or(0, |rows| rows.len() as u64);
            *slot = Arc::new(settled.with_data_type(slot.data_type().clone()));
        }
        chunk.batch = RecordBatch::try_new(chunk.batch.schema(), arrays)?;
        Ok(())
    }
}

impl OrderedColumn {
    /// The instant of the next time of a series.
    fn next(&mut self, key: &[u8], earlier: i64, is_repeated: bool) -> i64 {
        let last = self.last.get_mut(key);
        let micros = match &last {
            Some(last) if is_repeated => last.follow(earlier, later_instant(self.zone, earlier)),
            _ => earlier,
        };
        match last {
            Some(last) if last.micros != micros => *last = Last { micros, falls: Some(micros < last.micros) },
            Some(_) => {}
            None => {
                self.last.insert(key.into(), Last { micros, falls: None });
            }
        }
        micros
    }
}

impl Last {
    /// The one of two instants that goes on in the direction of the times; the earlier if neither does, as where a series begins
    /// again.
    fn follow(self, earlier: i64, later: i64) -> i64 {
        let falls = self.falls.unwrap_or(later < self.micros);
        let (nearer, farther) = if falls { (later, earlier) } else { (earlier, later) };
        let goes_on = |instant: &i64| if falls { *instant < self.micros } else { *instant > self.micros };
        [nearer, farther].into_iter().find(goes_on).unwrap_or(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Europe::Paris;

    /// 2021-10-31T00:00Z: in Paris 02:00. The hour from there to 03:00 occurs twice.
    const TWO: i64 = 1_635_638_400;
    const MINUTE: i64 = 60;

    /// The instants, in minutes behind 00:00Z, of local times in minutes behind 02:00.
    fn told(locals: &[i64]) -> Vec<i64> {
        let mut column = OrderedColumn { place: 0, zone: Paris, last: HashMap::new() };
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
        assert_eq!(told(&[-60, 0, 0, 60]), [-60, 0, 60, 120]);
        assert_eq!(told(&[-15, 0, 30, 0, 30, 60]), [-15, 0, 30, 60, 90, 120]);
        assert_eq!(told(&[75, 60, 30, 0, 30, 0, -15]), [135, 120, 90, 60, 30, 0, -15]);
        assert_eq!(told(&[60, 0, 0, -60]), [120, 60, 0, -60]);
        // A file may begin within the hour, and a series again.
        assert_eq!(told(&[0, 30, 0, 30]), [0, 30, 60, 90]);
        assert_eq!(told(&[0, 30, 0, 30, 0]), [0, 30, 60, 90, 0]);
    }
}
