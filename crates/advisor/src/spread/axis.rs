//! The time axis: slices of equal width.

use std::ops::Range;

use crate::trial::Trial;

/// Most slices of an axis.
pub const MOST_SLICES: i64 = 720;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Widths of slices, seconds.
const WIDTHS: [i64; 14] = [
    1,
    5,
    15,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
    7 * DAY,
    28 * DAY,
    364 * DAY,
    3640 * DAY,
    36_400 * DAY,
];

/// The time axis that all layouts of a comparison share: slices of equal width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Start of the first slice: seconds since the epoch, a multiple of the width.
    pub start: i64,
    /// Seconds of a slice.
    pub width: i64,
    /// The number of slices, 1 to 720.
    pub slices: usize,
}

impl Axis {
    /// The axis from `first` to `last`, seconds since the epoch: of slices `width` wide, or wider if there were more than 720;
    /// without a width, of the narrowest that suffices.
    pub fn new(first: i64, last: i64, width: Option<i64>) -> Self {
        let at_least = width.unwrap_or(1).max(1);
        let wider = WIDTHS.into_iter().filter(|width| *width > at_least);
        let mut widths = std::iter::once(at_least).chain(wider);
        let width = widths.find(|width| slices_of(first, last, *width) <= MOST_SLICES).unwrap_or(last - first + 1);
        let slices = usize::try_from(slices_of(first, last, width)).unwrap_or(1);
        Self { start: first.div_euclid(width) * width, width, slices }
    }

    /// The axis of all layouts of a trial, without outliers of time; `None` if none has a row.
    pub fn of_trial(trial: &Trial, width: Option<i64>) -> Option<Self> {
        trial.seconds().map(|(first, last)| Self::new(first, last, width))
    }

    /// The slice of a second; seconds beyond the ends are in the slice at that end.
    pub fn slice_of(&self, second: i64) -> usize {
        let slice = (second - self.start).div_euclid(self.width);
        usize::try_from(slice).unwrap_or(0).min(self.slices.saturating_sub(1))
    }

    /// The slice of a second, and the seconds that are in it; beyond the ends only this second.
    pub fn slice_with(&self, second: i64) -> (usize, Range<i64>) {
        let slice = self.slice_of(second);
        let seconds = self.start_of(slice)..self.start_of(slice + 1);
        (slice, if seconds.contains(&second) { seconds } else { second..second + 1 })
    }

    /// Start of a slice, seconds since the epoch.
    pub fn start_of(&self, slice: usize) -> i64 {
        self.start + self.width * i64::try_from(slice).unwrap_or_default()
    }
}

/// Slices of `width` seconds, aligned at the epoch, that hold the seconds from `first` to `last`.
fn slices_of(first: i64, last: i64, width: i64) -> i64 {
    last.div_euclid(width) - first.div_euclid(width) + 1
}

/// Reads a width of slices, in seconds: a number and `s`, `m`, `h` or `d`.
///
/// # Errors
/// How a width is written, if `text` is not one.
pub fn parse_slice(text: &str) -> Result<i64, String> {
    width_of(text).ok_or_else(|| "write a width of at least a second, as in 15m, 1h or 1d".to_owned())
}

fn width_of(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        _ => return None,
    };
    let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
    number.checked_mul(seconds).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_the_narrowest_slices_that_fit() {
        let day = |days: i64| (0, days * DAY - 1);
        for (seconds, asked, width, slices) in [
            (day(14), None, HOUR, 336),
            (day(7), None, 15 * MINUTE, 672),
            ((0, 719), None, 1, 720),
            ((0, 720), None, 5, 145),
            ((0, 0), None, 1, 1),
            (day(14), Some(DAY), DAY, 14),
            (day(14), Some(2 * HOUR), 2 * HOUR, 168),
            (day(14), Some(15 * MINUTE), HOUR, 336),
            ((-3, 3), Some(5), 5, 2),
        ] {
            let axis = Axis::new(seconds.0, seconds.1, asked);
            assert_eq!((axis.width, axis.slices), (width, slices), "{seconds:?} {asked:?}");
            assert_eq!((axis.slice_of(seconds.0), axis.slice_of(seconds.1)), (0, slices - 1));
            assert!(axis.start <= seconds.0 && axis.start_of(slices) > seconds.1);
        }
        let longest = Axis::new(-62_135_596_800, 253_402_300_799, None);
        assert!(longest.slices <= 720, "{longest:?}");
    }

    #[test]
    fn widths_have_a_unit() {
        assert_eq!(parse_slice("15m"), Ok(900));
        assert_eq!(parse_slice("2d"), Ok(2 * DAY));
        for wrong in ["", "15", "m", "0m", "-1h", "99999999999999999999d", "1.5h", "15mm"] {
            assert!(parse_slice(wrong).is_err(), "{wrong}");
        }
    }
}
