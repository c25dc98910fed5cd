//! A line of units under the header, such as `s,°C,%`: it must not turn the columns into text.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::candidate::{self, fits};
use crate::sample::kinds::{MARKERS, infer};
use crate::sample::numbers::notation::{self, Marks};
use crate::spec::SourceSpec;

/// Takes the first row out of a sample of text columns if it is a line of units: it fits no column that has a type without
/// it. Returns its values.
pub(super) fn take_out(spec: &SourceSpec, batches: &mut [RecordBatch], zone: Option<Tz>) -> Option<Vec<String>> {
    let first = batches.first().filter(|batch| batch.num_rows() > 1)?;
    let columns = first.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
    let units: Vec<String> = columns.clone().map(|column| unit(column).to_owned()).collect();
    // Most first rows have a digit in front of some value: they are not looked at further.
    let are_widths = units.iter().all(|unit| is_width(unit));
    let has_digit = !are_widths
        && units.iter().any(|unit| unit.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit()));
    if has_digit || units.iter().all(String::is_empty) {
        return None;
    }

    let rest: Vec<StringArray> = columns.map(without_first).collect();
    let mut misfits = 0;
    for (at, column) in spec.columns.iter().enumerate() {
        let others = batches.get(1..)?.iter().filter_map(|batch| batch.columns().get(at)?.as_string_opt::<i32>());
        let values: Vec<&StringArray> = rest.get(at).into_iter().chain(others).collect();
        let texts: Vec<&str> = candidate::values(&values).filter(|value| !value.is_empty()).collect();
        let notation = notation::of_values(&texts, &spec.csv, Marks::default()).notation;
        let found = infer(&column.name, &values, &spec.csv, notation, zone).spec;

        let unit = units.get(at)?;
        if found.kind == FieldType::Text || unit.is_empty() || MARKERS.contains(&unit.as_str()) {
            continue;
        }
        if fits(&found, &[&StringArray::from(vec![unit.as_str()])], &spec.csv) {
            return None;
        }
        misfits += 1;
    }
    if misfits == 0 {
        return None;
    }

    let columns: Vec<ArrayRef> = rest.into_iter().map(|column| std::sync::Arc::new(column) as ArrayRef).collect();
    let without = RecordBatch::try_new(first.schema(), columns).ok()?;
    *batches.first_mut()? = without;
    Some(units)
}

/// Whether a value is a width and a type, such as `15s` and `14n` in the second line of USGS's tables.
fn is_width(unit: &str) -> bool {
    let digits = unit.strip_suffix(['s', 'd', 'n']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn unit(column: &StringArray) -> &str {
    if column.is_valid(0) { column.value(0).trim() } else { "" }
}

/// The column with null in its first row.
fn without_first(column: &StringArray) -> StringArray {
    column.iter().enumerate().map(|(row, value)| value.filter(|_| row > 0)).collect()
}
