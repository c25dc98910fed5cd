//! Codecs of numbers, byte strings and blocks of bytes.

pub(crate) mod bit_mask;
pub(crate) mod bit_unpacking;
pub(crate) mod block_compression;
mod decimal_scaling;
mod delta_order;
pub(crate) mod float_decimals;
pub(crate) mod front_coding;
pub(crate) mod integer_list;
pub(crate) mod integer_range;
pub(crate) mod lane;
pub(crate) mod numbers;
mod pfor;
pub(crate) mod selection;
pub(crate) mod value_range;
