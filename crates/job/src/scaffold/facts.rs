//! Statistics of the columns of a sample.

use std::collections::HashMap;
use std::str::FromStr;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::concat;
use arrow::datatypes::{Date32Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow::row::{RowConverter, SortField};
use tidetable_layout::FieldType;
use tidetable_source::sample::Sample;

/// Months by their first three letters.
pub(crate) const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";

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
    /// For text of the form `13:45` or `13:45:30`: the seconds of the day, and the number of parts.
    pub clock: Option<(Vec<Option<i64>>, usize)>,
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
            };
            match concat(&parts) {
                Ok(array) => column.filled(&array),
                Err(_) => column,
            }
        });
        Self { columns: columns.collect(), rows }
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
            self.clock = [2, 3].into_iter().find_map(|parts| Some((clocks(text, parts)?, parts)));
        }
        self
    }

    /// Whether templates can refer to it.
    pub fn fits_templates(&self) -> bool {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '.' | '/' | '%');
        !self.name.is_empty() && self.name.trim() == self.name && self.name.chars().all(plain)
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

/// The seconds of the day, if all values are clock times with `parts` parts.
fn clocks(text: &StringArray, parts: usize) -> Option<Vec<Option<i64>>> {
    let seconds = |value: &str| {
        let found: Vec<&str> = value.split(':').collect();
        let number = |at: usize, most: i64| {
            let part = found.get(at)?;
            let digits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i64>().ok().filter(|value| digits && *value < most)
        };
        let second = if parts == 3 { number(2, 60) } else { Some(0) };
        (found.len() == parts).then_some(number(0, 24)? * 3600 + number(1, 60)? * 60 + second?)
    };
    let read: Option<Vec<Option<i64>>> =
        text.iter().map(|value| value.map_or(Some(None), |value| seconds(value).map(Some))).collect();
    read.filter(|read| read.iter().any(Option::is_some))
}
