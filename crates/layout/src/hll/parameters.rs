//! Precisions of the sketches: those of BigQuery and Bigtable.

/// The normal precision: the logarithm of the number of registers.
pub(super) const NORMAL_PRECISION: u32 = 15;
/// The sparse precision: the bits of an index in a sparse sketch.
pub(super) const SPARSE_PRECISION: u32 = 20;
/// The number of registers of a dense sketch, a byte each.
pub(super) const REGISTERS: usize = 1 << NORMAL_PRECISION;
/// The most a register holds: all bits after the index are zeros.
pub(super) const MAX_REGISTER: u8 = 64 - NORMAL_PRECISION as u8 + 1;
