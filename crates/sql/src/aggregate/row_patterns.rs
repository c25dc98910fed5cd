//! Interns the timestamp lists that rows share.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{SchemaRef, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

type Expr = Arc<dyn PhysicalExpr>;

/// Maximum number of patterns to keep; with more, lists hardly repeat.
const MAX_PATTERNS: usize = 1024;
/// If more than one in so many rows of a block has a new pattern, records are grouped one by one.
const NEW_SHARE: usize = 8;
/// New patterns that a block may always add.
const NEW_ALWAYS: usize = 16;

/// The timestamp lists that rows share.
pub(crate) struct RowPatterns {
    schema: SchemaRef,
    /// Index of the time column in the schema.
    time: Option<usize>,
    known: Vec<RowPattern>,
    /// Patterns by length and first time.
    places: HashMap<(usize, i64), Vec<usize>>,
    /// By expression and pattern: one value for each run.
    values: Vec<Vec<ArrayRef>>,
}

struct RowPattern {
    times: Vec<i64>,
    /// Lengths of the runs of records with equal group values.
    runs: Vec<usize>,
    /// Group number of each run, if known.
    groups: Option<Vec<usize>>,
}

impl RowPatterns {
    /// For the column `time` of batches of `schema`.
    pub(crate) fn new(schema: SchemaRef, time: Option<usize>) -> Self {
        Self { schema, time, known: Vec::new(), places: HashMap::new(), values: Vec::new() }
    }

    /// Clears the group numbers, after groups were emitted.
    pub(crate) fn forget(&mut self) {
        self.known.iter_mut().for_each(|pattern| pattern.groups = None);
    }

    /// The pattern of each row, `None` for a row without records; `None` as a whole if most rows have lists of their
    /// own. `exprs` depend on the time alone.
    pub(crate) fn of_rows(
        &mut self,
        records: &RecordBatch,
        ends: &[u32],
        exprs: &[Expr],
    ) -> Result<Option<Vec<Option<usize>>>> {
        let Some(column) = self.time.and_then(|at| records.columns().get(at)) else { return Ok(None) };
        let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() else { return Ok(None) };
        if times.null_count() > 0 || self.known.len() > MAX_PATTERNS {
            return Ok(None);
        }
        let most_new = NEW_ALWAYS.max(ends.len() / NEW_SHARE);
        let before = self.known.len();
        let (mut start, mut last) = (0, 0);
        let mut rows = Vec::with_capacity(ends.len());
        for end in ends {
            let own = times.values().get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            let Some(first) = own.first() else {
                rows.push(None);
                continue;
            };
            if self.known.get(last).is_none_or(|pattern| pattern.times != own) {
                let places = self.places.get(&(own.len(), *first));
                let mut places = places.into_iter().flatten();
                last = match places.find(|at| self.known.get(**at).is_some_and(|pattern| pattern.times == own)) {
                    Some(found) => *found,
                    None if self.known.len() - before >= most_new => return Ok(None),
                    None => self.learn(own, exprs, times)?,
                };
            }
            rows.push(Some(last));
        }
        Ok(Some(rows))
    }

    fn learn(&mut self, own: &[i64], exprs: &[Expr], like: &TimestampMicrosecondArray) -> Result<usize> {
        let times = TimestampMicrosecondArray::from(own.to_vec()).with_data_type(like.data_type().clone());
        let times: ArrayRef = Arc::new(times);
        let column = |(at, field): (usize, &Arc<arrow::datatypes::Field>)| match self.time {
            Some(time) if time == at => Arc::clone(&times),
            // No expression uses this column.
            _ => new_null_array(field.data_type(), own.len()),
        };
        let columns = self.schema.fields().iter().enumerate().map(column).collect();
        let fields = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, columns)?;
        let values: Vec<ArrayRef> =
            exprs.iter().map(|expr| expr.evaluate(&batch)?.into_array(own.len())).collect::<Result<_>>()?;
        let fields = exprs
            .iter()
            .zip(&values)
            .map(|(expr, values)| arrow::datatypes::Field::new(expr.to_string(), values.data_type().clone(), true));
        let mut groups = Vec::with_capacity(own.len());
        let schema = Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
        new_group_values(schema, &GroupOrdering::None)?.intern(&values, &mut groups)?;
        let (mut firsts, mut runs) = (Vec::new(), Vec::<usize>::new());
        for run in groups.chunk_by(|a, b| a == b) {
            firsts.push(runs.iter().sum::<usize>() as u32);
            runs.push(run.len());
        }
        let firsts = UInt32Array::from(firsts);
        self.values.resize(exprs.len(), Vec::new());
        for (kept, values) in self.values.iter_mut().zip(&values) {
            kept.push(take(values, &firsts, None)?);
        }
        let at = self.known.len();
        self.known.push(RowPattern { times: own.to_vec(), runs, groups: None });
        self.places.entry((own.len(), own.first().copied().unwrap_or(0))).or_default().push(at);
        Ok(at)
    }

    /// For expression `nth`, the values of each pattern, one for each run.
    pub(crate) fn values(&self, nth: usize) -> &[ArrayRef] {
        self.values.get(nth).map(Vec::as_slice).unwrap_or_default()
    }

    /// Length of each run of a pattern.
    pub(crate) fn runs(&self, pattern: usize) -> &[usize] {
        self.known.get(pattern).map(|pattern| pattern.runs.as_slice()).unwrap_or_default()
    }

    /// The group number in `values` of each run of a row with this pattern.
    pub(crate) fn groups(&mut self, pattern: usize, values: &mut dyn GroupValues) -> Result<&[usize]> {
        let Some(known) = self.known.get_mut(pattern) else { return Ok(&[]) };
        if known.groups.is_none() {
            let columns: Vec<ArrayRef> = self.values.iter().filter_map(|values| values.get(pattern).cloned()).collect();
            let mut of_runs = Vec::new();
            values.intern(&columns, &mut of_runs)?;
            known.groups = Some(of_runs);
        }
        Ok(known.groups.as_deref().unwrap_or_default())
    }
}
