//! Parses text as times, in more forms than DataFusion.

pub(crate) mod date_bin;
pub(crate) mod date_intervals;
pub(crate) mod date_part;
pub(crate) mod date_trunc;
pub(crate) mod gapfill;
pub(crate) mod interval_products;
pub(crate) mod micros;
pub(crate) mod time_bucket;
pub(crate) mod time_counts;
pub(crate) mod to_char;
pub(crate) mod zones;

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Date32Array, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit, TimestampNanosecondType};
use chrono::NaiveDate;
use datafusion::common::{DFSchema, ScalarValue, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tidetable_source::TimeCounts;

use crate::argument_types::is_text;
use crate::conversion::{Conversion, check_constant, converted};
use crate::times::time_counts::count_times;
use crate::times::zones::{Clock, is_utc, ticks_per_second, zone};

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;

/// A parsed time: local microseconds, and its offset or zone.
struct ParsedTime {
    local: i64,
    zone: Zone,
    /// Whether it is a leap second, `:60`.
    leap: bool,
    /// Whether non-zero digits beyond the microsecond were cut off.
    cut: bool,
}

enum Zone {
    None,
    /// Seconds that local time is ahead of UTC; negative west of Greenwich.
    Offset(i64),
    Named(Tz),
}

/// Parses `2016-01-31`, `2016-01-31 00:10`, `2016-01-31T00:10:59.123456Z`, `.. +02:00`, `.. Europe/Paris`.
fn parse_time_text(text: &str) -> Option<ParsedTime> {
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
    let local = days.checked_mul(DAY)?.checked_add(if rest.is_empty() { 0 } else { parse_clock(clock)? })?;
    let cut = clock.split_once('.').is_some_and(|(_, digits)| digits.bytes().skip(6).any(|digit| digit != b'0'));
    let leap = clock.split(['.', ':']).nth(2) == Some("60");
    Some(ParsedTime { local, zone: parse_zone(zone.trim_start())?, leap, cut })
}

fn number(digits: &str, most: usize) -> Option<i64> {
    let plain = !digits.is_empty() && digits.len() <= most && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Days since the epoch; `None` for an invalid date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(i64::from(date.to_epoch_days()))
}

/// Parses `00:10`, `00:10:59`, `00:10:59.123456`; digits beyond microseconds are cut off.
fn parse_clock(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut parts = clock.split(':');
    let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let seconds = parts.next().map_or(Some(0), |seconds| number(seconds, 2))?;

    let whole = hours == 24 && minutes == 0 && seconds == 0 && fraction.is_none();
    // Second 60 is a leap second.
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

fn parse_zone(text: &str) -> Option<Zone> {
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

/// Parses a time to microseconds; without a zone it is in UTC.
pub fn parse_time(text: &str) -> Option<i64> {
    micros(text, None)
}

/// As [`parse_time`], but a time without a zone is local time in `own`.
pub(crate) fn parse_time_in(text: &str, own: Tz) -> Option<i64> {
    micros(text, Some(own))
}

/// Parses a time to microseconds; without a zone it is local time in `own`.
fn micros(text: &str, own: Option<Tz>) -> Option<i64> {
    let Some(ParsedTime { local, zone, leap, cut }) = parse_time_text(text) else {
        // Rare forms: `2016-01-31 001059`.
        let utc = zone("UTC")?;
        return Some(string_to_datetime(&own.unwrap_or(utc), text.trim()).ok()?.timestamp_micros());
    };
    count_times(TimeCounts { cut: u64::from(cut), ..TimeCounts::default() });
    let instant = match (zone, own) {
        (Zone::Offset(seconds), _) => local.checked_sub(seconds * MICROS),
        (Zone::Named(zone), _) | (Zone::None, Some(zone)) => Clock::new(zone, "").instant(local),
        (Zone::None, None) => Some(local),
    };
    // A leap second is the last of a UTC day.
    instant.filter(|instant| !leap || instant.div_euclid(MICROS) % 86_400 == 0)
}

/// Replaces `expr` by this parser, if it casts text to a time.
///
/// # Errors
/// If the text is a constant that is not a time.
pub fn parse_time_casts(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let expr = converted::<TextToTime>(expr, schema);
    check_constant::<TextToTime>(&expr)?;
    Ok(expr)
}

/// Casts text to a time or a date.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextToTime;

impl Conversion for TextToTime {
    const NAME: &str = "text_as_time";

    fn is_for(from: &DataType, to: &DataType) -> bool {
        is_text(from) && matches!(to, DataType::Timestamp(..) | DataType::Date32)
    }

    fn convert(texts: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts: &StringArray = texts.as_string();
        if *to == DataType::Date32 {
            let days = values(texts, "date", or_null, |text| i32::try_from(parse_days(text)?).ok())?;
            return Ok(Arc::new(days.into_iter().collect::<Date32Array>()));
        }
        let DataType::Timestamp(unit, own) = to else { return internal_err!("{to} is not a timestamp") };
        let own = own.as_deref().filter(|own| !is_utc(own)).and_then(zone);
        let micros = values(texts, "time", or_null, |text| micros(text, own))?;
        let micros: TimestampMicrosecondArray = micros.into_iter().collect();
        let micros = micros.with_timezone_opt(match to {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        });
        match unit {
            TimeUnit::Microsecond => Ok(Arc::new(micros)),
            _ => Ok(cast(&micros, to)?),
        }
    }
}

/// Reads each text with `read`; one that `read` refuses is null with `or_null`, else an error that asks for a `wanted`.
fn values<T>(
    texts: &StringArray,
    wanted: &str,
    or_null: bool,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        let value = text.and_then(&read);
        if let (Some(text), None, false) = (text, &value, or_null) {
            return exec_err!(
                "'{text}' is no {wanted}: write 2016-01-31, 2016-01-31 00:10 or 2016-01-31T00:10:59.123456, with Z or an \
                 offset such as +02:00 behind it if it is not in UTC"
            );
        }
        values.push(value);
    }
    Ok(values)
}

/// The day of a time; its clock is ignored.
fn parse_days(text: &str) -> Option<i64> {
    match parse_time_text(text) {
        Some(ParsedTime { local, .. }) => Some(local.div_euclid(DAY)),
        None => Date32Type::parse(text.trim()).map(i64::from),
    }
}

/// Casts coarser times to nanoseconds for comparisons, saturating: a time beyond the range becomes the first or the
/// last, which preserves the order.
pub fn as_nanos(expr: Expr) -> Expr {
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
        let DataType::Timestamp(unit, zone) = times.data_type().clone() else {
            return internal_err!("not a timestamp");
        };
        let factor = ticks_per_second(TimeUnit::Nanosecond) / ticks_per_second(unit);
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
