//! Functions of text and bytes: characters of text, bytes of bytes.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use icu_normalizer::{
    ComposingNormalizerBorrowed as ComposingNormalizer, DecomposingNormalizerBorrowed as DecomposingNormalizer,
};

use crate::google::function::Takes::{Int, Ints, String as Str, Text};
use crate::google::function::{Definition, Gives, bounded, function};
use crate::google::value::Value;

const TEXT_WHITESPACE: &str = " \t\n\u{b}\u{c}\r";

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("ascii", &[Str], Gives::Int, ascii),
    Definition::new("byte_length", &[Str], Gives::Int, byte_length),
    Definition::new("octet_length", &[Str], Gives::Int, byte_length),
    Definition::new("char_length", &[Text], Gives::Int, length),
    Definition::new("character_length", &[Text], Gives::Int, length),
    Definition::new("length", &[Str], Gives::Int, length),
    Definition::new("chr", &[Int], Gives::Text, chr),
    Definition::new("code_points_to_bytes", &[Ints], Gives::Bytes, code_points_to_bytes),
    Definition::new("code_points_to_string", &[Ints], Gives::Text, code_points_to_string),
    Definition::new("to_code_points", &[Str], Gives::Ints, to_code_points),
    Definition::new("unicode", &[Text], Gives::Int, unicode),
    STARTS_WITH_BYTES,
    Definition::new("ends_with", &[Str, Str], Gives::Bool, ends_with),
    Definition::new("contains_substr", &[Text, Text], Gives::Bool, contains),
    Definition::new("strpos", &[Str, Str], Gives::Int, strpos),
    Definition::new("instr", &[Str, Str, Int, Int], Gives::Int, instr).with_arguments(2, 4),
    Definition::new("substr", &[Str, Int, Int], Gives::String, substr).with_arguments(2, 3),
    Definition::new("substring", &[Str, Int, Int], Gives::String, substr).with_arguments(2, 3),
    Definition::new("left", &[Str, Int], Gives::String, left),
    Definition::new("right", &[Str, Int], Gives::String, right),
    Definition::new("reverse", &[Str], Gives::String, reverse),
    Definition::new("upper", &[Str], Gives::String, upper),
    Definition::new("lower", &[Str], Gives::String, lower),
    Definition::new("initcap", &[Text], Gives::Text, initcap),
    Definition::new("trim", &[Str, Str], Gives::String, trim).with_arguments(1, 2),
    Definition::new("ltrim", &[Str, Str], Gives::String, ltrim).with_arguments(1, 2),
    Definition::new("rtrim", &[Str, Str], Gives::String, rtrim).with_arguments(1, 2),
    Definition::new("concat", &[Str], Gives::String, concat).with_arguments(1, usize::MAX),
    Definition::new("repeat", &[Str, Int], Gives::String, repeat),
    Definition::new("lpad", &[Str, Int, Str], Gives::String, lpad).with_arguments(2, 3),
    Definition::new("rpad", &[Str, Int, Str], Gives::String, rpad).with_arguments(2, 3),
    Definition::new("replace", &[Str, Str, Str], Gives::String, replace),
    Definition::new("translate", &[Text, Text, Text], Gives::Text, translate),
    Definition::new("normalize", &[Text, Text], Gives::Text, normalize).with_arguments(1, 2),
    Definition::new("soundex", &[Text], Gives::Text, soundex),
    Definition::new("split", &[Str, Str], Gives::Strings, split).with_arguments(1, 2),
];

const STARTS_WITH_BYTES: Definition = Definition::new("starts_with", &[Str, Str], Gives::Bool, starts_with);
/// Name under which `STARTS_WITH` is registered.
pub const STARTS_WITH: &str = "google_starts_with";

/// `STARTS_WITH` of text or bytes.
pub(crate) fn starts_with_function() -> Arc<ScalarUDF> {
    function(&STARTS_WITH_BYTES, false)
}

type Row<'a> = Result<Value<'a>, String>;

/// Whether the value is text; otherwise it is bytes.
fn is_text(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(_))
}

/// A value of the type of `like` with these bytes, which are UTF-8 where `like` is text.
fn string<'a>(like: &Value<'_>, bytes: Vec<u8>) -> Value<'a> {
    if is_text(like) { Value::text(String::from_utf8_lossy(&bytes).into_owned()) } else { Value::bytes(bytes) }
}

/// The characters of text, or the bytes of bytes, each as a part of the bytes.
fn units<'v>(value: &'v Value<'_>) -> Vec<&'v [u8]> {
    match value {
        Value::Text(text) => {
            let mut units = Vec::with_capacity(text.len());
            for (start, character) in text.char_indices() {
                units.push(&text.as_bytes()[start..start + character.len_utf8()]);
            }
            units
        }
        value => value.as_bytes().chunks(1).collect(),
    }
}

fn ascii<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    match value.as_bytes().first() {
        None => Ok(Value::Int(0)),
        Some(first) if is_text(value) && !first.is_ascii() => Err("the first character is not ASCII".to_owned()),
        Some(first) => Ok(Value::Int(i64::from(*first))),
    }
}

fn byte_length<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::Int(value.as_bytes().len() as i64))
}

fn length<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::Int(match value {
        Value::Text(text) => text.chars().count() as i64,
        value => value.as_bytes().len() as i64,
    }))
}

fn character(code: i64) -> Result<char, String> {
    let character = u32::try_from(code).ok().and_then(char::from_u32);
    character.ok_or_else(|| format!("{code} is no Unicode code point"))
}

fn chr<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [code] = args else { return Ok(Value::Null) };
    match code.as_int() {
        0 => Ok(Value::text("")),
        code => Ok(Value::text(character(code)?)),
    }
}

fn code_points_to_bytes<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [codes] = args else { return Ok(Value::Null) };
    let mut bytes = Vec::with_capacity(codes.as_list().len());
    for code in codes.as_list() {
        match code {
            Value::Int(code) => {
                bytes.push(u8::try_from(*code).map_err(|_| format!("{code} is no byte: it must be 0 to 255"))?);
            }
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::bytes(bytes))
}

fn code_points_to_string<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [codes] = args else { return Ok(Value::Null) };
    let mut text = String::new();
    for code in codes.as_list() {
        match code {
            Value::Int(code) => text.push(character(*code)?),
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::text(text))
}

fn to_code_points<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(Value::List(match value {
        Value::Text(text) => text.chars().map(|character| Value::Int(i64::from(u32::from(character)))).collect(),
        value => value.as_bytes().iter().map(|byte| Value::Int(i64::from(*byte))).collect(),
    }))
}

fn unicode<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [text] = args else { return Ok(Value::Null) };
    Ok(Value::Int(text.as_text().chars().next().map_or(0, |character| i64::from(u32::from(character)))))
}

fn starts_with<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, prefix] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(value.as_bytes().starts_with(prefix.as_bytes())))
}

fn ends_with<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, suffix] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(value.as_bytes().ends_with(suffix.as_bytes())))
}

fn contains<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, part] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(value.as_text().to_lowercase().contains(&part.as_text().to_lowercase())))
}

/// The index of the unit at which `part` begins for the `occurrence`-th time, from `start` on; backwards if `start` is the end.
fn position(value: &[&[u8]], part: &[&[u8]], start: usize, occurrence: usize) -> Option<usize> {
    let last = value.len().checked_sub(part.len())?;
    (start..=last).filter(|at| value.get(*at..at + part.len()) == Some(part)).nth(occurrence)
}

fn strpos<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, part] = args else { return Ok(Value::Null) };
    let found = position(&units(value), &units(part), 0, 0);
    Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn instr<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, part, rest @ ..] = args else { return Ok(Value::Null) };
    let start = rest.first().map_or(1, Value::as_int);
    let occurrence = rest.get(1).map_or(1, Value::as_int);
    if start == 0 {
        return Err("the position must not be 0".to_owned());
    }
    let Some(occurrence) = usize::try_from(occurrence).ok().and_then(|occurrence| occurrence.checked_sub(1)) else {
        return Err("the occurrence must be 1 or more".to_owned());
    };

    let (value, part) = (units(value), units(part));
    let found = match usize::try_from(start) {
        Ok(start) => position(&value, &part, start - 1, occurrence),
        // From the end: the match that begins at or before the position.
        Err(_) => value.len().checked_sub(start.unsigned_abs() as usize).and_then(|last| {
            let starts = (0..=last).rev().filter(|at| value.get(*at..at + part.len()) == Some(part.as_slice()));
            { starts }.nth(occurrence)
        }),
    };
    Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn substr<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, start, rest @ ..] = args else { return Ok(Value::Null) };
    let units = units(value);
    let len = units.len() as i64;
    // Position 0 is the first, and one before the first is the first.
    let first = match start.as_int() {
        start if start > 0 => (start - 1).min(len),
        0 => 0,
        start => len.saturating_add(start).max(0),
    };
    let wanted = rest.first().map_or(len, Value::as_int);
    if wanted < 0 {
        return Err(format!("the length must not be negative, as {wanted} is"));
    }
    let end = first.saturating_add(wanted).min(len);
    let part = units.get(first as usize..end as usize).unwrap_or_default();
    Ok(string(value, part.concat()))
}

fn count(value: &Value<'_>) -> Result<usize, String> {
    usize::try_from(value.as_int()).map_err(|_| format!("the length must not be negative, as {} is", value.as_int()))
}

fn left<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, length] = args else { return Ok(Value::Null) };
    let (units, length) = (units(value), count(length)?);
    Ok(string(value, units.get(..length.min(units.len())).unwrap_or_default().concat()))
}

fn right<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, length] = args else { return Ok(Value::Null) };
    let (units, length) = (units(value), count(length)?);
    Ok(string(value, units.get(units.len().saturating_sub(length)..).unwrap_or_default().concat()))
}

fn reverse<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    let mut units = units(value);
    units.reverse();
    Ok(string(value, units.concat()))
}

fn upper<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(match value {
        Value::Text(text) => Value::text(text.to_uppercase()),
        value => Value::bytes(value.as_bytes().to_ascii_uppercase()),
    })
}

fn lower<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    Ok(match value {
        Value::Text(text) => Value::text(text.to_lowercase()),
        value => Value::bytes(value.as_bytes().to_ascii_lowercase()),
    })
}

fn initcap<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value] = args else { return Ok(Value::Null) };
    let (mut text, mut is_inside) = (String::new(), false);
    for character in value.as_text().chars() {
        if is_inside {
            text.extend(character.to_lowercase());
        } else {
            text.extend(character.to_uppercase());
        }
        is_inside = character.is_alphanumeric();
    }
    Ok(Value::text(text))
}

/// The value without the units of the second argument at its ends; by default whitespace of text.
fn trimmed<'a>(args: &[Value<'a>], at_start: bool, at_end: bool) -> Row<'a> {
    let [value, rest @ ..] = args else { return Ok(Value::Null) };
    if rest.is_empty() && !is_text(value) {
        return Err("bytes need a second argument: the bytes to remove".to_owned());
    }
    if let ([], Value::Text(text)) = (rest, value) {
        let is_space = |character: char| character.is_whitespace() || TEXT_WHITESPACE.contains(character);
        let text = if at_start { text.trim_start_matches(is_space) } else { text };
        let text = if at_end { text.trim_end_matches(is_space) } else { text };
        return Ok(Value::text(text));
    }

    let removed = rest.first().map(units).unwrap_or_default();
    let mut kept = units(value);
    while at_end && kept.last().is_some_and(|unit| removed.contains(unit)) {
        kept.pop();
    }
    let first = kept.iter().position(|unit| !at_start || !removed.contains(unit)).unwrap_or(kept.len());
    Ok(string(value, kept.get(first..).unwrap_or_default().concat()))
}

fn trim<'a>(args: &[Value<'a>]) -> Row<'a> {
    trimmed(args, true, true)
}

fn ltrim<'a>(args: &[Value<'a>]) -> Row<'a> {
    trimmed(args, true, false)
}

fn rtrim<'a>(args: &[Value<'a>]) -> Row<'a> {
    trimmed(args, false, true)
}

fn concat<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [first, ..] = args else { return Ok(Value::Null) };
    bounded(args.iter().map(|value| value.as_bytes().len()).fold(0, usize::saturating_add))?;
    Ok(string(first, args.iter().map(Value::as_bytes).collect::<Vec<_>>().concat()))
}

fn repeat<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, times] = args else { return Ok(Value::Null) };
    let times = count(times)?;
    bounded(value.as_bytes().len().saturating_mul(times))?;
    Ok(string(value, value.as_bytes().repeat(times)))
}

/// What fills `value` up to the length of the second argument, and the units of `value` that stay.
fn padding(args: &[Value<'_>]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let [value, length, rest @ ..] = args else { return Ok((Vec::new(), Vec::new())) };
    let (kept, length) = (units(value), count(length)?);
    let space = Value::bytes(b" ".to_vec());
    let fill = units(rest.first().unwrap_or(&space));
    if fill.is_empty() {
        return Err("the pattern to fill with must not be empty".to_owned());
    }
    bounded(length.saturating_mul(4))?;
    let missing = length.saturating_sub(kept.len());
    let fill: Vec<&[u8]> = fill.into_iter().cycle().take(missing).collect();
    Ok((fill.concat(), kept.get(..length.min(kept.len())).unwrap_or_default().concat()))
}

fn lpad<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, ..] = args else { return Ok(Value::Null) };
    let (fill, kept) = padding(args)?;
    Ok(string(value, [fill, kept].concat()))
}

fn rpad<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, ..] = args else { return Ok(Value::Null) };
    let (fill, kept) = padding(args)?;
    Ok(string(value, [kept, fill].concat()))
}

/// The parts of `value` between `separator`, which is not empty.
fn parts<'v>(value: &'v [u8], separator: &[u8]) -> Vec<&'v [u8]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at + separator.len() <= value.len() {
        if value[at..].starts_with(separator) {
            parts.push(&value[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    parts.push(&value[start..]);
    parts
}

fn replace<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, from, to] = args else { return Ok(Value::Null) };
    if from.as_bytes().is_empty() {
        return Ok(value.clone());
    }
    let parts = parts(value.as_bytes(), from.as_bytes());
    bounded(value.as_bytes().len().saturating_add(parts.len().saturating_mul(to.as_bytes().len())))?;
    Ok(string(value, parts.join(to.as_bytes())))
}

fn translate<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, from, to] = args else { return Ok(Value::Null) };
    let (from, to): (Vec<char>, Vec<char>) = (from.as_text().chars().collect(), to.as_text().chars().collect());
    let mut text = String::new();
    for character in value.as_text().chars() {
        match from.iter().position(|known| *known == character) {
            None => text.push(character),
            Some(at) => text.extend(to.get(at)),
        }
    }
    Ok(Value::text(text))
}

fn split<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, rest @ ..] = args else { return Ok(Value::Null) };
    if rest.is_empty() && !is_text(value) {
        return Err("bytes need a second argument: the bytes between the parts".to_owned());
    }
    let comma = Value::text(",");
    let separator = rest.first().unwrap_or(&comma);
    let parts = match separator.as_bytes() {
        [] if value.as_bytes().is_empty() => vec![value.as_bytes()],
        [] => units(value),
        separator => parts(value.as_bytes(), separator),
    };
    Ok(Value::List(parts.into_iter().map(|part| string(value, part.to_vec())).collect()))
}
/// Text in a form of Unicode's Annex 15, NFC unless its name is given.
fn normalize<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [text, rest @ ..] = args else { return Ok(Value::Null) };
    let text = text.as_text();
    let normal = match rest.first().map_or("NFC", Value::as_text).to_ascii_uppercase().as_str() {
        "NFC" => ComposingNormalizer::new_nfc().normalize(text),
        "NFKC" => ComposingNormalizer::new_nfkc().normalize(text),
        "NFD" => DecomposingNormalizer::new_nfd().normalize(text),
        "NFKD" => DecomposingNormalizer::new_nfkd().normalize(text),
        form => return Err(format!("'{form}' is no form of Unicode: write NFC, NFKC, NFD or NFKD")),
    };
    bounded(normal.len())?;
    Ok(Value::text(normal))
}

/// The Soundex code of the American census: a letter and three digits for the sounds that follow. Of what is no Latin letter
/// nothing is heard.
fn soundex<'a>(args: &[Value<'a>]) -> Row<'a> {
    const DIGITS: usize = 3;
    let [text] = args else { return Ok(Value::Null) };
    let mut letters =
        text.as_text().chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase());
    let Some(first) = letters.next() else { return Ok(Value::text("")) };

    let mut code = String::from(first);
    let mut before = sound(first);
    for letter in letters {
        let sound = sound(letter);
        if sound.is_some() && sound != before && code.len() <= DIGITS {
            code.extend(sound);
        }
        // Equal sounds around H or W are heard once, around a vowel twice.
        if !matches!(letter, 'H' | 'W') {
            before = sound;
        }
    }
    Ok(Value::text(format!("{code:0<width$}", width = 1 + DIGITS)))
}

/// The digit for the sound of a consonant.
fn sound(letter: char) -> Option<char> {
    match letter {
        'B' | 'F' | 'P' | 'V' => Some('1'),
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => Some('2'),
        'D' | 'T' => Some('3'),
        'L' => Some('4'),
        'M' | 'N' => Some('5'),
        'R' => Some('6'),
        _ => None,
    }
}
