//! What of a table's declaration changed since it was built.

use serde_json::Value;

use crate::version::TableIdentity;

/// Most characters of a value that is shown.
const SHOWN: usize = 60;

/// The first change between the identities of a table, in the words of the job file: `row_key is "{a}", and was "{b}"`.
pub(crate) fn change_of(before: &TableIdentity, now: &TableIdentity) -> String {
    let parts = [
        (serde_json::to_value(&before.spec), serde_json::to_value(&now.spec), ""),
        (serde_json::to_value(&before.source), serde_json::to_value(&now.source), "the columns of its source"),
    ];
    for (before, now, within) in parts {
        let (Ok(before), Ok(now)) = (before, now) else { continue };
        if let Some(change) = first_change(&before, &now, within) {
            return change;
        }
    }
    // The fingerprint has more than these.
    "`where` or `query` of the table, or how its source is read, is another".to_owned()
}

/// The first place below `path` where two values differ, with both.
fn first_change(before: &Value, now: &Value, path: &str) -> Option<String> {
    match (before, now) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            let of =
                |fields: &serde_json::Map<String, Value>, key: &str| fields.get(key).cloned().unwrap_or(Value::Null);
            keys.into_iter().find_map(|key| {
                let place = if path.is_empty() { key.clone() } else { format!("{path}: {key}") };
                first_change(&of(old, key), &of(new, key), &place)
            })
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).find_map(|(old, new)| first_change(old, new, &named(path, new)))
        }
        (Value::Array(old), Value::Array(new)) => {
            Some(format!("{path}: there are {}, and were {}", new.len(), old.len()))
        }
        (old, new) if old == new => None,
        (old, new) => Some(format!("{path} is {}, and was {}", shown(new), shown(old))),
    }
}

/// A path to an item of a list, by the name of the item if it has one.
fn named(path: &str, item: &Value) -> String {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => format!("{path} {name}"),
        None => path.to_owned(),
    }
}

fn shown(value: &Value) -> String {
    let text = if value.is_null() { "not set".to_owned() } else { value.to_string() };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_change_is_said_in_words() {
        let table = |row_key: &str, families: Value| json!({ "name": "T", "row_key": row_key, "families": families });
        let a = json!([{ "name": "F", "columns": [{ "value": "{kwh}" }] }]);
        let b = json!([{ "name": "F", "columns": [{ "value": "{volt}" }] }]);
        let change = |before: &Value, now: &Value| first_change(before, now, "");

        assert_eq!(change(&table("{m}", a.clone()), &table("{m}", a.clone())), None);
        assert_eq!(
            change(&table("{m}", a.clone()), &table("{n}", a.clone())).as_deref(),
            Some("row_key is \"{n}\", and was \"{m}\"")
        );
        assert_eq!(
            change(&table("{m}", a.clone()), &table("{m}", b)).as_deref(),
            Some("families F: columns: value is \"{volt}\", and was \"{kwh}\"")
        );
        assert_eq!(change(&json!({}), &json!({ "upsert": true })).as_deref(), Some("upsert is true, and was not set"));
        assert_eq!(
            change(&table("{m}", a), &table("{m}", json!([]))).as_deref(),
            Some("families: there are 0, and were 1")
        );
    }
}
