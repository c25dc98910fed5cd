//! The days of a plan, some of which are known only after inputs are read.

use std::collections::BTreeSet;
use std::fmt;

use chrono::NaiveDate;
use serde::Serialize;

/// Days of a job's time zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Days {
    /// Days that are known before inputs are read.
    pub known: BTreeSet<NaiveDate>,
    /// Whether there are more, known only after inputs are read.
    pub unknown: bool,
}

impl Days {
    /// Days of an input that has not been read.
    pub fn unknown() -> Self {
        Self { known: BTreeSet::new(), unknown: true }
    }

    /// Whether there are none, and none unknown.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.unknown
    }

    /// Adds the days of `other`.
    pub fn add(&mut self, other: &Self) {
        self.known.extend(&other.known);
        self.unknown |= other.unknown;
    }
}

impl FromIterator<NaiveDate> for Days {
    fn from_iter<I: IntoIterator<Item = NaiveDate>>(days: I) -> Self {
        Self { known: days.into_iter().collect(), unknown: false }
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<String> = self.known.iter().map(NaiveDate::to_string).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        match (labels.is_empty(), self.unknown) {
            (true, false) => f.write_str("none"),
            (true, true) => f.write_str("unknown until read"),
            (false, false) => f.write_str(&ranges(&labels)),
            (false, true) => write!(f, "{} and others, unknown until read", ranges(&labels)),
        }
    }
}

/// Formats ascending labels: consecutive days as `2018-01-01 to 2018-01-05`.
pub fn ranges(labels: &[&str]) -> String {
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for label in labels {
        let day: Option<NaiveDate> = label.parse().ok();
        let before = day.and_then(|day| day.pred_opt());
        match runs.last_mut() {
            Some((_, last)) if before.is_some() && last.parse().ok() == before => *last = label,
            _ => runs.push((label, label)),
        }
    }

    let shown = runs.iter().take(SHOWN).map(|(first, last)| match first == last {
        true => (*first).to_owned(),
        false => format!("{first} to {last}"),
    });
    let shown: Vec<String> = shown.collect();
    match runs.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Most ranges that are named; the rest is counted.
const SHOWN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_in_a_row_are_one_range() {
        assert_eq!(
            ranges(&["2020-02-28", "2020-02-29", "2020-03-01", "2020-03-03"]),
            "2020-02-28 to 2020-03-01, 2020-03-03"
        );
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&["a", "b"]), "a, b");
        let apart: Vec<String> = (1..20).step_by(2).map(|day| format!("2020-01-{day:02}")).collect();
        let apart: Vec<&str> = apart.iter().map(String::as_str).collect();
        assert!(ranges(&apart).ends_with("2020-01-11 and 4 more"), "{}", ranges(&apart));
    }

    #[test]
    fn what_is_unknown_is_said() {
        let mut days: Days = ["2020-01-01".parse().unwrap()].into_iter().collect();
        assert_eq!(days.to_string(), "2020-01-01");
        days.add(&Days::unknown());
        assert_eq!(days.to_string(), "2020-01-01 and others, unknown until read");
        assert_eq!(
            (Days::unknown().to_string(), Days::default().to_string()),
            ("unknown until read".into(), "none".into())
        );
    }
}
