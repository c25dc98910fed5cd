//! Two lists of rows in key order as one. No I/O of its own.

use std::cmp::Ordering;
use std::iter::Peekable;

use bytes::Bytes;

use crate::client::{Cell, Row};
use crate::error::Result;

/// A row key with the row of each side that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The row key that both rows have.
    pub key: Bytes,
    /// The row on the left; `None` if that side has no such row.
    pub left: Option<Row>,
    /// The row on the right; `None` if that side has no such row.
    pub right: Option<Row>,
}

/// Joins rows by key.
#[derive(Debug)]
pub struct Joined<L: Iterator<Item = Result<Row>>, R: Iterator<Item = Result<Row>>> {
    left: Peekable<L>,
    right: Peekable<R>,
}

impl<L: Iterator<Item = Result<Row>>, R: Iterator<Item = Result<Row>>> Joined<L, R> {
    /// Joins two sides, whose keys ascend.
    pub fn new(left: L, right: R) -> Self {
        Self { left: left.peekable(), right: right.peekable() }
    }
}

impl<L: Iterator<Item = Result<Row>>, R: Iterator<Item = Result<Row>>> Iterator for Joined<L, R> {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.peek(), self.right.peek()) {
            (None, None) => return None,
            (Some(Ok(left)), Some(Ok(right))) => left.key.cmp(&right.key),
            // An error comes first, from whichever side.
            (Some(Err(_)), _) | (Some(Ok(_)), None) => Ordering::Less,
            (_, Some(Err(_))) | (None, Some(Ok(_))) => Ordering::Greater,
        };
        let left = if order.is_le() { self.left.next() } else { None };
        let right = if order.is_ge() { self.right.next() } else { None };
        let (left, right) = match (left.transpose(), right.transpose()) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
        };
        let key = left.as_ref().or(right.as_ref()).map(|row| row.key.clone()).unwrap_or_default();
        Some(Ok(Pair { key, left, right }))
    }
}

/// A cell that one side has otherwise than the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellDifference<'a> {
    /// Only on the left.
    Left(&'a Cell),
    /// Only on the right.
    Right(&'a Cell),
    /// On both with another value: left and right.
    Value(&'a Cell, &'a Cell),
}

/// Calls `visit` with each difference of two rows, whose cells are sorted. Returns the number of equal cells.
pub fn cell_differences<'a>(left: &'a [Cell], right: &'a [Cell], mut visit: impl FnMut(CellDifference<'a>)) -> u64 {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut equal = 0;
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.place().cmp(&b.place()),
        };
        let a = if order.is_le() { left.next() } else { None };
        let b = if order.is_ge() { right.next() } else { None };
        match (a, b) {
            (Some(a), Some(b)) if a.value == b.value => equal += 1,
            (Some(a), Some(b)) => visit(CellDifference::Value(a, b)),
            (Some(a), None) => visit(CellDifference::Left(a)),
            (None, Some(b)) => visit(CellDifference::Right(b)),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str) -> Result<Row> {
        Ok(Row { key: Bytes::copy_from_slice(key.as_bytes()), cells: Vec::new() })
    }

    #[test]
    fn sides_are_joined_by_key() {
        let side = |keys: &[&'static str]| keys.iter().map(|key| row(key)).collect::<Vec<_>>().into_iter();
        let found: Vec<(Bytes, bool, bool)> = Joined::new(side(&["a", "c", "d"]), side(&["b", "c", "e"]))
            .map(|pair| pair.map(|pair| (pair.key, pair.left.is_some(), pair.right.is_some())).unwrap())
            .collect();
        let expected =
            [("a", true, false), ("b", false, true), ("c", true, true), ("d", true, false), ("e", false, true)];
        assert_eq!(found, expected.map(|(key, left, right)| (Bytes::from_static(key.as_bytes()), left, right)));
    }

    #[test]
    fn differences_of_cells() {
        let cell = |qualifier: &'static str, timestamp, value: &'static str| Cell {
            family: "f".into(),
            qualifier: qualifier.into(),
            timestamp,
            value: value.into(),
        };
        let left = [cell("a", 2, "x"), cell("a", 1, "x"), cell("b", 0, "same"), cell("c", 0, "1")];
        let right = [cell("a", 1, "x"), cell("b", 0, "same"), cell("c", 0, "2"), cell("d", 0, "")];
        let mut found = Vec::new();
        let equal = cell_differences(&left, &right, |difference| {
            found.push(match difference {
                CellDifference::Left(cell) => ("left", cell.qualifier.clone()),
                CellDifference::Right(cell) => ("right", cell.qualifier.clone()),
                CellDifference::Value(cell, _) => ("value", cell.qualifier.clone()),
            });
        });
        assert_eq!(equal, 2);
        assert_eq!(found, [("left", "a".into()), ("value", "c".into()), ("right", "d".into())]);
    }
}
