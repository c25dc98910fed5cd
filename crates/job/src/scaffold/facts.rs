//! Statistics of the columns of a sample.

use std::collections::HashMap;
use std::str::FromStr;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::concat;
use arrow::datatypes::{Date32Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow::row::{RowConverter, SortField};
use tidetable_layout::FieldType;
use tidetable_source::sample::Sample;

use crate::scaffold::day_time::DayTime;

/// Months by their first three letters.
pub(crate) const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";

/// A column is of the key although one row in so many has no value.
const MOST_KEYLESS: usize = 100;
/// Words in the names of columns of times of day.
const CLOCKS: [&str; 12] =
    ["time", "clock", "hour", "hhmm", "hhmmss", "tod", "zeit", "uhrzeit", "hora", "heure", "ora", "tijd"];

/// Columns and rows of a sample.
#[derive(Debug)]
pub(crate) struct Facts {
    pub columns: Vec<Column>,
    pub rows: usize,
}

/// One column.
#[derive(Debug)]
pub(crate) struct Column {
    pub name: String,
    pub kind: FieldType,
    /// For each row a number that equal values share; 0 for null.
    pub ids: Vec<u32>,
    pub distinct: usize,
    pub nulls: usize,
    /// The values of integers, days (since the epoch) and times (microseconds).
    pub whole: Vec<Option<i64>>,
    /// For text: bytes of the longest value, and whether one contains `#`.
    pub longest: usize,
    pub has_hash: bool,
    /// Whether it is text with names of months; `whole` has their numbers.
    pub month_names: bool,
    /// For times of day, such as `13:45`, `1:45 PM` or 134500.
    pub clock: Option<DayTime>,
    /// The first value of text.
    pub first: Option<String>,
    /// The name under which a row key has it, where a template cannot refer to its own.
    pub alias: Option<String>,
}

impl Facts {
    pub fn of(sample: &Sample) -> Self {
        let rows = sample.batches.iter().map(|batch| batch.num_rows()).sum();
        let columns = sample.spec.columns.iter().enumerate().map(|(at, spec)| {
            let parts: Vec<&dyn Array> =
                sample.batches.iter().filter_map(|batch| batch.columns().get(at)).map(AsRef::as_ref).collect();
            let column = Column {
                name: spec.name.clone(),
                kind: spec.kind,
                ids: Vec::new(),
                distinct: 0,
                nulls: 0,
                whole: Vec::new(),
                longest: 0,
                has_hash: false,
                month_names: false,
                clock: None,
                first: None,
                alias: None,
            };
            match concat(&parts) {
                Ok(array) => column.filled(&array),
                Err(_) => column,
            }
        });
        let mut facts = Self { columns: columns.collect(), rows };
        for at in 0..facts.columns.len() {
            let alias = facts.columns.get(at).filter(|column| !column.fits_templates());
            let alias = alias.map(|column| facts.free_alias(column));
            if let Some(column) = facts.columns.get_mut(at) {
                column.alias = alias;
            }
        }
        facts
    }

    /// A plain name for a column, which no other has.
    fn free_alias(&self, column: &Column) -> String {
        let words = column.words().join("_");
        let plain = if words.is_empty() { "entity".to_owned() } else { words };
        let numbered = (2..100).map(|number| format!("{plain}_{number}"));
        let is_free =
            |name: &String| self.columns.iter().all(|other| other.name != *name && other.alias.as_ref() != Some(name));
        std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain)
    }

    /// How many rows may lack a value of a column of the key: they are rejected.
    pub fn tolerated(&self) -> usize {
        self.rows / MOST_KEYLESS
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Column {
    fn filled(mut self, array: &ArrayRef) -> Self {
        self.nulls = array.logical_null_count();
        let mut known: HashMap<Box<[u8]>, u32> = HashMap::new();
        let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())]);
        if let Ok(rows) = converter.and_then(|converter| converter.convert_columns(std::slice::from_ref(array))) {
            self.ids.reserve(array.len());
            for (at, row) in rows.iter().enumerate() {
                let next = known.len() as u32 + 1;
                self.ids.push(match array.is_null(at) {
                    true => 0,
                    false => *known.entry(row.as_ref().into()).or_insert(next),
                });
            }
        }
        self.distinct = known.len();
        self.whole = match self.kind {
            FieldType::Int64 => array.as_primitive_opt::<Int64Type>().map(|array| array.iter().collect()),
            FieldType::UInt64 => array
                .as_primitive_opt::<UInt64Type>()
                .map(|array| array.iter().map(|value| i64::try_from(value?).ok()).collect()),
            FieldType::Timestamp => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map(|array| array.iter().collect())
            }
            FieldType::Date => {
                array.as_primitive_opt::<Date32Type>().map(|array| array.iter().map(|day| day.map(i64::from)).collect())
            }
            _ => None,
        }
        .unwrap_or_default();
        if let Some(text) = array.as_string_opt::<i32>() {
            self.longest = text.iter().flatten().map(str::len).max().unwrap_or(0);
            self.has_hash = text.iter().flatten().any(|value| value.contains('#'));
            if let Some(months) = months(text) {
                (self.whole, self.month_names) = (months, true);
            }
            self.clock = DayTime::of_text(&self.name, text);
            self.first = text.iter().flatten().next().map(str::to_owned);
        }
        if self.is_natural() && self.words().iter().any(|word| CLOCKS.contains(&word.as_str())) {
            self.clock = DayTime::of_digits(&self.name, &self.whole);
        }
        self
    }

    /// Whether templates can refer to it.
    pub fn fits_templates(&self) -> bool {
        let special = |letter: char| matches!(letter, '{' | '}' | ':') || letter.is_control();
        !self.name.is_empty()
            && self.name.trim() == self.name
            && !self.name.contains(special)
            && !self.name.starts_with("salt(")
    }

    /// The name under which a row key has it.
    pub fn key_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// Whether it has integers from 0 on.
    pub fn is_natural(&self) -> bool {
        matches!(self.kind, FieldType::Int64 | FieldType::UInt64)
            && self.whole.iter().flatten().all(|value| *value >= 0)
            && self.whole.iter().flatten().count() + self.nulls == self.ids.len()
    }

    /// Whether its values can be summed.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, FieldType::Int64 | FieldType::UInt64 | FieldType::Float64 | FieldType::Decimal { .. })
    }

    /// The words of its name, in lower case.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut small = false;
        for letter in self.name.chars() {
            let starts = small && letter.is_uppercase();
            if starts || !letter.is_alphanumeric() {
                words.push(String::new());
            }
            if letter.is_alphanumeric()
                && let Some(word) = words.last_mut()
            {
                word.extend(letter.to_lowercase());
            }
            small = letter.is_lowercase();
        }
        words.retain(|word| !word.is_empty());
        words
    }
}

/// The numbers of months, if all values are English month names.
fn months(text: &StringArray) -> Option<Vec<Option<i64>>> {
    let number = |value: &str| {
        let short = value.get(..3)?.to_lowercase();
        let at = MONTHS.find(&short).filter(|at| at % 3 == 0)?;
        let whole = chrono::Month::from_str(value).is_ok();
        whole.then(|| i64::try_from(at / 3 + 1).ok()).flatten()
    };
    let read: Option<Vec<Option<i64>>> =
        text.iter().map(|value| value.map_or(Some(None), |value| number(value).map(Some))).collect();
    read.filter(|read| read.iter().any(Option::is_some))
}
