//! The date of a UTC time in integer arithmetic.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Schema, TimestampMicrosecondType};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::time::DAY;

use crate::times::micros::by_unit;

/// The date of a time in microseconds, of UTC or without a zone.
#[derive(Debug, Eq)]
pub struct UtcDate {
    time: Arc<dyn PhysicalExpr>,
}

impl PartialEq for UtcDate {
    fn eq(&self, other: &Self) -> bool {
        self.time.eq(&other.time)
    }
}

impl Hash for UtcDate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.time.hash(state);
    }
}

impl UtcDate {
    /// Of `time`, an expression whose values are timestamps in microseconds.
    pub fn new(time: Arc<dyn PhysicalExpr>) -> Self {
        Self { time }
    }
}

impl Display for UtcDate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "CAST({} AS Date32)", self.time)
    }
}

impl PhysicalExpr for UtcDate {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.time.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let times = self.time.evaluate(batch)?.into_array(batch.num_rows())?;
        let unlike = || DataFusionError::Internal("a date is one of a time in microseconds".to_owned());
        let times = times.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(unlike)?;
        // 64 bits of microseconds are less than 2^27 days.
        let dates: PrimitiveArray<Date32Type> = by_unit::<_, DAY>(times, |day| day as i32);
        Ok(ColumnarValue::Array(Arc::new(dates)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.time]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let time = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.time));
        Ok(Arc::new(Self { time }))
    }

    fn fmt_sql(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "CAST(")?;
        self.time.fmt_sql(out)?;
        write!(out, " AS DATE)")
    }
}
