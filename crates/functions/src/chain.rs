//! A long chain of operators, such as the sum of hundreds of columns, as one function.
//!
//! DataFusion asks an expression for its type, which asks its operands; asked at each operator of a chain, that takes the square
//! of its length, or the cube where names are made, too. As a function of all operands the chain is flat. It evaluates the same
//! operators in the same order.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr::expressions::{BinaryExpr as PhysicalBinary, Column, Literal};
use datafusion::physical_plan::PhysicalExpr;

use crate::checked::Checked;

/// Operators of a chain from which on it becomes a function.
const MIN_LINKS: usize = 16;

/// A chain that is built from its first operand.
#[derive(Debug)]
pub struct ChainBuilder {
    first: Expr,
    links: Vec<Link>,
    operands: Vec<Expr>,
    kind: DataType,
}

/// An operator of a chain, whose left operand is what precedes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Link {
    /// Casts of the left operand, in the order in which they are applied.
    casts: Vec<DataType>,
    operator: LinkOperator,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LinkOperator {
    Checked(Checked),
    Other(Operator),
}

impl ChainBuilder {
    /// A chain with one operand, of this type.
    pub fn new(first: Expr, kind: DataType) -> Self {
        Self { first, links: Vec::new(), operands: Vec::new(), kind }
    }

    /// The type of the result of the last link; that of the first operand if there is no link.
    pub fn data_type(&self) -> &DataType {
        &self.kind
    }

    /// Adds an operator: `link` is a coerced expression of the type `kind` in which `placeholder` is the chain so far.
    ///
    /// # Errors
    /// If the placeholder cannot be replaced.
    pub fn add(&mut self, link: Expr, kind: DataType, placeholder: &Expr) -> Result<()> {
        match parts(link, placeholder) {
            Ok((link, operand)) => {
                self.links.push(link);
                self.operands.push(operand);
            }
            Err(other) => {
                // It is no operator of the chain: what there is so far becomes its operand.
                let so_far = std::mem::take(&mut self.first);
                let chain = Self { first: so_far, ..std::mem::replace(self, Self::new(Expr::default(), kind.clone())) };
                self.first = replaced(other, placeholder, &chain.build())?;
            }
        }
        self.kind = kind;
        Ok(())
    }

    /// The chain as an expression: a function if it is long.
    pub fn build(self) -> Expr {
        let Self { first, links, operands, kind } = self;
        if links.len() < MIN_LINKS {
            return links.into_iter().zip(operands).fold(first, |left, (link, right)| link.expression(left, right));
        }
        let mut args = Vec::with_capacity(operands.len() + 1);
        args.push(first);
        args.extend(operands);
        Expr::ScalarFunction(ScalarFunction { func: function(links, kind), args })
    }
}

/// `left || right` as a function whose texts are of type `kind`.
pub(crate) fn concatenation(kind: DataType) -> Arc<ScalarUDF> {
    let link = Link { casts: Vec::new(), operator: LinkOperator::Other(Operator::StringConcat) };
    function(vec![link], kind)
}

/// Whether a function is a chain in which texts are put together.
pub(crate) fn concatenates(function: &ScalarUDF) -> bool {
    let Some(Chain { links, .. }) = function.inner().downcast_ref() else { return false };
    links.iter().any(|link| link.operator == LinkOperator::Other(Operator::StringConcat))
}

fn function(links: Vec<Link>, kind: DataType) -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Chain { links, kind, signature }))
}

/// The operator and the right operand of `link`, or `link` if its left operand is not the placeholder.
fn parts(link: Expr, placeholder: &Expr) -> std::result::Result<(Link, Expr), Expr> {
    let (left, right, operator) = match &link {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left.as_ref(), right.as_ref(), LinkOperator::Other(*op)),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            match (func.inner().downcast_ref::<Checked>(), args.as_slice()) {
                (Some(checked), [left, right]) => (left, right, LinkOperator::Checked(checked.clone())),
                _ => return Err(link),
            }
        }
        _ => return Err(link),
    };
    match casts_of(left, placeholder) {
        Some(casts) => Ok((Link { casts, operator }, right.clone())),
        None => Err(link),
    }
}

/// The types that the placeholder is cast to, in this order; `None` for another expression.
fn casts_of(expr: &Expr, placeholder: &Expr) -> Option<Vec<DataType>> {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            let mut casts = casts_of(expr, placeholder)?;
            casts.push(field.data_type().clone());
            Some(casts)
        }
        expr => (expr == placeholder).then(Vec::new),
    }
}

fn replaced(expr: Expr, placeholder: &Expr, by: &Expr) -> Result<Expr> {
    let replaced = expr.transform_down(|expr| {
        Ok(if expr == *placeholder {
            Transformed::new(by.clone(), true, TreeNodeRecursion::Jump)
        } else {
            Transformed::no(expr)
        })
    })?;
    Ok(replaced.data)
}

impl Link {
    fn expression(self, left: Expr, right: Expr) -> Expr {
        let left = self.casts.into_iter().fold(left, |left, kind| Expr::Cast(Cast::new(Box::new(left), kind)));
        match self.operator {
            LinkOperator::Checked(checked) => checked.call(vec![left, right]),
            LinkOperator::Other(op) => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))),
        }
    }

    fn evaluate(&self, left: ColumnarValue, right: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
        let left = self.casts.iter().try_fold(left, |left, kind| left.cast_to(kind, None))?;
        match &self.operator {
            LinkOperator::Checked(checked) => checked.evaluate(&left, right),
            LinkOperator::Other(op) => evaluated(&left, *op, right, rows),
        }
    }

    fn sign(&self) -> String {
        match &self.operator {
            LinkOperator::Checked(checked) => checked.sign().to_owned(),
            LinkOperator::Other(op) => op.to_string(),
        }
    }
}

/// What DataFusion's operator `op` makes of two operands, for the cases that a link does not compute itself.
fn evaluated(left: &ColumnarValue, op: Operator, right: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    let mut operands = Operands { fields: Vec::new(), columns: Vec::new() };
    let expr = PhysicalBinary::new(operands.expr(left), op, operands.expr(right));

    let Operands { fields, columns } = operands;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
    expr.evaluate(&batch)
}

/// The batch over which DataFusion evaluates an operator: a column for each operand that is an array.
struct Operands {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Operands {
    /// The expression of an operand, which becomes a column unless it is constant.
    fn expr(&mut self, value: &ColumnarValue) -> Arc<dyn PhysicalExpr> {
        match value {
            ColumnarValue::Scalar(value) => Arc::new(Literal::new(value.clone())),
            ColumnarValue::Array(values) => {
                let column = Column::new("operand", self.columns.len());
                self.fields.push(Field::new("operand", values.data_type().clone(), true));
                self.columns.push(Arc::clone(values));
                Arc::new(column)
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Chain {
    links: Vec<Link>,
    kind: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Chain {
    fn name(&self) -> &str {
        "chain"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let Some((first, operands)) = args.split_first() else { return internal_err!("a chain of nothing") };
        let mut name = first.schema_name().to_string();
        for (link, operand) in self.links.iter().zip(operands) {
            name.push_str(&format!(" {} {}", link.sign(), operand.schema_name()));
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.kind.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let mut operands = args.args.into_iter();
        let mut value = operands.next().ok_or_else(|| internal_datafusion_err!("a chain of nothing"))?;

        for (link, operand) in self.links.iter().zip(operands) {
            value = link.evaluate(value, &operand, rows)?;
        }
        match value {
            // Operators of constants give arrays of one value.
            ColumnarValue::Array(values) if values.len() == 1 && rows != 1 => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?))
            }
            value => Ok(value),
        }
    }
}
