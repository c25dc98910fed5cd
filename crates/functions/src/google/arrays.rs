//! Arrays of text, bytes or numbers. Functions that only move items are DataFusion's.

use crate::google::function::Takes::{String as Str, Strings};
use crate::google::function::{Definition, Gives, bounded};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] =
    &[Definition::new("array_to_string", &[Strings, Str, Str], Gives::String, array_to_string).with_arguments(2, 3)];

fn array_to_string<'a>(args: &[Value<'a>]) -> Result<Value<'a>, String> {
    let [items, separator, rest @ ..] = args else { return Ok(Value::Null) };
    let mut parts: Vec<&[u8]> = Vec::new();
    for item in items.as_list() {
        match (item, rest.first()) {
            (Value::Null, None) => {}
            (Value::Null, Some(null)) => parts.push(null.as_bytes()),
            (item, _) => parts.push(item.as_bytes()),
        }
    }
    let items_bytes: usize = parts.iter().map(|part| part.len()).sum();
    bounded(items_bytes.saturating_add(parts.len().saturating_mul(separator.as_bytes().len())))?;
    let joined = parts.join(separator.as_bytes());
    let is_bytes = items.as_list().iter().any(|item| matches!(item, Value::Bytes(_)));
    Ok(if is_bytes { Value::bytes(joined) } else { Value::text(String::from_utf8_lossy(&joined).into_owned()) })
}
