//! The table of figures.

use crate::error::PageError;
use crate::figures::{figure, number};
use crate::view::{Better, Column, Comparison, Unit};

/// The comparison as text.
pub(super) struct ComparisonTable<'a> {
    pub(super) columns: &'a [Column],
    pub(super) rows: Vec<Row<'a>>,
    /// Whether a figure is marked as the best.
    pub(super) marked: bool,
    pub(super) sampled: bool,
}

/// The figures of a layout.
pub(super) struct Row<'a> {
    pub(super) layout: &'a str,
    pub(super) shape: &'a str,
    pub(super) marks: &'a [String],
    pub(super) fields: Vec<Field>,
}

/// A figure as text, with how the table shows it.
pub(super) struct Field {
    pub(super) text: String,
    pub(super) is_number: bool,
    pub(super) best: bool,
}

impl Column {
    /// Whether its figures are aligned as numbers.
    pub(crate) fn is_number(&self) -> bool {
        self.unit != Unit::Text
    }
}

impl<'a> ComparisonTable<'a> {
    /// The table of a comparison.
    pub(super) fn of(comparison: &'a Comparison) -> Result<Self, PageError> {
        let columns = &comparison.columns;
        for row in &comparison.rows {
            if row.figures.len() != columns.len() {
                let (layout, found) = (row.layout.clone(), row.figures.len());
                return Err(PageError::Row { layout, found, columns: columns.len() });
            }
        }

        let best: Vec<Option<f64>> =
            columns.iter().enumerate().map(|(at, column)| best(comparison, at, column)).collect();

        let rows = comparison.rows.iter().map(|row| {
            let fields = row.figures.iter().zip(columns).zip(&best).map(|((of, column), best)| {
                let text = figure(of, column.unit);
                let measured = number(of).is_some();
                Field {
                    text: if row.sampled && measured { format!("~{text}") } else { text },
                    is_number: column.is_number(),
                    best: measured && number(of) == *best,
                }
            });
            Row { layout: &row.layout, shape: &row.shape, marks: &row.marks, fields: fields.collect() }
        });

        Ok(Self {
            rows: rows.collect(),
            marked: best.iter().any(Option::is_some),
            sampled: comparison.rows.iter().any(|row| row.sampled),
            columns,
        })
    }

    /// Whether a column is explained.
    pub(super) fn explained(&self) -> bool {
        self.columns.iter().any(|column| !column.meaning.is_empty())
    }
}

/// The best figure of a column; none if all are the same.
fn best(comparison: &Comparison, at: usize, column: &Column) -> Option<f64> {
    let numbers = comparison.rows.iter().filter_map(|row| number(row.figures.get(at)?));
    let (least, most) = (numbers.clone().reduce(f64::min)?, numbers.reduce(f64::max)?);
    match column.better? {
        _ if least == most => None,
        Better::Lower => Some(least),
        Better::Higher => Some(most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ComparisonRow;
    use crate::view::Figure;

    #[test]
    fn the_best_is_marked_unless_all_are_the_same() {
        let column = |better| Column {
            name: "rows".to_owned(),
            label: "rows".to_owned(),
            unit: Unit::Count,
            better: Some(better),
            meaning: String::new(),
        };
        let row = |layout: &str, sampled, figures: [u64; 3]| ComparisonRow {
            layout: layout.to_owned(),
            sampled,
            figures: figures.map(Figure::Whole).to_vec(),
            ..ComparisonRow::default()
        };
        let mut comparison = Comparison {
            columns: vec![column(Better::Lower), column(Better::Higher), column(Better::Lower)],
            rows: vec![row("A", true, [1, 1, 7]), row("B", false, [2000, 2, 7])],
        };
        let table = ComparisonTable::of(&comparison).unwrap();
        let fields: Vec<(&str, bool)> =
            table.rows.iter().flat_map(|row| &row.fields).map(|field| (field.text.as_str(), field.best)).collect();
        let expected = [("~1", true), ("~1", false), ("~7", false), ("2,000", false), ("2", true), ("7", false)];
        assert_eq!(fields, expected);
        assert!(table.marked && table.sampled);
        comparison.rows[1].figures.pop();
        assert!(ComparisonTable::of(&comparison).is_err());
    }
}
