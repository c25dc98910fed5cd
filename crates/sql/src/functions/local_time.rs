//! Local times as moments of a zone, by the rule of [`LocalTime`]: of one that occurs twice the first is meant, and one that is
//! skipped is an error. The cast of the engine (DataFusion 55.2) refuses both, for the whole column.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;
use arrow::temporal_conversions::as_datetime;
use chrono::{FixedOffset, NaiveDateTime, TimeDelta};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tidetable_layout::LocalTime;

thread_local! {
    /// Local times that occurred twice, on this thread, since [`counting_repeated`] began.
    static REPEATED: Cell<u64> = const { Cell::new(0) };
}

/// What `work` gives, and how many local times that occur twice it met on this thread.
pub(crate) fn counting_repeated<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = REPEATED.replace(0);
    let result = work();
    (result, REPEATED.replace(before))
}

/// `local`, a time without a zone, a day or text, as a time of type `wanted`; `None` if that is not what a cast to it does.
pub(crate) fn in_zone(local: &Expr, found: &DataType, wanted: &DataType, safe: bool) -> Option<Expr> {
    let DataType::Timestamp(unit, Some(zone)) = wanted else { return None };
    let is_text = matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_local = is_text || matches!(found, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64);
    let is_utc = matches!(zone.as_ref(), "UTC" | "Etc/UTC" | "Z" | "+00:00");
    if !is_local || is_utc || zone.parse::<Tz>().is_err() {
        return None;
    }
    let signature = Signature::any(1, Volatility::Immutable);
    let function = LocalToZone { unit: *unit, zone: Arc::clone(zone), safe, signature };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![local.clone()])))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LocalToZone {
    unit: TimeUnit,
    zone: Arc<str>,
    /// Null instead of an error.
    safe: bool,
    signature: Signature,
}

impl ScalarUDFImpl for LocalToZone {
    fn name(&self) -> &str {
        "local_to_zone"
    }

    /// As that of the cast, which is also the name of the column it makes.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [local] => Ok(local.schema_name().to_string()),
            _ => plan_err!("local_to_zone takes a time"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(self.unit, Some(Arc::clone(&self.zone))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [local] = args.args.as_slice() else { return plan_err!("local_to_zone takes a time") };
        // A constant stays one row.
        let (local, rows) = match local {
            ColumnarValue::Array(array) => (Arc::clone(array), args.number_rows),
            ColumnarValue::Scalar(value) => (value.to_array()?, 1),
        };
        let moments = match self.unit {
            TimeUnit::Second => self.moments::<TimestampSecondType>(&local),
            TimeUnit::Millisecond => self.moments::<TimestampMillisecondType>(&local),
            TimeUnit::Microsecond => self.moments::<TimestampMicrosecondType>(&local),
            TimeUnit::Nanosecond => self.moments::<TimestampNanosecondType>(&local),
        }?;
        match args.args.first() {
            Some(ColumnarValue::Scalar(_)) if rows == 1 => {
                Ok(ColumnarValue::Scalar(datafusion::scalar::ScalarValue::try_from_array(&moments, 0)?))
            }
            _ => Ok(ColumnarValue::Array(moments)),
        }
    }
}

impl LocalToZone {
    fn moments<T: ArrowTimestampType>(&self, local: &ArrayRef) -> Result<ArrayRef> {
        let zone: Tz = self.zone.parse()?;
        let moments: PrimitiveArray<T> = match local.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let text = cast(local, &DataType::Utf8)?;
                self.of_text::<T>(text.as_string::<i32>(), &zone)?
            }
            _ => {
                let local = cast(local, &DataType::Timestamp(self.unit, None))?;
                let beyond = || ArrowError::CastError("a time beyond all times".to_owned());
                let moment = |value| {
                    let local = as_datetime::<T>(value).ok_or_else(beyond)?;
                    T::from_naive_datetime(self.moment(local, &zone)?, None).ok_or_else(beyond)
                };
                let local = local.as_primitive::<T>();
                match self.safe {
                    true => local.unary_opt(|value| moment(value).ok()),
                    false => local.try_unary::<_, T, ArrowError>(moment)?,
                }
            }
        };
        Ok(Arc::new(moments.with_timezone(Arc::clone(&self.zone))))
    }

    /// A text may say its own offset.
    fn of_text<T: ArrowTimestampType>(&self, text: &StringArray, zone: &Tz) -> Result<PrimitiveArray<T>> {
        let offset = |seconds| FixedOffset::east_opt(seconds).ok_or_else(|| unlike("an offset"));
        let (west, east) = (offset(0)?, offset(3600)?);
        let moment = |text: &str| -> Result<T::Native, ArrowError> {
            let (read, shifted) = (string_to_datetime(&west, text)?, string_to_datetime(&east, text)?);
            let moment = if read == shifted { read.naive_utc() } else { self.moment(read.naive_local(), zone)? };
            T::from_naive_datetime(moment, None)
                .ok_or_else(|| ArrowError::CastError(format!("{text:?} is beyond all times")))
        };
        let moments = text.iter().map(|text| match text.map(moment).transpose() {
            Err(_) if self.safe => Ok(None),
            moment => moment,
        });
        Ok(moments.collect::<Result<_, ArrowError>>()?)
    }

    fn moment(&self, local: NaiveDateTime, zone: &Tz) -> Result<NaiveDateTime, ArrowError> {
        let meant = LocalTime::of(zone, &local);
        if matches!(meant, LocalTime::Twice(_)) {
            REPEATED.set(REPEATED.get() + 1);
        }
        let moment = meant.offset().and_then(|offset| local.checked_sub_signed(TimeDelta::seconds(offset.into())));
        moment.ok_or_else(|| {
            let zone = &self.zone;
            ArrowError::CastError(format!("{local} does not exist in {zone}: the clocks go forward over it"))
        })
    }
}

fn unlike(what: &str) -> DataFusionError {
    DataFusionError::Internal(format!("local_to_zone: no {what}"))
}
