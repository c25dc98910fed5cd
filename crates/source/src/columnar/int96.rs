//! INT96 timestamps, read as they are stored: Arrow's integers of 64 bits hold nanoseconds of the years 1677 to 2262 alone.

use std::sync::Arc;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{Int96, Int96Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use tidetable_layout::time::DAY;

use crate::time::{Stamp, TimeFault};

/// The Julian day number of 1970-01-01, from which INT96 counts days.
const EPOCH_DAY: i64 = 2_440_588;

/// Reads `rows` values of a leaf of a row group from row `skip` on; `None` for a null.
pub(crate) fn read<R: ChunkReader + 'static>(
    reader: R,
    metadata: &ParquetMetaData,
    leaf: Leaf,
    skip: usize,
    rows: usize,
) -> Result<Vec<Option<Int96>>, ParquetError> {
    let group = metadata.row_group(leaf.group);
    let column = group.column(leaf.column);
    let total = usize::try_from(group.num_rows()).unwrap_or(0);
    let pages = SerializedPageReader::new(Arc::new(reader), column, total, None)?;
    let mut reader = ColumnReaderImpl::<Int96Type>::new(column.column_descr_ptr(), Box::new(pages));
    if reader.skip_records(skip)? < skip {
        return Err(ParquetError::EOF("INT96 column ends early".to_owned()));
    }

    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut count = 0;
    while count < rows {
        let (records, ..) = reader.read_records(rows - count, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF("INT96 column ends early".to_owned()));
        }
        count += records;
    }

    let full = column.column_descr().max_def_level();
    if full == 0 {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level == full { values.next() } else { None }).collect())
}

/// A leaf column of a row group, by their positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub group: usize,
    pub column: usize,
}

/// The time of a value: nanoseconds of a Julian day.
pub(super) fn stamp(value: &Int96) -> Result<Stamp, TimeFault> {
    let [low, high, day] = value.data() else { return Err(TimeFault::Range) };
    let nanos = (u64::from(*high) << 32 | u64::from(*low)).cast_signed();
    let days = i64::from(day.cast_signed()) - EPOCH_DAY;
    let micros = days.checked_mul(DAY).and_then(|start| start.checked_add(nanos.div_euclid(1000)));
    let stamp = Stamp::at(micros.ok_or(TimeFault::Range)?);
    Ok(Stamp { cut: nanos.rem_euclid(1000) != 0, ..stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_64_bits_are_faults() {
        let at = |days: i64, nanos: u64| {
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, ((EPOCH_DAY + days) as i32).cast_unsigned());
            stamp(&value).map(|stamp| (stamp.micros, stamp.cut))
        };
        assert_eq!(at(0, 1_000), Ok((1, false)));
        assert_eq!(at(-1, 86_399_999_999_999), Ok((-1, true)));
        assert_eq!(at(2_932_896, 0), Ok((253_402_214_400_000_000, false)));
        assert_eq!(at(213_503_982, 0), Err(TimeFault::Range));
    }
}
