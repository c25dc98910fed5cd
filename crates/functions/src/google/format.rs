//! `FORMAT`: values in a text by `printf` elements.

use crate::google::formats::{float, written};
use crate::google::function::Takes::{Any, Text};
use crate::google::function::{Definition, Gives, bounded};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] =
    &[Definition::new("format", &[Text, Any], Gives::Text, format).with_arguments(1, usize::MAX).with_nulls()];

/// Most characters that an element may be widened to.
const MOST_WIDTH: usize = 1 << 20;

/// An element such as `%-08.3f`.
#[derive(Debug, Default)]
struct Element {
    is_left: bool,
    has_sign: bool,
    has_space: bool,
    has_zeroes: bool,
    groups: bool,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// `FORMAT(text, value, ..)`.
///
/// # Errors
/// If elements and values do not match.
fn format<'a>(args: &[Value<'a>]) -> Result<Value<'a>, String> {
    let [format, values @ ..] = args else { return Ok(Value::Null) };
    if *format == Value::Null {
        return Ok(Value::Null);
    }
    let (mut out, mut values) = (String::new(), values.iter());
    let mut characters = format.as_text().chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }

        let mut element = Element::default();
        while let Some(flag) = characters.next_if(|flag| "-+ 0'#".contains(*flag)) {
            match flag {
                '-' => element.is_left = true,
                '+' => element.has_sign = true,
                ' ' => element.has_space = true,
                '0' => element.has_zeroes = true,
                '\'' => element.groups = true,
                _ => element.is_alternate = true,
            }
        }
        if characters.next_if_eq(&'*').is_some() {
            let width = values.next().map_or(0, Value::as_int);
            element.is_left |= width < 0;
            element.width = width.unsigned_abs() as usize;
        } else {
            element.width = number(&mut characters).unwrap_or(0);
        }
        if characters.next_if_eq(&'.').is_some() {
            element.precision = Some(match characters.next_if_eq(&'*') {
                Some(_) => values.next().map_or(0, Value::as_int).unsigned_abs() as usize,
                None => number(&mut characters).unwrap_or(0),
            });
        }
        if element.width > MOST_WIDTH || element.precision.is_some_and(|precision| precision > MOST_WIDTH) {
            return Err(format!("an element is wider than {MOST_WIDTH} characters"));
        }

        let kind = characters.next().ok_or_else(|| "the format ends within an element".to_owned())?;
        let value = values.next().ok_or_else(|| format!("there is no value for %{kind}"))?;
        match element.written(kind, value)? {
            Some(text) => {
                bounded(out.len() + text.len())?;
                out.push_str(&text);
            }
            None => return Ok(Value::Null),
        }
    }
    match values.next() {
        None => Ok(Value::text(out)),
        Some(_) => Err("there are more values than elements".to_owned()),
    }
}

fn number(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut digits = String::new();
    while let Some(digit) = characters.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    digits.parse().ok()
}

impl Element {
    /// The text of a value; `None` for a null that the element does not write.
    fn written(&self, kind: char, value: &Value<'_>) -> Result<Option<String>, String> {
        let wrong = || format!("%{kind} does not write this value");
        let text = match (kind, value) {
            ('t', value) => written(value, None)?,
            ('T', value) => literal(value)?,
            (_, Value::Null) => return Ok(None),
            ('d' | 'i' | 'u', Value::Int(value)) => {
                return Ok(Some(self.number(&value.unsigned_abs().to_string(), *value < 0)));
            }
            ('x', Value::Int(value)) => {
                return Ok(Some(self.number(&self.radix("0x", format!("{:x}", value.unsigned_abs())), *value < 0)));
            }
            ('X', Value::Int(value)) => {
                return Ok(Some(self.number(&self.radix("0X", format!("{:X}", value.unsigned_abs())), *value < 0)));
            }
            ('o', Value::Int(value)) => {
                return Ok(Some(self.number(&self.radix("0", format!("{:o}", value.unsigned_abs())), *value < 0)));
            }
            ('f' | 'F' | 'e' | 'E' | 'g' | 'G', Value::Float(_) | Value::Int(_)) => {
                let value = value.as_float();
                return Ok(Some(self.number(&self.float(kind, value.abs()), value.is_sign_negative())));
            }
            ('s', Value::Text(text)) => match self.precision {
                Some(most) => text.chars().take(most).collect(),
                None => text.to_string(),
            },
            ('s', value) => written(value, None)?,
            _ => return Err(wrong()),
        };
        Ok(Some(self.filled(text)))
    }

    fn radix(&self, prefix: &str, digits: String) -> String {
        if self.is_alternate { format!("{prefix}{digits}") } else { digits }
    }

    fn float(&self, kind: char, value: f64) -> String {
        let places = self.precision.unwrap_or(6);
        match kind {
            'f' | 'F' => format!("{value:.places$}"),
            'e' | 'E' => {
                let text = format!("{value:.places$e}");
                let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
                let letter = if kind == 'E' { 'E' } else { 'e' };
                format!("{digits}{letter}{sign}{power:0>2}")
            }
            _ => float(value),
        }
    }

    fn number(&self, digits: &str, is_negative: bool) -> String {
        let mut digits = digits.to_owned();
        if self.groups {
            digits = grouped(&digits);
        }
        let sign = match (is_negative, self.has_sign, self.has_space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        };
        if self.has_zeroes && !self.is_left {
            let missing = self.width.saturating_sub(sign.len() + digits.len());
            digits.insert_str(0, &"0".repeat(missing));
        }
        self.filled(format!("{sign}{digits}"))
    }

    fn filled(&self, text: String) -> String {
        let fill = " ".repeat(self.width.saturating_sub(text.chars().count()));
        if self.is_left { text + &fill } else { fill + &text }
    }
}

/// Digits with a comma before each three of the whole part.
fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A value as a literal of GoogleSQL.
fn literal(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Value::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Value::Date(_) => format!("DATE \"{}\"", written(value, None)?),
        Value::Time(_) => format!("TIMESTAMP \"{}\"", written(value, None)?),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.1}"),
        Value::List(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(literal).collect();
            format!("[{}]", items?.join(", "))
        }
        value => written(value, None)?,
    })
}
