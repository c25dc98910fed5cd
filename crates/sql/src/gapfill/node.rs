//! The logical node that fills gaps.

use std::cmp::Ordering;
use std::fmt::{self, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue, TableReference, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, UserDefinedLogicalNodeCore};

/// How a value of a gap follows from those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FillKind {
    /// The last value before it.
    Last,
    /// On the line between the values before and after it.
    Line,
}

/// A column of filled values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fill {
    pub(crate) kind: FillKind,
    pub(crate) name: String,
}

/// The grid of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grid {
    pub(crate) width: ScalarValue,
    pub(crate) zone: Option<String>,
    /// The first time, microseconds; without it, a group starts with its first row.
    pub(crate) start: Option<i64>,
    /// The time, microseconds, before which the last bucket starts; without it, a group ends with its last row.
    pub(crate) end: Option<i64>,
}

/// Adds rows for missing buckets to groups, and columns of filled values.
#[derive(Debug, Clone)]
pub(crate) struct GapFill {
    pub(crate) input: LogicalPlan,
    pub(crate) grid: Grid,
    /// The starts of buckets.
    pub(crate) time: Expr,
    /// The other keys of groups.
    pub(crate) keys: Vec<Expr>,
    /// What is filled.
    pub(crate) values: Vec<Expr>,
    pub(crate) fills: Vec<Fill>,
    schema: DFSchemaRef,
}

impl GapFill {
    /// # Errors
    /// If a value has no type, or two columns one name.
    pub(crate) fn try_new(
        input: LogicalPlan,
        grid: Grid,
        time: Expr,
        keys: Vec<Expr>,
        fills: Vec<(Fill, Expr)>,
    ) -> Result<Self> {
        let of_input = input.schema();
        // Rows that are added have no values.
        let is_key = |name: &str| std::iter::once(&time).chain(&keys).any(|key| key.schema_name().to_string() == name);
        let mut fields: Vec<(Option<TableReference>, Arc<Field>)> = of_input
            .iter()
            .map(|(table, field)| {
                let is_nullable = field.is_nullable() || !is_key(field.name());
                (table.cloned(), Arc::new(field.as_ref().clone().with_nullable(is_nullable)))
            })
            .collect();
        for (fill, value) in &fills {
            fields.push((None, Arc::new(Field::new(&fill.name, value.get_type(of_input)?, true))));
        }
        let schema = Arc::new(DFSchema::new_with_metadata(fields, of_input.metadata().clone())?);
        let (fills, values) = fills.into_iter().unzip();
        Ok(Self { input, grid, time, keys, values, fills, schema })
    }

    /// The node with more fills.
    ///
    /// # Errors
    /// As [`GapFill::try_new`].
    pub(crate) fn with_fills(&self, more: Vec<(Fill, Expr)>) -> Result<Self> {
        let fills = self.fills.iter().cloned().zip(self.values.iter().cloned()).chain(more).collect();
        Self::try_new(self.input.clone(), self.grid.clone(), self.time.clone(), self.keys.clone(), fills)
    }

    fn identity(&self) -> (&LogicalPlan, &Grid, &Expr, &[Expr], &[Expr], &[Fill]) {
        (&self.input, &self.grid, &self.time, &self.keys, &self.values, &self.fills)
    }
}

impl PartialEq for GapFill {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for GapFill {}

impl Hash for GapFill {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        std::iter::once(&self.time).chain(&self.keys).chain(&self.values).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "GapFill: every {}", self.grid.width)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut exprs = exprs.into_iter();
        let (Some(input), Some(time)) = (inputs.pop(), exprs.next()) else {
            return internal_err!("a GapFill has one input and a time");
        };
        let keys: Vec<Expr> = exprs.by_ref().take(self.keys.len()).collect();
        let fills = self.fills.iter().cloned().zip(exprs).collect();
        Self::try_new(input, self.grid.clone(), time, keys, fills)
    }
}
