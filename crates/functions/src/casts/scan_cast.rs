//! Casts that scans evaluate faster than arrow: dates of UTC times in integer arithmetic, floats of decimals in 64 bits, rounded once.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Schema, TimeUnit, TimestampMicrosecondType};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::time::DAY;

use crate::casts::decimal_floats::{NearestFloat, nearest_floats};
use crate::conversion::Conversion;
use crate::times::micros::by_unit;
use crate::times::zones::is_utc;

/// A cast of a time in microseconds, of UTC or without a zone, to its date, or of a decimal to a float.
#[derive(Debug, Eq)]
pub struct ScanCast {
    input: Arc<dyn PhysicalExpr>,
    to: DataType,
}

impl PartialEq for ScanCast {
    fn eq(&self, other: &Self) -> bool {
        self.input.eq(&other.input) && self.to == other.to
    }
}

impl Hash for ScanCast {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.to.hash(state);
    }
}

impl ScanCast {
    /// In place of `expr`, a date of an expression over `schema`; `None` if it is something else.
    ///
    /// # Errors
    /// If it has a column that `schema` lacks.
    pub fn date(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Option<Self>> {
        Self::of(expr, schema, &DataType::Date32, is_in_microseconds)
    }

    /// In place of `expr`, a float of a decimal; `None` if it is something else.
    ///
    /// # Errors
    /// If it has a column that `schema` lacks.
    pub fn float(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Option<Self>> {
        Self::of(expr, schema, &DataType::Float64, |kind| matches!(kind, DataType::Decimal128(..)))
    }

    fn of(
        expr: &Arc<dyn PhysicalExpr>,
        schema: &Schema,
        to: &DataType,
        is_from: impl Fn(&DataType) -> bool,
    ) -> Result<Option<Self>> {
        let input = match (expr.downcast_ref::<CastExpr>(), expr.downcast_ref::<ScalarFunctionExpr>()) {
            (Some(cast), _) if cast.cast_type() == to => cast.expr(),
            // The function in place of a cast of many digits.
            (_, Some(cast)) if cast.name() == NearestFloat::NAME && cast.return_type() == to => match cast.args() {
                [input] => input,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let is_known = is_from(&input.data_type(schema)?);
        Ok(is_known.then(|| Self { input: Arc::clone(input), to: to.clone() }))
    }

    fn cast(&self, values: &ArrayRef) -> Option<ArrayRef> {
        match (&self.to, values.data_type()) {
            (DataType::Date32, _) => {
                let times = values.as_primitive_opt::<TimestampMicrosecondType>()?;
                // 64 bits of microseconds are less than 2^27 days.
                let dates: PrimitiveArray<Date32Type> = by_unit::<_, DAY>(times, |day| day as i32);
                Some(Arc::new(dates))
            }
            (DataType::Float64, DataType::Decimal128(..)) => {
                Some(Arc::new(nearest_floats(values.as_primitive_opt::<Decimal128Type>()?)))
            }
            _ => None,
        }
    }
}

/// Whether these are instants in UTC or times without a zone, in microseconds.
fn is_in_microseconds(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(TimeUnit::Microsecond, zone) if zone.as_deref().is_none_or(is_utc))
}
impl Display for ScanCast {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "CAST({} AS {})", self.input, self.to)
    }
}

impl PhysicalExpr for ScanCast {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.input.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.input.evaluate(batch)?.into_array(batch.num_rows())?;
        let cast = self.cast(&values);
        cast.map(ColumnarValue::Array)
            .ok_or_else(|| DataFusionError::Internal(format!("{self} of {}", values.data_type())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, to: self.to.clone() }))
    }

    fn fmt_sql(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "CAST(")?;
        self.input.fmt_sql(out)?;
        write!(out, " AS {})", self.to)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Float64Array};
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    #[test]
    fn floats_of_decimals_are_the_nearest() {
        let big = 10_i128.pow(37);
        let decimals = vec![Some(0), None, Some(-1), Some(i128::from(i64::MAX)), Some(i128::from(i64::MIN) - 1)];
        let more = (1..60).map(|n| Some(big / n * 7 / 3)).chain((1..60).map(|n| Some(-1_234_567_891_i128 * n * n)));
        let decimals: Vec<Option<i128>> = decimals.into_iter().chain(more).collect();
        for scale in [0, 3, 15, 38] {
            let kind = DataType::Decimal128(38, scale);
            let values: ArrayRef = Arc::new(Decimal128Array::from(decimals.clone()).with_data_type(kind.clone()));
            let schema = Arc::new(Schema::new(vec![Field::new("x", kind, true)]));
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 0));
            let expr: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(column, DataType::Float64, None));
            let fast = ScanCast::float(&expr, &schema).unwrap().unwrap();
            let batch = RecordBatch::try_new(schema, vec![Arc::clone(&values)]).unwrap();
            let found = fast.evaluate(&batch).unwrap().into_array(batch.num_rows()).unwrap();
            let nearest = decimals.iter().map(|units| units.map(|units| format!("{units}e-{scale}").parse().unwrap()));
            assert_eq!(found.as_primitive(), &nearest.collect::<Float64Array>(), "scale {scale}");
        }
    }
}
