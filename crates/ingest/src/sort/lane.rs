//! Values of a column as integers of their width: what is only moved need not be known by type.

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;
use tidetable_store::Result;

/// The values of a column of fixed width without nulls.
#[derive(Debug, Clone)]
pub(crate) enum Lane {
    Four(ScalarBuffer<u32>),
    Eight(ScalarBuffer<u64>),
    Sixteen(ScalarBuffer<i128>),
}

/// Which values of a lane are wanted, ascending.
#[derive(Debug, Clone)]
pub(crate) enum Places<'a> {
    Range(Range<usize>),
    Each(&'a [u32]),
}

/// Parts of the slice that a variant of [`Lane`] holds.
macro_rules! slices {
    ($parts:expr, $variant:path) => {
        $parts
            .iter()
            .filter_map(|(lane, places)| if let $variant(all) = lane { Some((&all[..], places)) } else { None })
    };
}

impl Lane {
    /// Bytes of a value; `None` if lanes do not hold the type.
    pub(crate) fn width(kind: &DataType) -> Option<usize> {
        kind.primitive_width().filter(|width| matches!(width, 4 | 8 | 16))
    }

    /// The values of an array, which are not copied; `None` if lanes do not hold them.
    pub(crate) fn of(array: &ArrayRef) -> Option<Self> {
        let width = Self::width(array.data_type()).filter(|_| array.null_count() == 0)?;
        let data = array.to_data();
        let (buffer, from, length) = (data.buffers().first()?.clone(), data.offset(), data.len());
        Some(match width {
            4 => Self::Four(ScalarBuffer::new(buffer, from, length)),
            16 => Self::Sixteen(ScalarBuffer::new(buffer, from, length)),
            _ => Self::Eight(ScalarBuffer::new(buffer, from, length)),
        })
    }

    /// The values at `places`, as a lane of the same width.
    pub(crate) fn take(&self, places: &[u32]) -> Self {
        match self {
            Self::Four(all) => Self::Four(picked(all, places).into()),
            Self::Eight(all) => Self::Eight(picked(all, places).into()),
            Self::Sixteen(all) => Self::Sixteen(picked(all, places).into()),
        }
    }

    /// The values of `parts`, which are of one width, one after the other, in the order of `order`.
    pub(crate) fn gather(parts: &[(&Self, Places<'_>)], order: &[u32]) -> Self {
        match parts.first() {
            Some((Self::Four(_), _)) => Self::Four(gathered(slices!(parts, Self::Four), order).into()),
            Some((Self::Sixteen(_), _)) => Self::Sixteen(gathered(slices!(parts, Self::Sixteen), order).into()),
            _ => Self::Eight(gathered(slices!(parts, Self::Eight), order).into()),
        }
    }

    /// The values as an array of this type, which is of their width.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn into_array(self, kind: &DataType) -> Result<ArrayRef> {
        let (length, buffer) = match self {
            Self::Four(values) => (values.len(), values.into_inner()),
            Self::Eight(values) => (values.len(), values.into_inner()),
            Self::Sixteen(values) => (values.len(), values.into_inner()),
        };
        Ok(make_array(ArrayData::builder(kind.clone()).len(length).add_buffer(buffer).build()?))
    }
}

pub(crate) fn picked<T: Copy>(values: &[T], places: &[u32]) -> Vec<T> {
    places.iter().map(|place| values[*place as usize]).collect()
}

/// The values of `parts`, one after the other, in the order of `order`. They are copied together first: picks from one slice are
/// several times as fast as from many.
pub(crate) fn gather<'a, T: Copy + 'a>(parts: impl Iterator<Item = &'a [T]>, order: &[u32]) -> Vec<T> {
    let mut all = Vec::with_capacity(order.len());
    parts.for_each(|part| all.extend_from_slice(part));
    picked(&all, order)
}

/// The same of parts at places. Places ascend, so that values are read from memory in order, and put in theirs in the cache.
fn gathered<'a, T: Copy + 'a>(parts: impl Iterator<Item = (&'a [T], &'a Places<'a>)>, order: &[u32]) -> Vec<T> {
    let mut all = Vec::with_capacity(order.len());
    parts.for_each(|(part, places)| match places {
        Places::Range(range) => all.extend_from_slice(&part[range.clone()]),
        Places::Each(places) => all.extend(places.iter().map(|place| part[*place as usize])),
    });
    picked(&all, order)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Date32Array, Decimal128Array, Float64Array, StringArray, TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::compute::take;

    use super::*;

    #[test]
    fn any_values_of_fixed_width_come_back() {
        let arrays: [ArrayRef; 5] = [
            Arc::new(UInt64Array::from(vec![9, 1, 2, 3]).slice(1, 3)),
            Arc::new(Float64Array::from(vec![1.5, -0.0, 7.25])),
            Arc::new(Date32Array::from(vec![-7, 0, 7])),
            Arc::new(TimestampMicrosecondArray::from(vec![7, 8, 9]).with_timezone("UTC")),
            Arc::new(Decimal128Array::from(vec![-5, 6, 1 << 70]).with_precision_and_scale(30, 2).unwrap()),
        ];
        for array in arrays {
            let all = Lane::of(&array).unwrap();
            let some = all.take(&[2]);
            let parts = [(&all, Places::Range(1..3)), (&some, Places::Range(0..1)), (&all, Places::Each(&[0, 2]))];
            let gathered = Lane::gather(&parts, &[2, 0, 1, 3, 4]).into_array(array.data_type()).unwrap();
            let expected = take(&array, &arrow::array::UInt32Array::from(vec![2, 1, 2, 0, 2]), None).unwrap();
            assert_eq!(&gathered, &expected);
        }
        let others: [ArrayRef; 2] =
            [Arc::new(StringArray::from(vec!["a"])), Arc::new(UInt64Array::from(vec![None, Some(1)]))];
        assert!(others.iter().all(|array| Lane::of(array).is_none()));
    }
}
