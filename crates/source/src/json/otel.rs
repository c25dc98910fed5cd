//! Batches of OpenTelemetry, as the file exporter of its collector writes them: a line has the metrics, logs or spans of
//! several resources. Each data point, log record and span becomes an object of its own:
//!
//! ```json
//! {"resource":{"service.name":"web"},"scope":{"name":"http"},"name":"requests","unit":"1","type":"sum",
//!  "attributes":{"code":"200"},"timeUnixNano":"1544712660300000000","value":5}
//! ```
//!
//! Attributes become members, `asDouble` and `asInt` become `value`, and a body is its text; the rest keeps its names.

use std::ops::Range;

use crate::json::scan::{Fault, Scanner, elements};

/// Where a member of an object is: its key, without quotes, and its value.
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

/// The lists of resources, the lists in them, and the lists in those.
const SIGNALS: [(&[u8], &[u8], &[u8]); 3] = [
    (b"resourceMetrics", b"scopeMetrics", b"metrics"),
    (b"resourceLogs", b"scopeLogs", b"logRecords"),
    (b"resourceSpans", b"scopeSpans", b"spans"),
];
/// Where the data points of a metric are.
const POINTS: [&[u8]; 5] = [b"gauge", b"sum", b"histogram", b"exponentialHistogram", b"summary"];

/// Whether an object with this key is a batch.
pub(crate) fn is_batch_key(key: &[u8]) -> bool {
    SIGNALS.iter().any(|(signal, ..)| *signal == key)
}

/// Appends the events of a record to `into`, each as an object and a line end. A record that is no batch is an event.
pub(super) fn events(text: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
    let mut checked = Scanner::new(text, 0);
    if checked.peek() != Some(b'{') {
        return Err(checked.fault("a record is an object in braces"));
    }
    let start = checked.at();
    checked.value()?;
    checked.end()?;

    let mut is_batch = false;
    for Member { key, value } in members(text, start)? {
        let key = text.get(key).unwrap_or_default();
        let Some((_, scopes, items)) = SIGNALS.iter().find(|(signal, ..)| *signal == key) else { continue };
        is_batch = true;
        for resource in elements(text, value.start)? {
            of_resource(text, resource, scopes, items, into)?;
        }
    }

    if !is_batch {
        into.extend_from_slice(text);
        into.push(b'\n');
    }
    Ok(())
}

/// Appends the events of one resource; `scopes` and `items` are the names of the lists in it.
fn of_resource(text: &[u8], resource: usize, scopes: &[u8], items: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
    let mut start = b"{\"resource\":".to_vec();
    let inside = members(text, resource)?;
    match find(text, &inside, b"resource") {
        Some(found) => match find(text, &members(text, found.start)?, b"attributes") {
            Some(list) => attributes(text, list.start, &mut start)?,
            None => start.extend_from_slice(b"{}"),
        },
        None => start.extend_from_slice(b"{}"),
    }

    let Some(scopes) = find(text, &inside, scopes) else { return Ok(()) };
    for scope in elements(text, scopes.start)? {
        let inside = members(text, scope)?;
        let mut start = start.clone();
        if let Some(scope) = find(text, &inside, b"scope") {
            start.extend_from_slice(b",\"scope\":");
            start.extend_from_slice(text.get(scope).unwrap_or_default());
        }

        let Some(items) = find(text, &inside, items) else { continue };
        for item in elements(text, items.start)? {
            of_item(text, item, &start, into)?;
        }
    }
    Ok(())
}

/// The events of a metric, or the one of a log record or span. `start` is what all events of the scope begin with.
fn of_item(text: &[u8], item: usize, start: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
    let inside = members(text, item)?;
    let kind = POINTS.into_iter().find_map(|kind| Some((kind, find(text, &inside, kind)?)));
    let Some((kind, points)) = kind else {
        into.extend_from_slice(start);
        copy(text, &inside, into)?;
        into.extend_from_slice(b"}\n");
        return Ok(());
    };

    let mut start = start.to_vec();
    for name in [&b"name"[..], b"unit"] {
        if let Some(value) = find(text, &inside, name) {
            add(&mut start, name, text.get(value).unwrap_or_default());
        }
    }
    add(&mut start, b"type", &[b"\"", kind, b"\""].concat());

    let Some(points) = find(text, &members(text, points.start)?, b"dataPoints") else { return Ok(()) };
    for point in elements(text, points.start)? {
        into.extend_from_slice(&start);
        copy(text, &members(text, point)?, into)?;
        into.extend_from_slice(b"}\n");
    }
    Ok(())
}

/// Adds the members of a data point, log record or span.
fn copy(text: &[u8], inside: &[Member], into: &mut Vec<u8>) -> Result<(), Fault> {
    for Member { key, value } in inside {
        let (name, written) = (text.get(key.clone()).unwrap_or_default(), text.get(value.clone()).unwrap_or_default());
        match name {
            b"attributes" if written.starts_with(b"[") => {
                into.extend_from_slice(b",\"attributes\":");
                attributes(text, value.start, into)?;
            }
            b"asDouble" | b"asInt" => add(into, b"value", written),
            b"body" => add(into, name, any_value(text, value)?),
            _ => add(into, name, written),
        }
    }
    Ok(())
}

fn add(into: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    for part in [b",\"", key, b"\":", value] {
        into.extend_from_slice(part);
    }
}

/// Appends a list of keys and values as an object.
fn attributes(text: &[u8], list: usize, into: &mut Vec<u8>) -> Result<(), Fault> {
    into.push(b'{');
    let mut is_first = true;
    for element in elements(text, list)? {
        let inside = members(text, element)?;
        let Some(key) = find(text, &inside, b"key") else { continue };
        let Some(value) = find(text, &inside, b"value") else { continue };
        into.extend_from_slice(if is_first { b"" } else { b"," });
        into.extend_from_slice(text.get(key).unwrap_or_default());
        into.push(b':');
        into.extend_from_slice(any_value(text, &value)?);
        is_first = false;
    }
    into.push(b'}');
    Ok(())
}

/// What `{"stringValue": "x"}` holds; the value itself if it is no such object.
fn any_value<'a>(text: &'a [u8], value: &Range<usize>) -> Result<&'a [u8], Fault> {
    let written = text.get(value.clone()).unwrap_or_default();
    if !written.starts_with(b"{") {
        return Ok(written);
    }
    let inside = members(text, value.start)?;
    let [Member { key, value }] = inside.as_slice() else { return Ok(b"null") };
    let is_typed = text.get(key.clone()).is_some_and(|key| key.ends_with(b"Value"));
    Ok(if is_typed { text.get(value.clone()).unwrap_or_default() } else { written })
}

/// The keys, without quotes, and values of the object at `start`; none if there is no object.
fn members(text: &[u8], start: usize) -> Result<Vec<Member>, Fault> {
    let mut scanner = Scanner::new(text, start);
    let mut found = Vec::new();
    if scanner.peek() != Some(b'{') {
        return Ok(found);
    }
    scanner.enter()?;
    while let Some(key) = scanner.key(found.is_empty())? {
        let value = scanner.written()?;
        found.push(Member { key: key.range, value });
    }
    Ok(found)
}

fn find(text: &[u8], inside: &[Member], key: &[u8]) -> Option<Range<usize>> {
    let member = inside.iter().find(|member| text.get(member.key.clone()) == Some(key));
    member.map(|member| member.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut into = Vec::new();
        events(text.as_bytes(), &mut into).unwrap();
        let text = String::from_utf8(into).unwrap();
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn data_points_log_records_and_spans_are_events() {
        let metrics = r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},
            "scopeMetrics":[{"scope":{"name":"http"},"metrics":[{"name":"requests","unit":"1","sum":{"dataPoints":[
            {"attributes":[{"key":"code","value":{"intValue":"200"}}],"timeUnixNano":"1","asInt":"5"},{"timeUnixNano":"2","asDouble":0.5}]}},
            {"name":"latency","histogram":{"dataPoints":[{"timeUnixNano":"3","count":"2","sum":7.5,"bucketCounts":["1","1"]}]}}]}]}]}"#;
        assert_eq!(
            found(metrics),
            [
                r#"{"resource":{"service.name":"web"},"scope":{"name":"http"},"name":"requests","unit":"1","type":"sum","attributes":{"code":"200"},"timeUnixNano":"1","value":"5"}"#,
                r#"{"resource":{"service.name":"web"},"scope":{"name":"http"},"name":"requests","unit":"1","type":"sum","timeUnixNano":"2","value":0.5}"#,
                r#"{"resource":{"service.name":"web"},"scope":{"name":"http"},"name":"latency","type":"histogram","timeUnixNano":"3","count":"2","sum":7.5,"bucketCounts":["1","1"]}"#,
            ]
        );
        let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","severityText":"WARN","body":{"stringValue":"full"}}]}]}]}"#;
        assert_eq!(found(logs), [r#"{"resource":{},"timeUnixNano":"1","severityText":"WARN","body":"full"}"#]);
        let spans = r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"traceId":"a","name":"get","status":{"code":1}}]}]}]}"#;
        assert_eq!(found(spans), [r#"{"resource":{},"traceId":"a","name":"get","status":{"code":1}}"#]);
        assert_eq!(found(r#"{"name":"an event"}"#), [r#"{"name":"an event"}"#]);
        assert!(events(b"{\"resourceLogs\":[", &mut Vec::new()).is_err());
    }
}
