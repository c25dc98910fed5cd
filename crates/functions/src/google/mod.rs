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
