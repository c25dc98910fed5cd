//! A sketch in memory: sparse values at first, registers later.

use crate::hll::error::SketchError;
use crate::hll::parameters::REGISTERS;
use crate::hll::{estimate, hash, sparse, wire_format};

/// Sparse values are kept up to three quarters of the registers' bytes.
const MAX_SPARSE_BYTES: usize = REGISTERS / 4 * 3;
/// This many pending values are merged together, since each merge sorts.
const MAX_PENDING: usize = REGISTERS / 4;

/// A HyperLogLog++ sketch: estimates the number of distinct values.
#[derive(Debug, Clone)]
pub struct Sketch {
    pub(super) kind: u64,
    /// The number of values added, counting repetitions.
    pub(super) count: u64,
    /// Sparse values, ascending, one per index; empty if dense.
    pub(super) sparse: Vec<u32>,
    /// Sparse values that are not merged into `sparse` yet.
    pub(super) pending: Vec<u32>,
    /// Set once dense registers are smaller than the sparse values.
    pub(super) registers: Option<Vec<u8>>,
}

/// A value to add to a sketch, as ZetaSketch hashes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct<'a> {
    /// A 64-bit integer, signed or not.
    Integer(u64),
    /// Bytes, or text in UTF-8.
    Bytes(&'a [u8]),
}

impl Distinct<'_> {
    fn kind(self) -> u64 {
        match self {
            Self::Integer(_) => 8,
            Self::Bytes(_) => 11,
        }
    }

    fn hash(self) -> u64 {
        match self {
            Self::Integer(value) => hash::fingerprint(&value.to_le_bytes()),
            Self::Bytes(bytes) => hash::fingerprint(bytes),
        }
    }

    /// Appends the sketch of this one value, without making a [`Sketch`].
    pub fn write_sketch(self, out: &mut Vec<u8>) {
        wire_format::write_one(self.kind(), sparse::encode(self.hash()), out);
    }
}

impl Sketch {
    pub(super) fn empty(kind: u64) -> Self {
        Self { kind, count: 0, sparse: Vec::new(), pending: Vec::new(), registers: None }
    }

    /// The sketch of one value.
    pub fn of(value: Distinct<'_>) -> Self {
        let mut sketch = Self::empty(value.kind());
        sketch.count = 1;
        sketch.sparse.push(sparse::encode(value.hash()));
        sketch
    }

    /// Reads a sketch in the wire format.
    ///
    /// # Errors
    /// If the bytes are malformed, or of another precision.
    pub fn read(bytes: &[u8]) -> Result<Self, SketchError> {
        let parts = wire_format::Parts::read(bytes)?;
        let mut sketch = Self::empty(parts.kind);
        sketch.add_parts(&parts)?;
        Ok(sketch)
    }

    /// Adds a value of the sketch's kind.
    ///
    /// # Errors
    /// If the sketch is of values of another kind.
    pub fn add(&mut self, value: Distinct<'_>) -> Result<(), SketchError> {
        self.check_kind(value.kind())?;
        self.count = self.count.saturating_add(1);
        self.put(sparse::encode(value.hash()));
        Ok(())
    }

    /// Merges the sketch `bytes` into this one.
    ///
    /// # Errors
    /// If the bytes are malformed, or of another kind or precision. The sketch is then unusable.
    pub fn unite(&mut self, bytes: &[u8]) -> Result<(), SketchError> {
        self.add_parts(&wire_format::Parts::read(bytes)?)
    }

    fn check_kind(&self, other: u64) -> Result<(), SketchError> {
        if self.kind == other { Ok(()) } else { Err(SketchError::Kinds { left: self.kind, right: other }) }
    }

    fn add_parts(&mut self, parts: &wire_format::Parts<'_>) -> Result<(), SketchError> {
        self.check_kind(parts.kind)?;
        self.count = self.count.saturating_add(parts.count);
        if let Some(others) = parts.registers()? {
            for (register, other) in self.dense().iter_mut().zip(others) {
                *register = (*register).max(*other);
            }
        }
        parts.sparse_values(|value| self.put(value))
    }

    #[inline]
    fn put(&mut self, value: u32) {
        match &mut self.registers {
            Some(registers) => sparse::put_register(registers, value),
            None => {
                self.pending.push(value);
                if self.pending.len() >= MAX_PENDING {
                    self.settle();
                }
            }
        }
    }

    /// Merges pending values, and converts to registers if they are smaller.
    fn settle(&mut self) {
        if !self.pending.is_empty() {
            self.sparse.append(&mut self.pending);
            self.sparse.sort_unstable();
            sparse::dedup(&mut self.sparse);
        }
        if sparse::bytes(&self.sparse) > MAX_SPARSE_BYTES {
            self.dense();
        }
    }

    /// The registers, to which sparse values are converted first.
    fn dense(&mut self) -> &mut Vec<u8> {
        let Self { sparse, pending, registers, .. } = self;
        registers.get_or_insert_with(|| {
            let mut registers = vec![0; REGISTERS];
            sparse.drain(..).chain(pending.drain(..)).for_each(|value| sparse::put_register(&mut registers, value));
            registers
        })
    }

    /// The estimated number of distinct values, see `estimate`.
    pub fn estimate(mut self) -> u64 {
        self.settle();
        match &self.registers {
            Some(registers) => estimate::of_registers(registers),
            None => estimate::of_sparse(self.sparse.len()),
        }
    }

    /// Appends the encoded sketch. The bytes do not depend on the order in which values were added.
    pub fn write(mut self, out: &mut Vec<u8>) {
        self.settle();
        match &self.registers {
            Some(registers) => wire_format::write_dense(self.kind, self.count, registers, out),
            None => wire_format::write_sparse(self.kind, self.count, &self.sparse, out),
        }
    }
}
