//! Casts that DataFusion computes otherwise: rounded decimals, nearest floats, and both in scans.

pub(crate) mod decimal_floats;
pub(crate) mod rounded;
pub(crate) mod scan_cast;
