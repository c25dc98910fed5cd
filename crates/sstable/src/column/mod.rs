//! The values of one column: Arrow arrays to streams of pages and back.

mod bytes;
mod numeric;
pub(crate) mod stream;
mod target;
pub(crate) mod validity;
mod values;

pub(crate) use numeric::{decimals_of, put_gapless, read_gapless};
pub(crate) use target::Target;
pub(crate) use values::{put, read, select};
