//! One object of JSON that holds all rows without a list of them: members that are rows, members that are columns, and lists of
//! values whose times are in a list elsewhere.

use serde_json::{Map, Value};

use crate::format::{conversion, shell_word};

/// Objects inside each other in which rows are looked for.
const DEEPEST: usize = 3;
/// Names for the keys of members, of which the first that no row has is taken.
const KEY_NAMES: [&str; 4] = ["key", "id", "name_of_row", "row_key"];
/// Digits of a key that is a time.
const TIME_DIGITS: usize = 6;

/// Where the rows of an object are, and how `jq` makes lines of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    /// Where they are, as a sentence without its end.
    pub what: String,
    program: String,
}

impl Keyed {
    /// Rows that are the members of the only record of `text`, or whose columns are; `None` for others.
    pub fn rows(text: &[u8]) -> Option<Self> {
        of_members(&only_record(text)?, &[])
    }

    /// Lists of values in the items of a list, whose times are in another list, in the only record of `text`.
    pub fn series(text: &[u8]) -> Option<Self> {
        let record = only_record(text)?;
        let are_values =
            |list: &Vec<Value>| list.len() > 1 && !list.iter().any(|item| item.is_array() || item.is_object());
        let times = record.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
        let (time, times) = times.clone().find(|(_, list)| are_values(list))?;

        for (name, items) in record.iter().filter_map(|(name, value)| Some((name, value.as_array()?))) {
            let Some(first) = items.first().and_then(Value::as_object) else { continue };
            let is_series = |item: &Value, list: &str| {
                item.get(list)
                    .and_then(Value::as_array)
                    .is_some_and(|list| list.len() == times.len() && are_values(list))
            };
            let list = first.keys().find(|list| items.iter().all(|item| is_series(item, list)));
            let Some(list) = list else { continue };
            let [name_of, list_of, time_of] = [name, list, time].map(|name| quoted(name));
            return Some(Self {
                what: format!("the values in `{name}.{list}` belong to the times in `{time}`"),
                program: format!(
                    ". as $all | .[{name_of}][] as $one | range($one[{list_of}] | length) as $at | \
                     {{({time_of}):$all[{time_of}][$at]}} + ($one | .[{list_of}] = $one[{list_of}][$at])"
                ),
            });
        }
        None
    }

    /// The command that makes lines of the file at `path`.
    pub fn command(&self, path: &str) -> String {
        conversion(path, &format!("jq -c {}", shell_word(&self.program)), true)
    }
}

/// The only record of a text.
fn only_record(text: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(text).ok()? {
        Value::Object(record) => Some(record),
        _ => None,
    }
}

/// The rows that are members of `object`, to which the keys `path` lead, or of an object in it.
fn of_members(object: &Map<String, Value>, path: &[&str]) -> Option<Keyed> {
    let members: Vec<&Map<String, Value>> = object.values().filter_map(Value::as_object).collect();
    let are_all = members.len() > 1 && members.len() == object.len();
    if let Some((first, others)) = members.split_first().filter(|_| are_all) {
        let has_values = first.len() > 1 && first.values().all(|value| !value.is_object());
        let are_alike = others.iter().all(|other| other.keys().eq(first.keys()));
        if has_values && are_alike {
            return Some(of_rows(object, first, path));
        }
    }

    let inner = object.iter().filter_map(|(name, value)| Some((name, value.as_object()?)));
    if path.len() + 1 >= DEEPEST {
        return None;
    }
    inner.filter_map(|(name, inner)| of_members(inner, &[path, &[name]].concat())).next()
}

/// The rows of an object whose members are alike, as `first` is: each is a row, unless its keys are numbers or times of rows.
fn of_rows(object: &Map<String, Value>, first: &Map<String, Value>, path: &[&str]) -> Keyed {
    let at: String = path.iter().map(|name| format!("[{}]", quoted(name))).collect();
    let within = if path.is_empty() { "the object".to_owned() } else { format!("`{}`", path.join(".")) };
    let start = if at.is_empty() { String::new() } else { format!(".{at} | ") };
    if first.keys().all(|key| is_of_row(key)) && !object.keys().all(|key| is_of_row(key)) {
        let column = object.keys().next().map_or(String::new(), |name| quoted(name));
        return Keyed {
            what: format!("the members of {within} are columns, and their keys are those of rows"),
            program: format!(
                "{start}. as $all | .[{column}] | keys_unsorted[] as $key | {{key:$key}} + ($all | map_values(.[$key]))"
            ),
        };
    }

    let key = KEY_NAMES.iter().find(|name| !first.contains_key(**name)).unwrap_or(&"key");
    let key = if object.keys().all(|key| is_time(key)) && !first.contains_key("time") { "time" } else { key };
    Keyed {
        what: format!("the members of {within} are rows, which their keys name"),
        program: format!("{start}to_entries[] | {{{key}:.key}} + .value"),
    }
}

/// Whether a key is the number of a row, or a time.
fn is_of_row(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()) || is_time(key)
}

fn is_time(key: &str) -> bool {
    let digits = key.bytes().filter(u8::is_ascii_digit).count();
    digits >= TIME_DIGITS && key.bytes().all(|byte| byte.is_ascii_digit() || b"-:/. TZ+".contains(&byte))
}

/// A text as JSON and `jq` have it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_object_are_found() {
        let command = |text: &str| Keyed::rows(text.as_bytes()).map(|found| found.command("a.json"));
        assert_eq!(
            command(r#"{"-N1":{"ts":1,"v":1.5},"-N2":{"ts":2,"v":1.6}}"#).unwrap(),
            "jq -c 'to_entries[] | {key:.key} + .value' a.json > NEW.jsonl"
        );
        let quotes = command(
            r#"{"Meta":{"z":"U"},"Time Series":{"2024-01-02 09:30":{"o":1,"c":2},"2024-01-02 09:35":{"o":1,"c":2}}}"#,
        );
        assert_eq!(
            quotes.unwrap(),
            r#"jq -c '.["Time Series"] | to_entries[] | {time:.key} + .value' a.json > NEW.jsonl"#
        );
        let columns = command(r#"{"ts":{"0":1,"1":2},"v":{"0":1.5,"1":1.6}}"#).unwrap();
        assert!(columns.contains(r#".["ts"] | keys_unsorted[] as $key"#), "{columns}");
        for other in
            [r#"{"ts":1,"a":{"v":1,"u":"C"},"b":{"v":2,"u":"%"}}"#, r#"{"a":{"v":1,"u":2},"b":{"w":2,"u":1}}"#, "[1]"]
        {
            assert_eq!(command(other), None, "{other}");
        }
    }

    #[test]
    fn values_apart_from_their_times_are_found() {
        let series = |text: &str| Keyed::series(text.as_bytes()).map(|found| found.what);
        let text = r#"{"time":["a","b"],"series":[{"name":"s","data":[1.5,1.6]},{"name":"w","data":[2.5,2.6]}]}"#;
        assert_eq!(series(text).unwrap(), "the values in `series.data` belong to the times in `time`");
        assert_eq!(series(r#"{"tags":["a","b"],"series":[{"t":1,"v":2},{"t":2,"v":3}]}"#), None);
    }
}
