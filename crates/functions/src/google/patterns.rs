//! Regular expressions over text and bytes, and `LIKE` over bytes, whose `_` is a byte.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue, exec_err, plan_err};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::{Like, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use regex::bytes::{Regex, RegexBuilder};

use crate::argument_types::is_bytes;
use crate::google::function::Takes::{Int, String as Str};
use crate::google::function::{Definition, Gives, bounded};
use crate::google::strings::starts_with_function;
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("regexp_contains", &[Str, Str], Gives::Bool, contains),
    Definition::new("regexp_extract", &[Str, Str, Int, Int], Gives::String, extract).with_arguments(2, 4),
    Definition::new("regexp_substr", &[Str, Str, Int, Int], Gives::String, extract).with_arguments(2, 4),
    Definition::new("regexp_extract_all", &[Str, Str], Gives::Strings, extract_all),
    Definition::new("regexp_instr", &[Str, Str, Int, Int], Gives::Int, instr).with_arguments(2, 4),
    Definition::new("regexp_replace", &[Str, Str, Str], Gives::String, replace),
];

/// Name of the function in place of `bytes LIKE pattern`.
pub const BYTES_LIKE: &str = "bytes_like";
/// Bytes that a compiled pattern may take.
const MOST_BYTES: usize = 8 << 20;
/// Compiled patterns that a thread keeps.
const MOST_KEPT: usize = 16;

type Row<'a> = Result<Value<'a>, String>;

thread_local! {
    /// The latest patterns of this thread, with whether they are of text.
    static KEPT: RefCell<Vec<(Vec<u8>, bool, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// Calls `use_it` with the compiled `pattern`.
fn with_pattern<T>(pattern: &Value<'_>, use_it: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    let is_text = matches!(pattern, Value::Text(_));
    KEPT.with_borrow_mut(|kept| {
        let known = kept.iter().position(|(bytes, text, _)| *text == is_text && bytes == pattern.as_bytes());
        let at = match known {
            Some(at) => at,
            None => {
                let regex = compiled(pattern.as_bytes(), is_text)?;
                if kept.len() == MOST_KEPT {
                    kept.remove(0);
                }
                kept.push((pattern.as_bytes().to_vec(), is_text, regex));
                kept.len() - 1
            }
        };
        match kept.get(at) {
            Some((_, _, regex)) => Ok(use_it(regex)),
            None => Err("the pattern is lost".to_owned()),
        }
    })
}

fn compiled(pattern: &[u8], is_text: bool) -> Result<Regex, String> {
    // Bytes of a pattern stand for themselves.
    let pattern = match std::str::from_utf8(pattern) {
        Ok(pattern) => pattern.to_owned(),
        Err(_) => escaped(pattern),
    };
    let built = RegexBuilder::new(&pattern).unicode(is_text).size_limit(MOST_BYTES).build();
    built.map_err(|error| format!("the pattern is not a regular expression: {error}"))
}

/// A pattern whose bytes beyond ASCII are escapes.
fn escaped(pattern: &[u8]) -> String {
    let mut text = String::new();
    for byte in pattern {
        if byte.is_ascii() {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Bytes of a match as a value of the type of `like`.
fn string<'a>(like: &Value<'_>, bytes: &[u8]) -> Value<'a> {
    match like {
        Value::Text(_) => Value::text(String::from_utf8_lossy(bytes)),
        _ => Value::bytes(bytes),
    }
}

fn contains<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, pattern] = args else { return Ok(Value::Null) };
    with_pattern(pattern, |regex| Value::Bool(regex.is_match(value.as_bytes())))
}

/// The place in bytes of the character or byte `position`, which counts from 1.
fn start_of(value: &Value<'_>, position: i64) -> Result<Option<usize>, String> {
    let Some(before) = usize::try_from(position).ok().and_then(|position| position.checked_sub(1)) else {
        return Err(format!("the position must be 1 or more, not {position}"));
    };
    Ok(match value {
        Value::Text(text) => text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(before),
        value => (before <= value.as_bytes().len()).then_some(before),
    })
}

/// The `occurrence`-th match from `position` on: the range of its first group, or of all of it.
fn found(args: &[Value<'_>]) -> Result<Option<std::ops::Range<usize>>, String> {
    let [value, pattern, rest @ ..] = args else { return Ok(None) };
    let start = start_of(value, rest.first().map_or(1, Value::as_int))?;
    let occurrence = rest.get(1).map_or(1, Value::as_int);
    let Some(skipped) = usize::try_from(occurrence).ok().and_then(|occurrence| occurrence.checked_sub(1)) else {
        return Err(format!("the occurrence must be 1 or more, not {occurrence}"));
    };
    let Some(start) = start else { return Ok(None) };

    with_pattern(pattern, |regex| {
        check_groups(regex)?;
        let rest = value.as_bytes().get(start..).unwrap_or_default();
        let captures = regex.captures_iter(rest).nth(skipped);
        let group = captures.and_then(|captures| captures.get(regex.captures_len() - 1));
        Ok(group.map(|group| group.start() + start..group.end() + start))
    })?
}

fn check_groups(regex: &Regex) -> Result<(), String> {
    match regex.captures_len() - 1 {
        0 | 1 => Ok(()),
        groups => Err(format!("the pattern has {groups} groups; it may have one")),
    }
}

fn extract<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, ..] = args else { return Ok(Value::Null) };
    let range = found(args)?;
    Ok(range.and_then(|range| value.as_bytes().get(range)).map_or(Value::Null, |bytes| string(value, bytes)))
}

fn instr<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, ..] = args else { return Ok(Value::Null) };
    Ok(Value::Int(match (found(args)?, value) {
        (None, _) => 0,
        (Some(range), Value::Text(text)) => {
            text.get(..range.start).map_or(0, |before| before.chars().count() as i64 + 1)
        }
        (Some(range), _) => range.start as i64 + 1,
    }))
}

fn extract_all<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, pattern] = args else { return Ok(Value::Null) };
    with_pattern(pattern, |regex| {
        check_groups(regex)?;
        let mut items = Vec::new();
        for captures in regex.captures_iter(value.as_bytes()) {
            let group = captures.get(regex.captures_len() - 1);
            items.extend(group.map(|group| string(value, group.as_bytes())));
        }
        Ok(Value::List(items))
    })?
}

fn replace<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, pattern, by] = args else { return Ok(Value::Null) };
    let template = by.as_bytes();
    with_pattern(pattern, |regex| {
        let (mut out, mut last) = (Vec::new(), 0);
        for captures in regex.captures_iter(value.as_bytes()) {
            let Some(all) = captures.get(0) else { continue };
            out.extend_from_slice(value.as_bytes().get(last..all.start()).unwrap_or_default());
            expand(template, &captures, &mut out)?;
            bounded(out.len())?;
            last = all.end();
        }
        out.extend_from_slice(value.as_bytes().get(last..).unwrap_or_default());
        Ok(string(value, &out))
    })?
}

/// Appends `template`, in which `\0` to `\9` are groups and `\\` is a backslash.
fn expand(template: &[u8], captures: &regex::bytes::Captures<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let mut bytes = template.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'\\') => out.push(b'\\'),
            Some(digit) if digit.is_ascii_digit() => {
                let group = usize::from(digit - b'0');
                if group >= captures.len() {
                    return Err(format!("the replacement names group {group}, which the pattern does not have"));
                }
                out.extend_from_slice(captures.get(group).map(|group| group.as_bytes()).unwrap_or_default());
            }
            _ => return Err(r"a backslash in the replacement is followed by a digit or a backslash".to_owned()),
        }
    }
    Ok(())
}

/// Replaces `bytes LIKE pattern` and `starts_with(bytes, prefix)` by functions that compare bytes; DataFusion would convert the
/// bytes to text, which fails for those that are not UTF-8, and counts characters.
pub fn over_bytes(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Like(like) if has_bytes(&like.expr, schema) => bytes_like(like),
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.name() == "starts_with" && args.first().is_some_and(|value| has_bytes(value, schema)) =>
        {
            Expr::ScalarFunction(ScalarFunction { func: starts_with_function(), args })
        }
        expr => expr,
    }
}

fn has_bytes(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| is_bytes(&kind))
}

fn bytes_like(like: Like) -> Expr {
    let args = vec![
        *like.expr,
        *like.pattern,
        lit(ScalarValue::Utf8(like.escape_char.map(String::from))),
        lit(like.case_insensitive),
    ];
    let matches = Expr::ScalarFunction(ScalarFunction::new_udf(like_function(), args));
    if like.negated { !matches } else { matches }
}

pub(crate) fn like_function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(BytesLike { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesLike {
    signature: Signature,
}

impl ScalarUDFImpl for BytesLike {
    fn name(&self) -> &str {
        BYTES_LIKE
    }

    /// As written in SQL: the name of the output column.
    fn schema_name(&self, args: &[Expr]) -> DataFusionResult<String> {
        match args {
            [value, pattern, ..] => Ok(format!("{} LIKE {}", value.schema_name(), pattern.schema_name())),
            _ => plan_err!("{BYTES_LIKE} takes bytes and a pattern"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> DataFusionResult<Vec<DataType>> {
        match kinds {
            [_, _, _, _] => Ok(vec![DataType::Binary, DataType::Binary, DataType::Utf8, DataType::Boolean]),
            _ => plan_err!("{BYTES_LIKE} takes bytes, a pattern, its escape, and whether case is ignored"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let [values, patterns, escape, ignores_case] = args.args.as_slice() else {
            return exec_err!("{BYTES_LIKE} takes four arguments");
        };
        let escape = match escape {
            ColumnarValue::Scalar(escape) => escape.try_as_str().flatten().and_then(|escape| escape.bytes().next()),
            ColumnarValue::Array(_) => None,
        };
        let ignores_case = matches!(ignores_case, ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))));
        let is_constant = matches!(patterns, ColumnarValue::Scalar(_));
        let patterns = patterns.to_array(if is_constant { 1 } else { args.number_rows })?;
        let values = values.to_array(args.number_rows)?;
        let (Some(values), Some(patterns)) = (values.as_binary_opt::<i32>(), patterns.as_binary_opt::<i32>()) else {
            return exec_err!("{BYTES_LIKE} takes bytes");
        };

        let mut known: Option<(Vec<u8>, Regex)> = None;
        let mut found = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let place = if is_constant { 0 } else { row };
            if values.is_null(row) || patterns.is_null(place) {
                found.push(None);
                continue;
            }
            let pattern = patterns.value(place);
            if known.as_ref().is_none_or(|(known, _)| known != pattern) {
                let regex = like_pattern(pattern, escape, ignores_case);
                known = match regex {
                    Ok(regex) => Some((pattern.to_vec(), regex)),
                    Err(problem) => return exec_err!("LIKE: {problem}"),
                };
            }
            found.push(known.as_ref().map(|(_, regex)| regex.is_match(values.value(row))));
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(found))))
    }
}

/// The regular expression for a pattern of `LIKE`: `%` is any bytes, `_` one byte, after `escape` a byte stands for itself.
fn like_pattern(pattern: &[u8], escape: Option<u8>, ignores_case: bool) -> Result<Regex, String> {
    let escape = escape.unwrap_or(b'\\');
    let mut text = "^".to_owned();
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match *byte {
            byte if byte == escape => match bytes.next() {
                Some(byte) => text.push_str(&format!("\\x{byte:02x}")),
                None => return Err("the pattern ends with its escape".to_owned()),
            },
            b'%' => text.push_str(".*"),
            b'_' => text.push('.'),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('$');
    let built = RegexBuilder::new(&text)
        .unicode(false)
        .dot_matches_new_line(true)
        .case_insensitive(ignores_case)
        .size_limit(MOST_BYTES)
        .build();
    built.map_err(|error| format!("the pattern is too large: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_like_are_bytes() {
        let matches = |value: &[u8], pattern: &[u8]| like_pattern(pattern, None, false).unwrap().is_match(value);
        assert!(matches(b"a\xff\n", b"a__") && !matches("aé".as_bytes(), b"a_") && matches("aé".as_bytes(), b"a__"));
        assert!(matches(b"a%b", br"a\%b") && !matches(b"axb", br"a\%b") && matches(b"axb", b"%b"));
        assert!(like_pattern(b"A%", None, true).unwrap().is_match(b"ab\xff"));
        assert!(like_pattern(br"a\", None, false).is_err());
    }
}
