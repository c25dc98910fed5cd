//! The logical node of an ASOF join.

use std::cmp::Ordering;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, JoinType, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::builder::build_join_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, UserDefinedLogicalNodeCore};

/// An ASOF join: each row of the left side with the one row of the right side that has equal keys and whose time is the nearest that
/// the comparison allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AsOfJoin {
    pub(crate) left: LogicalPlan,
    pub(crate) right: LogicalPlan,
    /// Pairs of equal expressions, of the left and of the right side.
    pub(crate) keys: Vec<(Expr, Expr)>,
    /// The compared times.
    pub(crate) times: (Expr, Expr),
    /// `>=`, `>`, `<=` or `<`, between the left and the right time.
    pub(crate) comparison: Operator,
    /// Whether rows of the left side without a match stay.
    pub(crate) keeps_left: bool,
    schema: DFSchemaRef,
}

impl AsOfJoin {
    /// # Errors
    /// If both sides have a column of one name.
    pub(crate) fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        keys: Vec<(Expr, Expr)>,
        times: (Expr, Expr),
        comparison: Operator,
        keeps_left: bool,
    ) -> Result<Self> {
        let kind = if keeps_left { JoinType::Left } else { JoinType::Inner };
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &kind)?);
        Ok(Self { left, right, keys, times, comparison, keeps_left, schema })
    }
}

impl PartialOrd for AsOfJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for AsOfJoin {
    fn name(&self) -> &str {
        "AsOfJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let keys = self.keys.iter().flat_map(|(left, right)| [left, right]);
        keys.chain([&self.times.0, &self.times.1]).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.keeps_left { "Left" } else { "Inner" };
        write!(f, "AsOfJoin: {kind} {} {} {}", self.times.0, self.comparison, self.times.1)?;
        self.keys.iter().try_for_each(|(left, right)| write!(f, ", {left} = {right}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let (Some(right), Some(left)) = (inputs.pop(), inputs.pop()) else {
            return internal_err!("an ASOF join has two inputs");
        };
        let mut exprs = exprs.into_iter();
        let mut pairs = Vec::with_capacity(self.keys.len() + 1);
        while let (Some(left), Some(right)) = (exprs.next(), exprs.next()) {
            pairs.push((left, right));
        }
        let Some(times) = pairs.pop() else { return internal_err!("an ASOF join compares times") };
        Self::try_new(left, right, pairs, times, self.comparison, self.keeps_left)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.left.schema().fields().len();
        let (left, right): (Vec<usize>, Vec<usize>) = output_columns.iter().partition(|column| **column < width);
        Some(vec![left, right.into_iter().map(|column| column - width).collect()])
    }
}
