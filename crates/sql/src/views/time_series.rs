//! Relation planner of `generate_series(start, end, step)` and `range(..)` of times, as tables with the column `value`.
//!
//! DataFusion's table functions take nanoseconds, and times here are microseconds.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use chrono::{DateTime, Months};
use datafusion::common::{DFSchema, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePart, TableFactor};
use tidetable_functions::parse_time;

use crate::views::planner::constant;

const DAY: i64 = 86_400_000_000;
/// Most times of a series: 30 years of minutes.
const MAX_TIMES: usize = 20_000_000;
const ROWS_OF_BATCH: usize = 8_192;

/// Plans series of times; those of numbers and dates are left to DataFusion.
#[derive(Debug)]
pub(crate) struct TimeSeriesPlanner;

/// The functions, and whether their series have the end.
const FUNCTIONS: [(&str, bool); 2] = [("generate_series", true), ("range", false)];

/// The function that a relation calls, and whether its series has the end.
fn function_of(name: &ObjectName) -> Option<(&'static str, bool)> {
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    FUNCTIONS.into_iter().find(|(known, _)| name.value.eq_ignore_ascii_case(known))
}

impl RelationPlanner for TimeSeriesPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some((function, has_end)) = function_of(name) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };

        let mut values = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg
                && let Ok(Expr::Literal(value, _)) =
                    context.sql_to_expr(arg.clone(), &DFSchema::empty()).and_then(constant)
            {
                values.push(value);
            }
        }
        let is_of_times = matches!(values.first(), Some(first) if matches!(first.data_type(), DataType::Timestamp(..)));
        if !is_of_times || values.len() != args.args.len() {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }

        let plan = series(function, &values, has_end)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// The table of a series.
fn series(function: &str, values: &[ScalarValue], has_end: bool) -> Result<LogicalPlan> {
    let [start, end, step] = values else {
        return plan_err!(
            "{function} of times takes a start, an end and a step, as in \
             {function}(TIMESTAMP '2018-01-01', TIMESTAMP '2018-01-02', INTERVAL '15 minutes')"
        );
    };
    let zone = match start.data_type() {
        DataType::Timestamp(_, zone) => zone,
        _ => None,
    };
    let kind = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let times = times(function, start, end, step, has_end)?;

    let schema = Arc::new(Schema::new(vec![Field::new("value", kind, false)]));
    let mut batches = Vec::with_capacity(times.len() / ROWS_OF_BATCH + 1);
    for times in times.chunks(ROWS_OF_BATCH) {
        let times = TimestampMicrosecondArray::from(times.to_vec()).with_timezone_opt(zone.clone());
        batches.push(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times) as ArrayRef])?);
    }
    let table = MemTable::try_new(schema, vec![batches])?;
    LogicalPlanBuilder::scan(function, provider_as_source(Arc::new(table)), None)?.build()
}

/// The times of a series, in microseconds; none if an argument is NULL.
fn times(
    function: &str,
    start: &ScalarValue,
    end: &ScalarValue,
    step: &ScalarValue,
    has_end: bool,
) -> Result<Vec<i64>> {
    let (Some(start), Some(end), Some(step)) = (instant(start)?, instant(end)?, Step::new(function, step)?) else {
        return Ok(Vec::new());
    };
    let is_forward = step.add(start).is_some_and(|next| next > start);
    if step.add(start) == Some(start) {
        return plan_err!("{function}: a step of no time never ends; write one such as INTERVAL '15 minutes'");
    }

    let (mut times, mut time) = (Vec::new(), Some(start));
    while let Some(at) = time {
        let is_past = if is_forward { at > end } else { at < end };
        if is_past || at == end && !has_end {
            break;
        }
        if times.len() == MAX_TIMES {
            return plan_err!("{function}: more than {MAX_TIMES} times; write a longer step");
        }
        times.push(at);
        time = step.add(at);
    }
    Ok(times)
}

/// The microseconds of a time; `None` if it is NULL.
fn instant(time: &ScalarValue) -> Result<Option<i64>> {
    if let ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) = time {
        return match parse_time(text) {
            Some(time) => Ok(Some(time)),
            None => plan_err!("'{text}' is not a time, such as 2018-01-31 00:10"),
        };
    }
    match time.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None))? {
        ScalarValue::TimestampMicrosecond(time, _) => Ok(time),
        other => plan_err!("{other} is not a time"),
    }
}

/// A step of a series.
struct Step {
    months: i32,
    micros: i64,
}

impl Step {
    /// `None` for NULL.
    fn new(function: &str, step: &ScalarValue) -> Result<Option<Self>> {
        let step = step.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano));
        match step {
            Ok(ScalarValue::IntervalMonthDayNano(None)) => Ok(None),
            Ok(ScalarValue::IntervalMonthDayNano(Some(step))) => {
                let days = i64::from(step.days).checked_mul(DAY);
                let micros = days.and_then(|days| days.checked_add(step.nanoseconds / 1_000));
                let micros = micros.ok_or_else(|| plan_datafusion_err!("{function}: the step is too long"))?;
                Ok(Some(Self { months: step.months, micros }))
            }
            _ => plan_err!("{function} of times takes an interval as its step, as in INTERVAL '15 minutes'"),
        }
    }

    /// The time after this one, months first; `None` beyond the calendar.
    fn add(&self, time: i64) -> Option<i64> {
        let mut time = time;
        if self.months != 0 {
            let (from, by) = (DateTime::from_timestamp_micros(time)?, Months::new(self.months.unsigned_abs()));
            let to = if self.months > 0 { from.checked_add_months(by) } else { from.checked_sub_months(by) };
            time = to?.timestamp_micros();
        }
        time.checked_add(self.micros)
    }
}
