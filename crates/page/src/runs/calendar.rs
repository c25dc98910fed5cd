//! Days by month.

use chrono::{Datelike, NaiveDate};

use crate::figures::grouped;
use crate::view::{Calendar, CalendarDay, DayState};

/// Most months shown, the newest.
const MOST_MONTHS: usize = 24;

/// A calendar as text.
pub(super) struct CalendarText<'a> {
    pub(super) of: &'a str,
    /// Its days in words.
    pub(super) says: String,
    pub(super) months: Vec<Month>,
    /// Number of older months left out.
    pub(super) older: usize,
}

/// A month of a calendar, in weeks from Monday to Sunday.
pub(super) struct Month {
    pub(super) name: String,
    pub(super) weeks: Vec<[Cell; 7]>,
}

/// A day of a month, or the place of none.
#[derive(Clone, Default)]
pub(super) struct Cell {
    /// Day of the month, empty for none.
    pub(super) day: String,
    pub(super) class: &'static str,
    pub(super) rejected: bool,
    /// The day in words.
    pub(super) says: String,
}

impl<'a> CalendarText<'a> {
    /// The text of a calendar.
    pub(super) fn of(calendar: &'a Calendar) -> Self {
        let months = calendar.days.iter().map(|day| day.day.with_day(1).unwrap_or(day.day));
        let mut months: Vec<NaiveDate> = months.collect();
        months.sort_unstable();
        months.dedup();
        let older = months.len().saturating_sub(MOST_MONTHS);

        let mut said = Vec::new();
        for state in DayState::ALL {
            let days = calendar.days.iter().filter(|day| day.state == state).count();
            if days > 0 {
                said.push(format!("{} {}", grouped(days as u64), state.name()));
            }
        }
        let rejected = calendar.days.iter().filter(|day| day.rejected > 0).count();
        if rejected > 0 {
            said.push(format!("{} with rejected rows", grouped(rejected as u64)));
        }
        Self {
            of: &calendar.of,
            says: said.join(", "),
            months: months.iter().skip(older).map(|first| month(*first, &calendar.days)).collect(),
            older,
        }
    }
}

fn month(first: NaiveDate, days: &[CalendarDay]) -> Month {
    let before = first.weekday().num_days_from_monday() as usize;
    let mut cells = vec![Cell::default(); before];
    for day in first.iter_days().take_while(|day| day.month() == first.month()) {
        let known = days.iter().find(|known| known.day == day);
        cells.push(known.map_or_else(|| plain(day), cell));
    }
    cells.resize(cells.len().next_multiple_of(7), Cell::default());
    let weeks = cells.chunks(7).map(|week| std::array::from_fn(|at| week.get(at).cloned().unwrap_or_default()));
    Month { name: first.format("%B %Y").to_string(), weeks: weeks.collect() }
}

fn plain(day: NaiveDate) -> Cell {
    Cell { day: day.day().to_string(), ..Cell::default() }
}

fn cell(day: &CalendarDay) -> Cell {
    let mut says = day.state.name().to_owned();
    if day.rows > 0 {
        says.push_str(&format!(", {} rows", grouped(day.rows)));
    }
    if day.rejected > 0 {
        says.push_str(&format!(", {} rejected", grouped(day.rejected)));
    }
    Cell { day: day.day.day().to_string(), class: day.state.name(), rejected: day.rejected > 0, says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday() {
        let day = |day: u32, state| CalendarDay {
            day: NaiveDate::from_ymd_opt(2020, 2, day).unwrap(),
            state,
            rows: 5,
            rejected: 0,
        };
        let days = vec![day(1, DayState::Published), day(29, DayState::Failed)];
        let calendar = Calendar { of: "E".to_owned(), days };
        let text = CalendarText::of(&calendar);
        let [month] = text.months.as_slice() else { unreachable!("one month") };
        assert_eq!((month.name.as_str(), month.weeks.len()), ("February 2020", 5));
        assert_eq!((month.weeks[0][5].day.as_str(), month.weeks[0][5].class), ("1", "published"));
        assert_eq!((month.weeks[4][5].class, month.weeks[4][6].day.as_str()), ("failed", ""));
        assert_eq!(text.says, "1 published, 1 failed");
    }
}
