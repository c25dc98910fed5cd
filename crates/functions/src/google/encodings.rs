//! Text forms of bytes, and numbers in bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::google::function::Takes::{Bytes, Text};
use crate::google::function::{Definition, Gives};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("from_hex", &[Text], Gives::Bytes, from_hex),
    Definition::new("to_hex", &[Bytes], Gives::Text, to_hex),
    Definition::new("from_base64", &[Text], Gives::Bytes, from_base64),
    Definition::new("to_base64", &[Bytes], Gives::Text, to_base64),
    Definition::new("from_base32", &[Text], Gives::Bytes, from_base32),
    Definition::new("to_base32", &[Bytes], Gives::Text, to_base32),
    Definition::new("safe_convert_bytes_to_string", &[Bytes], Gives::Text, text),
    Definition::new("sha1", &[Bytes], Gives::Bytes, sha1),
    Definition::new("to_int32", &[Bytes], Gives::Int, to_int32),
    Definition::new("to_int64", &[Bytes], Gives::Int, to_int64),
    Definition::new("to_float64", &[Bytes], Gives::Float, to_float64),
    Definition::new("to_float32", &[Bytes], Gives::Float32, to_float32),
    Definition::new("to_vector32", &[Bytes], Gives::Floats32, to_vector32),
    Definition::new("to_vector64", &[Bytes], Gives::Floats, to_vector64),
];

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

type Row<'a> = Result<Value<'a>, String>;

fn from_hex<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [text] = args else { return Ok(Value::Null) };
    let text = text.as_text();
    // An odd number of digits has a 0 before them.
    let even = if text.len().is_multiple_of(2) { text.to_owned() } else { format!("0{text}") };
    hex::decode(even).map(Value::bytes).map_err(|_| format!("'{text}' has characters that are no hexadecimal digits"))
}

fn to_hex<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    Ok(Value::text(hex::encode(bytes.as_bytes())))
}

fn from_base64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [text] = args else { return Ok(Value::Null) };
    let text = text.as_text();
    STANDARD.decode(text).map(Value::bytes).map_err(|_| format!("'{text}' is not base64"))
}

fn to_base64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    Ok(Value::text(STANDARD.encode(bytes.as_bytes())))
}

fn from_base32<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [text] = args else { return Ok(Value::Null) };
    let text = text.as_text();
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for digit in text.trim_end_matches('=').bytes() {
        let Some(value) = BASE32.iter().position(|known| *known == digit) else {
            return Err(format!("'{text}' is not base32"));
        };
        bits = (bits << 5) | value as u32;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Ok(Value::bytes(bytes))
}

fn to_base32<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    let mut text = String::new();
    for chunk in bytes.as_bytes().chunks(5) {
        let mut bits = [0_u8; 8];
        if let Some(filled) = bits.get_mut(3..3 + chunk.len()) {
            filled.copy_from_slice(chunk);
        }
        let bits = u64::from_be_bytes(bits);
        let digits = (chunk.len() * 8).div_ceil(5);
        for place in 0..8 {
            let digit = (bits >> (35 - 5 * place)) & 31;
            text.push(if place < digits { char::from(BASE32[digit as usize]) } else { '=' });
        }
    }
    Ok(Value::text(text))
}

fn text<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    Ok(Value::text(String::from_utf8_lossy(bytes.as_bytes())))
}

/// The bytes of a number of `N` bytes.
fn fixed<const N: usize>(bytes: &Value<'_>) -> Result<[u8; N], String> {
    let bytes = bytes.as_bytes();
    bytes.try_into().map_err(|_| {
        let shown = bytes.get(..16).unwrap_or(bytes).escape_ascii();
        format!(
            "it takes {N} bytes, not the {} of '{shown}'; a number kept as text is CAST(CAST(.. AS STRING) AS ..)",
            bytes.len()
        )
    })
}

fn sha1<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    Ok(Value::bytes(Sha1::digest(bytes.as_bytes()).to_vec()))
}

fn to_int32<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    fixed(bytes).map(|bytes| Value::Int(i64::from(i32::from_be_bytes(bytes))))
}

fn to_int64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    fixed(bytes).map(i64::from_be_bytes).map(Value::Int)
}

fn to_float64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    fixed(bytes).map(f64::from_be_bytes).map(Value::Float)
}

fn to_float32<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    fixed(bytes).map(|bytes| Value::Float(f64::from(f32::from_be_bytes(bytes))))
}

/// The numbers of `N` bytes each that `bytes` consists of.
fn numbers<'a, const N: usize>(bytes: &Value<'_>, read: fn([u8; N]) -> f64) -> Row<'a> {
    let bytes = bytes.as_bytes();
    let (chunks, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(format!("{} bytes are no vector of numbers of {N} bytes", bytes.len()));
    }
    Ok(Value::List(chunks.iter().map(|chunk| Value::Float(read(*chunk))).collect()))
}

fn to_vector32<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    numbers::<4>(bytes, |bytes| f64::from(f32::from_be_bytes(bytes)))
}

fn to_vector64<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [bytes] = args else { return Ok(Value::Null) };
    numbers::<8>(bytes, f64::from_be_bytes)
}
