//! Sketches of distinct values, as production stores them: HyperLogLog++ in ZetaSketch's format, normal precision 15
//! and sparse precision 20.
//!
//! The format and the hash are those of <https://github.com/google/zetasketch> (`AggregatorStateProto` with the
//! extension `HyperLogLogPlusUniqueStateProto`, encoding version 2), the estimator that of the paper *HyperLogLog in
//! Practice* (Heule, Nunkesser, Hall 2013), see [`estimate`]. With 32,768 registers the standard error is
//! 1.04 / sqrt(32768) = 0.57 %; up to about 20,000 values a sketch is sparse, and nearly exact.
//!
//! ```text
//! 08 70        type: HyperLogLog++      82 07 n      the state, n bytes:
//! 10 count     values added               10 size    sparse values
//! 18 02        encoding version           18 0f      normal precision
//! 20 type      8 integers, 11 bytes       20 14      sparse precision
//!                                         2a n ..    32,768 registers, or
//!                                         32 n ..    sparse values, ascending: varints of their differences
//! ```

mod estimate;
mod fingerprint;
mod sparse;
#[cfg(test)]
mod tests;
mod wire;

use thiserror::Error;

pub(crate) const NORMAL_PRECISION: u32 = 15;
pub(crate) const SPARSE_PRECISION: u32 = 20;
pub(crate) const REGISTERS: usize = 1 << NORMAL_PRECISION;
/// The most a register holds: all bits after the index are zeros.
pub(crate) const MAX_REGISTER: u8 = 64 - NORMAL_PRECISION as u8 + 1;
/// Sparse values are kept up to three quarters of the registers' bytes.
const MAX_SPARSE_BYTES: usize = REGISTERS / 4 * 3;
/// Values that may wait before they are sorted in.
const MAX_PENDING: usize = REGISTERS / 4;

/// A set of values of which only the number is kept, about.
#[derive(Debug, Clone)]
pub struct Sketch {
    kind: u64,
    /// Values added, the same one as often as it came.
    count: u64,
    /// Ascending, one for each index; empty once there are registers.
    sparse: Vec<u32>,
    /// Sparse values not yet among those.
    pending: Vec<u32>,
    /// Set as soon as they take less than the sparse values.
    registers: Option<Vec<u8>>,
}

/// Why bytes are no sketch, or two sketches are not of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SketchError {
    /// The bytes are cut off or broken.
    #[error("no sketch of distinct values, or a damaged one: {what}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// A sketch of another precision.
    #[error(
        "a sketch of precision {normal} and sparse precision {sparse}: only 15 and 20 are read, make it with those"
    )]
    Precision {
        /// Normal precision.
        normal: u64,
        /// Sparse precision.
        sparse: u64,
    },
    /// Sketches of integers and of text have no union.
    #[error("one sketch is of values of type {left} and the other of type {right}: keep them in columns of their own")]
    Kinds {
        /// ZetaSketch's number of the type.
        left: u64,
        /// That of the other.
        right: u64,
    },
}

/// A value as sketches see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct<'a> {
    /// A 64-bit integer, signed or not.
    Integer(u64),
    /// Bytes, or UTF-8 text.
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
            Self::Integer(value) => fingerprint::of(&value.to_le_bytes()),
            Self::Bytes(bytes) => fingerprint::of(bytes),
        }
    }

    /// Appends the sketch of this one value, without making a [`Sketch`].
    pub fn write_sketch(self, out: &mut Vec<u8>) {
        wire::write_one(self.kind(), sparse::encode(self.hash()), out);
    }
}

impl Sketch {
    fn empty(kind: u64) -> Self {
        Self { kind, count: 0, sparse: Vec::new(), pending: Vec::new(), registers: None }
    }

    /// The sketch of one value.
    pub fn of(value: Distinct<'_>) -> Self {
        let mut sketch = Self::empty(value.kind());
        sketch.count = 1;
        sketch.sparse.push(sparse::encode(value.hash()));
        sketch
    }

    /// Reads a sketch.
    ///
    /// # Errors
    /// If the bytes are none, or one of another precision.
    pub fn read(bytes: &[u8]) -> Result<Self, SketchError> {
        let parts = wire::Parts::read(bytes)?;
        let mut sketch = Self::empty(parts.kind);
        sketch.add_parts(&parts)?;
        Ok(sketch)
    }

    /// Adds a value.
    ///
    /// # Errors
    /// If the sketch is of values of another kind.
    pub fn add(&mut self, value: Distinct<'_>) -> Result<(), SketchError> {
        self.check_kind(value.kind())?;
        self.count = self.count.saturating_add(1);
        self.put(sparse::encode(value.hash()));
        Ok(())
    }

    /// Makes it the union with the sketch `bytes`.
    ///
    /// # Errors
    /// If the bytes are no sketch, or one of another kind or precision. The sketch is useless then.
    pub fn unite(&mut self, bytes: &[u8]) -> Result<(), SketchError> {
        self.add_parts(&wire::Parts::read(bytes)?)
    }

    fn check_kind(&self, other: u64) -> Result<(), SketchError> {
        if self.kind == other { Ok(()) } else { Err(SketchError::Kinds { left: self.kind, right: other }) }
    }

    fn add_parts(&mut self, parts: &wire::Parts<'_>) -> Result<(), SketchError> {
        self.check_kind(parts.kind)?;
        self.count = self.count.saturating_add(parts.count);
        if let Some(registers) = parts.registers()? {
            let own = self.dense();
            for (own, other) in own.iter_mut().zip(registers) {
                *own = (*own).max(*other);
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

    /// Sorts the waiting values in, and goes over to registers if they take less.
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

    /// The registers, from now on.
    fn dense(&mut self) -> &mut Vec<u8> {
        let Self { sparse, pending, registers, .. } = self;
        registers.get_or_insert_with(|| {
            let mut registers = vec![0; REGISTERS];
            sparse.drain(..).chain(pending.drain(..)).for_each(|value| sparse::put_register(&mut registers, value));
            registers
        })
    }

    /// How many distinct values it is of, about.
    pub fn estimate(mut self) -> u64 {
        self.settle();
        match &self.registers {
            Some(registers) => estimate::of_registers(registers),
            None => estimate::of_sparse(self.sparse.len()),
        }
    }

    /// Appends its bytes. Equal sets of values, added as often, give the same bytes in whatever order they came.
    pub fn write(mut self, out: &mut Vec<u8>) {
        self.settle();
        match &self.registers {
            Some(registers) => wire::write_dense(self.kind, self.count, registers, out),
            None => wire::write_sparse(self.kind, self.count, &self.sparse, out),
        }
    }
}
