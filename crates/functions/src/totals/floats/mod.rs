//! Sums and averages of floats that are exact until they are rounded once: the same bits in any order of the values, and in any
//! division into partial sums.
//!
//! A reading of 12.3 kWh is stored as the float nearest to it. The sum of readings is that of what was read, not of what the
//! floats happen to be in binary, so a value counts as the decimal of at most [`SCALE`](split::SCALE) decimals whose nearest
//! float it is. Decimals add as integers ([`split`]). Every other float counts as the binary fraction that it is, and is
//! added to a superaccumulator ([`superaccumulator`]). Which of both a value is depends on nothing but the value.

pub(crate) mod accumulators;
pub(crate) mod rounding;
pub(crate) mod row_states;
pub(crate) mod split;
pub(crate) mod superaccumulator;
