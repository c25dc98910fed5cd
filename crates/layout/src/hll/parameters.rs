//! Precisions of the sketches: those of BigQuery and Bigtable.

pub(super) const NORMAL_PRECISION: u32 = 15;
pub(super) const SPARSE_PRECISION: u32 = 20;
pub(super) const REGISTERS: usize = 1 << NORMAL_PRECISION;
/// The most a register holds: all bits after the index are zeros.
pub(super) const MAX_REGISTER: u8 = 64 - NORMAL_PRECISION as u8 + 1;
