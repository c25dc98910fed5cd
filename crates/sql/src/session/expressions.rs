//! Expressions over source rows: derived columns, and the `where` filter of a table.
//!
//! Both are evaluated by batch. If a batch fails it is halved until the failing rows are alone; these are rejected.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, concat, filter_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::prelude::{SessionConfig, SessionContext};
use tidetable_functions::{counting_times, register};
use tidetable_ingest::{Prepare, Prepared, UnpreparedRow};
use tidetable_layout::{Field, FieldType};
use tidetable_source::TimeCounts;
use tidetable_upstream::floats::coerce_expression;

use crate::error::plain;
use crate::session::options::set_planning_options;
use crate::syntax::statement::{BigtableTypes, expression};
use crate::syntax::volatile::volatile_function;

/// Why an expression is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It is not a valid expression over the source's columns.
    #[error("{}", plain(error))]
    Wrong {
        /// DataFusion's message. Not a `source`, because its chain repeats the message.
        error: Box<DataFusionError>,
    },
    /// Its type is not a column type.
    #[error("it gives {found}, which no column can hold; CAST it to a number, text, a time or a bool")]
    Type {
        /// Type of the expression, as DataFusion plans it.
        found: DataType,
    },
    /// It calls a function that is not deterministic.
    #[error(
        "{function}() gives another value in each run, but a table must depend on its inputs only; \
         write a constant, or a column of the source"
    )]
    Unsteady {
        /// Name of the function that is not deterministic.
        function: String,
    },
    /// A filter that is not boolean.
    #[error("it gives {found}, and a filter must be true or false")]
    NoFilter {
        /// Type of the expression, as DataFusion plans it.
        found: DataType,
    },
}

/// A compiled expression, with the type of the column that it fills.
#[derive(Debug, Clone)]
struct Expression {
    name: Option<String>,
    expr: Arc<dyn PhysicalExpr>,
    /// The type that its values are cast to.
    wanted: DataType,
}

/// Derived columns. A derived column replaces a source column of the same name.
#[derive(Debug, Clone)]
pub struct Derive {
    fields: Vec<Field>,
    expressions: Vec<Expression>,
}

impl Derive {
    /// Compiles `expressions`, pairs of name and SQL over `columns`.
    ///
    /// # Errors
    /// The index of each refused expression, and why.
    pub fn new(columns: &[Field], expressions: &[(String, String)]) -> Result<Self, Vec<(usize, ExpressionError)>> {
        let schema = schema_of(columns);
        let (mut fields, mut compiled, mut errors) = (columns.to_vec(), Vec::new(), Vec::new());
        for (at, (name, sql)) in expressions.iter().enumerate() {
            match column(&schema, sql) {
                Ok((expr, kind)) => {
                    let field = Field { name: name.clone(), kind };
                    match fields.iter_mut().find(|field| field.name == *name) {
                        Some(known) => *known = field,
                        None => fields.push(field),
                    }
                    compiled.push(Expression { name: Some(name.clone()), expr, wanted: kind.arrow() });
                }
                Err(error) => errors.push((at, error)),
            }
        }
        if errors.is_empty() { Ok(Self { fields, expressions: compiled }) } else { Err(errors) }
    }

    /// The columns of the source, followed by the derived ones; a derived one replaces that of its name.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The columns of the source that the derived column `name` is made of; none if there is no such column.
    pub fn columns_of(&self, name: &str) -> Vec<String> {
        let derived = self.expressions.iter().filter(|expression| expression.name.as_deref() == Some(name));
        let columns = derived.flat_map(|expression| collect_columns(&expression.expr));
        columns.map(|column| column.name().to_owned()).collect()
    }
}

/// The condition on which a table accepts a row of its source.
#[derive(Debug, Clone)]
pub struct Filter {
    expression: Expression,
}

impl Filter {
    /// Compiles a predicate over `columns`. Null filters the row out.
    ///
    /// # Errors
    /// If it is not a valid predicate over them.
    pub fn new(columns: &[Field], predicate: &str) -> Result<Self, ExpressionError> {
        let planner = ExpressionPlanner::new(schema_of(columns));
        planner.filter(planner.logical(predicate)?)
    }
}

/// Prepares rows of a source for a table: derives columns, then filters.
#[derive(Debug, Clone, Default)]
pub struct Preparation {
    /// The columns that the table derives, if it does.
    pub derive: Option<Derive>,
    /// The condition on which a row is accepted, if there is one.
    pub filter: Option<Filter>,
}

impl Preparation {
    /// Whether it leaves all rows as they are.
    pub fn is_empty(&self) -> bool {
        self.derive.is_none() && self.filter.is_none()
    }
}

impl Prepare for Preparation {
    fn prepare(&self, batch: RecordBatch) -> Result<Prepared, ArrowError> {
        let prepared = match &self.derive {
            Some(derive) => derive_columns(derive, &batch)?,
            None => Prepared::whole(batch),
        };
        match &self.filter {
            Some(filter) => filter_rows(filter, prepared),
            None => Ok(prepared),
        }
    }
}

pub(crate) fn schema_of(columns: &[Field]) -> SchemaRef {
    let fields = columns.iter().map(|field| ArrowField::new(&field.name, field.kind.arrow(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn wrong(error: DataFusionError) -> ExpressionError {
    ExpressionError::Wrong { error: Box::new(error) }
}

/// Plans expressions over the columns of a source, or of records.
#[derive(Clone)]
pub(crate) struct ExpressionPlanner {
    context: SessionContext,
    schema: SchemaRef,
}

impl ExpressionPlanner {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let mut config = SessionConfig::new();
        set_planning_options(&mut config);
        let builder = register(SessionStateBuilder::new().with_config(config).with_default_features());
        let context = SessionContext::new_with_state(builder.with_type_planner(Arc::new(BigtableTypes)).build());
        Self { context, schema }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The expression `sql` over the columns, with its types coerced, simplified.
    pub(crate) fn logical(&self, sql: &str) -> Result<Expr, ExpressionError> {
        let columns = DFSchema::try_from(Arc::clone(&self.schema)).map_err(wrong)?;
        let expr = expression(&self.context.state(), sql, &columns).map_err(wrong)?;
        if let Some(function) = volatile_function(&expr) {
            return Err(ExpressionError::Unsteady { function });
        }
        let expr = coerce_expression(expr, &columns).map_err(wrong)?.data;
        // Simplification is required: some functions (coalesce) have no physical form.
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::new(columns.clone())).build());
        simplifier.coerce(expr, &columns).and_then(|expr| simplifier.simplify(expr)).map_err(wrong)
    }

    fn physical(&self, expr: Expr) -> Result<Arc<dyn PhysicalExpr>, ExpressionError> {
        let columns = DFSchema::try_from(Arc::clone(&self.schema)).map_err(wrong)?;
        self.context.create_physical_expr(expr, &columns).map_err(wrong)
    }

    /// The filter that a planned expression is; it must be boolean.
    pub(crate) fn filter(&self, expr: Expr) -> Result<Filter, ExpressionError> {
        let expr = self.physical(expr)?;
        let found = expr.data_type(&self.schema).map_err(wrong)?;
        if !matches!(found, DataType::Boolean | DataType::Null) {
            return Err(ExpressionError::NoFilter { found });
        }
        Ok(Filter { expression: Expression { name: None, expr, wanted: DataType::Boolean } })
    }
}

fn compile(schema: &SchemaRef, sql: &str) -> Result<Arc<dyn PhysicalExpr>, ExpressionError> {
    let planner = ExpressionPlanner::new(Arc::clone(schema));
    planner.physical(planner.logical(sql)?)
}

fn column(schema: &SchemaRef, sql: &str) -> Result<(Arc<dyn PhysicalExpr>, FieldType), ExpressionError> {
    let expr = compile(schema, sql)?;
    let found = expr.data_type(schema).map_err(wrong)?;
    match field_type(&found) {
        Some(kind) => Ok((expr, kind)),
        None => Err(ExpressionError::Type { found }),
    }
}

/// The type of a column that can hold values of this Arrow type.
pub fn field_type(found: &DataType) -> Option<FieldType> {
    Some(match found {
        kind if kind.is_unsigned_integer() => FieldType::UInt64,
        kind if kind.is_signed_integer() => FieldType::Int64,
        kind if kind.is_floating() => FieldType::Float64,
        DataType::Decimal128(precision, scale) => {
            FieldType::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldType::Text,
        DataType::Boolean => FieldType::Bool,
        DataType::Timestamp(..) => FieldType::Timestamp,
        DataType::Date32 | DataType::Date64 => FieldType::Date,
        _ => return None,
    })
}

impl Expression {
    fn evaluate(&self, batch: &RecordBatch) -> Result<(ArrayRef, TimeCounts), DataFusionError> {
        let (values, mut times) = counting_times(|| self.expr.evaluate(batch));
        let values = values?.into_array(batch.num_rows())?;
        if matches!(self.wanted, DataType::Timestamp(TimeUnit::Microsecond, _)) {
            times.cut += truncated_times(&values);
        }
        let values = if *values.data_type() == self.wanted { values } else { cast(&values, &self.wanted)? };
        Ok((values, times))
    }

    /// Its value for every row; null where it fails, with the row in `outcome`.
    fn evaluate_rows(&self, batch: &RecordBatch, outcome: &mut EvaluationOutcome) -> Result<ArrayRef, ArrowError> {
        let mut parts = Vec::new();
        self.halve(batch, 0, &mut parts, outcome);
        match parts.as_slice() {
            [only] => Ok(Arc::clone(only)),
            several => concat(&several.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()),
        }
    }

    fn halve(&self, batch: &RecordBatch, first: usize, parts: &mut Vec<ArrayRef>, outcome: &mut EvaluationOutcome) {
        match self.evaluate(batch) {
            Ok((values, times)) => {
                parts.push(values);
                outcome.times += times;
            }
            Err(_) if batch.num_rows() > 1 => {
                let half = batch.num_rows() / 2;
                self.halve(&batch.slice(0, half), first, parts, outcome);
                self.halve(&batch.slice(half, batch.num_rows() - half), first + half, parts, outcome);
            }
            Err(error) => {
                parts.push(arrow::array::new_null_array(&self.wanted, batch.num_rows()));
                let row = UnpreparedRow { row: first, column: self.name.clone(), reason: plain(&error) };
                outcome.failed.push(row);
            }
        }
    }
}

/// The rows for which an evaluation failed, and counts of the times that it met.
#[derive(Default)]
struct EvaluationOutcome {
    failed: Vec<UnpreparedRow>,
    times: TimeCounts,
}

/// Count of times in `values` with digits beyond the microsecond.
fn truncated_times(values: &ArrayRef) -> u64 {
    let Some(times) = values.as_primitive_opt::<TimestampNanosecondType>() else { return 0 };
    times.iter().flatten().filter(|time| time % 1000 != 0).count() as u64
}

/// Adds derived columns, and removes the rows for which one failed.
fn derive_columns(derive: &Derive, batch: &RecordBatch) -> Result<Prepared, ArrowError> {
    let mut outcome = EvaluationOutcome::default();
    let mut fields: Vec<ArrowField> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = batch.columns().to_vec();

    for expression in &derive.expressions {
        let values = expression.evaluate_rows(batch, &mut outcome)?;
        let name = expression.name.as_deref().unwrap_or_default();
        let field = ArrowField::new(name, expression.wanted.clone(), true);
        match fields.iter().position(|field| field.name() == name) {
            Some(at) => (fields[at], columns[at]) = (field, values),
            None => {
                fields.push(field);
                columns.push(values);
            }
        }
    }

    let EvaluationOutcome { mut failed, times } = outcome;
    failed.sort_by_key(|row| row.row);
    failed.dedup_by_key(|row| row.row);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    if failed.is_empty() {
        return Ok(Prepared { times, ..Prepared::whole(batch) });
    }

    let fails: Vec<usize> = failed.iter().map(|row| row.row).collect();
    let rows: Vec<u32> =
        (0..batch.num_rows()).filter(|row| fails.binary_search(row).is_err()).map(|row| row as u32).collect();
    let batch = take_record_batch(&batch, &UInt32Array::from(rows.clone()))?;
    Ok(Prepared { batch, rows: Some(rows), filtered: 0, rejected: failed, times })
}

/// The rows of a batch that pass a filter.
fn filter_rows(filter: &Filter, mut prepared: Prepared) -> Result<Prepared, ArrowError> {
    let mut outcome = EvaluationOutcome::default();
    let verdicts = filter.expression.evaluate_rows(&prepared.batch, &mut outcome)?;
    let failed = outcome.failed;
    let mask: BooleanArray = verdicts.as_boolean().iter().map(|verdict| Some(verdict == Some(true))).collect();
    let (kept, before) = (mask.true_count(), prepared.batch.num_rows());
    if kept == before {
        return Ok(prepared);
    }
    let rows = (0..before).filter(|row| mask.value(*row)).map(|row| prepared.origin(row) as u32).collect();
    let failed: Vec<UnpreparedRow> =
        failed.into_iter().map(|row| UnpreparedRow { row: prepared.origin(row.row), ..row }).collect();
    prepared.filtered = (before - kept - failed.len()) as u64;
    prepared.rejected.extend(failed);
    prepared.rejected.sort_by_key(|row| row.row);
    prepared.batch = filter_record_batch(&prepared.batch, &mask)?;
    prepared.rows = Some(rows);
    Ok(prepared)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

    use super::*;

    fn columns() -> Vec<Field> {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind };
        vec![field("Day", FieldType::Text), field("time", FieldType::Text), field("n", FieldType::Int64)]
    }

    fn batch(rows: &[(&str, &str, Option<i64>)]) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()),
        ];
        RecordBatch::try_new(schema_of(&self::columns()), columns).unwrap()
    }

    fn derive(expressions: &[(&str, &str)]) -> Derive {
        let named: Vec<(String, String)> =
            expressions.iter().map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned())).collect();
        Derive::new(&columns(), &named).unwrap()
    }

    #[test]
    fn failing_rows_are_rejected() {
        let derive = derive(&[("ts", "cast(Day || 'T' || time || 'Z' as timestamp)"), ("n", "n * 2")]);
        let kinds: Vec<FieldType> = derive.fields().iter().map(|field| field.kind).collect();
        assert_eq!(kinds, [FieldType::Text, FieldType::Text, FieldType::Int64, FieldType::Timestamp]);
        let good = ("2018-01-05", "03:00:00", Some(1));
        let bad = ("2018-01-35", "03:00:00", Some(1));
        let batch = batch(&[good, good, bad, good, bad, ("2018-01-05", "04:00:00", None)]);
        let prepared = Preparation { derive: Some(derive), filter: None }.prepare(batch).unwrap();
        assert_eq!(prepared.rows.as_deref(), Some(&[0, 1, 3, 5][..]));
        let rejected: Vec<_> = prepared.rejected.iter().map(|row| (row.row, row.column.as_deref())).collect();
        assert_eq!(rejected, [(2, Some("ts")), (4, Some("ts"))]);
        assert!(prepared.rejected[0].reason.contains("2018-01-35"), "{}", prepared.rejected[0].reason);
        let times = prepared.batch.column_by_name("ts").unwrap().as_primitive::<TimestampMicrosecondType>().clone();
        assert_eq!(times.value(0), 1_515_121_200_000_000);
        let n = prepared.batch.column_by_name("n").unwrap().as_primitive::<Int64Type>().clone();
        assert_eq!((n.value(0), n.is_null(3)), (2, true));
    }

    #[test]
    fn repeated_local_times_are_counted() {
        let times = |sql: &str, rows: &[(&str, &str, Option<i64>)]| {
            let prepared =
                Preparation { derive: Some(derive(&[("ts", sql)])), filter: None }.prepare(batch(rows)).unwrap();
            let times = prepared.batch.column_by_name("ts").unwrap().as_primitive::<TimestampMicrosecondType>().clone();
            let seconds: Vec<i64> = times.values().iter().map(|micros| micros / 1_000_000).collect();
            let reasons: Vec<String> = prepared.rejected.into_iter().map(|row| row.reason).collect();
            (seconds, prepared.times, reasons)
        };
        let rows = [
            ("2021-10-31", "01:30:00", None),
            // Ambiguous on the first day, skipped on the second.
            ("2021-10-31", "02:30:00", None),
            ("2021-10-31", "03:30:00", None),
            ("2021-03-28", "02:30:00", None),
        ];
        for sql in [
            "cast(Day || 'T' || time as timestamp) at time zone 'Europe/Paris'",
            "cast(Day || ' ' || time || ' Europe/Paris' as timestamp)",
        ] {
            let (seconds, counts, reasons) = times(sql, &rows);
            assert_eq!(seconds, [1_635_636_600, 1_635_640_200, 1_635_647_400], "{sql}");
            assert_eq!(counts, TimeCounts { repeated: 1, ..TimeCounts::default() }, "{sql}");
            assert!(reasons.len() == 1 && reasons[0].contains("2021-03-28"), "{sql} {reasons:?}");
        }
        // Text with an offset is not a local time.
        let (seconds, counts, _) = times("cast(Day || 'T' || time || 'Z' as timestamp)", &rows[1..]);
        assert_eq!((seconds[0], counts.repeated), (1_635_647_400, 0));
        let (_, counts, _) = times("cast(Day || 'T' || time || '.123456789Z' as timestamp)", &rows);
        assert_eq!(counts, TimeCounts { cut: 4, ..TimeCounts::default() });
    }

    #[test]
    fn a_filter_accepts_true_only() {
        let filter = Filter::new(&columns(), "n > 1 and 10 / (n - 3) <> 0").unwrap();
        let row = |n| ("", "", n);
        let batch = batch(&[row(Some(1)), row(Some(2)), row(None), row(Some(3)), row(Some(4))]);
        let prepared = Preparation { derive: None, filter: Some(filter) }.prepare(batch).unwrap();
        assert_eq!(prepared.rows.as_deref(), Some(&[1, 4][..]));
        assert_eq!(prepared.filtered, 2);
        assert_eq!(prepared.rejected.iter().map(|row| row.row).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn overflow_rejects_the_row() {
        let rows = [Some(1), Some(i64::MAX), None, Some(i64::MIN)];
        let rows: Vec<(&str, &str, Option<i64>)> = rows.into_iter().map(|n| ("", "", n)).collect();
        for (sql, bad) in
            [("n + 1", &[1][..]), ("n - 1", &[3]), ("n * 2", &[1, 3]), ("-n", &[3]), ("2 * (n + 1)", &[1, 3])]
        {
            let derived = derive(&[("z", sql)]);
            let prepared = Preparation { derive: Some(derived), filter: None }.prepare(batch(&rows)).unwrap();
            assert_eq!(prepared.rejected.iter().map(|row| row.row).collect::<Vec<_>>(), bad, "{sql}");
            assert!(prepared.rejected[0].reason.contains("does not fit into int64"), "{}", prepared.rejected[0].reason);
            let filter = Filter::new(&columns(), &format!("{sql} is not null")).unwrap();
            let prepared = Preparation { derive: None, filter: Some(filter) }.prepare(batch(&rows)).unwrap();
            assert_eq!(prepared.rejected.iter().map(|row| row.row).collect::<Vec<_>>(), bad, "{sql}");
            assert_eq!(prepared.filtered, 1, "{sql}");
        }
    }

    #[test]
    fn expressions_give_the_same_as_queries() {
        let of = |sql: &str, row: (&str, &str, Option<i64>)| {
            let prepared =
                Preparation { derive: Some(derive(&[("z", sql)])), filter: None }.prepare(batch(&[row])).unwrap();
            assert!(prepared.rejected.is_empty(), "{sql}: {:?}", prepared.rejected);
            let column = prepared.batch.column_by_name("z").unwrap();
            arrow::util::display::array_value_to_string(column, 0).unwrap()
        };
        let row = ("2018-01-05", "3:00", Some(4));
        assert_eq!(of("cast(Day || ' ' || time as timestamp)", row), "2018-01-05T03:00:00Z");
        assert_eq!(of("Day = '2018-01-05' is distinct from true or n = 4", row), "true");
        assert_eq!(of("n is distinct from 4 and n = 4", row), "false");
        assert_eq!(of("cast(n * 0.625 as bigint)", row), "3");
        assert_eq!(of("mod(n, 3) + sign(-n) + n ^ 2", row), "16.0");
        assert_eq!(of("md5(Day)", row).len(), 32);
    }

    #[test]
    fn functions_that_are_not_deterministic_are_refused() {
        for sql in [
            "random() < 0.5",
            "now() > '2020-01-01'",
            "current_date > '2020-01-01'",
            "uuid() <> Day",
            "n > 0 and random() > 0.1",
        ] {
            let told = Filter::new(&columns(), sql).unwrap_err().to_string();
            assert!(told.contains("in each run") && told.contains("inputs"), "{sql}: {told}");
        }
        let list = [("a".to_owned(), "cast(now() as timestamp)".to_owned())];
        assert!(Derive::new(&columns(), &list).unwrap_err()[0].1.to_string().contains("now()"));
    }

    #[test]
    fn errors_say_what_is_wrong_with_an_expression() {
        let wrong = |sql: &str| Filter::new(&columns(), sql).unwrap_err().to_string();
        assert!(wrong("day = 'x'").contains("Day"), "{}", wrong("day = 'x'"));
        assert!(wrong("n + 1").contains("true or false"));
        assert!(!wrong("n >").is_empty());
        let list = [("a".to_owned(), "[n]".to_owned()), ("b".to_owned(), "n".to_owned())];
        let errors = Derive::new(&columns(), &list).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].1.to_string().contains("CAST"), "{}", errors[0].1);
    }
}
