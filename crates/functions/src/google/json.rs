//! Values inside of JSON text, by path: `JSON_VALUE(text, '$.a.b[0]')`.
//!
//! Paths name places in the text itself, so that objects keep the order of their members, and numbers their digits.

use serde::de::IgnoredAny;

use crate::google::function::Takes::{String as Str, Text};
use crate::google::function::{Definition, Gives};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("json_value", &[Str, Text], Gives::Text, json_value).with_arguments(1, 2),
    Definition::new("json_extract_scalar", &[Str, Text], Gives::Text, json_value).with_arguments(1, 2),
    Definition::new("json_query", &[Str, Text], Gives::Text, json_query).with_arguments(1, 2),
    Definition::new("json_extract", &[Str, Text], Gives::Text, json_query).with_arguments(1, 2),
    Definition::new("json_value_array", &[Str, Text], Gives::Strings, json_value_array).with_arguments(1, 2),
    Definition::new("json_query_array", &[Str, Text], Gives::Strings, json_query_array).with_arguments(1, 2),
];

type Row<'a> = Result<Value<'a>, String>;

/// A step of a path.
#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Item(usize),
}

/// The text of the value at the path; `None` if the text is not JSON, or has no such value.
fn value_of<'v>(args: &'v [Value<'_>]) -> Result<Option<&'v str>, String> {
    let [json, rest @ ..] = args else { return Ok(None) };
    let steps = match rest.first() {
        Some(path) => steps(path.as_text())?,
        None => Vec::new(),
    };
    let Ok(text) = std::str::from_utf8(json.as_bytes()) else { return Ok(None) };
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Ok(None);
    }
    let mut value = text.trim();
    for step in &steps {
        match inside(value, step) {
            Some(inner) => value = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn json_value<'a>(args: &[Value<'a>]) -> Row<'a> {
    Ok(value_of(args)?.map_or(Value::Null, scalar))
}

fn json_query<'a>(args: &[Value<'a>]) -> Row<'a> {
    let Some(value) = value_of(args)? else { return Ok(Value::Null) };
    Ok(if value == "null" { Value::Null } else { Value::text(without_spaces(value)) })
}

/// The items of an array as scalars; null if one of them is an array or an object.
fn json_value_array<'a>(args: &[Value<'a>]) -> Row<'a> {
    let Some(items) = value_of(args)?.and_then(items) else { return Ok(Value::Null) };
    match items.iter().any(|item| item.starts_with(['{', '['])) {
        true => Ok(Value::Null),
        false => Ok(Value::List(items.into_iter().map(scalar).collect())),
    }
}

/// The items of an array as JSON.
fn json_query_array<'a>(args: &[Value<'a>]) -> Row<'a> {
    let Some(items) = value_of(args)?.and_then(items) else { return Ok(Value::Null) };
    Ok(Value::List(items.into_iter().map(|item| Value::text(without_spaces(item))).collect()))
}

/// Text, a number or a truth value as text; null for others.
fn scalar<'a>(json: &str) -> Value<'a> {
    match json.as_bytes().first() {
        Some(b'{' | b'[' | b'n') | None => Value::Null,
        Some(b'"') => serde_json::from_str::<String>(json).map_or(Value::Null, Value::text),
        Some(_) => Value::text(json),
    }
}

/// The items of a valid JSON array; `None` of another value.
fn items(array: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let mut rest = array.strip_prefix('[')?.trim_start();
    while !rest.starts_with(']') {
        let (item, after) = rest.split_at(length(rest));
        items.push(item);
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(items)
}

/// The steps of a path such as `$.a['b c'][0]`.
fn steps(path: &str) -> Result<Vec<Step>, String> {
    let wrong = || format!("'{path}' is no JSON path: write '$.member', '$[0]' or '$.\"member\"'");
    let mut rest = path.trim().strip_prefix('$').ok_or_else(wrong)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(name) = rest.strip_prefix('.') {
            if let Some(quoted) = name.strip_prefix('"') {
                let (name, after) = quoted.split_once('"').ok_or_else(wrong)?;
                steps.push(Step::Member(name.to_owned()));
                rest = after;
            } else {
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                if name.is_empty() {
                    return Err(wrong());
                }
                steps.push(Step::Member(name.to_owned()));
                rest = after;
            }
            continue;
        }
        let inside = rest.strip_prefix('[').ok_or_else(wrong)?;
        let quote = inside.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        if let Some(quote) = quote {
            let (name, after) = inside[1..].split_once(quote).ok_or_else(wrong)?;
            steps.push(Step::Member(name.to_owned()));
            rest = after.strip_prefix(']').ok_or_else(wrong)?;
        } else {
            let (number, after) = inside.split_once(']').ok_or_else(wrong)?;
            steps.push(Step::Item(number.trim().parse().map_err(|_| wrong())?));
            rest = after;
        }
    }
    Ok(steps)
}

/// The value of a member or an item of `value`, which is valid JSON.
fn inside<'v>(value: &'v str, step: &Step) -> Option<&'v str> {
    let is_object = value.starts_with('{');
    if !(is_object || value.starts_with('[')) || is_object != matches!(step, Step::Member(_)) {
        return None;
    }
    let mut rest = value.get(1..)?.trim_start();
    let mut place = 0;
    while !rest.starts_with(['}', ']']) {
        let mut name = None;
        if is_object {
            let (text, after) = rest.split_at(length(rest));
            name = serde_json::from_str::<String>(text).ok();
            rest = after.trim_start().strip_prefix(':')?.trim_start();
        }
        let (inner, after) = rest.split_at(length(rest));
        let is_wanted = match step {
            Step::Member(wanted) => name.as_ref() == Some(wanted),
            Step::Item(wanted) => place == *wanted,
        };
        if is_wanted {
            return Some(inner);
        }
        place += 1;
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    None
}

/// Bytes of the value that valid JSON text starts with.
fn length(text: &str) -> usize {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if is_quoted {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_quoted = !ends;
            if ends && depth == 0 {
                return at + 1;
            }
            continue;
        }
        match byte {
            b'"' => is_quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// JSON without the spaces between its parts.
fn without_spaces(text: &str) -> String {
    let (mut out, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for character in text.chars() {
        if is_quoted {
            is_quoted = character != '"' || is_escaped;
            is_escaped = character == '\\' && !is_escaped;
        } else if character == '"' {
            is_quoted = true;
        } else if character.is_ascii_whitespace() {
            continue;
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: &str, path: &str) -> (Option<String>, Option<String>) {
        let args = [Value::text(json), Value::text(path)];
        let text = |value: Row<'_>| match value.unwrap() {
            Value::Text(text) => Some(text.into_owned()),
            _ => None,
        };
        (text(json_value(&args)), text(json_query(&args)))
    }

    #[test]
    fn paths_name_members_and_items() {
        let json = r#" {"b": {"x y": [1.50, "q\"]", {"z": null}]}, "a": true, "b": 2} "#;
        assert_eq!(asked(json, "$.b['x y'][0]"), (Some("1.50".to_owned()), Some("1.50".to_owned())));
        assert_eq!(asked(json, "$.b.\"x y\"[1]"), (Some("q\"]".to_owned()), Some(r#""q\"]""#.to_owned())));
        assert_eq!(asked(json, "$.b").1.unwrap(), r#"{"x y":[1.50,"q\"]",{"z":null}]}"#);
        assert_eq!(asked(json, "$.b[\"x y\"][2]"), (None, Some(r#"{"z":null}"#.to_owned())));
        assert_eq!(asked(json, "$.a"), (Some("true".to_owned()), Some("true".to_owned())));
        for path in ["$.c", "$.a.b", "$[0]", "$.b.\"x y\"[3]", "$.b.\"x y\"[2].z"] {
            assert_eq!(asked(json, path), (None, None), "{path}");
        }
        assert_eq!(asked("{1}", "$"), (None, None));
        for path in ["a", "$a", "$.", "$[", "$[x]", "$['a"] {
            assert!(steps(path).is_err(), "{path}");
        }
    }
}
