//! Checked `+`, `-` and `*` of integers: overflow is an error. DataFusion 55.2 wraps around.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::numeric::{add, mul, neg, sub};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

/// An operation whose result may not fit its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    Add,
    Subtract,
    Multiply,
    Negate,
}

/// Replaces an integer operator that may overflow by a function.
pub fn checked_arithmetic(expr: Expr, schema: &DFSchema) -> Expr {
    let op = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let op = match op {
                Operator::Plus => Op::Add,
                Operator::Minus => Op::Subtract,
                Operator::Multiply => Op::Multiply,
                _ => return expr,
            };
            let (Ok(one), Ok(other)) = (left.get_type(schema), right.get_type(schema)) else { return expr };
            (one == other && one.is_integer()).then_some(op)
        }
        Expr::Negative(value) => {
            value.get_type(schema).is_ok_and(|kind| kind.is_signed_integer()).then_some(Op::Negate)
        }
        _ => None,
    };

    match (op, expr) {
        (Some(op), Expr::BinaryExpr(BinaryExpr { left, right, .. })) => op.of(vec![*left, *right]),
        (Some(op), Expr::Negative(value)) => op.of(vec![*value]),
        (_, expr) => expr,
    }
}

impl Op {
    fn of(self, args: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction { func: Arc::clone(self.function()), args })
    }

    fn function(self) -> &'static Arc<ScalarUDF> {
        static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> =
            LazyLock::new(|| [Op::Add, Op::Subtract, Op::Multiply, Op::Negate].map(function));
        let [add, subtract, multiply, negate] = &*FUNCTIONS;
        match self {
            Self::Add => add,
            Self::Subtract => subtract,
            Self::Multiply => multiply,
            Self::Negate => negate,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract | Self::Negate => "-",
            Self::Multiply => "*",
        }
    }

    /// Arrow's checked kernel, which stops at the first overflow.
    fn stopping(self, one: &dyn Datum, other: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Add => add(one, other),
            Self::Subtract => sub(one, other),
            Self::Multiply => mul(one, other),
            Self::Negate => neg(one.get().0),
        }
    }
}

fn function(op: Op) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Checked { op, signature: Signature::variadic_any(Volatility::Immutable) }))
}

/// An arithmetic operator that fails where DataFusion's would wrap around.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Checked {
    op: Op,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.op.sign()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [one] => Ok(format!("(- {})", one.schema_name())),
            [one, other] => Ok(format!("{} {} {}", one.schema_name(), self.op.sign(), other.schema_name())),
            _ => internal_err!("{} of {} values", self.op.sign(), args.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds.first() {
            Some(kind) => Ok(kind.clone()),
            None => internal_err!("{} of nothing", self.op.sign()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [one] => self.evaluate(one, one),
            [one, other] => self.evaluate(one, other),
            other => internal_err!("{} of {} values", self.op.sign(), other.len()),
        }
    }
}

impl Checked {
    /// Its sign in SQL, for messages and the names of columns.
    pub(crate) fn sign(&self) -> &'static str {
        self.op.sign()
    }

    /// The expression that applies the operator to `args`.
    pub(crate) fn call(&self, args: Vec<Expr>) -> Expr {
        self.op.of(args)
    }

    /// The result for the operands; one that is negated is both.
    ///
    /// # Errors
    /// If it overflows.
    pub(crate) fn evaluate(&self, one: &ColumnarValue, other: &ColumnarValue) -> Result<ColumnarValue> {
        use ColumnarValue::{Array, Scalar};
        let zero = ScalarValue::new_zero(&one.data_type())?;
        let done = match (one, other) {
            (Array(one), _) if self.op == Op::Negate => self.fast(one, Side::Left(&zero)),
            (Array(one), Array(other)) => self.fast(one, Side::Array(other)),
            (Array(one), Scalar(other)) => self.fast(one, Side::Right(other)),
            (Scalar(one), Array(other)) => self.fast(other, Side::Left(one)),
            (Scalar(_), Scalar(_)) => None,
        };
        match done {
            Some(done) => Ok(Array(done)),
            None => self.stop(one, other),
        }
    }
}

/// The operand beside an array: a constant on one side, or another array.
#[derive(Clone, Copy)]
enum Side<'a> {
    Array(&'a ArrayRef),
    Left(&'a ScalarValue),
    Right(&'a ScalarValue),
}

impl Checked {
    /// The results, if none overflows; `None` if [`Self::stop`] must check, because the values of nulls are computed
    /// too.
    fn fast(&self, array: &ArrayRef, side: Side<'_>) -> Option<ArrayRef> {
        match array.data_type() {
            DataType::Int8 => self.run::<Int8Type>(array, side),
            DataType::Int16 => self.run::<Int16Type>(array, side),
            DataType::Int32 => self.run::<Int32Type>(array, side),
            DataType::Int64 => self.run::<Int64Type>(array, side),
            DataType::UInt8 => self.run::<UInt8Type>(array, side),
            DataType::UInt16 => self.run::<UInt16Type>(array, side),
            DataType::UInt32 => self.run::<UInt32Type>(array, side),
            DataType::UInt64 => self.run::<UInt64Type>(array, side),
            _ => None,
        }
    }

    fn run<T>(&self, array: &ArrayRef, side: Side<'_>) -> Option<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Overflowing,
    {
        match self.op {
            Op::Add => run::<T>(array, side, T::Native::add),
            Op::Subtract | Op::Negate => run::<T>(array, side, T::Native::subtract),
            Op::Multiply => run::<T>(array, side, T::Native::multiply),
        }
    }

    fn stop(&self, one: &ColumnarValue, other: &ColumnarValue) -> Result<ColumnarValue> {
        apply(one, other, |one, other| self.op.stopping(one, other)).map_err(|error| {
            let DataFusionError::ArrowError(cause, _) = &error else { return error };
            let ArrowError::ArithmeticOverflow(said) = cause.as_ref() else { return error };
            // "Overflow happened on: 9223372036854775807 + 1"
            let said = said.rsplit_once(": ").map_or(said.as_str(), |(_, numbers)| numbers);
            exec_datafusion_err!(
                "{said} does not fit into {}: CAST a side of it to DECIMAL(38, 0) or DOUBLE",
                one.data_type().to_string().to_lowercase()
            )
        })
    }
}

fn run<T>(
    array: &ArrayRef,
    side: Side<'_>,
    work: impl Fn(T::Native, T::Native) -> (T::Native, T::Native),
) -> Option<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: Overflowing,
{
    let array = array.as_primitive_opt::<T>()?;
    let scalar = |value: &ScalarValue| {
        let value = value.to_array().ok()?;
        let value = value.as_primitive_opt::<T>()?;
        value.is_valid(0).then(|| value.value(0))
    };
    let mut over = T::Native::default();
    let mut one = |left, right| {
        let (result, marks) = work(left, right);
        over = over | marks;
        result
    };
    let (values, nulls): (Vec<T::Native>, _) = match side {
        Side::Array(other) => {
            let other = other.as_primitive_opt::<T>()?;
            let pairs = array.values().iter().zip(other.values());
            (pairs.map(|(left, right)| one(*left, *right)).collect(), NullBuffer::union(array.nulls(), other.nulls()))
        }
        Side::Right(right) => {
            let right = scalar(right)?;
            (array.values().iter().map(|left| one(*left, right)).collect(), array.nulls().cloned())
        }
        Side::Left(left) => {
            let left = scalar(left)?;
            (array.values().iter().map(|right| one(left, *right)).collect(), array.nulls().cloned())
        }
    };
    (!over.overflowed()).then(|| Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)) as ArrayRef)
}

/// Wrapping integer operations with an overflow mark, whose highest bit is set on overflow. Without branches, so that
/// the loop vectorizes and all marks are tested once.
trait Overflowing: Sized + std::ops::BitOr<Output = Self> {
    fn add(self, other: Self) -> (Self, Self);
    fn subtract(self, other: Self) -> (Self, Self);
    fn multiply(self, other: Self) -> (Self, Self);
    fn overflowed(self) -> bool;
}

macro_rules! overflowing {
    ($($kind:ty: $added:expr, $subtracted:expr;)*) => {
        $(impl Overflowing for $kind {
            #[inline]
            fn add(self, other: Self) -> (Self, Self) {
                let result = self.wrapping_add(other);
                let marks: fn(Self, Self, Self) -> Self = $added;
                (result, marks(self, other, result))
            }

            #[inline]
            fn subtract(self, other: Self) -> (Self, Self) {
                let result = self.wrapping_sub(other);
                let marks: fn(Self, Self, Self) -> Self = $subtracted;
                (result, marks(self, other, result))
            }

            #[inline]
            fn multiply(self, other: Self) -> (Self, Self) {
                let (result, over) = self.overflowing_mul(other);
                (result, Self::from(over) << (Self::BITS - 1))
            }

            #[inline]
            fn overflowed(self) -> bool {
                self.leading_zeros() == 0
            }
        })*
    };
}

macro_rules! signed {
    ($($kind:ty),*) => {
        overflowing! { $($kind: |a, b, sum| (a ^ sum) & (b ^ sum), |a, b, rest| (a ^ b) & (a ^ rest);)* }
    };
}

macro_rules! unsigned {
    ($($kind:ty),*) => {
        overflowing! { $($kind: |a, b, sum| (a & b) | ((a | b) & !sum), |a, b, rest| (!a & b) | (!(a ^ b) & rest);)* }
    };
}

signed!(i8, i16, i32, i64);
unsigned!(u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! agree {
        ($($kind:ty),*) => {
            $(
                let values: Vec<$kind> = [0, 1, 2, 3, 7, 11].into_iter().flat_map(|step| {
                    let near = [<$kind>::MIN, <$kind>::MAX, 0, <$kind>::MAX / 2, 15];
                    near.into_iter().flat_map(move |base| [base.wrapping_add(step), base.wrapping_sub(step)])
                }).collect();
                for one in &values {
                    for other in &values {
                        let of = |(result, marks): ($kind, $kind)| (!marks.overflowed()).then_some(result);
                        assert_eq!(of(Overflowing::add(*one, *other)), one.checked_add(*other), "{one} + {other}");
                        assert_eq!(of(one.subtract(*other)), one.checked_sub(*other), "{one} - {other}");
                        assert_eq!(of(one.multiply(*other)), one.checked_mul(*other), "{one} * {other}");
                    }
                }
            )*
        };
    }

    #[test]
    fn overflow_is_marked() {
        agree!(i8, i16, i32, i64, u8, u16, u32, u64);
    }
}
