//! Columns of families: constant ones, and qualifiers that hold data.

use std::collections::BTreeMap;

use tidetable_layout::FieldType;
use tidetable_layout::schema::Merge;

use crate::client::{Cell, Row};
use crate::propose::shape::{time_form, value_type};

/// Constant columns of a family, at most; with more, qualifiers are data.
const MOST_COLUMNS: usize = 40;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// No value has a byte.
    Empty,
    /// Text of a type.
    Text(FieldType),
    /// Integers of eight bytes, big-endian.
    Integer,
    /// A sketch of distinct values, which a family of kind `hll` holds.
    Sketch,
    /// Bytes of unknown meaning.
    Blob,
}

/// A constant column of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConstantColumn {
    pub(super) qualifier: String,
    pub(super) value: ValueShape,
    /// Whether all its cells have timestamp 0.
    pub(super) is_zero: bool,
}

/// The columns of a family: constant ones, and others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FamilyShape {
    pub(super) constants: Vec<ConstantColumn>,
    pub(super) others: Others,
}

/// Columns whose qualifiers hold data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Others {
    /// All columns are constant.
    None,
    /// Qualifiers of the event's time, in this form.
    Times(String, ValueShape),
    /// Other text; whether all cells have timestamp 0.
    Names(ValueShape, bool),
    /// Qualifiers that are no text; whether all cells have timestamp 0.
    Bytes(ValueShape, bool),
}

impl Others {
    /// Whether there are such columns, with all cells at timestamp 0.
    pub(super) fn are_at_zero(&self) -> bool {
        matches!(self, Self::Names(_, true) | Self::Bytes(_, true))
    }
}

/// The shapes of the families of `rows`, by name; `kind_of` says how the cells of each merge.
pub(super) fn family_shapes(rows: &[Row], kind_of: impl Fn(&str) -> Merge) -> BTreeMap<String, FamilyShape> {
    let mut families: BTreeMap<String, BTreeMap<Vec<u8>, Vec<&Cell>>> = BTreeMap::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        families.entry(cell.family.to_string()).or_default().entry(cell.qualifier.to_vec()).or_default().push(cell);
    }

    let mut shapes = BTreeMap::new();
    for (family, columns) in families {
        let shape = family_shape(&columns, kind_of(&family));
        shapes.insert(family, shape);
    }
    shapes
}

fn family_shape(columns: &BTreeMap<Vec<u8>, Vec<&Cell>>, kind: Merge) -> FamilyShape {
    let named: Option<Vec<(&str, &Vec<&Cell>)>> =
        columns.iter().map(|(name, cells)| Some((printable(name)?, cells))).collect();
    let Some(named) = named else {
        let all: Vec<&Cell> = columns.values().flatten().copied().collect();
        return FamilyShape { constants: Vec::new(), others: Others::Bytes(value_shape(&all, kind), is_zero(&all)) };
    };

    let (mut names, mut data): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|(name, _)| name.starts_with(char::is_alphabetic));
    if names.len() > MOST_COLUMNS {
        data.append(&mut names);
    }
    let constants = names.into_iter().map(|(qualifier, cells)| ConstantColumn {
        qualifier: qualifier.to_owned(),
        value: value_shape(cells, kind),
        is_zero: is_zero(cells),
    });
    let constants = constants.collect();
    if data.is_empty() {
        return FamilyShape { constants, others: Others::None };
    }

    let all: Vec<&Cell> = data.iter().flat_map(|(_, cells)| cells.iter().copied()).collect();
    let times: Vec<(&str, Option<i64>)> =
        data.iter().flat_map(|(name, cells)| cells.iter().map(|cell| (*name, Some(cell.timestamp)))).collect();
    let others = match time_form(&times).filter(|_| data.len() > 1) {
        Some(form) => Others::Times(form, value_shape(&all, kind)),
        None => Others::Names(value_shape(&all, kind), is_zero(&all)),
    };
    FamilyShape { constants, others }
}

/// A qualifier as text, if it is text without control characters.
fn printable(qualifier: &[u8]) -> Option<&str> {
    std::str::from_utf8(qualifier).ok().filter(|name| !name.chars().any(char::is_control))
}

fn is_zero(cells: &[&Cell]) -> bool {
    cells.iter().all(|cell| cell.timestamp == 0)
}

/// What the values of cells are that merge by `kind`.
fn value_shape(cells: &[&Cell], kind: Merge) -> ValueShape {
    match kind {
        Merge::Newest => {}
        Merge::Sum | Merge::Min | Merge::Max => return ValueShape::Integer,
        Merge::Hll => return ValueShape::Sketch,
    }
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
        family_shapes(&[row(cells)], |_| Merge::Newest).remove("f").unwrap()
    }

    fn constant(qualifier: &str, value: ValueShape, is_zero: bool) -> ConstantColumn {
        ConstantColumn { qualifier: qualifier.to_owned(), value, is_zero }
    }

    #[test]
    fn qualifiers_are_names_times_or_data() {
        let at = 1_515_110_400_000_000;
        let float = ValueShape::Text(FieldType::Float64);
        let found = shape_of(&[("kwh", at, b"1.5"), ("state", 0, b"on")]);
        let columns = vec![constant("kwh", float, false), constant("state", ValueShape::Text(FieldType::Text), true)];
        assert_eq!(found, FamilyShape { constants: columns, others: Others::None });
        let found = shape_of(&[("0000", at, b"1.5"), ("0015", at + 900_000_000, b"2.5"), ("ID", 0, b"7")]);
        let id = vec![constant("ID", ValueShape::Text(FieldType::Int64), true)];
        assert_eq!(found, FamilyShape { constants: id, others: Others::Times("%H%M".to_owned(), float) });
        let found = shape_of(&[("0000", 0, &[0, 0, 0, 0, 0, 0, 0, 9]), ("1", 0, &[0, 0, 0, 0, 0, 0, 1, 0xff])]);
        assert_eq!(found.others, Others::Names(ValueShape::Integer, true));
        assert_eq!(shape_of(&[("a", 0, &[0xff, 1])]).constants, [constant("a", ValueShape::Blob, true)]);
        assert_eq!(shape_of(&[("a", 0, b"")]).constants, [constant("a", ValueShape::Empty, true)]);
    }
}
