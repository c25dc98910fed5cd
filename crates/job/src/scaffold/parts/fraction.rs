//! Milliseconds of the event time in a column of their own.

use tidetable_layout::time::SECOND;

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;

/// Rows of one second that show that the milliseconds go up in it.
const FEWEST_STEPS: usize = 2;

/// The column behind a time of whole seconds that is named like milliseconds.
#[derive(Debug)]
pub(crate) struct Millis<'f> {
    pub at: usize,
    pub column: &'f Column,
    /// The times with the milliseconds, in microseconds since the epoch, if rows of one second are in their order; `None` if they
    /// are not: then the column may be a duration.
    pub micros: Option<Vec<Option<i64>>>,
}

impl<'f> Millis<'f> {
    /// The milliseconds right behind the last column of a time, which is `last`; `None` if there are none.
    pub fn behind(facts: &'f Facts, last: usize, seconds: &[Option<i64>]) -> Option<Self> {
        let at = last + 1;
        let column = facts.column(at).filter(|column| column.nulls == 0)?;
        let millis = column.millis.as_ref()?;
        let are_whole = seconds.iter().flatten().all(|micros| micros % SECOND == 0);
        if !are_whole || millis.iter().flatten().all(|millis| *millis == 0) {
            return None;
        }

        let both = seconds.iter().zip(millis);
        let micros: Vec<Option<i64>> =
            both.map(|(second, millis)| Some((*second)? + (*millis)? * (SECOND / 1000))).collect();
        let micros = are_in_order(seconds, &micros).then_some(micros);
        Some(Self { at, column, micros })
    }

    /// SQL for the timestamp that `seconds` gives, with the milliseconds.
    pub fn sql(&self, seconds: &str) -> String {
        let millis = identifier(&self.column.name);
        let seconds = format!("cast(date_part('epoch', {seconds}) as bigint)");
        format!("to_timestamp_micros(1000000 * {seconds} + 1000 * cast({millis} as bigint))")
    }
}

/// Whether times are in their order with the milliseconds, and these go up within seconds.
fn are_in_order(seconds: &[Option<i64>], micros: &[Option<i64>]) -> bool {
    let mut steps = 0;
    for (second, time) in seconds.windows(2).zip(micros.windows(2)) {
        let (&[Some(second), Some(next_second)], &[Some(time), Some(next_time)]) = (second, time) else { continue };
        if next_time < time {
            return false;
        }
        steps += usize::from(second == next_second && next_time > time);
    }
    steps >= FEWEST_STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_go_up_within_seconds() {
        let order = |times: &[(i64, i64)]| {
            let seconds: Vec<_> = times.iter().map(|(second, _)| Some(second * SECOND)).collect();
            let micros: Vec<_> = times.iter().map(|(second, millis)| Some(second * SECOND + millis * 1000)).collect();
            are_in_order(&seconds, &micros)
        };
        assert!(order(&[(1, 0), (1, 250), (1, 500), (2, 0)]));
        assert!(!order(&[(1, 250), (1, 90), (1, 500), (1, 700)]));
        assert!(!order(&[(1, 250), (2, 90), (3, 500)]));
    }
}
