//! Wraps a DataFusion function to override its coercion or some of its results.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Converts the types of the arguments into those that the function is called with; an error for types that it does not take.
pub(crate) type Coercion = fn(&[DataType]) -> Result<Vec<DataType>>;

/// What replaces parts of a function of DataFusion; the rest is left to it.
pub(crate) trait Override: Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// The coercion of arguments; `None` to leave it to DataFusion's function.
    fn coerced(&self) -> Option<Coercion>;

    /// The result for these arguments; `None` to leave it to DataFusion's function.
    fn result(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>>;

    /// The arguments for which the function gives the value `of`; `None` for what DataFusion derives.
    fn preimage(&self, _args: &[Expr], _of: &ScalarValue) -> Result<Option<PreimageResult>> {
        Ok(None)
    }

    /// Converts the arguments into those that DataFusion's function takes.
    fn inner_args(&self, args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
        Ok(args)
    }
}

/// DataFusion's function `inner`, under its own name, with some parts replaced.
pub(crate) fn overridden(inner: Arc<ScalarUDF>, overrides: impl Override) -> Arc<ScalarUDF> {
    let signature = match overrides.coerced() {
        Some(_) => Signature::user_defined(Volatility::Immutable),
        None => inner.signature().clone(),
    };
    Arc::new(ScalarUDF::new_from_impl(Overridden { inner, signature, overrides }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Overridden<M> {
    inner: Arc<ScalarUDF>,
    signature: Signature,
    overrides: M,
}

impl<M: Override> ScalarUDFImpl for Overridden<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match self.overrides.coerced() {
            Some(coerced) => coerced(kinds),
            None => self.inner.coerce_types(kinds),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.inner.return_type(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn preimage(&self, args: &[Expr], of: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        let own = of.as_literal().map(|of| self.overrides.preimage(args, of)).transpose()?.flatten();
        own.map_or_else(|| self.inner.preimage(args, of, info), Ok)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.overrides.result(&args)? {
            Some(done) => Ok(done),
            None => self.inner.invoke_with_args(self.overrides.inner_args(args)?),
        }
    }
}
