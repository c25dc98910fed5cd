//! First lines that are no header: those of a log, and of InfluxDB's line protocol.

use crate::format::conversion;
use crate::sample::error::SampleError;
use crate::sample::times;

/// Lines that are looked at, and fewest of them.
const LINES: usize = 50;
const FEWEST: usize = 2;
/// Most values in a second.
const LARGEST_RATE: f64 = 100_000.0;
/// Characters at the start of a line in which a time is looked for.
const START: usize = 32;
/// Forms of a date or a clock, with `0` for each digit.
const TIMES: [&str; 3] = ["00:00", "0000-00-00", "0000/00/00"];
/// The share of lines (percent) that begin in the form of the first.
const ALIKE: usize = 80;

/// Whether the first line begins with a time, and most lines below it in the same form: it is no header.
pub(super) fn begins_like_others(bytes: &[u8]) -> bool {
    let mut lines = first_lines(bytes);
    let Some(first) = lines.next().map(form_of) else { return false };
    let time_end = TIMES.iter().filter_map(|time| first.find(time).map(|start| start + time.len())).min();
    let Some(start) = time_end.and_then(|end| first.get(..end)) else { return false };

    let (mut count, mut alike) = (0, 0);
    for line in lines {
        count += 1;
        alike += usize::from(form_of(line).starts_with(start));
    }
    count >= FEWEST && alike * 100 >= count * ALIKE
}

/// Whether all first lines are of InfluxDB's line protocol: `weather,city=Gent temp=20.4,hum=64i 1704067200000000000`.
pub(super) fn is_line_protocol(bytes: &[u8]) -> bool {
    let mut lines = first_lines(bytes).filter(|line| !line.starts_with(b"#")).peekable();
    lines.peek().is_some() && lines.all(|line| std::str::from_utf8(line).is_ok_and(is_point))
}

/// The error for a file in which nothing separates columns. Where the first line is a time in seconds and the second a rate, as
/// wearables write them, a command makes the time of each value.
pub(super) fn error_of_one_column(path: &str, bytes: &[u8]) -> SampleError {
    let numbers: Vec<Option<f64>> =
        first_lines(bytes).map(|line| std::str::from_utf8(line).ok()?.parse().ok()).collect();
    let are_numbers = numbers.iter().all(Option::is_some);
    let path = path.to_owned();
    let [Some(start), Some(rate), Some(_), ..] = numbers.as_slice() else { return SampleError::OneColumn { path } };
    let is_rate = *rate > 0.0 && *rate <= LARGEST_RATE;
    if !are_numbers || !is_rate || !times::are_likely_seconds(*start) {
        return SampleError::OneColumn { path };
    }
    let filter = "awk 'NR == 1 { start = $1; print \"time,value\"; next } NR == 2 { rate = $1; next } \
                  { printf \"%.6f,%s\\n\", start + (count++) / rate, $1 }'";
    SampleError::StartAndRate { command: conversion(&path, filter, true), path }
}

/// Whole lines of the beginning of a text that are not blank. A last line may be cut off, unless it is the only one.
fn first_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
    let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).take(LINES)
}

/// The start of a line with `0` for each digit and `a` for each letter, lower-case or not.
fn form_of(line: &[u8]) -> String {
    let letters = line.iter().take(START).map(|byte| match byte {
        b'0'..=b'9' => '0',
        letter if letter.is_ascii_alphabetic() => 'a',
        other => char::from(*other),
    });
    letters.collect()
}

/// Whether a line is a point: a measurement with tags, fields, and perhaps a time in digits.
fn is_point(line: &str) -> bool {
    let Some((series, rest)) = line.split_once(' ').filter(|(series, _)| !series.ends_with('\\')) else { return false };
    let (fields, time) = match rest.rsplit_once(' ') {
        Some((fields, time)) if is_whole(time) => (fields, Some(time)),
        _ => (rest, None),
    };

    let mut tags = series.split(',');
    let has_measurement = tags.next().is_some_and(|name| !name.is_empty() && !name.contains(['=', '"']));
    let has_tags = tags.all(|tag| tag.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty()));
    let first_field = fields.split_once('=').filter(|(key, _)| !key.is_empty() && !key.contains([' ', ',', '"']));
    has_measurement && has_tags && first_field.is_some_and(|(_, value)| is_field(value, time.is_some()))
}

/// Whether a field may have this value, which may be followed by other fields.
fn is_field(value: &str, has_time: bool) -> bool {
    if value.starts_with('"') {
        return true;
    }
    let value = value.split(',').next().unwrap_or_default();
    let is_number = value.strip_suffix(['i', 'u']).unwrap_or(value).parse::<f64>().is_ok();
    let is_flag = matches!(value, "t" | "T" | "true" | "True" | "TRUE" | "f" | "F" | "false" | "False" | "FALSE");
    is_number || has_time && is_flag
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_have_no_header() {
        let log =
            b"May 13 00:00:00 h1 app[21]: took 96 ms, ok\nMay 13 00:00:02 h2 cron: run, ok\nJun 14 01:00:04 x: y, z\n";
        assert!(begins_like_others(log));
        assert!(!begins_like_others(b"time,v\n2024-01-01 00:00,1\n2024-01-01 00:01,2\n"));
        assert!(!begins_like_others(b"id,2024-01-01,2024-01-02\na,1,2\nb,3,4\n"));
        assert!(!begins_like_others(b"1990,1991\n1200,1300\n1400,1500\n"));
    }

    #[test]
    fn line_protocol_is_known() {
        assert!(is_line_protocol(b"weather,city=Gent temp=20.4,hum=64i 1704067200000000000\nweather temp=1\n"));
        assert!(is_line_protocol(b"# made\nlogin,host=a user=\"a b\",ok=t 1704067200\n"));
        for other in [&b"a,b c,d=1\n"[..], b"ts,v\n2024,1\n", b"INFO took=5ms, ok\n", b"x y z=1 2\n", b""] {
            assert!(!is_line_protocol(other), "{}", String::from_utf8_lossy(other));
        }
    }
}
