//! Statistics of a file for its `add` action, from the footer of the file: by them engines skip files that a filter rules out.
//!
//! ```text
//! {"numRecords":480,"minValues":{"ts":"2018-01-02T00:00:00Z","kwh":0.5},"maxValues":{..},"nullCount":{"ts":0,"kwh":3}}
//! ```
//! Values are bounds, not always present values: Parquet cuts long texts. A column whose bounds the footer does not tell, and
//! types that Delta has no bounds of, are left out.

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortOptions, sort_limit};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde_json::Value;
use tidetable_blobs::Blobs;

/// Bytes at the end of a file that are read first: the footer of most files.
const TAIL: u64 = 64 << 10;

/// The statistics of the Parquet file at `path` as JSON; `None` if its footer cannot be read: the file is then listed without.
pub(crate) fn stats(blobs: &dyn Blobs, path: &str) -> Option<String> {
    match footer(blobs, path) {
        Ok(footer) => text(&footer),
        Err(reason) => {
            tracing::debug!(path, reason, "no statistics");
            None
        }
    }
}

/// The footer of a Parquet file; the error is why it cannot be read.
fn footer(blobs: &dyn Blobs, path: &str) -> Result<ParquetMetaData, String> {
    let file = blobs.open(path).map_err(|error| error.to_string())?;
    let mut wanted = TAIL;
    loop {
        let length = wanted.min(file.len());
        let at = file.len() - length;
        let tail = file.read_at(at, length as usize).map_err(|error| error.to_string())?;

        let mut reader = ParquetMetaDataReader::new();
        match reader.try_parse_sized(&Bytes::from(tail.to_vec()), file.len()) {
            Ok(()) => return reader.finish().map_err(|error| error.to_string()),
            Err(ParquetError::NeedMoreData(needed)) if needed as u64 > length && length < file.len() => {
                wanted = needed as u64;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The statistics that a footer holds.
fn text(footer: &ParquetMetaData) -> Option<String> {
    let file = footer.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).ok()?;
    let groups = footer.row_groups();

    let (mut least, mut greatest, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for field in schema.fields() {
        let Ok(column) = StatisticsConverter::try_new(field.name(), &schema, file.schema_descr()) else { continue };
        let counts = column.with_missing_null_counts_as_zero(false);
        let Ok(counted) = counts.row_group_null_counts(groups) else { continue };
        if counted.null_count() > 0 {
            continue;
        }
        let name = Value::from(field.name().as_str());
        nulls.push(format!("{name}:{}", counted.values().iter().sum::<u64>()));

        let rows: Vec<u64> = groups.iter().map(|group| group.num_rows().unsigned_abs()).collect();
        let (Ok(mins), Ok(maxes)) = (counts.row_group_mins(groups), counts.row_group_maxes(groups)) else { continue };
        let bounds = (bound(&mins, &counted, &rows, false), bound(&maxes, &counted, &rows, true));
        if let (Some(min), Some(max)) = bounds {
            least.push(format!("{name}:{min}"));
            greatest.push(format!("{name}:{max}"));
        }
    }

    let (least, greatest, nulls) = (least.join(","), greatest.join(","), nulls.join(","));
    let rows = file.num_rows();
    Some(format!(
        "{{\"numRecords\":{rows},\"minValues\":{{{least}}},\"maxValues\":{{{greatest}}},\"nullCount\":{{{nulls}}}}}"
    ))
}

/// The least or greatest of the bounds of row groups, as JSON; `None` if a group with values has none.
fn bound(bounds: &ArrayRef, nulls: &UInt64Array, rows: &[u64], greatest: bool) -> Option<String> {
    let is_unknown = |group: usize| bounds.is_null(group) && rows.get(group) != nulls.values().get(group);
    if (0..bounds.len()).any(is_unknown) {
        return None;
    }
    let order = SortOptions { descending: greatest, nulls_first: false };
    let first = sort_limit(bounds, Some(order), Some(1)).ok().filter(|first| first.len() == 1 && first.is_valid(0))?;

    let format = FormatOptions::default();
    let value = ArrayFormatter::try_new(first.as_ref(), &format).ok()?.value(0).try_to_string().ok()?;
    match first.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..) => Some(value),
        DataType::Float32 | DataType::Float64 => {
            let number: f64 = value.parse().ok()?;
            number.is_finite().then(|| Value::from(number).to_string())
        }
        // Years of more than four digits have a sign, which engines read differently.
        DataType::Date32 | DataType::Timestamp(..) if value.starts_with(['+', '-']) => None,
        DataType::Date32 | DataType::Timestamp(..) | DataType::Utf8 => Some(Value::from(value).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn a_footer_tells_bounds_and_nulls_of_all_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(folder.path().to_owned());
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(5), Some(-1), None, Some(7)]))),
            ("price", Arc::new(Decimal128Array::from(vec![150, 2890, 5, 5]).with_precision_and_scale(10, 2).unwrap())),
            ("x", Arc::new(Float64Array::from(vec![1.5, f64::INFINITY, 0.0, 2.0]))),
            ("d", Arc::new(Date32Array::from(vec![20_000, 20_001, 20_002, 20_003]))),
            ("t", Arc::new(TimestampMicrosecondArray::from(vec![0, 250_000, 1, 2]).with_timezone("UTC"))),
            ("s", Arc::new(StringArray::from(vec!["b", "a\"", "c", "b"]))),
            ("none", Arc::new(StringArray::from(vec![None::<&str>; 4]))),
            ("ok", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)));
        let batch = batch.unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        blobs.replace("a.parquet", &bytes).unwrap();

        let stats = stats(blobs, "a.parquet").unwrap();
        assert!(stats.contains("\"price\":0.05") && stats.contains("\"price\":28.90"), "{stats}");
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["numRecords"], 4);
        let (least, greatest) = (&stats["minValues"], &stats["maxValues"]);
        assert_eq!((&least["n"], &greatest["n"], &stats["nullCount"]["n"]), (&(-1).into(), &7.into(), &1.into()));
        assert_eq!((&least["d"], &greatest["d"]), (&"2024-10-04".into(), &"2024-10-07".into()));
        assert_eq!((&least["t"], &greatest["t"]), (&"1970-01-01T00:00:00Z".into(), &"1970-01-01T00:00:00.250Z".into()));
        assert_eq!((&least["s"], &greatest["s"]), (&"a\"".into(), &"c".into()));
        // An infinity is no number of JSON, and there is no bound of nothing.
        for absent in ["x", "none", "ok"] {
            assert_eq!((&least[absent], &greatest[absent]), (&Value::Null, &Value::Null), "{absent}");
        }
        assert_eq!(stats["nullCount"]["none"], 4);
    }

    #[test]
    fn a_file_that_is_no_parquet_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(folder.path().to_owned());
        blobs.replace("a.parquet", b"PAR1").unwrap();
        assert_eq!((stats(blobs, "a.parquet"), stats(blobs, "b.parquet")), (None, None));
    }
}
