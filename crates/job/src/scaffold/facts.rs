//! Statistics of the columns of a sample.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow::row::{RowConverter, SortField};
use tidetable_layout::FieldType;
use tidetable_source::sample::Sample;

use crate::scaffold::calendar::day_time::DayTime;
use crate::scaffold::calendar::months::{MonthNames, Months};
use crate::scaffold::calendar::part_name::{is_named_time_part, is_unnamed};
use crate::scaffold::calendar::year_part::{YearCodes, is_named_millis, is_named_part};
use crate::scaffold::hours::Hours;
use crate::scaffold::identifier::identifier;

/// A column is of the key although one row in so many has no value.
const MOST_KEYLESS: usize = 100;
/// Names of nulls in row keys; the first that is no value.
const NULL_NAMES: [&str; 3] = ["none", "unknown", "no-value"];
/// Words in the names of columns of times of day.
const CLOCKS: [&str; 12] =
    ["time", "clock", "hour", "hhmm", "hhmmss", "tod", "zeit", "uhrzeit", "hora", "heure", "ora", "tijd"];

/// Names of columns of years, and the years of times in nanoseconds, which such a column may have.
pub(crate) const YEAR_NAMES: [&str; 14] =
    ["year", "yr", "yyyy", "yy", "#yy", "jahr", "année", "annee", "año", "ano", "anno", "jaar", "år", "rok"];
pub(crate) const YEARS: std::ops::Range<i64> = 1678..2262;

/// Words in the names of columns of hours.
const HOURS: [&str; 8] = ["hour", "hours", "hr", "he", "stunde", "hora", "heure", "hourending"];

/// Columns and rows of a sample, with what decisions about a layout need to know of them.
#[derive(Debug)]
pub(crate) struct Facts {
    pub columns: Vec<Column>,
    pub rows: usize,
}

/// A column of the sample, with statistics of its values.
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
    /// Whether each value consists of others, as lists and maps do.
    pub is_nested: bool,
    /// For text with names of months: their language; `whole` has their numbers.
    pub month_names: Option<&'static MonthNames>,
    /// For columns named like parts of a year whose values are codes such as `M01`.
    pub codes: Option<YearCodes>,
    /// For columns named like milliseconds: its values, from 0 to 999.
    pub millis: Option<Vec<Option<i64>>>,
    /// Whether it is text whose values are numbers, of a folder's name as in `month=04` or of a part of a time, or years as 1990.0;
    /// `whole` has them.
    pub is_written_number: bool,
    /// For times of day, such as `13:45`, `1:45 PM` or 134500.
    pub clock: Option<DayTime>,
    /// For columns named like hours: its values, also of text such as `01` and `3A`.
    pub hours: Option<Hours>,
    /// The first value of text that is not null, to show it in notes.
    pub first: Option<String>,
    /// The name under which a row key has it, where a template cannot refer to its own.
    pub alias: Option<String>,
    /// What a row key has where the column is null, if it names its nulls instead of rejecting their rows.
    pub null_name: Option<String>,
}

impl Facts {
    /// Computes the facts of all columns. One whose batches differ in type has none, except for its name and type.
    pub fn of(sample: &Sample) -> Self {
        let rows = sample.batches.iter().map(|batch| batch.num_rows()).sum();
        let mut columns = Vec::with_capacity(sample.spec.columns.len());
        for (at, spec) in sample.spec.columns.iter().enumerate() {
            let parts = sample.batches.iter().filter_map(|batch| batch.columns().get(at));
            let parts: Vec<&dyn Array> = parts.map(AsRef::as_ref).collect();
            let unusual = sample.columns.get(at).and_then(|column| column.unusual.as_ref());
            let mut column = Column::named(&spec.name, spec.kind);
            column.is_nested = unusual.is_some_and(|unusual| unusual.is_nested);
            let is_of_path = sample.files.path_columns.contains(&spec.name);
            columns.push(match concat(&parts) {
                Ok(array) => column.filled(&array, is_of_path),
                Err(_) => column,
            });
        }

        let mut facts = Self { columns, rows };
        for at in 0..facts.columns.len() {
            let alias = facts.columns.get(at);
            let alias = alias.filter(|column| !column.fits_templates() || column.null_name.is_some());
            let alias = alias.map(|column| facts.free_alias(column));
            if let Some(column) = facts.columns.get_mut(at) {
                column.alias = alias;
            }
        }
        facts
    }

    /// The column at a place; `None` if there are not so many.
    pub fn column(&self, at: usize) -> Option<&Column> {
        self.columns.get(at)
    }

    /// The columns at these places, in their order.
    pub fn at<'f>(&'f self, places: &'f [usize]) -> impl Iterator<Item = &'f Column> {
        places.iter().filter_map(|at| self.columns.get(*at))
    }

    /// A plain name for a column, which no other has.
    fn free_alias(&self, column: &Column) -> String {
        let mut words = column.words();
        if column.null_name.is_some() {
            words.push("key".to_owned());
        }
        let plain = if words.is_empty() { "entity".to_owned() } else { words.join("_") };
        let mut names = std::iter::once(plain.clone()).chain((2..100).map(|number| format!("{plain}_{number}")));
        let columns = self.columns.iter();
        let free =
            names.find(|name| columns.clone().all(|other| other.name != *name && other.alias.as_ref() != Some(name)));
        free.unwrap_or(plain)
    }

    /// How many rows may lack a value of a column of the key: they are rejected.
    pub fn tolerated(&self) -> usize {
        self.rows / MOST_KEYLESS
    }

    /// The place of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Column {
    fn named(name: &str, kind: FieldType) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            ids: Vec::new(),
            distinct: 0,
            nulls: 0,
            whole: Vec::new(),
            longest: 0,
            has_hash: false,
            is_nested: false,
            month_names: None,
            codes: None,
            millis: None,
            is_written_number: false,
            clock: None,
            hours: None,
            first: None,
            alias: None,
            null_name: None,
        }
    }

    fn filled(mut self, array: &ArrayRef, is_of_path: bool) -> Self {
        self.nulls = array.logical_null_count();
        self.number_values(array);
        self.whole = whole_values(array, self.kind).unwrap_or_default();
        if YEAR_NAMES.contains(&self.name.to_lowercase().as_str())
            && let Some(years) = years_with_fraction(array)
        {
            (self.whole, self.is_written_number) = (years, true);
        }

        if let Some(text) = array.as_string_opt::<i32>() {
            self.longest = text.iter().flatten().map(str::len).max().unwrap_or(0);
            self.has_hash = text.iter().flatten().any(|value| value.contains('#'));
            // Zeros in front make a month, a day or an hour no code.
            let is_part = is_named_time_part(&self.name) || is_unnamed(&self.name);
            if let Some(months) = Months::of(text) {
                (self.whole, self.month_names) = (months.numbers, Some(months.language));
            } else if let Some(numbers) = short_numbers(text).filter(|_| is_of_path || is_part) {
                (self.whole, self.is_written_number) = (numbers, true);
            }
            self.clock = DayTime::of_text(&self.name, text)
                .or_else(|| self.is_named(&CLOCKS).then(|| DayTime::of_digit_text(&self.name, text)).flatten());
            self.hours = self.is_named(&HOURS).then(|| Hours::of_text(text)).flatten();
            self.codes = if is_named_part(&self.name) { YearCodes::of(&self.name, text) } else { None };
            self.millis = short_numbers(text).filter(|millis| is_named_millis(&self.name) && are_millis(millis));
            self.first = text.iter().flatten().next().map(str::to_owned);
            self.null_name = self.free_null_name(text, is_of_path);
        }
        if self.is_natural() && self.is_named(&CLOCKS) {
            self.clock = DayTime::of_digits(&self.name, &self.whole);
        }
        if self.is_natural() && self.is_named(&HOURS) {
            self.hours = Hours::of_numbers(self.whole.clone());
        }
        if self.is_natural() && is_named_millis(&self.name) && are_millis(&self.whole) {
            self.millis = Some(self.whole.clone());
        }
        self
    }

    /// A name for the nulls of a column of text, which no value is: if a minority of its values are null, but more than
    /// may be rejected. Of a folder's name any share may be null.
    fn free_null_name(&self, text: &StringArray, is_of_path: bool) -> Option<String> {
        let rows = text.len();
        let is_minority = self.nulls * 2 < rows || is_of_path && self.nulls < rows;
        let is_tolerated = self.nulls <= rows / MOST_KEYLESS;
        let mut names = NULL_NAMES.iter().filter(|_| is_minority && !is_tolerated && !self.is_nested);
        names.find(|name| !text.iter().flatten().any(|value| value == **name)).map(|name| (*name).to_owned())
    }

    /// SQL for the column under which a row key has it; `None` if it has it under its own name.
    pub fn key_sql(&self) -> Option<String> {
        self.alias.as_ref()?;
        let name = identifier(&self.name);
        Some(match &self.null_name {
            Some(null_name) => format!("coalesce({name}, '{null_name}')"),
            None => name,
        })
    }

    /// Whether a row key rejects the rows in which the column is null.
    pub fn rejects_nulls(&self) -> bool {
        self.nulls > 0 && self.null_name.is_none()
    }

    /// Gives equal values equal numbers, and counts those that differ.
    fn number_values(&mut self, array: &ArrayRef) {
        let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())]);
        let rows = converter.and_then(|converter| converter.convert_columns(std::slice::from_ref(array)));
        let Ok(rows) = rows else { return };

        let mut known: HashMap<Box<[u8]>, u32> = HashMap::new();
        self.ids.reserve(array.len());
        for (at, row) in rows.iter().enumerate() {
            let next = known.len() as u32 + 1;
            self.ids.push(match array.is_null(at) {
                true => 0,
                false => *known.entry(row.as_ref().into()).or_insert(next),
            });
        }
        self.distinct = known.len();
    }

    /// Whether templates can refer to it, whose syntax takes some letters.
    pub fn fits_templates(&self) -> bool {
        let name = self.name.as_str();
        let has_special = name.chars().any(|letter| matches!(letter, '{' | '}' | ':') || letter.is_control());
        !name.is_empty() && name.trim() == name && !has_special && !name.starts_with("salt(")
    }

    /// The name under which a row key has it.
    pub fn key_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// Whether all its values are integers from 0 on, as those of ids and parts of times are.
    pub fn is_natural(&self) -> bool {
        self.is_whole() && self.whole.iter().flatten().all(|value| *value >= 0)
    }

    /// Whether all its values are integers of 64 bits.
    pub fn is_whole(&self) -> bool {
        matches!(self.kind, FieldType::Int64 | FieldType::UInt64)
            && self.whole.iter().flatten().count() + self.nulls == self.ids.len()
    }

    /// Whether its values can be summed, as measured ones can.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, FieldType::Int64 | FieldType::UInt64 | FieldType::Float64 | FieldType::Decimal { .. })
    }

    /// Whether one of `words` is in its name.
    fn is_named(&self, words: &[&str]) -> bool {
        self.words().iter().any(|word| words.contains(&word.as_str()))
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

/// The values of integers, days and times; `None` for other types.
fn whole_values(array: &ArrayRef, kind: FieldType) -> Option<Vec<Option<i64>>> {
    Some(match kind {
        FieldType::Int64 => array.as_primitive_opt::<Int64Type>()?.iter().collect(),
        FieldType::UInt64 => {
            let values = array.as_primitive_opt::<UInt64Type>()?;
            values.iter().map(|value| i64::try_from(value?).ok()).collect()
        }
        FieldType::Timestamp => array.as_primitive_opt::<TimestampMicrosecondType>()?.iter().collect(),
        FieldType::Date => array.as_primitive_opt::<Date32Type>()?.iter().map(|day| day.map(i64::from)).collect(),
        _ => return None,
    })
}

/// The years of a column of numbers with a fraction, all of which are whole.
fn years_with_fraction(array: &ArrayRef) -> Option<Vec<Option<i64>>> {
    let is_fraction = matches!(array.data_type(), DataType::Float64 | DataType::Decimal128(..));
    let numbers = arrow::compute::cast(array, &DataType::Float64).ok().filter(|_| is_fraction)?;
    let numbers = numbers.as_primitive_opt::<Float64Type>()?;
    let are_years = numbers.iter().flatten().all(|year| year.fract() == 0.0 && YEARS.contains(&(year as i64)));
    are_years.then(|| numbers.iter().map(|year| year.map(|year| year as i64)).collect())
}

/// The numbers of a text whose values are all one to four digits.
fn short_numbers(text: &StringArray) -> Option<Vec<Option<i64>>> {
    let mut numbers = Vec::with_capacity(text.len());
    for value in text {
        numbers.push(match value {
            Some(value) if value.len() > 4 || !value.bytes().all(|byte| byte.is_ascii_digit()) => return None,
            Some(value) => Some(value.parse().ok()?),
            None => None,
        });
    }
    Some(numbers).filter(|numbers| numbers.iter().any(Option::is_some))
}

fn are_millis(values: &[Option<i64>]) -> bool {
    values.iter().flatten().all(|millis| (0..1000).contains(millis))
}
