//! Arrays of one dimension, in text and in binary.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;
use bytes::Bytes;
use tidetable_sql::ScalarValue;

use crate::parameters::planned::planned_type;
use crate::parameters::{binary, text};
use crate::types::{Base, PgType};
use crate::wire::Body;

/// An item of an array in text.
struct Item {
    text: String,
    /// Whether it is the word NULL, without quotes and without escapes.
    is_null: bool,
}

/// An array in text, as `{a,"b c",NULL}`: what is in double quotes, or after a backslash, is taken as it is.
pub(super) fn of_text(base: Base, text: &str) -> Option<ScalarValue> {
    let mut letters = text.trim_matches(is_blank).strip_prefix('{')?.chars().peekable();
    let mut items = Vec::new();
    skip_blanks(&mut letters);

    if letters.next_if_eq(&'}').is_none() {
        loop {
            let Item { text, is_null } = item(&mut letters)?;
            items.push(if is_null { None } else { Some(text::value(base, &text)?) });
            match letters.next()? {
                ',' => {}
                '}' => break,
                _ => return None,
            }
        }
    }
    if letters.next().is_some() {
        return None;
    }
    list(base, items)
}

/// The next item, up to the comma or the brace after it. One without quotes must not be empty, nor be followed by quotes.
fn item(letters: &mut Peekable<Chars<'_>>) -> Option<Item> {
    skip_blanks(letters);
    if letters.next_if_eq(&'"').is_some() {
        let text = quoted(letters)?;
        skip_blanks(letters);
        return Some(Item { text, is_null: false });
    }

    let (mut text, mut is_escaped) = (String::new(), false);
    // The length without the blanks at the end.
    let mut length = 0;
    while let Some(letter) = letters.next_if(|letter| !matches!(letter, ',' | '}')) {
        match letter {
            '"' | '{' => return None,
            '\\' => {
                is_escaped = true;
                text.push(letters.next()?);
                length = text.len();
            }
            letter => {
                text.push(letter);
                length = if is_blank(letter) { length } else { text.len() };
            }
        }
    }
    text.truncate(length);
    let is_null = !is_escaped && text.eq_ignore_ascii_case("null");
    (!text.is_empty()).then_some(Item { text, is_null })
}

/// The text up to the closing quotes.
fn quoted(letters: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(letters.next()?),
            letter => text.push(letter),
        }
    }
}

fn skip_blanks(letters: &mut Peekable<Chars<'_>>) {
    while letters.next_if(|letter| is_blank(*letter)).is_some() {}
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// An array in binary: dimensions, whether there are nulls, the type of items, the length of the dimension, its first index, items.
pub(super) fn of_binary(base: Base, bytes: &Bytes) -> Option<ScalarValue> {
    let mut body = Body(bytes.clone());
    let (dimensions, _, item_type) = (body.integer().ok()?, body.integer().ok()?, body.integer().ok()?.cast_unsigned());
    let base = PgType::of_oid(item_type).map_or(base, |kind| kind.base);
    if dimensions == 0 {
        return list(base, Vec::new());
    }
    let (count, _) = (usize::try_from(body.integer().ok()?).ok()?, body.integer().ok()?);
    if dimensions != 1 || count > bytes.len() {
        return None;
    }
    let items = (0..count).map(|_| match body.value().ok()? {
        Some(bytes) => binary::value(base, &bytes).map(Some),
        None => Some(None),
    });
    list(base, items.collect::<Option<Vec<_>>>()?)
}

fn list(base: Base, items: Vec<Option<ScalarValue>>) -> Option<ScalarValue> {
    let planned = planned_type(base.one());
    let values: Vec<ScalarValue> = items
        .into_iter()
        .map(|item| match item {
            Some(item) => item.cast_to(&planned).ok(),
            None => ScalarValue::try_from(&planned).ok(),
        })
        .collect::<Option<_>>()?;

    let count = values.len();
    let items: ArrayRef =
        if values.is_empty() { new_empty_array(&planned) } else { ScalarValue::iter_to_array(values).ok()? };
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let array = ListArray::try_new(field, OffsetBuffer::from_lengths([count]), items, None).ok()?;
    Some(ScalarValue::List(Arc::new(array)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let ScalarValue::List(list) = of_text(Base::Text, text)? else { return None };
        let items = list.value(0);
        let items = (0..items.len()).map(|place| ScalarValue::try_from_array(&items, place).unwrap());
        // Nulls are other than the text NULL.
        Some(items.map(|item| format!("{item:?}")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn quotes_and_escapes_are_read() {
        for (text, expected) in [
            (r#"{"a\"b","c\\d"}"#, r#"Utf8("a"b") Utf8("c\d")"#),
            (r"{a\,b,\{,\N\U}", r#"Utf8("a,b") Utf8("{") Utf8("NU")"#),
            (r#"{NULL,null,"NULL",\NULL}"#, r#"Utf8(NULL) Utf8(NULL) Utf8("NULL") Utf8("NULL")"#),
            (r#" { a b , "" , " c " } "#, r#"Utf8("a b") Utf8("") Utf8(" c ")"#),
            (r"{a\ ,b}", r#"Utf8("a ") Utf8("b")"#),
            (r#"{"a,{b}"}"#, r#"Utf8("a,{b}")"#),
            ("{ }", ""),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_array_of_one_dimension_is_refused() {
        for text in
            ["", "a", "{", "{a", "{a,}", "{,a}", "{a}b", "{{a},{b}}", r#"{"a"b}"#, r#"{a"b"}"#, r#"{"a}"#, r"{a\"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
