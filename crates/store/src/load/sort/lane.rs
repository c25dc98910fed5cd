//! Values of a column as integers of their width: what is only moved need not be known by type.

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;

use crate::error::Result;

/// The values of a column of fixed width without nulls.
#[derive(Debug, Clone)]
pub(crate) enum Lane {
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Sixteen(Vec<i128>),
}

impl Lane {
    /// Bytes of a value; `None` if lanes do not hold the type.
    pub(crate) fn width(kind: &DataType) -> Option<usize> {
        kind.primitive_width().filter(|width| matches!(width, 4 | 8 | 16))
    }

    /// Whether lanes hold the values of an array.
    pub(crate) fn holds(array: &ArrayRef) -> bool {
        array.null_count() == 0 && Self::width(array.data_type()).is_some()
    }

    /// The values at `places` of an array that lanes hold.
    pub(crate) fn take(array: &ArrayRef, places: &[u32]) -> Self {
        let data = array.to_data();
        match Self::width(array.data_type()) {
            Some(4) => Self::Four(picked(data.buffer(0), places)),
            Some(16) => Self::Sixteen(picked(data.buffer(0), places)),
            _ => Self::Eight(picked(data.buffer(0), places)),
        }
    }

    /// The values of `parts`, which are of one width, one after the other, in the order of `places`.
    pub(crate) fn gather<'a>(parts: &[(&'a Self, Range<usize>)], places: &[u32]) -> Self {
        let parts = || parts.iter().map(|(part, range)| (*part, range.clone()));
        match parts().next() {
            Some((Self::Four(_), _)) => Self::Four(gather(
                parts().filter_map(|(part, range)| if let Self::Four(all) = part { all.get(range) } else { None }),
                places,
            )),
            Some((Self::Sixteen(_), _)) => Self::Sixteen(gather(
                parts().filter_map(|(part, range)| if let Self::Sixteen(all) = part { all.get(range) } else { None }),
                places,
            )),
            _ => Self::Eight(gather(
                parts().filter_map(|(part, range)| if let Self::Eight(all) = part { all.get(range) } else { None }),
                places,
            )),
        }
    }

    /// The values as an array of this type, which is of their width.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn into_array(self, kind: &DataType) -> Result<ArrayRef> {
        let (length, buffer) = match self {
            Self::Four(values) => (values.len(), Buffer::from_vec(values)),
            Self::Eight(values) => (values.len(), Buffer::from_vec(values)),
            Self::Sixteen(values) => (values.len(), Buffer::from_vec(values)),
        };
        Ok(make_array(ArrayData::builder(kind.clone()).len(length).add_buffer(buffer).build()?))
    }
}

/// The values at `places`.
pub(crate) fn picked<T: Copy>(values: &[T], places: &[u32]) -> Vec<T> {
    places.iter().map(|place| values[*place as usize]).collect()
}

/// The values of `parts`, one after the other, in the order of `places`. They are copied together first: picks from one slice are
/// several times as fast as from many.
pub(crate) fn gather<'a, T: Copy + 'a>(parts: impl Iterator<Item = &'a [T]>, places: &[u32]) -> Vec<T> {
    let mut all = Vec::with_capacity(places.len());
    parts.for_each(|part| all.extend_from_slice(part));
    picked(&all, places)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Decimal128Array, Float64Array, StringArray, TimestampMicrosecondArray, UInt64Array};

    use super::*;

    #[test]
    fn any_values_of_fixed_width_come_back() {
        let arrays: [ArrayRef; 5] = [
            Arc::new(UInt64Array::from(vec![9, 1, 2, 3]).slice(1, 3)),
            Arc::new(Float64Array::from(vec![1.5, -0.0, f64::NAN])),
            Arc::new(Date32Array::from(vec![-7, 0, 7])),
            Arc::new(TimestampMicrosecondArray::from(vec![7, 8, 9]).with_timezone("UTC")),
            Arc::new(Decimal128Array::from(vec![-5, 6, 1 << 70]).with_precision_and_scale(30, 2).unwrap()),
        ];
        for array in arrays {
            assert!(Lane::holds(&array));
            let (all, some) = (Lane::take(&array, &[0, 1, 2]), Lane::take(&array, &[2]));
            let parts = [(&all, 1..3), (&some, 0..1)];
            let gathered = Lane::gather(&parts, &[2, 0, 1]).into_array(array.data_type()).unwrap();
            assert_eq!(gathered.to_data().buffers()[0], Lane::take(&array, &[2, 1, 2]).into_array(array.data_type()).unwrap().to_data().buffers()[0]);
            assert_eq!(gathered.data_type(), array.data_type());
        }
        let others: [ArrayRef; 2] = [Arc::new(StringArray::from(vec!["a"])), Arc::new(UInt64Array::from(vec![None, Some(1)]))];
        assert!(!others.iter().any(Lane::holds));
    }
}
