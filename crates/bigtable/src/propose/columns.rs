//! Columns of families: constant ones, and qualifiers that hold data.

use std::collections::BTreeMap;

use tidetable_layout::FieldType;

use crate::client::{Cell, Row};
use crate::propose::shape::{time_form, value_type};

/// Constant columns of a family, at most; with more, qualifiers are data.
const MOST_COLUMNS: usize = 40;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// No bytes.
    Empty,
    /// Text of a type.
    Text(FieldType),
    /// Eight bytes, big-endian.
    Integer,
    /// Other bytes.
    Blob,
}

/// The columns of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FamilyShape {
    /// Constant ones: qualifier, values, and whether all cells have timestamp 0.
    Constant(Vec<(String, ValueShape, bool)>),
    /// Qualifiers of the event's time, in this form.
    Times(String, ValueShape),
    /// Other qualifiers, that hold data.
    Names(ValueShape, bool),
    /// Qualifiers that are no text.
    Bytes,
}

/// The shapes of the families of `rows`, by name.
pub(super) fn family_shapes(rows: &[Row]) -> BTreeMap<String, FamilyShape> {
    let mut families: BTreeMap<String, BTreeMap<Vec<u8>, Vec<&Cell>>> = BTreeMap::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        families.entry(cell.family.to_string()).or_default().entry(cell.qualifier.to_vec()).or_default().push(cell);
    }
    families.into_iter().map(|(family, columns)| (family, family_shape(&columns))).collect()
}

fn family_shape(columns: &BTreeMap<Vec<u8>, Vec<&Cell>>) -> FamilyShape {
    let names: Option<Vec<&str>> = columns.keys().map(|name| std::str::from_utf8(name).ok()).collect();
    let Some(names) = names.filter(|names| names.iter().all(|name| !name.chars().any(char::is_control))) else {
        return FamilyShape::Bytes;
    };
    let all: Vec<&Cell> = columns.values().flatten().copied().collect();
    let zero = |cells: &[&Cell]| cells.iter().all(|cell| cell.timestamp == 0);
    let times: Vec<(&str, Option<i64>)> = names
        .iter()
        .zip(columns.values())
        .flat_map(|(name, cells)| cells.iter().map(|cell| (*name, Some(cell.timestamp))))
        .collect();
    if let Some(form) = time_form(&times).filter(|_| names.len() > 1) {
        return FamilyShape::Times(form, value_shape(&all));
    }
    let is_name = |name: &&str| name.chars().next().is_some_and(char::is_alphabetic);
    if names.len() <= MOST_COLUMNS && names.iter().all(is_name) {
        let column = |(name, cells): (&&str, &Vec<&Cell>)| ((*name).to_owned(), value_shape(cells), zero(cells));
        return FamilyShape::Constant(names.iter().zip(columns.values()).map(column).collect());
    }
    FamilyShape::Names(value_shape(&all), zero(&all))
}

fn value_shape(cells: &[&Cell]) -> ValueShape {
    if cells.iter().all(|cell| cell.value.is_empty()) {
        return ValueShape::Empty;
    }
    let texts: Option<Vec<&str>> = cells.iter().map(|cell| std::str::from_utf8(&cell.value).ok()).collect();
    match texts.filter(|texts| !texts.iter().any(|text| text.contains(|c: char| c.is_control() && !c.is_whitespace())))
    {
        Some(texts) => ValueShape::Text(value_type(&texts)),
        None if cells.iter().all(|cell| cell.value.len() == 8) => ValueShape::Integer,
        None => ValueShape::Blob,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, i64, &[u8])]) -> Row {
        let cell = |(qualifier, timestamp, value): &(&str, i64, &[u8])| Cell {
            family: "f".into(),
            qualifier: qualifier.to_string().into(),
            timestamp: *timestamp,
            value: value.to_vec().into(),
        };
        Row { key: "r".into(), cells: cells.iter().map(cell).collect() }
    }

    fn shape_of(cells: &[(&str, i64, &[u8])]) -> FamilyShape {
        family_shapes(&[row(cells)]).remove("f").unwrap()
    }

    #[test]
    fn qualifiers_are_names_times_or_data() {
        let at = 1_515_110_400_000_000;
        let float = ValueShape::Text(FieldType::Float64);
        let found = shape_of(&[("kwh", at, b"1.5"), ("state", 0, b"on")]);
        let state = ValueShape::Text(FieldType::Text);
        assert_eq!(
            found,
            FamilyShape::Constant(vec![("kwh".to_owned(), float, false), ("state".to_owned(), state, true)])
        );
        let found = shape_of(&[("0000", at, b"1.5"), ("0015", at + 900_000_000, b"2.5")]);
        assert_eq!(found, FamilyShape::Times("%H%M".to_owned(), float));
        let found = shape_of(&[("0000", 0, &[0, 0, 0, 0, 0, 0, 0, 9]), ("1", 0, &[0, 0, 0, 0, 0, 0, 1, 0xff])]);
        assert_eq!(found, FamilyShape::Names(ValueShape::Integer, true));
        assert_eq!(
            shape_of(&[("a", 0, &[0xff, 1])]),
            FamilyShape::Constant(vec![("a".to_owned(), ValueShape::Blob, true)])
        );
        assert_eq!(shape_of(&[("a", 0, b"")]), FamilyShape::Constant(vec![("a".to_owned(), ValueShape::Empty, true)]));
    }
}
