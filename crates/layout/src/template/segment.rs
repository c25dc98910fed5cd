//! Segments of compiled templates: literals, and source fields in their forms.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampMicrosecondArray, UInt64Array};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::RejectReason;
use crate::scalar::{ColumnBuilder, ScalarRef};
use crate::schema::{FieldType, TailPart};
use crate::template::form::{Epoch, Form};
use crate::template::time_format::{TimeParts, Unit};
use crate::template::{hex, percent};
use crate::time::DAY;
use crate::time::calendar::Calendar;
use crate::time::text::{push_digits, read_digits};

/// A part of a compiled template, printed from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    Field(FieldSegment),
}

/// A field of the layout, in the form in which the template prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSegment {
    /// Index among the fields of the layout.
    pub(crate) field: usize,
    pub(crate) kind: FieldType,
    pub(crate) form: Form,
}

/// The greatest number of a zero-padded field of `width` digits.
fn limit(width: u8) -> u64 {
    10u64.checked_pow(width.into()).map_or(u64::MAX, |power| power - 1)
}

/// The time of a value in microseconds; a date counts as its midnight.
fn instant(scalar: ScalarRef<'_>) -> Option<i64> {
    match scalar {
        ScalarRef::Time(time) => Some(time),
        // Saturates: such days have no four-digit year and are rejected anyway.
        ScalarRef::Date(days) => Some(i64::from(days).saturating_mul(DAY)),
        _ => None,
    }
}

impl Segment {
    /// The field; `None` for a literal.
    pub(crate) fn field(&self) -> Option<&FieldSegment> {
        if let Self::Field(field) = self { Some(field) } else { None }
    }

    /// The printed width in bytes; `None` if it varies.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Self::Literal(text) => Some(text.len()),
            Self::Field(field) => field.width(),
        }
    }

    /// The parts of a key tail that it prints, if it can be in one.
    pub(crate) fn tail_parts(&self) -> Option<Vec<TailPart>> {
        match self {
            Self::Literal(text) => text.is_ascii().then(|| vec![TailPart::Literal(text.clone())]),
            Self::Field(field) => match &field.form {
                Form::Time(format) => format.tail_parts(),
                _ => field.digits().map(|digits| vec![TailPart::Digits(digits)]),
            },
        }
    }
}

impl FieldSegment {
    /// The number of digits, if the form prints one zero-padded number.
    fn digits(&self) -> Option<u8> {
        match &self.form {
            Form::ZeroPad(width) => Some(*width),
            Form::Epoch(epoch) => Some(epoch.width()),
            Form::MsReversed => Some(19),
            _ => None,
        }
    }

    /// The printed width in bytes; `None` if it varies.
    pub(crate) fn width(&self) -> Option<usize> {
        match &self.form {
            Form::Time(format) => format.width(),
            Form::SpacePad(width) => Some(usize::from(*width)),
            Form::BigEndian => Some(8),
            Form::Hash => Some(16),
            Form::Salt(count) if *count < 10 => Some(1),
            _ => self.digits().map(usize::from),
        }
    }

    /// Whether it prints a time, or a part of one.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self.kind, FieldType::Timestamp | FieldType::Date) && !matches!(self.form, Form::Salt(_) | Form::Hash)
    }

    /// The resolution in which the field can be read back (1 is exact); `None` if it cannot.
    pub(crate) fn resolution(&self) -> Option<i64> {
        match &self.form {
            Form::Hash | Form::Salt(_) => None,
            Form::Epoch(epoch) => Some(epoch.size()),
            Form::MsReversed => Some(1000),
            Form::Time(format) => match format.resolution() {
                Some(step) if step <= DAY && self.kind == FieldType::Date => Some(1),
                step => step,
            },
            _ => Some(1),
        }
    }

    /// The smallest time step that changes the output; 1 for fields that are not times.
    pub(crate) fn finest(&self) -> i64 {
        match &self.form {
            Form::Epoch(epoch) => epoch.size(),
            Form::MsReversed | Form::Salt(_) if self.is_instant() => 1000,
            Form::Time(format) => format.finest().unwrap_or(1),
            _ => 1,
        }
    }

    /// A step in microseconds: [`FieldSegment::number`] can change only at its multiples.
    pub(crate) fn even_step(&self) -> i64 {
        match &self.form {
            Form::Time(format) if format.zone().is_some() => 1,
            _ => self.finest().clamp(1, DAY),
        }
    }

    /// Whether it prints nothing but hours and minutes in UTC.
    pub(crate) fn is_minute_of_day(&self) -> bool {
        let Form::Time(format) = &self.form else { return false };
        let is_number = self.is_instant() && format.zone().is_none() && self.is_number();
        is_number && format.units().all(|unit| matches!(unit, Unit::Hour | Unit::Minute))
    }

    /// Whether distinct values always print distinct bytes.
    pub(crate) fn is_injective(&self) -> bool {
        // `AB` and `ab` name the same byte.
        !matches!(self.form, Form::Hash | Form::Salt(_) | Form::Hex)
    }

    fn is_instant(&self) -> bool {
        self.kind == FieldType::Timestamp
    }

    /// Whether it prints a [`FieldSegment::number`], so that it can be part of a tail.
    pub(crate) fn is_number(&self) -> bool {
        match &self.form {
            Form::Time(format) => format.tail_parts().is_some(),
            _ => self.digits().is_some(),
        }
    }

    /// All printed digits as one number.
    ///
    /// # Errors
    /// If the value does not fit the form.
    pub(crate) fn number(&self, scalar: ScalarRef<'_>, calendar: &mut Calendar) -> Result<u64, RejectReason> {
        let time = instant(scalar).ok_or(RejectReason::Null);
        match &self.form {
            Form::ZeroPad(width) => {
                let value = match scalar {
                    ScalarRef::UInt(value) => value,
                    ScalarRef::Int(value) => u64::try_from(value).map_err(|_| RejectReason::Negative)?,
                    _ => return Err(RejectReason::Null),
                };
                if value > limit(*width) {
                    Err(RejectReason::TooWide { width: usize::from(*width) })
                } else {
                    Ok(value)
                }
            }
            Form::Epoch(epoch) => {
                let value = u64::try_from(epoch.of_micros(time?)).map_err(|_| RejectReason::NegativeTimestamp)?;
                let width = epoch.width();
                if value > limit(width) { Err(RejectReason::TooWide { width: usize::from(width) }) } else { Ok(value) }
            }

            Form::MsReversed => {
                let ms = time?.div_euclid(1000);
                if ms < 0 { Err(RejectReason::NegativeTimestamp) } else { Ok((i64::MAX - ms).cast_unsigned()) }
            }
            Form::Time(format) => format.number(time?, calendar),
            _ => Err(RejectReason::Null),
        }
    }

    /// Decodes a [`FieldSegment::number`] into `builder`; false if the form prints none.
    pub(crate) fn read_number(&self, number: u64, builder: &mut ColumnBuilder) -> bool {
        match &self.form {
            Form::ZeroPad(_) => builder.push_unsigned(number),
            Form::Epoch(epoch) => epoch_time(number, *epoch).is_some_and(|time| builder.push_time(time)),
            Form::MsReversed => reversed_time(number).is_some_and(|time| builder.push_time(time)),
            Form::Time(format) => {
                let mut parts = TimeParts::default();
                format.read_number(number, &mut parts);
                parts.resolve(format.zone()).is_some_and(|time| builder.push_time(time))
            }
            _ => false,
        }
    }

    /// Decodes a column of [`FieldSegment::number`]s, without a branch for each; `None` where [`Self::read_number`] must decode
    /// them one by one: other forms and types, and numbers out of range.
    pub(crate) fn read_numbers(&self, numbers: Vec<u64>) -> Option<ArrayRef> {
        let greatest = numbers.iter().copied().fold(0, u64::max);

        match (&self.form, self.kind) {
            (Form::ZeroPad(_), FieldType::UInt64) => Some(Arc::new(UInt64Array::from(numbers))),
            (Form::ZeroPad(_), FieldType::Int64) if i64::try_from(greatest).is_ok() => {
                Some(Arc::new(numbers.into_iter().map(u64::cast_signed).collect::<Int64Array>()))
            }
            // The greatest time fits, so all do.
            (Form::Epoch(epoch), FieldType::Timestamp) if epoch_time(greatest, *epoch).is_some() => {
                let size = epoch.size();
                let times = numbers.into_iter().map(|number| number.cast_signed().wrapping_mul(size));
                Some(timestamps(times.collect()))
            }
            (Form::MsReversed, FieldType::Timestamp) => {
                let least = numbers.iter().copied().fold(u64::MAX, u64::min);
                reversed_time(least).and(reversed_time(greatest))?;
                let times = numbers.into_iter().map(|number| (i64::MAX - number.cast_signed()).wrapping_mul(1000));
                Some(timestamps(times.collect()))
            }
            _ => None,
        }
    }

    /// Appends the printed `scalar` to `out`.
    ///
    /// # Errors
    /// If the form cannot print it, or could not read it back.
    pub(crate) fn write(
        &self,
        scalar: ScalarRef<'_>,
        calendar: &mut Calendar,
        out: &mut Vec<u8>,
    ) -> Result<(), RejectReason> {
        let start = out.len();
        match &self.form {
            Form::Text | Form::Percent(_) => {
                if let Some(time) = instant(scalar)
                    && !(0..=9999).contains(&calendar.at(time).year)
                {
                    return Err(RejectReason::Year);
                }
                scalar.write_text(calendar, out);
                if let Form::Percent(escapes) = &self.form {
                    let text = String::from_utf8_lossy(&out.split_off(start)).into_owned();
                    escapes.write(&text, out);
                }
            }
            Form::ZeroPad(_) | Form::Epoch(_) | Form::MsReversed => {
                let number = self.number(scalar, calendar)?;
                push_digits(number, usize::from(self.digits().unwrap_or(0)), out);
            }

            Form::SpacePad(width) => {
                let width = usize::from(*width);
                scalar.write_text(calendar, out);
                let text = out.get(start..).unwrap_or_default();
                // Bytes below the space would make padded keys sort differently from their values.
                if text.iter().any(|byte| *byte < b' ') {
                    return Err(RejectReason::ControlCharacter);
                }
                if text.last() == Some(&b' ') {
                    return Err(RejectReason::TrailingSpace);
                }
                if text.len() > width {
                    return Err(RejectReason::TooWide { width });
                }
                out.resize(start + width, b' ');
            }
            Form::Time(format) => {
                let time = instant(scalar).ok_or(RejectReason::Null)?;
                format.write(time, calendar, out)?;
            }

            Form::Reversed => {
                let mut text = Vec::new();
                scalar.write_text(calendar, &mut text);
                let text = String::from_utf8_lossy(&text);
                out.extend(text.chars().rev().collect::<String>().into_bytes());
            }
            Form::Domain => {
                if let ScalarRef::Text(text) = scalar {
                    write_domain(text, out);
                }
            }

            Form::BigEndian => match scalar {
                ScalarRef::UInt(value) => out.extend_from_slice(&value.to_be_bytes()),
                ScalarRef::Int(value) | ScalarRef::Time(value) => out.extend_from_slice(&value.to_be_bytes()),
                _ => return Err(RejectReason::Null),
            },
            Form::Hex => match scalar {
                ScalarRef::Text(text) if hex::decode(text, out) => {}
                _ => {
                    out.truncate(start);
                    return Err(RejectReason::NotHex);
                }
            },

            Form::Hash => {
                let hash = hash_of(scalar, calendar);
                out.extend_from_slice(format!("{hash:016x}").as_bytes());
            }
            Form::Salt(count) => {
                let salt = 1 + salt_hash(scalar, calendar) % u64::from(*count);
                out.extend_from_slice(itoa::Buffer::new().format(salt).as_bytes());
            }
        }
        Ok(())
    }

    /// Parses the field from its printed bytes into `builder`; false if they are malformed.
    pub(crate) fn read(&self, bytes: &[u8], builder: &mut ColumnBuilder) -> bool {
        match &self.form {
            Form::Text => builder.push_text(bytes),
            Form::ZeroPad(_) | Form::Epoch(_) | Form::MsReversed => {
                read_digits(bytes).is_some_and(|number| self.read_number(number, builder))
            }
            Form::SpacePad(_) => {
                let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
                builder.push_text(bytes.get(..end).unwrap_or_default())
            }
            Form::Time(format) => {
                let mut parts = TimeParts::default();
                format.read(bytes, &mut parts)
                    && parts.resolve(format.zone()).is_some_and(|time| builder.push_time(time))
            }

            Form::Reversed => std::str::from_utf8(bytes)
                .is_ok_and(|text| builder.push_text(text.chars().rev().collect::<String>().as_bytes())),
            Form::Domain => std::str::from_utf8(bytes).is_ok_and(|text| {
                let mut domain = Vec::with_capacity(text.len());
                write_domain(text, &mut domain);
                builder.push_text(&domain)
            }),
            Form::BigEndian => {
                <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| builder.push_raw(u64::from_be_bytes(bytes)))
            }
            Form::Percent(_) => percent::decode(bytes).is_some_and(|text| builder.push_text(&text)),
            Form::Hex => builder.push_text(hex::encode(bytes).as_bytes()),
            Form::Hash | Form::Salt(_) => false,
        }
    }

    /// Parses the time units in the bytes; false if they are malformed.
    pub(crate) fn read_time_parts(&self, bytes: &[u8], parts: &mut TimeParts) -> bool {
        if let Form::Time(format) = &self.form { format.read(bytes, parts) } else { false }
    }
}

/// A column of instants in UTC.
fn timestamps(times: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
}

/// The microseconds since the epoch of a number in its unit; `None` on overflow.
fn epoch_time(number: u64, epoch: Epoch) -> Option<i64> {
    i64::try_from(number).ok()?.checked_mul(epoch.size())
}

/// The microseconds since the epoch of `i64::MAX - ms`; `None` on overflow.
fn reversed_time(number: u64) -> Option<i64> {
    i64::MAX.checked_sub(i64::try_from(number).ok()?)?.checked_mul(1000)
}

/// Appends the labels of a domain name in reversed order; its own inverse.
fn write_domain(text: &str, out: &mut Vec<u8>) {
    for (at, label) in text.rsplit('.').enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label.as_bytes());
    }
}

/// The hash of the text of a value.
fn hash_of(scalar: ScalarRef<'_>, calendar: &mut Calendar) -> u64 {
    if let ScalarRef::Text(text) = scalar {
        return xxh3_64(text.as_bytes());
    }
    let mut text = Vec::with_capacity(32);
    scalar.write_text(calendar, &mut text);
    xxh3_64(&text)
}

/// The hash that salts are made of: times count by milliseconds, as Bigtable's timestamps do.
fn salt_hash(scalar: ScalarRef<'_>, calendar: &mut Calendar) -> u64 {
    match scalar {
        ScalarRef::Time(time) => xxh3_64(itoa::Buffer::new().format(time.div_euclid(1000)).as_bytes()),
        _ => hash_of(scalar, calendar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_is_decoded_as_each_of_them() {
        let forms = [
            Form::ZeroPad(20),
            Form::Epoch(Epoch::Seconds),
            Form::Epoch(Epoch::Millis),
            Form::Epoch(Epoch::Micros),
            Form::MsReversed,
        ];
        let greatest = i64::MAX.cast_unsigned();
        let reversed = |ms: u64| greatest - ms;
        let columns = [
            vec![],
            vec![0, 1, 1_514_764_800_123],
            vec![7, greatest / 1000],
            vec![7, greatest],
            vec![u64::MAX, 3],
            vec![reversed(1_514_764_800_123), reversed(0)],
        ];
        let mut at_once = 0;
        for form in forms {
            for kind in [FieldType::UInt64, FieldType::Int64, FieldType::Timestamp, FieldType::Date] {
                let field = FieldSegment { field: 0, kind, form: form.clone() };
                for numbers in &columns {
                    let Some(found) = field.read_numbers(numbers.clone()) else { continue };
                    let mut builder = ColumnBuilder::new(kind, numbers.len());
                    for number in numbers {
                        assert!(field.read_number(*number, &mut builder), "{form:?} of {kind:?}: {number}");
                    }
                    assert_eq!(&found, &builder.finish().unwrap(), "{form:?} of {kind:?}: {numbers:?}");
                    at_once += 1;
                }
            }
        }
        assert!(at_once > 20, "{at_once}");
    }
}
