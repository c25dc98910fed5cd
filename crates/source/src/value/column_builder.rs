//! Builders of typed columns from byte slices: by the complete parsers, or word by word where fields are short and plain.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use tidetable_layout::FieldType;

use crate::number;
use crate::reject::{RejectReason, quoted};
use crate::time::{Clock, Remarks, TimeFault};
use crate::value::ColumnPlan;
use crate::value::Slices;

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

/// A column under construction, whose fields are appended row by row.
pub(crate) struct ColumnBuilder<'p> {
    plan: &'p ColumnPlan,
    values: Values,
    /// Rows that are null, ascending: most columns have none.
    nulls: Vec<u32>,
    remarks: Remarks,
    clock: Clock,
    /// The number that is being read, in plain notation; kept for its room.
    buffer: Vec<u8>,
}

impl<'p> ColumnBuilder<'p> {
    /// A column of the plan's type with room for `rows`.
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

        Self {
            plan,
            values,
            nulls: Vec::new(),
            remarks: Remarks::default(),
            clock: Clock::default(),
            buffer: Vec::new(),
        }
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
        self.remarks.truncate(rows);
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

    /// Appends a field, or returns why it is rejected.
    pub fn push(&mut self, text: &[u8], in_quotes: bool) -> Result<(), RejectReason> {
        let plan = self.plan;
        if plan.kind == FieldType::Text {
            if !in_quotes && plan.is_null(text) {
                self.push_null();
                return Ok(());
            }
            return self.value(text);
        }
        let text = plan.trimmed(text);
        if plan.is_null(text) || plan.is_null_number(text) {
            self.push_null();
            return Ok(());
        }
        self.value(text)
    }

    /// Appends a number written with a decimal point, regardless of the source's decimal separator; never a null marker.
    pub fn push_written(&mut self, text: &str) -> Result<(), RejectReason> {
        if self.plan.notation.point == b'.' || self.plan.kind == FieldType::Text {
            return self.value(text.as_bytes());
        }
        self.value(text.replace('.', ",").as_bytes())
    }

    /// Appends a non-null field without surrounding blanks.
    pub fn value(&mut self, text: &[u8]) -> Result<(), RejectReason> {
        let plan = self.plan;
        let point = plan.notation.point;
        let number = |fault| plan.reason(fault, text);

        match (&mut self.values, &plan.time) {
            (Values::UInt64(values), _) => {
                values.push(number::parse_u64(plan.notation.plain(text, &mut self.buffer)).map_err(number)?);
            }
            (Values::Int64(values), _) => {
                values.push(number::parse_i64(plan.notation.plain(text, &mut self.buffer)).map_err(number)?);
            }
            (Values::Float64(values), _) => {
                values.push(number::parse_f64(plan.notation.plain(text, &mut self.buffer), point).map_err(number)?);
            }
            (Values::Decimal(values, precision, scale), _) => {
                let plain = plan.notation.plain(text, &mut self.buffer);
                values.push(number::parse_decimal(plain, point, *precision, *scale).map_err(number)?);
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
                let stamp = rule.stamp(text, &mut self.clock).map_err(|fault| plan.time_reason(fault, text))?;
                self.remarks.add(values.len(), stamp);
                values.push(stamp.micros);
            }
            (Values::Date(values), Some(rule)) => {
                values.push(rule.days(text).map_err(|fault| plan.time_reason(fault, text))?);
            }
            // Plans of these kinds always have a rule.
            (Values::Timestamp(_) | Values::Date(_), None) => return Err(plan.time_reason(TimeFault::Form, text)),
        }
        Ok(())
    }

    /// As [`Self::push`] of the first `length` bytes of `rest`; the bytes after them allow word-wise reads.
    #[inline]
    pub fn push_first(&mut self, rest: &[u8], length: usize, in_quotes: bool) -> Result<(), RejectReason> {
        let mut slices = std::iter::once((rest, length));
        if self.push_short(&mut slices).is_none() {
            return Ok(());
        }
        self.push(rest.get(..length).unwrap_or(rest), in_quotes)
    }

    /// Appends an unquoted field per row up to the first that is rejected; returns the number appended.
    pub fn push_all(&mut self, slices: Slices<'_>) -> usize {
        let mut row = 0;
        while row < slices.rows {
            let before = self.len();
            let long = self.push_short(&mut (row..slices.rows).map_while(|row| slices.get(row)));
            row += self.len() - before;
            let Some((rest, length)) = long else { break };
            if rest.get(..length).is_none_or(|text| self.push(text, false).is_err()) {
                break;
            }
            row += 1;
        }
        row
    }

    /// Appends fields in the common short forms; returns the first that is not in one.
    #[inline]
    fn push_short<'a>(&mut self, fields: &mut impl Iterator<Item = (&'a [u8], usize)>) -> Option<(&'a [u8], usize)> {
        let plan = self.plan;
        if !plan.short {
            return fields.next();
        }

        let (point, clock) = (plan.notation.point, &mut self.clock);
        match (&mut self.values, &plan.time) {
            (Values::UInt64(values), _) => extend(values, fields, number::short_u64),
            (Values::Int64(values), _) => extend(values, fields, number::short_i64),
            (Values::Float64(values), _) => {
                extend(values, fields, |rest, length| number::short_f64(rest, length, point))
            }
            (Values::Decimal(values, precision, scale), _) => {
                extend(values, fields, |rest, length| number::short_decimal(rest, length, point, *precision, *scale))
            }
            (Values::Timestamp(values), Some(rule)) => {
                extend(values, fields, |rest, length| rule.short_micros(rest, length, clock))
            }
            (Values::Date(values), Some(rule)) => {
                extend(values, fields, |rest, length| rule.short_days(rest, length, clock))
            }
            _ => fields.next(),
        }
    }

    /// An array of nulls, for a column that the file lacks.
    pub fn all_null(&self, rows: usize) -> ArrayRef {
        new_null_array(&self.plan.kind.arrow(), rows)
    }

    /// Takes the rows whose times were adjusted.
    pub fn remarks(&mut self) -> Remarks {
        std::mem::take(&mut self.remarks)
    }

    /// The finished column. The decimals of a plan are within its precision.
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

/// Appends values of fields until `read` returns `None`; returns that field.
#[inline]
fn extend<'a, T>(
    values: &mut Vec<T>,
    fields: &mut impl Iterator<Item = (&'a [u8], usize)>,
    mut read: impl FnMut(&[u8], usize) -> Option<T>,
) -> Option<(&'a [u8], usize)> {
    for (rest, length) in fields {
        match read(rest, length) {
            Some(value) => values.push(value),
            None => return Some((rest, length)),
        }
    }
    None
}
