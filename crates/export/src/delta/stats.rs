//! Statistics of a file for its `add` action, from the footer of the file: by them engines skip files that a filter rules out.
//!
//! ```text
//! {"numRecords":480,"minValues":{"ts":"2018-01-02T00:00:00Z","kwh":0.5},"maxValues":{..},"nullCount":{"ts":0,"kwh":3}}
//! ```
//! Values are bounds, not always present values. A column whose bounds the footer does not tell, and types that Delta has no
//! bounds of, are left out.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;
use tidetable_blobs::Blobs;

use crate::table::footer::{self, FileStats};

/// The statistics of the Parquet file at `path` as JSON; `None` if its footer cannot be read: the file is then listed without.
pub(crate) fn stats(blobs: &dyn Blobs, path: &str) -> Option<String> {
    match footer::stats(blobs, path) {
        Ok(stats) => Some(text(&stats)),
        Err(reason) => {
            tracing::debug!(path, reason, "no statistics");
            None
        }
    }
}

/// Statistics as JSON.
fn text(stats: &FileStats) -> String {
    let (mut least, mut greatest, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for column in &stats.columns {
        let name = Value::from(column.name.as_str());
        nulls.push(format!("{name}:{}", column.nulls));
        let bounds = (column.least.as_ref().and_then(bound), column.greatest.as_ref().and_then(bound));
        if let (Some(min), Some(max)) = bounds {
            least.push(format!("{name}:{min}"));
            greatest.push(format!("{name}:{max}"));
        }
    }

    let (least, greatest, nulls) = (least.join(","), greatest.join(","), nulls.join(","));
    let rows = stats.rows;
    format!(
        "{{\"numRecords\":{rows},\"minValues\":{{{least}}},\"maxValues\":{{{greatest}}},\"nullCount\":{{{nulls}}}}}"
    )
}

/// The only value of an array as JSON; `None` if Delta has no bounds of its type.
fn bound(first: &ArrayRef) -> Option<String> {
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
