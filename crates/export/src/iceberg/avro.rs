//! Avro object container files, as manifests are: written by an [`Encoder`] whose caller knows the schema, read as [`Datum`]s by
//! the schema in the header, which may be that of another engine.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::DeflateDecoder;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::avro::{CODEC, Encoder, MAGIC, SCHEMA, block, header, packed};

/// Bytes that the blocks of one file may have unpacked: a damaged file claims more.
const MOST_BYTES: u64 = 1 << 31;

/// How deep types may be nested.
const MOST_DEPTH: usize = 32;

/// A file of `count` records of `schema`, which are encoded in `records`, with these pairs in its header.
pub(crate) fn container(schema: &Value, pairs: &[(&str, String)], count: usize, records: &Encoder) -> Vec<u8> {
    let packed = packed(records);
    let mark = xxh3_128(&packed).to_le_bytes();
    let mut file = header(schema, pairs, &mark);
    if count > 0 {
        file.extend_from_slice(&block(count, &packed, &mark));
    }
    file
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Null,
    Boolean(bool),
    /// An `int`, a `long`, or the place of an `enum`.
    Long(i64),
    /// A `float` or a `double`.
    Double(f64),
    /// `bytes` or `fixed`.
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Datum>),
    /// Fields of a record, or entries of a map.
    Record(Vec<(String, Datum)>),
}

impl Datum {
    /// The field of a record.
    pub(crate) fn field(&self, name: &str) -> &Self {
        let Self::Record(fields) = self else { return &Self::Null };
        fields.iter().find(|(field, _)| field == name).map_or(&Self::Null, |(_, value)| value)
    }

    pub(crate) fn long(&self) -> Option<i64> {
        if let Self::Long(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(value) = self { Some(value) } else { None }
    }

    /// The items of an array; none of anything else.
    pub(crate) fn items(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }
}

/// The records of a file; the error is what is wrong with it.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<Datum>, String> {
    let mut input = Input { rest: bytes };
    if input.take(MAGIC.len())? != MAGIC {
        return Err("it is not an Avro file".to_owned());
    }
    let mut header = HashMap::new();
    input.blocks(|input| {
        let key = input.text()?;
        header.insert(key, input.bytes()?.to_vec());
        Ok(())
    })?;
    let mark = input.take(16)?.to_vec();
    let schema = header.get(SCHEMA).and_then(|schema| serde_json::from_slice(schema).ok());
    let schema: Value = schema.ok_or("its header has no schema")?;
    let codec = header.get(CODEC).map_or("null".into(), |codec| String::from_utf8_lossy(codec));

    let mut named = Named::default();
    named.note(&schema, 0);
    let mut records = Vec::new();
    while !input.rest.is_empty() {
        let count = input.length()?;
        let block = input.bytes()?;
        if input.take(16)? != mark {
            return Err("a block does not end with the mark of the file".to_owned());
        }
        let mut unpacked = Vec::new();
        let block = match codec.as_ref() {
            "null" => block,
            "deflate" => {
                let read = DeflateDecoder::new(block).take(MOST_BYTES).read_to_end(&mut unpacked);
                read.map_err(|error| error.to_string())?;
                unpacked.as_slice()
            }
            other => return Err(format!("it is packed by {other}, which is not read")),
        };

        // Records of no bytes would be as many as the count claims.
        if count > block.len() {
            return Err("a block has more records than bytes".to_owned());
        }
        let mut block = Input { rest: block };
        for _ in 0..count {
            records.push(named.datum(&schema, &mut block, 0)?);
        }
    }
    Ok(records)
}

/// The types of a schema that have names.
#[derive(Default)]
struct Named {
    types: HashMap<String, Value>,
}

impl Named {
    /// Notes the named types in `schema`, by their names with and without namespace.
    fn note(&mut self, schema: &Value, depth: usize) {
        if depth > MOST_DEPTH || schema.is_string() || schema.is_null() {
            return;
        }
        if let Some(branches) = schema.as_array() {
            branches.iter().for_each(|branch| self.note(branch, depth + 1));
            return;
        }
        if let Some(name) = schema["name"].as_str().filter(|_| schema["type"].is_string()) {
            let short = name.rsplit('.').next().unwrap_or(name).to_owned();
            let full = schema["namespace"].as_str().map(|space| format!("{space}.{short}"));
            self.types.extend(
                [Some(name.to_owned()), Some(short), full].into_iter().flatten().map(|name| (name, schema.clone())),
            );
        }
        for inner in ["type", "items", "values"] {
            self.note(&schema[inner], depth + 1);
        }
        for field in schema["fields"].as_array().into_iter().flatten() {
            self.note(&field["type"], depth + 1);
        }
    }

    /// Reads a value of a type.
    fn datum(&self, schema: &Value, input: &mut Input<'_>, depth: usize) -> Result<Datum, String> {
        if depth > MOST_DEPTH {
            return Err("its types are nested too deep".to_owned());
        }
        if let Some(branches) = schema.as_array() {
            let branch = branches.get(input.length()?).ok_or("a union has no such branch")?;
            return self.datum(branch, input, depth + 1);
        }

        let kind = schema.as_str().or_else(|| schema["type"].as_str());
        let Some(kind) = kind else { return self.datum(&schema["type"], input, depth + 1) };
        Ok(match kind {
            "null" => Datum::Null,
            "boolean" => Datum::Boolean(input.take(1)? != [0]),
            "int" | "long" | "enum" => Datum::Long(input.long()?),
            "float" => Datum::Double(f64::from(f32::from_le_bytes(input.fixed()?))),
            "double" => Datum::Double(f64::from_le_bytes(input.fixed()?)),
            "bytes" => Datum::Bytes(input.bytes()?.to_vec()),
            "string" => Datum::Text(input.text()?),
            "fixed" => {
                let size = schema["size"].as_u64().and_then(|size| usize::try_from(size).ok());
                Datum::Bytes(input.take(size.ok_or("a fixed type has no size")?)?.to_vec())
            }
            "record" => {
                let mut fields = Vec::new();
                for field in schema["fields"].as_array().into_iter().flatten() {
                    let name = field["name"].as_str().unwrap_or_default().to_owned();
                    fields.push((name, self.datum(&field["type"], input, depth + 1)?));
                }
                Datum::Record(fields)
            }
            "array" => {
                let mut items = Vec::new();
                input.blocks(|input| {
                    items.push(self.datum(&schema["items"], input, depth + 1)?);
                    Ok(())
                })?;
                Datum::Array(items)
            }
            "map" => {
                let mut entries = Vec::new();
                input.blocks(|input| {
                    let key = input.text()?;
                    entries.push((key, self.datum(&schema["values"], input, depth + 1)?));
                    Ok(())
                })?;
                Datum::Record(entries)
            }
            named => {
                let known = self.types.get(named).ok_or_else(|| format!("its schema has no type {named}"))?;
                self.datum(known, input, depth + 1)?
            }
        })
    }
}

/// Bytes that are read from the front.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| "it ends too early".to_owned())
    }

    fn long(&mut self) -> Result<i64, String> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err("a number is too long".to_owned())
    }

    /// A number of bytes or items.
    fn length(&mut self) -> Result<usize, String> {
        usize::try_from(self.long()?).map_err(|_| "a length is negative".to_owned())
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
    }

    /// The items of an array or a map, which come in blocks.
    fn blocks(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        loop {
            let count = self.long()?;
            if count < 0 {
                // Their length in bytes follows, to skip them.
                self.long()?;
            }
            if count == 0 {
                return Ok(());
            }
            // Items of no bytes would be as many as the count claims.
            if count.unsigned_abs() > self.rest.len() as u64 {
                return Err("it has more items than bytes".to_owned());
            }
            for _ in 0..count.unsigned_abs() {
                read(self)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> Vec<u8> {
        let pair = json!({ "type": "record", "name": "pair", "fields": [
            { "name": "key", "type": "int" }, { "name": "value", "type": "bytes" },
        ] });
        let schema = json!({ "type": "record", "name": "r", "fields": [
            { "name": "name", "type": "string" },
            { "name": "count", "type": ["null", "long"] },
            { "name": "pairs", "type": ["null", { "type": "array", "items": pair }] },
            { "name": "more", "type": { "type": "array", "items": "pair" } },
            { "name": "is", "type": "boolean" },
        ] });
        let mut records = Encoder::default();
        for number in [i64::MIN, -1, 0, 63, 64, i64::MAX] {
            records.text("é");
            records.option(Some(number), Encoder::long);
            records.option(Some([(7, [1_u8, 2])]), |out, pairs| {
                out.array(pairs.into_iter(), |out, (key, value)| {
                    out.long(key);
                    out.bytes(&value);
                });
            });
            records.array(std::iter::empty::<()>(), |_, ()| {});
            records.boolean(true);
        }
        container(&schema, &[("content", "data".to_owned())], 6, &records)
    }

    #[test]
    fn records_read_back() {
        let records = records(&file()).unwrap();
        let numbers: Vec<_> = records.iter().map(|record| record.field("count").long().unwrap()).collect();
        assert_eq!(numbers, [i64::MIN, -1, 0, 63, 64, i64::MAX]);
        let [pair] = records[0].field("pairs").items() else { panic!("{records:?}") };
        assert_eq!((pair.field("key").long(), pair.field("value").bytes()), (Some(7), Some(&[1_u8, 2][..])));
        assert_eq!((records[0].field("name").text(), records[0].field("none")), (Some("é"), &Datum::Null));
        assert_eq!((records[0].field("more").items().len(), records[0].field("is")), (0, &Datum::Boolean(true)));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let whole = file();
        for length in 1..whole.len() {
            // Cut after the header it is a file without records.
            let cut = records(&whole[..length]);
            assert!(cut.is_err() || cut.is_ok_and(|records| records.is_empty()), "{length}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x55;
            // It ends, with whatever result.
            let _ = records(&other);
        }
    }
}
