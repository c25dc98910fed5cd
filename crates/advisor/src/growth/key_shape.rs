//! The order of columns, times and salts in a row key.

use tidetable_layout::outline::{FieldForm, PartContent, TemplatePart, template_parts};
use tidetable_layout::time::{DAY, SECOND};
use tidetable_layout::{FieldType, Layout};

use crate::growth::bounds::QueryBounds;

/// A part of a row key that tells rows apart; literals do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    /// The value of a source column, also hashed.
    Column(String),
    /// The event time.
    Time {
        /// The smallest step that changes the key, microseconds.
        step: i64,
        /// Whether newer times come first.
        descends: bool,
    },
    /// A salt with so many values.
    Salt(u32),
}

/// The parts of a row key, from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyShape {
    /// Columns, times and salts of the template, without its literals.
    pub parts: Vec<KeyPart>,
}

impl KeyShape {
    /// The shape of a layout's row key. Times without a year come again and bound no row, so they are left out.
    pub fn of(layout: &Layout) -> Self {
        let template = &layout.spec().row_key;
        let source = layout.source();
        let time = source.fields.get(source.time).filter(|field| field.kind == FieldType::Timestamp);
        let time = time.map(|field| field.name.as_str());
        let template_parts = template_parts(template);
        let is_dated = template_parts.iter().any(|part| names_year(part, time));

        let mut parts = Vec::new();
        for part in &template_parts {
            let PartContent::Field { name, form } = &part.content else { continue };
            let written = template.get(part.span.clone()).unwrap_or_default();
            match form {
                FieldForm::Salt(count) => parts.push(KeyPart::Salt(*count)),
                FieldForm::Hash => parts.push(KeyPart::Column(name.clone())),
                _ if Some(name.as_str()) != time => parts.push(KeyPart::Column(name.clone())),
                _ if !is_dated => {}
                _ => {
                    let descends = *form == FieldForm::MsReversed;
                    parts.push(KeyPart::Time { step: step_of(form, written), descends });
                }
            }
        }
        Self { parts }
    }

    /// The names of all columns, from left to right.
    pub fn columns(&self) -> Vec<&str> {
        self.parts.iter().filter_map(KeyPart::column).collect()
    }

    /// The columns before the first time.
    pub fn leading(&self) -> Vec<&str> {
        let before = self.parts.iter().take_while(|part| !part.is_time());
        before.filter_map(KeyPart::column).collect()
    }

    /// The smallest step of time that makes another row, microseconds; `None` if a row has no end.
    pub fn step(&self) -> Option<i64> {
        let steps =
            self.parts.iter().filter_map(|part| if let KeyPart::Time { step, .. } = part { Some(*step) } else { None });
        steps.min()
    }

    /// Whether no column comes before the time, so that new rows go to one end of the table, or of each salt.
    pub fn is_time_first(&self) -> bool {
        self.step().is_some() && self.leading().is_empty()
    }

    /// Whether newer rows come first among those with equal columns.
    pub fn descends(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, KeyPart::Time { descends: true, .. }))
    }

    /// Ranges over which a salt spreads what would be neighbours.
    pub fn salts(&self) -> f64 {
        let counts =
            self.parts.iter().map(|part| if let KeyPart::Salt(count) = part { f64::from(*count) } else { 1.0 });
        counts.product()
    }

    /// Whether rows hold the events of one instant of their columns, and grow with neither rate nor time.
    pub fn is_by_event(&self) -> bool {
        self.step().is_some_and(|step| step <= SECOND)
    }

    /// Whether all that the row key tells apart before the time is fixed.
    pub fn is_one_series(&self, bounds: &QueryBounds) -> bool {
        self.leading().into_iter().all(|name| bounds.fixed.contains(name))
    }
}

impl KeyPart {
    fn column(&self) -> Option<&str> {
        if let Self::Column(name) = self { Some(name) } else { None }
    }

    fn is_time(&self) -> bool {
        matches!(self, Self::Time { .. })
    }
}

/// Whether a part prints the event time `time` with its year, so that no other year has the same text.
fn names_year(part: &TemplatePart, time: Option<&str>) -> bool {
    let PartContent::Field { name, form } = &part.content else { return false };
    let is_told = match form {
        FieldForm::Time(shape) => shape.year,
        FieldForm::Salt(_) | FieldForm::Hash => false,
        _ => true,
    };
    is_told && Some(name.as_str()) == time
}

/// Microseconds of the smallest step of a form of the event time, written in the template as `written`.
fn step_of(form: &FieldForm, written: &str) -> i64 {
    match form {
        FieldForm::Time(shape) => shape.finest.unwrap_or(DAY),
        FieldForm::MsReversed => 1000,
        FieldForm::Epoch if written.ends_with(":s}") => SECOND,
        FieldForm::Epoch if written.ends_with(":ms}") => 1000,
        _ => 1,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tidetable_layout::spec::{ColumnSpec, FamilySpec};
    use tidetable_layout::{Field, SourceSchema, TableSpec};

    use super::*;

    pub(crate) fn shape(row_key: &str) -> KeyShape {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind };
        let fields = vec![
            field("region", FieldType::Text),
            field("meter", FieldType::UInt64),
            field("ts", FieldType::Timestamp),
            field("kwh", FieldType::Float64),
        ];
        let column = ColumnSpec { qualifier: "v".to_owned(), value: "{kwh}".to_owned(), ..ColumnSpec::default() };
        let family = FamilySpec { name: "f".to_owned(), columns: vec![column], ..FamilySpec::default() };
        let spec = TableSpec { row_key: row_key.to_owned(), families: vec![family], ..TableSpec::default() };
        KeyShape::of(&Layout::compile(&spec, &SourceSchema { fields, time: 2 }).unwrap())
    }

    #[test]
    fn shapes_of_keys() {
        let found = shape("{region}#{ts:%Y%m%d}#{meter:010}");
        assert_eq!((found.columns(), found.leading()), (vec!["region", "meter"], vec!["region"]));
        assert_eq!((found.step(), found.is_time_first(), found.is_by_event()), (Some(DAY), false, false));
        let first = shape("all#{salt(ts, 3)}#{ts:ms-reversed}#{meter:010}");
        assert!(first.is_time_first() && first.descends() && first.is_by_event() && first.salts() == 3.0);
        for (row_key, step) in [
            ("{meter:010}", None),
            ("{meter:010}#{ts:%H%M}", None),
            ("{meter:010}#{ts:s}", Some(SECOND)),
            ("{meter:010}#{ts:ms}", Some(1000)),
            ("{meter:010}#{ts:us}", Some(1)),
            ("{meter:010}#{ts:%G-W%V}", Some(7 * DAY)),
            ("{meter:010}#{ts:%Y%m}#{ts:%d}", Some(DAY)),
        ] {
            assert_eq!(shape(row_key).step(), step, "{row_key}");
        }
    }
}
