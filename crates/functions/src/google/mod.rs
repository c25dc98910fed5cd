//! Functions of GoogleSQL for Bigtable that DataFusion lacks, or has with another meaning.
//!
//! Each is registered as `google_NAME`, so that the functions of DataFusion keep their names; [`google_name`] is the way from
//! the name in a query to the registered one. `SAFE.NAME(..)` is `google_safe_prefix_NAME`, which gives null where the function
//! fails.

mod arrays;
mod dates;
mod encodings;
mod format;
mod formats;
mod function;
mod json;
mod numbers;
mod parts;
mod patterns;
mod strings;
mod subscript;
mod times;
mod value;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use crate::google::function::{Definition, PREFIX, SAFE_PREFIX};
pub use crate::google::patterns::{BYTES_LIKE, over_bytes};
pub use crate::google::strings::STARTS_WITH;
pub use crate::google::subscript::INDEX;
pub(crate) use crate::google::subscript::{ListIndex, list_element};

fn definitions() -> impl Iterator<Item = &'static Definition> {
    let groups = [
        strings::FUNCTIONS,
        encodings::FUNCTIONS,
        patterns::FUNCTIONS,
        json::FUNCTIONS,
        numbers::FUNCTIONS,
        arrays::FUNCTIONS,
        times::FUNCTIONS,
        dates::FUNCTIONS,
        formats::FUNCTIONS,
        format::FUNCTIONS,
    ];
    groups.into_iter().flatten()
}

/// The registered name of the function `name` of GoogleSQL, in lower case, or of its `SAFE.` variant; `None` if it is not
/// defined here.
pub fn google_name(name: &str, is_safe: bool) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let prefix = if is_safe { SAFE_PREFIX } else { PREFIX };
    definitions().any(|definition| definition.name == name).then(|| format!("{prefix}{name}"))
}

/// `text` with the names of functions as queries have them, `substr` in place of `google_substr`.
pub fn as_written(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(PREFIX) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let (word, after) = found.split_at(found.find(|character| !is_part(character)).unwrap_or(found.len()));
        let name = word.strip_prefix(SAFE_PREFIX).map(|name| (name, "safe."));
        match name.or_else(|| word.strip_prefix(PREFIX).map(|name| (name, ""))) {
            Some((name, safe)) if google_name(name, false).is_some() => {
                out.push_str(safe);
                out.push_str(name);
            }
            _ => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The functions of this module, to be registered.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = Vec::new();
    for definition in definitions() {
        functions.push(function::function(definition, false));
        functions.push(function::function(definition, true));
    }
    functions.extend(subscript::functions());
    functions.push(patterns::like_function());
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_messages_are_those_of_queries() {
        let said = "'google_substr' and google_safe_prefix_to_hex(x), not google_bucket or google_";
        assert_eq!(as_written(said), "'substr' and safe.to_hex(x), not google_bucket or google_");
    }

    #[test]
    fn each_function_has_one_definition() {
        let mut names: Vec<&str> = definitions().map(|definition| definition.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
