//! Compiled templates: literals and source fields in their forms, printed and taken apart again.

use xxhash_rust::xxh3::xxh3_64;

use crate::civil::{Calendar, DAY};
use crate::datum::Datum;
use crate::error::RejectReason;
use crate::percent;
use crate::read::Builder;
use crate::schema::TailPart;
use crate::template::{Epoch, Form};
use crate::time_format::{Moment, Unit, push_digits, read_digits};
use crate::value::FieldType;

/// A part of a compiled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    Field(FieldSegment),
}

/// A source field in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSegment {
    /// Index among the layout's fields.
    pub(crate) field: usize,
    pub(crate) kind: FieldType,
    pub(crate) form: Form,
}

/// Widest number of a zero-padded field, by its digits.
fn limit(width: u8) -> u64 {
    10u64.checked_pow(width.into()).map_or(u64::MAX, |power| power - 1)
}

/// Microseconds of a time or of a date's midnight.
fn instant(datum: Datum<'_>) -> Option<i64> {
    match datum {
        Datum::Time(time) => Some(time),
        // Of a day beyond all times the greatest or least, which has no year of four digits either.
        Datum::Date(days) => Some(i64::from(days).saturating_mul(DAY)),
        _ => None,
    }
}

impl Segment {
    pub(crate) fn field(&self) -> Option<&FieldSegment> {
        if let Self::Field(field) = self { Some(field) } else { None }
    }

    /// Bytes it prints; `None` if they vary.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Self::Literal(text) => Some(text.len()),
            Self::Field(field) => field.width(),
        }
    }

    /// Its shape in a key tail, if it can be part of one.
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
    /// Digits of a form that prints one zero-padded number.
    fn digits(&self) -> Option<u8> {
        match &self.form {
            Form::ZeroPad(width) => Some(*width),
            Form::Epoch(epoch) => Some(epoch.width()),
            Form::MsReversed => Some(19),
            _ => None,
        }
    }

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

    /// Whether it prints a moment, or a part of one.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self.kind, FieldType::Timestamp | FieldType::Date) && !matches!(self.form, Form::Salt(_) | Form::Hash)
    }

    /// Steps in which the field reads back from it (1 is exact); `None` if it does not.
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

    /// The smallest step of a moment that shows in it; 1 for what is no time.
    pub(crate) fn finest(&self) -> i64 {
        match &self.form {
            Form::Epoch(epoch) => epoch.size(),
            Form::MsReversed | Form::Salt(_) if self.is_instant() => 1000,
            Form::Time(format) => format.finest().unwrap_or(1),
            _ => 1,
        }
    }

    /// Microseconds, at multiples of which alone its [`FieldSegment::number`] can change.
    pub(crate) fn even_step(&self) -> i64 {
        match &self.form {
            Form::Time(format) if format.zone().is_some() => 1,
            _ => self.finest().clamp(1, DAY),
        }
    }

    /// Whether it prints nothing but hours and minutes in UTC.
    pub(crate) fn is_minute_of_day(&self) -> bool {
        let Form::Time(format) = &self.form else { return false };
        let small = |unit| matches!(unit, Unit::Hour | Unit::Minute);
        self.is_instant() && format.zone().is_none() && self.is_number() && format.units().all(small)
    }

    /// Whether different values always print differently.
    pub(crate) fn is_injective(&self) -> bool {
        !matches!(self.form, Form::Hash | Form::Salt(_))
    }

    fn is_instant(&self) -> bool {
        self.kind == FieldType::Timestamp
    }

    /// Whether it has a [`FieldSegment::number`].
    pub(crate) fn is_number(&self) -> bool {
        match &self.form {
            Form::Time(format) => format.tail_parts().is_some(),
            _ => self.digits().is_some(),
        }
    }

    /// All the digits it prints as one number.
    pub(crate) fn number(&self, datum: Datum<'_>, calendar: &mut Calendar) -> Result<u64, RejectReason> {
        let time = || instant(datum).ok_or(RejectReason::Null);
        match &self.form {
            Form::ZeroPad(width) => {
                let value = match datum {
                    Datum::UInt(value) => value,
                    Datum::Int(value) => u64::try_from(value).map_err(|_| RejectReason::Negative)?,
                    _ => return Err(RejectReason::Null),
                };
                if value > limit(*width) {
                    Err(RejectReason::TooWide { width: usize::from(*width) })
                } else {
                    Ok(value)
                }
            }
            Form::Epoch(epoch) => {
                let value = u64::try_from(epoch.of_micros(time()?)).map_err(|_| RejectReason::NegativeTimestamp)?;
                let width = epoch.width();
                if value > limit(width) { Err(RejectReason::TooWide { width: usize::from(width) }) } else { Ok(value) }
            }
            Form::MsReversed => {
                let ms = time()?.div_euclid(1000);
                if ms < 0 { Err(RejectReason::NegativeTimestamp) } else { Ok((i64::MAX - ms).cast_unsigned()) }
            }
            Form::Time(format) => format.number(time()?, calendar),
            _ => Err(RejectReason::Null),
        }
    }

    /// Undoes [`FieldSegment::number`] for a value that is one number, or adds to `moment` for a time format.
    pub(crate) fn read_number(&self, number: u64, builder: &mut Builder) -> bool {
        match &self.form {
            Form::ZeroPad(_) => builder.push_unsigned(number),
            Form::Epoch(epoch) => epoch_time(number, *epoch).is_some_and(|time| builder.push_time(time)),
            Form::MsReversed => reversed_time(number).is_some_and(|time| builder.push_time(time)),
            Form::Time(format) => {
                let mut moment = Moment::default();
                format.read_number(number, &mut moment);
                moment.resolve(format.zone()).is_some_and(|time| builder.push_time(time))
            }
            _ => false,
        }
    }

    /// Appends what it prints for `datum`.
    pub(crate) fn write(
        &self,
        datum: Datum<'_>,
        calendar: &mut Calendar,
        out: &mut Vec<u8>,
    ) -> Result<(), RejectReason> {
        let start = out.len();
        match &self.form {
            Form::Text | Form::Percent(_) => {
                if let Some(time) = instant(datum)
                    && !(0..=9999).contains(&calendar.at(time).year)
                {
                    return Err(RejectReason::Year);
                }
                datum.write_text(calendar, out);
                if let Form::Percent(escapes) = &self.form {
                    let text = String::from_utf8_lossy(&out.split_off(start)).into_owned();
                    escapes.write(&text, out);
                }
            }
            Form::ZeroPad(_) | Form::Epoch(_) | Form::MsReversed => {
                let number = self.number(datum, calendar)?;
                push_digits(number, usize::from(self.digits().unwrap_or(0)), out);
            }
            Form::SpacePad(width) => {
                let width = usize::from(*width);
                datum.write_text(calendar, out);
                let text = out.get(start..).unwrap_or_default();
                // A space must stay the least byte, or padded keys would not sort as their values.
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
                let time = instant(datum).ok_or(RejectReason::Null)?;
                format.write(time, calendar, out)?;
            }
            Form::Reversed => {
                let mut text = Vec::new();
                datum.write_text(calendar, &mut text);
                let text = String::from_utf8_lossy(&text);
                out.extend(text.chars().rev().collect::<String>().into_bytes());
            }
            Form::Domain => {
                if let Datum::Text(text) = datum {
                    write_domain(text, out);
                }
            }
            Form::BigEndian => match datum {
                Datum::UInt(value) => out.extend_from_slice(&value.to_be_bytes()),
                Datum::Int(value) | Datum::Time(value) => out.extend_from_slice(&value.to_be_bytes()),
                _ => return Err(RejectReason::Null),
            },
            Form::Hash => {
                let hash = hash_of(datum, calendar);
                out.extend_from_slice(format!("{hash:016x}").as_bytes());
            }
            Form::Salt(count) => {
                let salt = 1 + salt_hash(datum, calendar) % u64::from(*count);
                out.extend_from_slice(itoa::Buffer::new().format(salt).as_bytes());
            }
        }
        Ok(())
    }

    /// Reads the field back from what it printed; false if that is not what it prints.
    pub(crate) fn read(&self, bytes: &[u8], builder: &mut Builder) -> bool {
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
                let mut moment = Moment::default();
                format.read(bytes, &mut moment)
                    && moment.resolve(format.zone()).is_some_and(|time| builder.push_time(time))
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
            Form::Hash | Form::Salt(_) => false,
        }
    }

    /// Adds what the bytes say of a moment; false if they are not what it prints.
    pub(crate) fn read_moment(&self, bytes: &[u8], moment: &mut Moment) -> bool {
        if let Form::Time(format) = &self.form { format.read(bytes, moment) } else { false }
    }
}

/// Microseconds of an epoch in its unit.
fn epoch_time(number: u64, epoch: Epoch) -> Option<i64> {
    i64::try_from(number).ok()?.checked_mul(epoch.size())
}

/// Microseconds of i64::MAX - ms.
fn reversed_time(number: u64) -> Option<i64> {
    i64::MAX.checked_sub(i64::try_from(number).ok()?)?.checked_mul(1000)
}

fn write_domain(text: &str, out: &mut Vec<u8>) {
    for (at, label) in text.rsplit('.').enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label.as_bytes());
    }
}

fn hash_of(datum: Datum<'_>, calendar: &mut Calendar) -> u64 {
    if let Datum::Text(text) = datum {
        return xxh3_64(text.as_bytes());
    }
    let mut text = Vec::with_capacity(32);
    datum.write_text(calendar, &mut text);
    xxh3_64(&text)
}

fn salt_hash(datum: Datum<'_>, calendar: &mut Calendar) -> u64 {
    match datum {
        Datum::Time(time) => xxh3_64(itoa::Buffer::new().format(time.div_euclid(1000)).as_bytes()),
        _ => hash_of(datum, calendar),
    }
}

/// Appends a whole template; on failure says which field is at fault. `out` is left as far as it got.
pub(crate) fn write_segments<'a>(
    segments: &[Segment],
    get: impl Fn(usize) -> Option<Datum<'a>>,
    calendar: &mut Calendar,
    out: &mut Vec<u8>,
) -> Result<(), (usize, RejectReason)> {
    for (at, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Segment::Field(field) => {
                let datum = get(field.field).ok_or((field.field, RejectReason::Null))?;
                let start = out.len();
                field.write(datum, calendar, out).map_err(|reason| (field.field, reason))?;
                if field.width().is_none()
                    && let Some(Segment::Literal(literal)) = segments.get(at + 1)
                {
                    check_delimiter(out, start, literal).map_err(|reason| (field.field, reason))?;
                }
            }
        }
    }
    Ok(())
}

/// The end of the value at `start` of `out` must be found by looking for the literal after it.
fn check_delimiter(out: &mut Vec<u8>, start: usize, literal: &str) -> Result<(), RejectReason> {
    let end = out.len();
    out.extend_from_slice(literal.as_bytes());
    let found = out.get(start..).and_then(|rest| find(rest, literal.as_bytes()));
    out.truncate(end);
    if found == Some(end - start) { Ok(()) } else { Err(RejectReason::Delimiter { literal: literal.to_owned() }) }
}

/// First place of `needle`, which is not empty, in `haystack`.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len().max(1)).position(|window| window == needle)
}

/// Takes `bytes` apart into `out`: for each segment the bytes it printed. False if the template cannot have printed them.
pub(crate) fn split<'b>(segments: &[Segment], bytes: &'b [u8], out: &mut Vec<&'b [u8]>) -> bool {
    out.clear();
    let mut rest = bytes;
    for (at, segment) in segments.iter().enumerate() {
        let length = match (segment.width(), segments.get(at + 1)) {
            (Some(width), _) => Some(width),
            (None, None) => Some(rest.len()),
            (None, Some(Segment::Literal(literal))) => find(rest, literal.as_bytes()),
            // What follows is all of fixed width: compilation saw to it.
            (None, Some(_)) => {
                let after: Option<usize> = segments.iter().skip(at + 1).map(Segment::width).sum();
                after.and_then(|after| rest.len().checked_sub(after))
            }
        };
        let Some((own, after)) = length.and_then(|length| rest.split_at_checked(length)) else { return false };
        if let Segment::Literal(text) = segment
            && own != text.as_bytes()
        {
            return false;
        }
        out.push(own);
        rest = after;
    }
    rest.is_empty()
}
