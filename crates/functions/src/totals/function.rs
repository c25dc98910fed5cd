//! Wraps a DataFusion aggregate function to override its results for some types.

use std::fmt::{self, Debug, Formatter};
use std::hash::Hash;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

/// The overrides of an aggregate function for one type of its result.
pub(crate) trait ResultOverride: Sized {
    /// Whether it has an accumulator of groups even where DataFusion has none.
    const HAS_GROUPS: bool = false;

    /// The overrides for results of this type; `None` to leave the function to DataFusion.
    fn of(kind: &DataType) -> Option<Self>;

    /// The fields of its states; `None` for those of DataFusion's function.
    fn state(&self, args: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>>;

    /// Accumulator of all rows or of a window; replaces or wraps `inner`.
    fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator>;

    /// Accumulator of groups; replaces or wraps the one that `inner` makes.
    ///
    /// # Errors
    /// If `inner` cannot make it.
    fn groups(self, inner: impl FnOnce() -> Result<Box<dyn GroupsAccumulator>>) -> Result<Box<dyn GroupsAccumulator>>;
}

/// DataFusion's function `E`, where the results that `R` is for are computed by `R`.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct OverriddenAggregate<E, R> {
    inner: E,
    results: std::marker::PhantomData<fn() -> R>,
}

impl<E, R> OverriddenAggregate<E, R> {
    pub(crate) fn new(inner: E) -> Self {
        Self { inner, results: std::marker::PhantomData }
    }
}

impl<E: Debug, R> Debug for OverriddenAggregate<E, R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OverriddenAggregate").field(&self.inner).finish()
    }
}

impl<E, R> AggregateUDFImpl for OverriddenAggregate<E, R>
where
    E: AggregateUDFImpl + PartialEq + Eq + Hash,
    R: ResultOverride + PartialEq + Eq + Hash + 'static,
{
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.inner.return_type(kinds)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match R::of(args.return_type()).and_then(|results| results.state(&args)) {
            Some(fields) => Ok(fields),
            None => self.inner.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (results, distinct) = (R::of(args.return_type()), args.is_distinct);
        let inner = self.inner.accumulator(args)?;
        Ok(match results {
            Some(results) => results.all(inner, distinct),
            None => inner,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (results, distinct) = (R::of(args.return_type()), args.is_distinct);
        let inner = self.inner.create_sliding_accumulator(args)?;
        Ok(match results {
            Some(results) => results.all(inner, distinct),
            None => inner,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let is_ours = R::HAS_GROUPS && !args.is_distinct && R::of(args.return_type()).is_some();
        is_ours || self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match R::of(args.return_type()) {
            Some(results) => results.groups(|| self.inner.create_groups_accumulator(args)),
            None => self.inner.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(kind)
    }
}

/// A DataFusion accumulator whose result is computed from its state by another function.
struct Finished<F> {
    inner: Box<dyn Accumulator>,
    finish: F,
}

/// Wraps `inner`; `finish` makes the result from its state. DataFusion's own result is never asked for.
pub(crate) fn finished<F>(inner: Box<dyn Accumulator>, finish: F) -> Box<dyn Accumulator>
where
    F: Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
{
    Box::new(Finished { inner, finish })
}

impl<F> Debug for Finished<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Finished").field(&self.inner).finish()
    }
}

impl<F> Accumulator for Finished<F>
where
    F: Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        (self.finish)(&self.inner.state()?)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}
