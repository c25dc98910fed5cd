//! Row keys: their delimiter, and what their parts are.

use crate::client::Row;
use crate::propose::shape::{Shape, shape, time_form};

/// Characters that keys are cut at, the usual ones first.
const DELIMITERS: [char; 8] = ['#', '|', '/', ':', '!', '~', '_', '.'];

/// The parts of all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyShape {
    /// What stands between them; none for one part.
    pub(super) delimiter: Option<char>,
    pub(super) parts: Vec<Shape>,
    /// Whether a time in the key is that of the cells.
    pub(super) has_cell_time: bool,
}

impl KeyShape {
    /// Whether the key shows the day of the cells of its row.
    pub(super) fn shows_day(&self) -> bool {
        let is_shown = self.parts.iter().any(|part| match part {
            Shape::Time(form) => form.contains("%d") || matches!(form.as_str(), "s" | "ms" | "us" | "ms-reversed"),
            _ => false,
        });
        self.has_cell_time && is_shown
    }
}

/// The shape of the keys of `rows`; `None` if they are not all printable text.
pub(super) fn key_shape(rows: &[Row]) -> Option<KeyShape> {
    let keys: Vec<&str> = rows.iter().map(|row| std::str::from_utf8(&row.key).ok()).collect::<Option<_>>()?;
    if keys.iter().any(|key| key.chars().any(char::is_control)) {
        return None;
    }

    let delimiter = DELIMITERS.into_iter().find(|delimiter| cuts_alike(*delimiter, &keys));
    let mut split: Vec<Vec<&str>> = Vec::with_capacity(keys.len());
    for key in &keys {
        split.push(match delimiter {
            Some(delimiter) => key.split(delimiter).collect(),
            None => vec![*key],
        });
    }

    let number = split.first().map_or(0, Vec::len);
    let mut has_cell_time = true;
    let parts = (0..number).map(|at| {
        let texts: Vec<&str> = split.iter().filter_map(|parts| parts.get(at).copied()).collect();
        // Every time of a cell of the row must print the part, not one of them.
        let with_times: Vec<(&str, Option<i64>)> = texts
            .iter()
            .zip(rows)
            .flat_map(|(text, row)| {
                row.cells.iter().filter(|cell| cell.timestamp > 0).map(|cell| (*text, Some(cell.timestamp)))
            })
            .collect();
        if let Some(form) = time_form(&with_times) {
            return Shape::Time(form);
        }

        let alone: Vec<(&str, Option<i64>)> = texts.iter().map(|text| (*text, None)).collect();
        match time_form(&alone).filter(|form| !matches!(form.as_str(), "%H" | "%H%M" | "%H%M%S" | "%Y%m")) {
            Some(form) => {
                has_cell_time = false;
                Shape::Time(form)
            }
            None => shape(&texts),
        }
    });
    let parts = parts.collect();
    Some(KeyShape { delimiter, parts, has_cell_time })
}

/// Whether a delimiter cuts all keys into as many parts, and into more than one.
fn cuts_alike(delimiter: char, keys: &[&str]) -> bool {
    let mut counts = keys.iter().map(|key| key.matches(delimiter).count());
    let Some(first) = counts.next().filter(|count| *count > 0) else { return false };
    counts.all(|count| count == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Cell;

    fn row(key: &str, timestamp: i64) -> Row {
        let cell = Cell { family: "f".into(), qualifier: "q".into(), timestamp, value: "v".into() };
        Row { key: key.to_owned().into(), cells: vec![cell] }
    }

    #[test]
    fn parts_between_delimiters() {
        let time = 1_515_110_400_000_000;
        let found = key_shape(&[row("0042#20180105", time), row("0007#20180105", time + 1)]).unwrap();
        assert_eq!(found.delimiter, Some('#'));
        assert_eq!(found.parts, [Shape::Integer(Some(4)), Shape::Time("%Y%m%d".to_owned())]);
        assert!(found.has_cell_time);
        let found = key_shape(&[row("a#20180101", time), row("b#20180102", time)]).unwrap();
        assert!(!found.has_cell_time);
        let found = key_shape(&[row("a#b", 0), row("ab", 0)]).unwrap();
        assert_eq!((found.delimiter, found.parts), (None, vec![Shape::Text]));
        assert_eq!(key_shape(&[Row { key: vec![0xff].into(), cells: Vec::new() }]), None);
    }
}
