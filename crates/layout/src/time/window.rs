//! Windows: the unit of change of a table, by event time in UTC.

use std::ops::Range;

use crate::spec::Window;
use crate::time::calendar::{DAY, HOUR, civil_from_days, days_from_civil, iso_week};

/// Start of the window that holds `time_us` (microseconds since the epoch). [`Window::None`] starts at `i64::MIN`.
pub fn window_of(window: Window, time_us: i64) -> i64 {
    let days = time_us.div_euclid(DAY);
    match window {
        Window::Hour => (time_us.div_euclid(HOUR)).saturating_mul(HOUR),
        Window::Day => days.saturating_mul(DAY),
        // 1970-01-01 was a Thursday.
        Window::Week => (days - (days + 3).rem_euclid(7)).saturating_mul(DAY),
        Window::Month => {
            let (year, month, _) = civil_from_days(days);
            days_from_civil(year, month, 1).saturating_mul(DAY)
        }
        Window::None => i64::MIN,
    }
}

/// The microseconds of the window that starts at `start`, end exclusive.
pub fn window_bounds(window: Window, start: i64) -> Range<i64> {
    let end = match window {
        Window::Hour => start.saturating_add(HOUR),
        Window::Day => start.saturating_add(DAY),
        Window::Week => start.saturating_add(7 * DAY),
        Window::Month => {
            let (year, month, _) = civil_from_days(start.div_euclid(DAY));
            let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            days_from_civil(year, month, 1).saturating_mul(DAY)
        }
        Window::None => i64::MAX,
    };
    start..end
}

/// A name for the window that starts at `start`, unique in its table: `2018-01-01T05`, `2018-01-01`, `2018-W01`,
/// `2018-01` or `all`.
pub fn window_name(window: Window, start: i64) -> String {
    let days = start.div_euclid(DAY);
    let (year, month, day) = civil_from_days(days);
    match window {
        Window::Hour => format!("{year:04}-{month:02}-{day:02}T{:02}", start.rem_euclid(DAY) / HOUR),
        Window::Day => format!("{year:04}-{month:02}-{day:02}"),
        Window::Week => {
            let (year, week) = iso_week(days);
            format!("{year:04}-W{week:02}")
        }
        Window::Month => format!("{year:04}-{month:02}"),
        Window::None => "all".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2021-03-05T12:34:56Z, a Friday.
    const TIME: i64 = 1_614_947_696_000_000;

    #[test]
    fn windows_hold_their_time_and_have_names() {
        for (window, name, hours) in [
            (Window::Hour, "2021-03-05T12", 1),
            (Window::Day, "2021-03-05", 24),
            (Window::Week, "2021-W09", 7 * 24),
            (Window::Month, "2021-03", 31 * 24),
        ] {
            let start = window_of(window, TIME);
            let bounds = window_bounds(window, start);
            assert!(bounds.contains(&TIME));
            assert_eq!(bounds.end - bounds.start, hours * HOUR);
            assert_eq!(window_name(window, start), name);
            assert_eq!(window_of(window, bounds.end - 1), start);
            assert_eq!(window_of(window, bounds.end), bounds.end);
        }
        assert_eq!(window_of(Window::None, TIME), i64::MIN);
        assert_eq!(window_bounds(Window::None, i64::MIN), i64::MIN..i64::MAX);
        assert_eq!(window_name(Window::None, i64::MIN), "all");
    }

    #[test]
    fn times_before_the_epoch_fall_in_the_day_before() {
        assert_eq!(window_of(Window::Day, -1), -DAY);
        assert_eq!(window_name(Window::Week, window_of(Window::Week, -1)), "1970-W01");
    }
}
