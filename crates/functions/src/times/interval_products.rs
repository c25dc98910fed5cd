//! Intervals times and by numbers, as in PostgreSQL: `v * interval '15 minutes'`, `interval '1 hour' / 4`. DataFusion 55.2 has no
//! such operators.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DFSchema, exec_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// An interval with months, days and nanoseconds apart.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_OF_MONTH: f64 = 30.0;
const NANOS_OF_DAY: f64 = 86_400e9;

/// Plans products of intervals and numbers.
#[derive(Debug)]
pub(crate) struct IntervalProducts;

impl ExprPlanner for IntervalProducts {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let operation = match expr.op {
            BinaryOperator::Multiply => Operation::Multiply,
            BinaryOperator::Divide => Operation::Divide,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };

        let is_interval = |kind: &DataType| matches!(kind, DataType::Interval(_));
        let args = if is_interval(&left) && right.is_numeric() {
            vec![expr.left, expr.right]
        } else if is_interval(&right) && left.is_numeric() && operation == Operation::Multiply {
            vec![expr.right, expr.left]
        } else {
            return Ok(PlannerResult::Original(expr));
        };
        let function = Arc::new(ScalarUDF::new_from_impl(IntervalProduct::new(operation)));
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, args))))
    }
}

/// The function for `multiply_interval`, for plans that name it.
pub(crate) fn multiply() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(IntervalProduct::new(Operation::Multiply)))
}

/// The function for `divide_interval`.
pub(crate) fn divide() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(IntervalProduct::new(Operation::Divide)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Multiply,
    Divide,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalProduct {
    operation: Operation,
    signature: Signature,
}

impl IntervalProduct {
    fn new(operation: Operation) -> Self {
        Self { operation, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for IntervalProduct {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Multiply => "multiply_interval",
            Operation::Divide => "divide_interval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [_, number] if number.is_integer() && self.operation == Operation::Multiply => {
                Ok(vec![INTERVAL, DataType::Int64])
            }
            [_, number] if number.is_numeric() || number.is_null() => Ok(vec![INTERVAL, DataType::Float64]),
            _ => plan_err!("{} takes an interval and a number", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [intervals, numbers] = args.args.as_slice() else {
            return plan_err!("{} takes two arguments", self.name());
        };
        let (intervals, numbers) = (intervals.to_array(rows)?, numbers.to_array(rows)?);
        Ok(ColumnarValue::Array(product(self.operation, &intervals, &numbers)?))
    }
}

/// The product or quotient of each interval and number; null where one of them is.
///
/// # Errors
/// If it is out of range, or the divisor is zero.
fn product(operation: Operation, intervals: &ArrayRef, numbers: &ArrayRef) -> Result<ArrayRef> {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let mut products = Vec::with_capacity(intervals.len());
    for (row, interval) in intervals.iter().enumerate() {
        let interval = interval.filter(|_| numbers.is_valid(row));
        products.push(match interval {
            None => None,
            Some(interval) => {
                let product = match (numbers.as_primitive_opt::<Int64Type>(), operation) {
                    (Some(numbers), _) => times(interval, numbers.value(row)),
                    (None, Operation::Multiply) => {
                        let number = numbers.as_primitive::<Float64Type>().value(row);
                        scaled(interval, |part| part * number)
                    }
                    (None, Operation::Divide) => match numbers.as_primitive::<Float64Type>().value(row) {
                        0.0 => return Err(exec_datafusion_err!("an interval is divided by zero")),
                        number => scaled(interval, |part| part / number),
                    },
                };
                Some(
                    product.ok_or_else(|| {
                        exec_datafusion_err!("the product of an interval and a number is out of range")
                    })?,
                )
            }
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(products)))
}

/// An interval some whole times; `None` if that is out of range.
fn times(interval: IntervalMonthDayNano, number: i64) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    Some(IntervalMonthDayNano {
        months: i64::from(months).checked_mul(number)?.try_into().ok()?,
        days: i64::from(days).checked_mul(number)?.try_into().ok()?,
        nanoseconds: nanoseconds.checked_mul(number)?,
    })
}

/// An interval with each part scaled; fractions of months go on as days of 30 a month, and those of days as hours.
fn scaled(interval: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> Option<IntervalMonthDayNano> {
    let months = scale(f64::from(interval.months));
    let days = scale(f64::from(interval.days)) + months.fract() * DAYS_OF_MONTH;
    let nanos = scale(interval.nanoseconds as f64) + days.fract() * NANOS_OF_DAY;

    let is_in_range = |part: f64, most: f64| part.abs() <= most;
    let fits = is_in_range(months, f64::from(i32::MAX)) && is_in_range(days, f64::from(i32::MAX));
    (fits && nanos.abs() < i64::MAX as f64).then_some(IntervalMonthDayNano {
        months: months.trunc() as i32,
        days: days.trunc() as i32,
        nanoseconds: nanos.round() as i64,
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array};

    use super::*;

    fn interval(months: i32, days: i32, nanoseconds: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano { months, days, nanoseconds }
    }

    fn of(operation: Operation, value: IntervalMonthDayNano, number: ArrayRef) -> Result<IntervalMonthDayNano> {
        let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![value]));
        Ok(product(operation, &intervals, &number)?.as_primitive::<IntervalMonthDayNanoType>().value(0))
    }

    #[test]
    fn products_and_quotients_are_those_of_postgresql() {
        let (whole, part): (ArrayRef, ArrayRef) =
            (Arc::new(Int64Array::from(vec![-3])), Arc::new(Float64Array::from(vec![1.5])));
        let second = 1_000_000_000;
        let found = of(Operation::Multiply, interval(1, 2, second), Arc::clone(&whole)).unwrap();
        assert_eq!(found, interval(-3, -6, -3 * second));
        let found = of(Operation::Multiply, interval(1, 1, second), Arc::clone(&part)).unwrap();
        assert_eq!(found, interval(1, 16, 12 * 3_600 * second + second * 3 / 2));
        let found = of(Operation::Divide, interval(0, 0, 3_600 * second), part).unwrap();
        assert_eq!(found, interval(0, 0, 2_400 * second));
    }

    #[test]
    fn what_no_interval_can_hold_is_an_error() {
        let most: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
        assert!(of(Operation::Multiply, interval(1, 0, 0), Arc::clone(&most)).is_err());
        assert!(of(Operation::Multiply, interval(0, 0, 2), most).is_err());
        for number in [0.0, f64::NAN, 1e-300] {
            let number: ArrayRef = Arc::new(Float64Array::from(vec![number]));
            assert!(of(Operation::Divide, interval(0, 1, 1), number).is_err());
        }
    }
}
