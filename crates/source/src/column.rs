//! Typed columns fed straight from byte slices.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use tidetable_layout::FieldType;

use crate::error::SourceError;
use crate::number::{self, NumberFault};
use crate::reject::{RejectReason, quoted};
use crate::spec::{ColumnSpec, SourceSpec};
use crate::time::{Clock, TimeFault, TimeRule};

/// How one declared column is read.
#[derive(Debug)]
pub(crate) struct ColumnPlan {
    pub name: String,
    pub kind: FieldType,
    /// Of Timestamp and Date columns.
    pub time: Option<TimeRule>,
    /// Null markers but the empty one.
    nulls: Vec<Vec<u8>>,
    empty_is_null: bool,
    /// `.` or `,`.
    point: u8,
    /// Whether a field may be read before its end is known. Not where a null marker looks like a value (-999), nor
    /// where the decimal point is the delimiter.
    prefix: bool,
}

/// Plans of all columns of a source, in declared order.
pub(crate) fn plans(spec: &SourceSpec) -> Result<Vec<ColumnPlan>, SourceError> {
    spec.columns.iter().map(|column| ColumnPlan::new(spec, column)).collect()
}

impl ColumnPlan {
    fn new(spec: &SourceSpec, column: &ColumnSpec) -> Result<Self, SourceError> {
        let format = column.format.as_deref();
        let time = match column.kind {
            FieldType::Timestamp => Some(TimeRule::timestamp(format, column.timezone)),
            FieldType::Date => Some(TimeRule::date(format)),
            _ => None,
        };
        let time = time.transpose().map_err(|fault| SourceError::TimeFormat {
            column: column.name.clone(),
            format: format.unwrap_or_default().to_owned(),
            fault,
        })?;
        let point = if spec.csv.decimal_comma { b',' } else { b'.' };
        let is_text = column.kind == FieldType::Text;
        let markers = spec.csv.null.iter().map(|marker| if is_text { marker.as_str() } else { blanks_off(marker) });
        let mut plan = Self {
            name: column.name.clone(),
            kind: column.kind,
            time,
            nulls: markers
                .clone()
                .filter(|marker| !marker.is_empty())
                .map(|marker| marker.as_bytes().to_vec())
                .collect(),
            empty_is_null: markers.clone().any(str::is_empty),
            point,
            prefix: false,
        };
        let looks_like_value = |marker: &Vec<u8>| Column::new(&plan, 1).value(marker).is_ok();
        plan.prefix = point != spec.csv.delimiter && !plan.nulls.iter().any(looks_like_value);
        Ok(plan)
    }

    #[inline]
    fn is_null(&self, text: &[u8]) -> bool {
        if text.is_empty() { self.empty_is_null } else { self.nulls.iter().any(|marker| marker == text) }
    }

    fn reason(&self, fault: NumberFault, text: &[u8]) -> RejectReason {
        let (kind, text) = (self.kind, quoted(text));
        match fault {
            NumberFault::NotANumber => RejectReason::NotANumber { kind, text },
            NumberFault::OutOfRange => RejectReason::OutOfRange { kind, text },
            NumberFault::NotFinite => RejectReason::NotFinite { text },
            NumberFault::TooManyDigits => match kind {
                FieldType::Decimal { scale, .. } => RejectReason::TooManyDigits { scale, text },
                _ => RejectReason::NotANumber { kind, text },
            },
        }
    }

    /// The reason of a time that is none.
    pub fn time_reason(&self, fault: TimeFault, text: &[u8]) -> RejectReason {
        let text = quoted(text);
        match fault {
            TimeFault::Form => {
                let format = self.time.as_ref().map_or_else(String::new, |rule| rule.written().to_owned());
                RejectReason::BadTime { format, text }
            }
            TimeFault::Skipped(zone) => RejectReason::SkippedTime { zone, text },
        }
    }
}

fn blanks_off(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = text.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(text.len(), |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

/// Whether a field of an unquoted row may end before `rest[at]`.
#[inline]
pub(crate) fn ends_at(rest: &[u8], at: usize, delimiter: u8) -> bool {
    match rest.get(at) {
        Some(b'\n') => true,
        Some(&byte) if byte == delimiter => true,
        Some(b'\r') => rest.get(at + 1) == Some(&b'\n'),
        _ => false,
    }
}

/// Where the field at the start of `rest` ends; `None` if no delimiter or line end follows.
#[inline]
pub(crate) fn field_end(rest: &[u8], delimiter: u8) -> Option<usize> {
    let end = find(rest, delimiter)?;
    let carriage_return = rest.get(end) == Some(&b'\n') && end > 0 && rest.get(end - 1) == Some(&b'\r');
    Some(end - usize::from(carriage_return))
}

/// Most fields are shorter than a call of memchr pays for.
#[inline]
fn find(rest: &[u8], delimiter: u8) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGH_BITS;
    let mut at = 0;
    while at < 32
        && let Some(word) = rest.get(at..).and_then(number::word)
    {
        let hits = zero_bytes(word ^ (ONES * u64::from(delimiter))) | zero_bytes(word ^ (ONES * u64::from(b'\n')));
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr2(delimiter, b'\n', rest.get(at..)?).map(|found| at + found)
}

enum Values {
    UInt64(Vec<u64>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Decimal(Vec<i128>, u8, u8),
    Text { ends: Vec<i32>, bytes: Vec<u8> },
    Bool(Vec<bool>),
    Timestamp(Vec<i64>),
    Date(Vec<i32>),
}

/// A column under construction.
pub(crate) struct Column<'p> {
    plan: &'p ColumnPlan,
    values: Values,
    /// Rows that are null, ascending: most columns have none.
    nulls: Vec<u32>,
    clock: Clock,
}

impl<'p> Column<'p> {
    /// A column with room for `rows`.
    pub fn new(plan: &'p ColumnPlan, rows: usize) -> Self {
        let values = match plan.kind {
            FieldType::UInt64 => Values::UInt64(Vec::with_capacity(rows)),
            FieldType::Int64 => Values::Int64(Vec::with_capacity(rows)),
            FieldType::Float64 => Values::Float64(Vec::with_capacity(rows)),
            FieldType::Decimal { precision, scale } => Values::Decimal(Vec::with_capacity(rows), precision, scale),
            FieldType::Text => {
                let mut ends = Vec::with_capacity(rows + 1);
                ends.push(0);
                Values::Text { ends, bytes: Vec::with_capacity(rows * 8) }
            }
            FieldType::Bool => Values::Bool(Vec::with_capacity(rows)),
            FieldType::Timestamp => Values::Timestamp(Vec::with_capacity(rows)),
            FieldType::Date => Values::Date(Vec::with_capacity(rows)),
        };
        Self { plan, values, nulls: Vec::new(), clock: Clock::default() }
    }

    pub fn len(&self) -> usize {
        match &self.values {
            Values::UInt64(values) => values.len(),
            Values::Int64(values) | Values::Timestamp(values) => values.len(),
            Values::Float64(values) => values.len(),
            Values::Decimal(values, ..) => values.len(),
            Values::Text { ends, .. } => ends.len() - 1,
            Values::Bool(values) => values.len(),
            Values::Date(values) => values.len(),
        }
    }

    /// Takes back all rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::UInt64(values) => values.truncate(rows),
            Values::Int64(values) | Values::Timestamp(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Decimal(values, ..) => values.truncate(rows),
            Values::Text { ends, bytes } => {
                ends.truncate(rows + 1);
                bytes.truncate(ends.last().map_or(0, |end| end.cast_unsigned() as usize));
            }
            Values::Bool(values) => values.truncate(rows),
            Values::Date(values) => values.truncate(rows),
        }
        while self.nulls.last().is_some_and(|row| *row as usize >= rows) {
            self.nulls.pop();
        }
    }

    pub fn push_null(&mut self) {
        self.nulls.push(self.len() as u32);
        match &mut self.values {
            Values::UInt64(values) => values.push(0),
            Values::Int64(values) | Values::Timestamp(values) => values.push(0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal(values, ..) => values.push(0),
            Values::Text { ends, bytes } => ends.push(bytes.len() as i32),
            Values::Bool(values) => values.push(false),
            Values::Date(values) => values.push(0),
        }
    }

    /// Adds a field, or says why it cannot be added.
    pub fn push(&mut self, text: &[u8], in_quotes: bool) -> Result<(), RejectReason> {
        let plan = self.plan;
        if plan.kind == FieldType::Text {
            if !in_quotes && plan.is_null(text) {
                self.push_null();
                return Ok(());
            }
            return self.value(text);
        }
        let text = trimmed(text);
        if plan.is_null(text) {
            self.push_null();
            return Ok(());
        }
        self.value(text)
    }

    /// Adds a number that was written with a point, whatever the files of the source use; it is never a null marker.
    pub fn push_written(&mut self, text: &str) -> Result<(), RejectReason> {
        if self.plan.point == b'.' || self.plan.kind == FieldType::Text {
            return self.value(text.as_bytes());
        }
        self.value(text.replace('.', ",").as_bytes())
    }

    fn value(&mut self, text: &[u8]) -> Result<(), RejectReason> {
        let plan = self.plan;
        let number = |fault| plan.reason(fault, text);
        match (&mut self.values, &plan.time) {
            (Values::UInt64(values), _) => values.push(number::parse_u64(text).map_err(number)?),
            (Values::Int64(values), _) => values.push(number::parse_i64(text).map_err(number)?),
            (Values::Float64(values), _) => values.push(number::parse_f64(text, plan.point).map_err(number)?),
            (Values::Decimal(values, precision, scale), _) => {
                values.push(number::parse_decimal(text, plan.point, *precision, *scale).map_err(number)?);
            }
            (Values::Text { ends, bytes }, _) => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len() as i32);
            }
            (Values::Bool(values), _) => match number::parse_bool(text) {
                Some(value) => values.push(value),
                None => return Err(RejectReason::NotABool { text: quoted(text) }),
            },
            (Values::Timestamp(values), Some(rule)) => {
                values.push(rule.micros(text, &mut self.clock).map_err(|fault| plan.time_reason(fault, text))?);
            }
            (Values::Date(values), Some(rule)) => {
                values.push(rule.days(text).map_err(|fault| plan.time_reason(fault, text))?);
            }
            // A plan of these kinds always has a rule.
            (Values::Timestamp(_) | Values::Date(_), None) => return Err(plan.time_reason(TimeFault::Form, text)),
        }
        Ok(())
    }

    /// Adds the unquoted field at the start of `rest` and returns its length. `None` if it cannot be added or its end
    /// is not in sight; the row then takes the slow way, which knows the reason.
    #[inline]
    pub fn push_prefix(&mut self, rest: &[u8], delimiter: u8) -> Option<usize> {
        let plan = self.plan;
        if plan.prefix {
            let ends = |at| ends_at(rest, at, delimiter);
            match (&mut self.values, &plan.time) {
                (Values::UInt64(values), _) => {
                    if let Some((value, length)) = number::u64_prefix(rest).filter(|(_, length)| ends(*length)) {
                        values.push(value);
                        return Some(length);
                    }
                }
                (Values::Int64(values), _) => {
                    if let Some((value, length)) = number::i64_prefix(rest).filter(|(_, length)| ends(*length)) {
                        values.push(value);
                        return Some(length);
                    }
                }
                (Values::Float64(values), _) => {
                    if let Some((value, length)) =
                        number::f64_prefix(rest, plan.point).filter(|(_, length)| ends(*length))
                    {
                        values.push(value);
                        return Some(length);
                    }
                }
                (Values::Decimal(values, precision, scale), _) => {
                    if let Some((value, length)) =
                        number::decimal_prefix(rest, plan.point, *precision, *scale).filter(|(_, length)| ends(*length))
                    {
                        values.push(value);
                        return Some(length);
                    }
                }
                (Values::Timestamp(values), Some(rule)) => {
                    if let Some((value, length)) = rule.micros_prefix(rest, ends, &mut self.clock) {
                        values.push(value);
                        return Some(length);
                    }
                }
                (Values::Date(values), Some(rule)) => {
                    if let Some((value, length)) = rule.days_prefix(rest, ends, &mut self.clock) {
                        values.push(value);
                        return Some(length);
                    }
                }
                _ => {}
            }
        }
        let length = field_end(rest, delimiter)?;
        self.push(rest.get(..length)?, false).ok()?;
        Some(length)
    }

    /// The finished array.
    pub fn finish(self) -> Result<ArrayRef, ArrowError> {
        let rows = self.len();
        let nulls = (!self.nulls.is_empty()).then(|| {
            let mut valid = vec![true; rows];
            for row in &self.nulls {
                if let Some(slot) = valid.get_mut(*row as usize) {
                    *slot = false;
                }
            }
            NullBuffer::from(valid)
        });
        Ok(match self.values {
            Values::UInt64(values) => Arc::new(UInt64Array::try_new(values.into(), nulls)?),
            Values::Int64(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
            Values::Float64(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
            Values::Decimal(values, precision, scale) => Arc::new(
                Decimal128Array::try_new(values.into(), nulls)?
                    .with_precision_and_scale(precision, scale.cast_signed())?,
            ),
            Values::Text { ends, bytes } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?)
            }
            Values::Bool(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
            Values::Timestamp(values) => {
                Arc::new(TimestampMicrosecondArray::try_new(values.into(), nulls)?.with_timezone("UTC"))
            }
            Values::Date(values) => Arc::new(Date32Array::try_new(values.into(), nulls)?),
        })
    }
}
