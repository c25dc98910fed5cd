//! The wire format of sketches. Decoding validates everything.

use crate::hll::error::SketchError;
use crate::hll::parameters::{MAX_REGISTER, NORMAL_PRECISION, REGISTERS, SPARSE_PRECISION};
use crate::hll::sparse;
use crate::varint::{put_varint, take_varint, varint_len};

const TYPE: u64 = 1;
const COUNT: u64 = 2;
const VERSION: u64 = 3;
const KIND: u64 = 4;
const STATE: u64 = 112;
const SIZE: u64 = 2;
const NORMAL: u64 = 3;
const SPARSE: u64 = 4;
const REGISTER_BYTES: u64 = 5;
const SPARSE_BYTES: u64 = 6;

/// The aggregator's type is the number of its extension.
const HLL: u64 = STATE;
const ENCODING_VERSION: u64 = 2;

fn damaged(what: &'static str) -> SketchError {
    SketchError::Damaged { what }
}

/// A parsed sketch whose values are not decoded yet.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) kind: u64,
    pub(super) count: u64,
    size: u64,
    registers: &'a [u8],
    sparse: &'a [u8],
}

/// The value of a field of a message.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Parts<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, SketchError> {
        let mut parts = Self { kind: 0, count: 0, size: 0, registers: &[], sparse: &[] };
        let (mut kind, mut version, mut state) = (0, 1, None);
        let mut rest = bytes;
        while let Some((field, value)) = next_field(&mut rest)? {
            match (field, value) {
                (TYPE, Value::Number(number)) => kind = number,
                (COUNT, Value::Number(number)) => parts.count = number,
                (VERSION, Value::Number(number)) => version = number,
                (KIND, Value::Number(number)) => parts.kind = number,
                (STATE, Value::Bytes(bytes)) => state = Some(bytes),
                _ => {}
            }
        }
        let state = state.filter(|_| kind == HLL).ok_or(damaged("it is of no HyperLogLog++"))?;
        if version != ENCODING_VERSION {
            return Err(damaged("its encoding version is not 2"));
        }
        parts.read_state(state)?;
        Ok(parts)
    }

    fn read_state(&mut self, state: &'a [u8]) -> Result<(), SketchError> {
        let (mut normal, mut sparse) = (0, 0);
        let mut rest = state;
        while let Some((field, value)) = next_field(&mut rest)? {
            match (field, value) {
                (SIZE, Value::Number(number)) => self.size = number,
                (NORMAL, Value::Number(number)) => normal = number,
                (SPARSE, Value::Number(number)) => sparse = number,
                (REGISTER_BYTES, Value::Bytes(bytes)) => self.registers = bytes,
                (SPARSE_BYTES, Value::Bytes(bytes)) => self.sparse = bytes,
                _ => {}
            }
        }
        if (normal, sparse) != (NORMAL_PRECISION.into(), SPARSE_PRECISION.into()) {
            return Err(SketchError::Precision { normal, sparse });
        }
        if !self.registers.is_empty() && !self.sparse.is_empty() {
            return Err(damaged("it is both sparse and dense"));
        }
        Ok(())
    }

    /// The registers of a dense sketch; `None` if it is sparse.
    pub(super) fn registers(&self) -> Result<Option<&'a [u8]>, SketchError> {
        match self.registers.len() {
            0 => Ok(None),
            REGISTERS if self.registers.iter().all(|register| *register <= MAX_REGISTER) => Ok(Some(self.registers)),
            REGISTERS => Err(damaged("a register is over 50")),
            _ => Err(damaged("it has not 32768 registers")),
        }
    }

    /// Calls `put` with each sparse value, in ascending order.
    pub(super) fn sparse_values(&self, mut put: impl FnMut(u32)) -> Result<(), SketchError> {
        let mut rest = self.sparse;
        let (mut last, mut found) = (0u64, 0);
        while !rest.is_empty() {
            let difference = number(&mut rest)?;
            last = last.checked_add(difference).ok_or(damaged("a sparse value is too great"))?;
            let value = u32::try_from(last).ok().filter(|value| difference > 0 && sparse::is_valid(*value));
            put(value.ok_or(damaged("a sparse value is none"))?);
            found += 1;
        }
        if found == self.size { Ok(()) } else { Err(damaged("its size is not that of its sparse values")) }
    }
}

/// The next field and its number; `None` at the end.
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u64, Value<'a>)>, SketchError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let tag = number(rest)?;
    let value = match tag & 7 {
        0 => Value::Number(number(rest)?),
        1 => take(rest, 8).map(|_| Value::Other)?,
        2 => {
            let length = number(rest)?;
            Value::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| Value::Other)?,
        _ => return Err(damaged("it is no protobuf message")),
    };
    Ok(Some((tag >> 3, value)))
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], SketchError> {
    let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let (taken, after) = split.ok_or(damaged("it ends early"))?;
    *rest = after;
    Ok(taken)
}

fn number(rest: &mut &[u8]) -> Result<u64, SketchError> {
    take_varint(rest).ok_or(damaged("a number ends early or is over 64 bits"))
}

fn put_number(field: u64, value: u64, out: &mut Vec<u8>) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

/// The fields before the state, and the state up to its data.
fn put_head(kind: u64, count: u64, size: usize, data: usize, out: &mut Vec<u8>) {
    put_number(TYPE, HLL, out);
    put_number(COUNT, count, out);
    put_number(VERSION, ENCODING_VERSION, out);
    if kind != 0 {
        put_number(KIND, kind, out);
    }
    put_varint(out, STATE << 3 | 2);
    let size_bytes = if size > 0 { 1 + varint_len(size as u64) } else { 0 };
    put_varint(out, (size_bytes + 4 + 1 + varint_len(data as u64) + data) as u64);
    if size > 0 {
        put_number(SIZE, size as u64, out);
    }
    put_number(NORMAL, NORMAL_PRECISION.into(), out);
    put_number(SPARSE, SPARSE_PRECISION.into(), out);
}

pub(super) fn write_sparse(kind: u64, count: u64, sorted: &[u32], out: &mut Vec<u8>) {
    let data = sparse::bytes(sorted);
    put_head(kind, count, sorted.len(), data, out);
    put_varint(out, SPARSE_BYTES << 3 | 2);
    put_varint(out, data as u64);
    let mut last = 0;
    for value in sorted {
        put_varint(out, u64::from(value - last));
        last = *value;
    }
}

pub(super) fn write_dense(kind: u64, count: u64, registers: &[u8], out: &mut Vec<u8>) {
    put_head(kind, count, 0, registers.len(), out);
    put_varint(out, REGISTER_BYTES << 3 | 2);
    put_varint(out, registers.len() as u64);
    out.extend_from_slice(registers);
}

/// Appends the sketch of one sparse value.
pub(super) fn write_one(kind: u64, value: u32, out: &mut Vec<u8>) {
    write_sparse(kind, 1, &[value], out);
}
