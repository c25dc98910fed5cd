//! Times: text in every form in which people write them, and moments as a zone's clocks show them.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Date32Array, PrimitiveArray, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use chrono::{DateTime, NaiveDate, Offset, TimeZone};
use datafusion::common::{
    DFSchema, ScalarValue, exec_datafusion_err, exec_err, internal_err, plan_datafusion_err, plan_err,
};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tidetable_layout::LocalTime;
use tidetable_source::TimeCounts;

use super::is_text;
use super::time_counts::count_times;

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;

/// A zone as people name it: `Europe/Paris`, `UTC`, `+02:00`.
fn zone(name: &str) -> Option<Tz> {
    name.trim().parse().ok()
}

pub(super) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "utc" | "Etc/UTC" | "Z" | "+00:00" | "+00" | "GMT")
}

/// What a text says: the microseconds of its clock, and the offset or the zone behind it.
struct Written {
    local: i64,
    zone: Zone,
    /// Whether its clock shows second 60.
    leap: bool,
    /// Whether digits beyond the microsecond were cut that are not 0.
    cut: bool,
}

enum Zone {
    None,
    /// Seconds east of Greenwich.
    Offset(i64),
    Named(Tz),
}

/// Reads `2016-01-31`, `2016-01-31 00:10`, `2016-01-31T00:10:59.123456Z`, `.. +02:00`, `.. Europe/Paris`.
fn written(text: &str) -> Option<Written> {
    let text = text.trim();
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.trim_start()),
        None => (text, ""),
    };
    let separator = if date.contains('/') { '/' } else { '-' };
    let mut parts = date.split(separator);
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(4..=6).contains(&year.len()) {
        return None;
    }
    let days = days(number(year, 6)?, number(month, 2)?, number(day, 2)?)?;
    let clock_ends = rest.find(|c: char| !matches!(c, '0'..='9' | ':' | '.')).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(clock_ends);
    let local = days.checked_mul(DAY)?.checked_add(if rest.is_empty() { 0 } else { clock_micros(clock)? })?;
    let cut = clock.split_once('.').is_some_and(|(_, digits)| digits.bytes().skip(6).any(|digit| digit != b'0'));
    let leap = clock.split(['.', ':']).nth(2) == Some("60");
    Some(Written { local, zone: read_zone(zone.trim_start())?, leap, cut })
}

fn number(digits: &str, most: usize) -> Option<i64> {
    let plain = !digits.is_empty() && digits.len() <= most && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Days since the epoch, of a date of the calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let part = |part: i64| u32::try_from(part).ok();
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, part(month)?, part(day)?)?;
    Some(i64::from(date.to_epoch_days()))
}

/// `00:10`, `00:10:59`, `00:10:59.123456`; digits beyond microseconds are cut.
fn clock_micros(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut parts = clock.split(':');
    let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let seconds = parts.next().map_or(Some(0), |seconds| number(seconds, 2))?;
    let whole = hours == 24 && minutes == 0 && seconds == 0 && fraction.is_none();
    // The second that is added to a day before its clock is moved.
    if parts.next().is_some() || hours > 23 && !whole || minutes > 59 || seconds > 60 {
        return None;
    }
    let micros = match fraction {
        None => 0,
        Some(digits) => {
            number(digits.get(..digits.len().min(18))?, 18)?;
            digits
                .bytes()
                .chain(std::iter::repeat(b'0'))
                .take(6)
                .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        }
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * MICROS + micros)
}

fn read_zone(text: &str) -> Option<Zone> {
    if text.is_empty() {
        return Some(Zone::None);
    }
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt") {
        return Some(Zone::Offset(0));
    }
    let Some(sign) = text.strip_prefix('+').map(|_| 1).or_else(|| text.strip_prefix('-').map(|_| -1)) else {
        return zone(text).map(Zone::Named);
    };
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "00"),
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(Zone::Offset(sign * (hours * 60 + minutes) * 60))
}

/// The microseconds of a text, which is in UTC where it does not say otherwise.
pub(crate) fn time_of(text: &str) -> Option<i64> {
    micros(text, None)
}

/// The microseconds of a text; those without a zone are read by the clocks of `own`.
fn micros(text: &str, own: Option<Tz>) -> Option<i64> {
    let Some(Written { local, zone, leap, cut }) = written(text) else {
        // Forms that are rare: `2016-01-31 001059`.
        let utc = zone("UTC")?;
        return Some(string_to_datetime(&own.unwrap_or(utc), text.trim()).ok()?.timestamp_micros());
    };
    count_times(TimeCounts { repeated: 0, cut: u64::from(cut) });
    let moment = match (zone, own) {
        (Zone::Offset(seconds), _) => local.checked_sub(seconds * MICROS),
        (Zone::Named(zone), _) | (Zone::None, Some(zone)) => Clock::new(zone, "").moment(local),
        (Zone::None, None) => Some(local),
    };
    // A leap second is the last of a day in UTC.
    moment.filter(|moment| !leap || moment.div_euclid(MICROS) % 86_400 == 0)
}

/// The offsets of a zone.
struct Clock {
    zone: Tz,
    name: String,
    /// An hour since the epoch in which the offset does not change, and that offset in seconds.
    known: Option<(i64, i64)>,
}

impl Clock {
    fn new(zone: Tz, name: &str) -> Self {
        Self { zone, name: name.to_owned(), known: None }
    }

    /// What the clocks show, in microseconds; `None` beyond the calendar.
    fn local(&mut self, moment: i64) -> Option<i64> {
        let hour = moment.div_euclid(3_600 * MICROS);
        let offset = match self.known {
            Some((known, offset)) if known == hour => offset,
            _ => {
                let offset = self.offset(moment.div_euclid(MICROS))?;
                let ends = [self.offset(hour * 3_600)?, self.offset(hour * 3_600 + 3_599)?];
                self.known = (ends == [offset, offset]).then_some((hour, offset));
                offset
            }
        };
        moment.checked_add(offset * MICROS)
    }

    /// The moment at which the clocks show `local`, by the rule of [`LocalTime`]: the first of two, and none for one that they
    /// skip, as for one beyond the calendar.
    fn moment(&self, local: i64) -> Option<i64> {
        let meant = LocalTime::of(&self.zone, &DateTime::from_timestamp_micros(local)?.naive_utc());
        count_times(TimeCounts { repeated: u64::from(matches!(meant, LocalTime::Twice(_))), cut: 0 });
        local.checked_sub(i64::from(meant.offset()?) * MICROS)
    }

    fn offset(&self, seconds: i64) -> Option<i64> {
        let moment = DateTime::from_timestamp(seconds, 0)?.naive_utc();
        Some(i64::from(self.zone.offset_from_utc_datetime(&moment).fix().local_minus_utc()))
    }
}

/// `expr` with the reader of this module in place of the engine's, if it casts text to a time.
///
/// # Errors
/// If the text is a constant, and no time.
pub(crate) fn read_text(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let (inner, to, or_null) = match &expr {
        Expr::Cast(cast) => (cast.expr.as_ref(), cast.field.data_type(), false),
        Expr::TryCast(cast) => (cast.expr.as_ref(), cast.field.data_type(), true),
        _ => return Ok(expr),
    };
    let is_read = matches!(to, DataType::Timestamp(..) | DataType::Date32);
    if !is_read || !inner.get_type(schema).is_ok_and(|kind| is_text(&kind)) {
        return Ok(expr);
    }
    let reader = TextAsTime { to: to.clone(), or_null, signature: Signature::any(1, Volatility::Immutable) };
    if let Expr::Literal(text, _) = inner {
        reader.read(&text.to_array()?)?;
    }
    let func = Arc::new(ScalarUDF::new_from_impl(reader));
    Ok(match expr {
        Expr::Cast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        Expr::TryCast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        expr => expr,
    })
}

/// Text as a time or a date.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextAsTime {
    to: DataType,
    /// Whether what is no time is null, as for `TRY_CAST`.
    or_null: bool,
    signature: Signature,
}

impl ScalarUDFImpl for TextAsTime {
    fn name(&self) -> &str {
        "text_as_time"
    }

    /// As of the cast that it stands for.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|expr| expr.schema_name().to_string()).unwrap_or_default())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.or_null || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Scalar(text)] => {
                let done = self.read(&text.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?))
            }
            [ColumnarValue::Array(texts)] => Ok(ColumnarValue::Array(self.read(texts)?)),
            _ => internal_err!("text_as_time takes one argument"),
        }
    }
}

impl TextAsTime {
    fn read(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts: &StringArray = texts.as_string();
        if self.to == DataType::Date32 {
            let days = self.values(texts, |text| i32::try_from(written_days(text)?).ok())?;
            return Ok(Arc::new(days.into_iter().collect::<Date32Array>()));
        }
        let DataType::Timestamp(unit, own) = &self.to else { return internal_err!("{} is no time", self.to) };
        let own = own.as_deref().filter(|own| !is_utc(own)).and_then(zone);
        let micros = self.values(texts, |text| micros(text, own))?;
        let micros: TimestampMicrosecondArray = micros.into_iter().collect();
        let micros = micros.with_timezone_opt(match &self.to {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        });
        match unit {
            TimeUnit::Microsecond => Ok(Arc::new(micros)),
            _ => Ok(cast(&micros, &self.to)?),
        }
    }

    fn values<T>(&self, texts: &StringArray, read: impl Fn(&str) -> Option<T>) -> Result<Vec<Option<T>>> {
        let one = |text: Option<&str>| match text {
            None => Ok(None),
            Some(text) => match read(text) {
                None if !self.or_null => {
                    let wanted = if self.to == DataType::Date32 { "date" } else { "time" };
                    exec_err!(
                        "'{text}' is no {wanted}: write 2016-01-31, 2016-01-31 00:10 or 2016-01-31T00:10:59.123456, with Z or an \
                         offset such as +02:00 behind it if it is not in UTC"
                    )
                }
                value => Ok(value),
            },
        };
        texts.iter().map(one).collect()
    }
}

/// The day that a text names, whatever time of it.
fn written_days(text: &str) -> Option<i64> {
    match written(text) {
        Some(Written { local, .. }) => Some(local.div_euclid(DAY)),
        None => Date32Type::parse(text.trim()).map(i64::from),
    }
}

/// `timezone(zone, time)`, which `time AT TIME ZONE zone` stands for: of a moment what the clocks of the zone show then, without a
/// zone; of a time without a zone the moment at which they show it. As in PostgreSQL and DuckDB.
pub(super) fn at_time_zone() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(AtTimeZone { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// Name of [`at_time_zone`].
pub(crate) const TIMEZONE: &str = "timezone";

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        TIMEZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let [zone, time] = kinds else {
            return plan_err!("timezone takes a zone and a time, as in timezone('Europe/Paris', ts)");
        };
        if !is_text(zone) {
            return plan_err!("AT TIME ZONE takes the name of a zone, such as 'Europe/Paris', not {zone}");
        }
        let micros = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
        match time {
            DataType::Timestamp(_, zone) => Ok(vec![DataType::Utf8, micros(zone.clone())]),
            DataType::Date32 | DataType::Null => Ok(vec![DataType::Utf8, micros(Some("UTC".into()))]),
            text if is_text(text) => Ok(vec![DataType::Utf8, micros(Some("UTC".into()))]),
            other => plan_err!("AT TIME ZONE takes a time, not {other}"),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [_, DataType::Timestamp(_, Some(_))] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            [_, _] => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            _ => internal_err!("timezone takes two arguments"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if let Some(Some(ScalarValue::Utf8(Some(name)))) = args.scalar_arguments.first() {
            known_zone(name)?;
        }
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(TIMEZONE, self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let [zones, times] = args.args.as_slice() else { return internal_err!("timezone takes two arguments") };
        let times = times.to_array(if scalar { 1 } else { args.number_rows })?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let is_moment = times.timezone().is_some();
        let done: PrimitiveArray<TimestampMicrosecondType> = match zones {
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(name))) => {
                let mut clock = Clock::new(known_zone(name)?, name);
                times
                    .iter()
                    .map(|time| time.map(|time| shown(&mut clock, time, is_moment)).transpose())
                    .collect::<Result<_>>()?
            }
            ColumnarValue::Scalar(_) => PrimitiveArray::new_null(times.len()),
            ColumnarValue::Array(zones) => {
                let pairs = zones.as_string::<i32>().iter().zip(times);
                let one = |(zone, time): (Option<&str>, Option<i64>)| {
                    let (Some(zone), Some(time)) = (zone, time) else { return Ok(None) };
                    shown(&mut Clock::new(known_zone(zone)?, zone), time, is_moment).map(Some)
                };
                pairs.map(one).collect::<Result<_>>()?
            }
        };
        let done = if is_moment { done } else { done.with_timezone("UTC") };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(done)))
    }
}

fn shown(clock: &mut Clock, time: i64, is_moment: bool) -> Result<i64> {
    let shown = if is_moment { clock.local(time) } else { clock.moment(time) };
    shown.ok_or_else(|| match DateTime::from_timestamp_micros(time).filter(|_| !is_moment) {
        Some(local) => {
            let (local, name) = (local.naive_utc(), &clock.name);
            exec_datafusion_err!("{local} does not exist in {name}: the clocks go forward over it")
        }
        None => exec_datafusion_err!("the time {time} (microseconds since 1970) is beyond the calendar"),
    })
}

fn known_zone(name: &str) -> Result<Tz> {
    zone(name).ok_or_else(|| {
        plan_datafusion_err!(
            "there is no time zone '{name}': write a name such as Europe/Paris, or an offset such as +02:00"
        )
    })
}

/// Times in nanoseconds, of coarser ones that are compared with such: those beyond are the first or the last of them, for
/// they come before or after all that is there.
pub(crate) fn as_nanos(expr: Expr) -> Expr {
    let func = Arc::new(ScalarUDF::new_from_impl(AsNanos { signature: Signature::any(1, Volatility::Immutable) }));
    Expr::ScalarFunction(ScalarFunction { func, args: vec![expr] })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsNanos {
    signature: Signature,
}

impl ScalarUDFImpl for AsNanos {
    fn name(&self) -> &str {
        "as_nanos"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [DataType::Timestamp(_, zone)] => Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())),
            _ => internal_err!("as_nanos takes a time"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times] = args.args.as_slice() else { return internal_err!("as_nanos takes a time") };
        let is_scalar = matches!(times, ColumnarValue::Scalar(_));
        let times = times.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let DataType::Timestamp(unit, zone) = times.data_type().clone() else { return internal_err!("no time") };
        let factor = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let counts = cast(&times, &DataType::Int64)?;
        let nanos = counts
            .as_primitive::<Int64Type>()
            .unary::<_, TimestampNanosecondType>(|count| count.saturating_mul(factor));
        let nanos = nanos.with_timezone_opt(zone);
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&nanos, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(nanos)))
    }
}
