//! The time of day that goes with a day.

use tidetable_layout::FieldType;

use crate::scaffold::calendar::clock_name::ClockName;
use crate::scaffold::facts::Column;

/// The clock that goes with the day at `day_at`, of the columns that have one in every row: the first that is named as a time of
/// day and not as the end of a span, or the only one whose name says nothing, beside the day.
pub(crate) fn beside_day(columns: &[Column], day_at: usize, is_end: impl Fn(&Column) -> bool) -> Option<usize> {
    let clocks = columns.iter().enumerate().filter(|(_, column)| column.clock.is_some() && column.nulls == 0);
    let mut neutral = Vec::new();
    let mut end = None;
    for (at, column) in clocks {
        match ClockName::of(&column.words()) {
            ClockName::TimeOfDay if is_end(column) => end = end.or(Some(at)),
            ClockName::TimeOfDay => return Some(at),
            // The second clock of `day,clock,day,clock` goes with the second day.
            ClockName::Neutral if is_of_other_day(columns, at, day_at) => {}
            ClockName::Neutral => neutral.push(at),
            ClockName::Undecided | ClockName::Other => {}
        }
    }
    match neutral.as_slice() {
        [at] if end.is_none() && at.abs_diff(day_at) == 1 => Some(*at),
        _ => end,
    }
}

/// Whether a day other than that at `day_at` stands right before the clock at `at`.
fn is_of_other_day(columns: &[Column], at: usize, day_at: usize) -> bool {
    let before = at.checked_sub(1).filter(|before| *before != day_at).and_then(|before| columns.get(before));
    before.is_some_and(|column| column.kind == FieldType::Date)
}
