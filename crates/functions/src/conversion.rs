//! Replaces casts by functions where DataFusion 55.2 converts differently from PostgreSQL and DuckDB.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// A replacement for some casts, where DataFusion's result differs from what SQL asks for.
pub(crate) trait Conversion: Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Name of the function that replaces the casts, as plans show it.
    const NAME: &str;

    /// Whether it replaces casts between these types.
    fn is_for(from: &DataType, to: &DataType) -> bool;

    /// Casts `values` to `to`. A value that cannot be cast is null if `or_null`, otherwise an error.
    fn convert(values: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef>;
}

/// Replaces `expr` by the function, if it is such a cast.
pub(crate) fn converted<C: Conversion>(expr: Expr, schema: &DFSchema) -> Expr {
    let (inner, to, or_null) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        _ => return expr,
    };
    if !inner.get_type(schema).is_ok_and(|from| C::is_for(&from, to)) {
        return expr;
    }
    let func = function::<C>(to.clone(), or_null);
    match expr {
        Expr::Cast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        Expr::TryCast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        expr => expr,
    }
}

/// # Errors
/// If `expr` casts a constant that cannot be cast.
pub(crate) fn check_constant<C: Conversion>(expr: &Expr) -> Result<()> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return Ok(()) };
    match (func.inner().downcast_ref::<Converted<C>>(), args.as_slice()) {
        (Some(function), [Expr::Literal(value, _)]) => function.convert(&value.to_array()?).map(|_| ()),
        _ => Ok(()),
    }
}

fn function<C: Conversion>(to: DataType, or_null: bool) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Converted::<C> { to, or_null, signature, conversion: PhantomData }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted<C> {
    to: DataType,
    /// Whether a value that cannot be cast is null, as for `TRY_CAST`.
    or_null: bool,
    signature: Signature,
    conversion: PhantomData<C>,
}

impl<C: Conversion> Converted<C> {
    fn convert(&self, values: &ArrayRef) -> Result<ArrayRef> {
        C::convert(values, &self.to, self.or_null)
    }
}

impl<C: Conversion> ScalarUDFImpl for Converted<C> {
    fn name(&self) -> &str {
        C::NAME
    }

    /// The name of the cast that it replaces.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|expr| expr.schema_name().to_string()).unwrap_or_default())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.or_null || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(C::NAME, self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Scalar(value)] => {
                let done = self.convert(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?))
            }
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(self.convert(values)?)),
            _ => internal_err!("{} takes one value", C::NAME),
        }
    }
}
