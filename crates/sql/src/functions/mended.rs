//! Wraps a DataFusion function to override its coercion or some of its results.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Coerces argument types.
pub(crate) type Coercion = fn(&[DataType]) -> Result<Vec<DataType>>;

/// The overrides of a function.
pub(crate) trait Mend: Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// The coercion of arguments; `None` for DataFusion's.
    fn coerced(&self) -> Option<Coercion>;

    /// The result; `None` for DataFusion's.
    fn work_out(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>>;

    /// Converts the arguments for DataFusion's function.
    fn for_engine(&self, args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
        Ok(args)
    }
}

/// Wraps `engine`.
pub(crate) fn mended(engine: Arc<ScalarUDF>, mend: impl Mend) -> Arc<ScalarUDF> {
    let signature = match mend.coerced() {
        Some(_) => Signature::user_defined(Volatility::Immutable),
        None => engine.signature().clone(),
    };
    Arc::new(ScalarUDF::new_from_impl(Mended { engine, signature, mend }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mended<M> {
    engine: Arc<ScalarUDF>,
    signature: Signature,
    mend: M,
}

impl<M: Mend> ScalarUDFImpl for Mended<M> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match self.mend.coerced() {
            Some(coerced) => coerced(kinds),
            None => self.engine.coerce_types(kinds),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.engine.return_type(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.engine.return_field_from_args(args)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.engine.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.engine.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.mend.work_out(&args)? {
            Some(done) => Ok(done),
            None => self.engine.invoke_with_args(self.mend.for_engine(args)?),
        }
    }
}
