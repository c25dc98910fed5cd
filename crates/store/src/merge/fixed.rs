//! Gathers ranges of fixed-width arrays without nulls by copying memory.

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, MutableBuffer};

/// Concatenates `ranges` (array, values) of `arrays`, `len` values in all. `None` if their type is not fixed-width,
/// or there are nulls.
pub(crate) fn gather(arrays: &[ArrayRef], ranges: &[(usize, Range<usize>)], len: usize) -> Option<ArrayRef> {
    let kind = arrays.first()?.data_type();
    let width = kind.primitive_width()?;
    let parts: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    if parts.iter().any(|part| part.data_type() != kind || part.null_count() > 0) {
        return None;
    }

    let bytes: Vec<&[u8]> =
        parts.iter().map(|part| part.buffers().first()?.get(part.offset() * width..)).collect::<Option<_>>()?;

    let mut out = MutableBuffer::with_capacity(len * width);
    for (source, range) in ranges {
        out.extend_from_slice(bytes.get(*source)?.get(range.start * width..range.end * width)?);
    }
    let data = ArrayData::builder(kind.clone()).len(len).add_buffer(Buffer::from(out)).build().ok()?;
    Some(make_array(data))
}
