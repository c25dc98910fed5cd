//! Groups by event time, evaluated once for each distinct time.
//!
//! Rows have lists of times of their own where readings are missing or late, but the times of a table are few: meters that are
//! read every quarter of an hour have 96 a day.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

type Expr = Arc<dyn PhysicalExpr>;

/// Maximum number of times to keep; with more, times hardly repeat.
const MAX_TIMES: usize = 1 << 16;
/// If more than one in so many records of a block has a new time, the block is grouped record by record.
const NEW_SHARE: usize = 8;
/// New times that a block may always add, however many are known.
const NEW_ALWAYS: usize = 256;
/// Blocks with too many new times after which no more are looked at.
const MAX_REFUSED: usize = 4;

/// The distinct times of a table, as far as they were met. Times with equal values of all expressions are a class.
pub(crate) struct Timeline {
    /// Schema of the records that the expressions are over.
    schema: SchemaRef,
    /// Index of the column of the event time in that schema.
    time: usize,
    /// Group expressions over the event time alone.
    exprs: Vec<Expr>,
    /// The times met so far, ascending, in microseconds.
    times: Vec<i64>,
    /// Class of each time: times of one class have the same values of all expressions.
    classes: Vec<u32>,
    /// For each time, the end of the consecutive times of its class.
    class_ends: Vec<usize>,
    interned: Box<dyn GroupValues>,
    /// For each expression, the value of each class.
    values: Vec<ArrayRef>,
    /// Number of the group of each class, if it is known.
    groups: Vec<Option<usize>>,
    refused: usize,
}

/// Consecutive records of a row whose times are of one class.
#[derive(Debug, Default)]
pub(crate) struct TimeRuns {
    /// The end of each run, as an index of records.
    pub(crate) ends: Vec<u32>,
    /// The class that the times of each run have.
    pub(crate) classes: Vec<u32>,
    /// The end of the runs of each row, as an index of runs.
    row_ends: Vec<usize>,
}

impl TimeRuns {
    /// The classes of the runs of consecutive rows, in the order of the runs.
    pub(crate) fn of_rows(&self, rows: &Range<usize>) -> &[u32] {
        self.classes.get(self.runs_before(rows.start)..self.runs_before(rows.end)).unwrap_or_default()
    }

    /// The number of runs in the first `rows` rows.
    #[inline]
    fn runs_before(&self, rows: usize) -> usize {
        rows.checked_sub(1).and_then(|row| self.row_ends.get(row)).copied().unwrap_or(0)
    }

    /// Appends records of a row up to `end`, to the last run if that is of the row and the class.
    fn push(&mut self, class: u32, end: u32, first_run: usize) {
        match (self.classes.get(first_run..).and_then(<[u32]>::last), self.ends.last_mut()) {
            (Some(last), Some(run)) if *last == class => *run = end,
            _ => {
                self.classes.push(class);
                self.ends.push(end);
            }
        }
    }

    /// Appends runs like those at `like`, for a row whose records begin at `start`, where those of `like` began at `before`.
    fn repeat(&mut self, like: Range<usize>, before: usize, start: usize) {
        self.classes.extend_from_within(like.clone());
        for run in like {
            let end = self.ends.get(run).copied().unwrap_or(0);
            self.ends.push(end - before as u32 + start as u32);
        }
    }
}

impl Timeline {
    /// For records of `schema`, whose column `time` is the event time, and expressions over that column alone; `None` without
    /// them.
    pub(crate) fn new(schema: &SchemaRef, time: Option<usize>, exprs: Vec<Expr>) -> Result<Option<Self>> {
        let Some(time) = time.filter(|_| !exprs.is_empty()) else { return Ok(None) };

        let mut fields = Vec::with_capacity(exprs.len());
        for expr in &exprs {
            fields.push(Field::new(expr.to_string(), expr.data_type(schema)?, true));
        }
        let values = fields.iter().map(|field| new_null_array(field.data_type(), 0)).collect();

        Ok(Some(Self {
            schema: Arc::clone(schema),
            time,
            exprs,
            times: Vec::new(),
            classes: Vec::new(),
            class_ends: Vec::new(),
            interned: new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?,
            values,
            groups: Vec::new(),
            refused: 0,
        }))
    }

    /// Forgets the numbers of the groups, after the groups were sent.
    pub(crate) fn forget(&mut self) {
        self.groups.fill(None);
    }

    /// Number of classes that were met so far.
    pub(crate) fn classes(&self) -> usize {
        self.groups.len()
    }

    /// The value of each class of the expression with the number `nth`.
    pub(crate) fn values(&self, nth: usize) -> Option<&ArrayRef> {
        self.values.get(nth)
    }

    /// The runs of records with row ends `ends`; `None` if times hardly repeat.
    pub(crate) fn runs(&mut self, records: &RecordBatch, ends: &[u32]) -> Result<Option<TimeRuns>> {
        let Some(column) = records.columns().get(self.time) else { return Ok(None) };
        let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() else { return Ok(None) };
        if times.null_count() > 0 || self.refused >= MAX_REFUSED {
            return Ok(None);
        }
        let fresh = match self.find(times.values(), ends) {
            Ok(runs) => return Ok(Some(runs)),
            Err(at) => self.unknown(times.values().get(at..).unwrap_or_default()),
        };
        if fresh.len() > NEW_ALWAYS.max(times.len() / NEW_SHARE) || self.times.len() + fresh.len() > MAX_TIMES {
            self.refused += 1;
            return Ok(None);
        }
        self.learn(fresh, times.data_type())?;
        Ok(self.find(times.values(), ends).ok())
    }

    /// The group number of each class that `runs` has, in `values`; the columns of other groups are of no use.
    pub(crate) fn groups(&mut self, runs: &TimeRuns, values: &mut dyn GroupValues) -> Result<Vec<usize>> {
        let mut missing = Vec::new();
        if self.groups.iter().any(Option::is_none) {
            missing.clone_from(&runs.classes);
            missing.retain(|class| self.groups.get(*class as usize).is_some_and(Option::is_none));
            missing.sort_unstable();
            missing.dedup();
        }

        if !missing.is_empty() {
            let at = UInt32Array::from(missing.clone());
            let columns = self.values.iter().map(|values| take(values, &at, None)).collect::<Result<Vec<_>, _>>()?;
            let mut numbers = Vec::new();
            values.intern(&columns, &mut numbers)?;
            for (class, number) in missing.into_iter().zip(numbers) {
                if let Some(known) = self.groups.get_mut(class as usize) {
                    *known = Some(number);
                }
            }
        }

        // Each class has a number now.
        let known = runs.classes.iter().map(|class| self.groups.get(*class as usize).copied().flatten());
        Ok(known.map(|number| number.unwrap_or(usize::MAX)).collect())
    }

    /// The runs of `times`; the index of the first unknown time if there is one.
    fn find(&self, times: &[i64], ends: &[u32]) -> Result<TimeRuns, usize> {
        let mut runs = TimeRuns::default();
        // By first time, the records and runs of the last row that began with it: the next is often like it.
        let mut last_rows: HashMap<i64, (Range<usize>, Range<usize>)> = HashMap::new();
        // Where the row before began, and whether times ascend within rows.
        let (mut first, mut step) = (0, 1);
        let mut start = 0;
        for end in ends {
            let records = start..*end as usize;
            start = records.end;
            let own = times.get(records.clone()).unwrap_or_default();
            let Some(earliest) = own.first() else {
                runs.row_ends.push(runs.classes.len());
                continue;
            };
            let runs_before = runs.classes.len();
            let like = last_rows.get(earliest).filter(|(like, _)| times.get(like.clone()) == Some(own));
            if let Some((before, like)) = like {
                runs.repeat(like.clone(), before.start, records.start);
            } else {
                let (mut place, mut at) = (first, 0);
                while let Some(time) = own.get(at) {
                    if self.times.get(place) != Some(time) {
                        let found = self.near(place, *time).ok_or(records.start + at)?;
                        // The time before was at the expected place less a step.
                        if at > 0 {
                            step = if found < place.wrapping_add_signed(-step) { -1 } else { 1 };
                        }
                        place = found;
                    }
                    if at == 0 {
                        first = place;
                    }
                    let known = self.times.get(place..).unwrap_or_default();
                    let alike = if step < 0 { 1 } else { common(own.get(at..).unwrap_or_default(), known) };
                    let (mut from, to) = (place, place + alike);
                    while let (Some(class), true) = (self.classes.get(from), from < to) {
                        let end = self.class_ends.get(from).map_or(to, |end| *end).clamp(from + 1, to);
                        runs.push(*class, (records.start + at + end - place) as u32, runs_before);
                        from = end;
                    }
                    at += alike;
                    place = if step < 0 { place.wrapping_sub(1) } else { to };
                }
            }
            last_rows.insert(*earliest, (records, runs_before..runs.classes.len()));
            runs.row_ends.push(runs.classes.len());
        }
        Ok(runs)
    }

    /// The place of `time`, which is not `expected`: one reading may be missing, or times may go the other way.
    fn near(&self, expected: usize, time: i64) -> Option<usize> {
        let mut guesses = [1, -1, 2, -2].into_iter().map(|step| expected.wrapping_add_signed(step));
        let guess = guesses.find(|place| self.times.get(*place) == Some(&time));
        guess.or_else(|| self.times.binary_search(&time).ok())
    }

    /// Those of `times` that were not met before, ascending.
    fn unknown(&self, times: &[i64]) -> Vec<i64> {
        let mut fresh: Vec<i64> =
            times.iter().copied().filter(|time| self.times.binary_search(time).is_err()).collect();
        fresh.sort_unstable();
        fresh.dedup();
        fresh
    }

    /// Adds the times `fresh`, of type `kind`, which were not met before: evaluates the expressions over them.
    fn learn(&mut self, fresh: Vec<i64>, kind: &DataType) -> Result<()> {
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(fresh.clone()).with_data_type(kind.clone()));
        let fields = self.schema.fields();

        // No expression uses another column.
        let mut columns: Vec<ArrayRef> =
            fields.iter().map(|field| new_null_array(field.data_type(), fresh.len())).collect();
        if let Some(column) = columns.get_mut(self.time) {
            *column = times;
        }
        let fields = fields.iter().map(|field| field.as_ref().clone().with_nullable(true));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?;
        let evaluated: Vec<ArrayRef> =
            self.exprs.iter().map(|expr| expr.evaluate(&batch)?.into_array(fresh.len())).collect::<Result<_>>()?;

        let mut classes = Vec::with_capacity(fresh.len());
        self.interned.intern(&evaluated, &mut classes)?;
        // Classes are numbered as they are met.
        let mut firsts = Vec::new();
        for (at, class) in classes.iter().enumerate() {
            if *class == self.groups.len() {
                firsts.push(at as u32);
                self.groups.push(None);
            }
        }

        let firsts = UInt32Array::from(firsts);
        for (known, values) in self.values.iter_mut().zip(&evaluated) {
            *known = concat(&[known.as_ref(), take(values, &firsts, None)?.as_ref()])?;
        }

        let classes = classes.into_iter().map(|class| class as u32);
        let mut all: Vec<(i64, u32)> = self.times.drain(..).zip(self.classes.drain(..)).collect();
        all.extend(fresh.into_iter().zip(classes));
        // Two ascending runs, which this sort merges.
        all.sort();
        (self.times, self.classes) = all.into_iter().unzip();

        let ends = self.classes.chunk_by(|one, next| one == next).scan(0, |end, run| {
            *end += run.len();
            Some(std::iter::repeat_n(*end, run.len()))
        });
        self.class_ends = ends.flatten().collect();
        Ok(())
    }
}

/// The number of equal values that two lists begin with.
fn common(one: &[i64], other: &[i64]) -> usize {
    const LANES: usize = 8;
    let pairs = one.as_chunks::<LANES>().0.iter().zip(other.as_chunks::<LANES>().0);
    let whole = pairs.take_while(|(one, other)| one == other).count() * LANES;
    let rest = one.iter().zip(other).skip(whole);
    whole + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;
    use arrow::datatypes::TimeUnit;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    /// The times of all runs, by their classes, and the ends of the runs.
    fn by_runs(timeline: &mut Timeline, rows: &[Vec<i64>]) -> (Vec<i64>, Vec<u32>) {
        let times: Vec<i64> = rows.iter().flatten().copied().collect();
        let ends: Vec<u32> = rows
            .iter()
            .scan(0, |end, row| {
                *end += row.len() as u32;
                Some(*end)
            })
            .collect();
        let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
        let batch = RecordBatch::try_new(Arc::clone(&timeline.schema), vec![column]).unwrap();
        let runs = timeline.runs(&batch, &ends).unwrap().unwrap();
        let values = timeline.values(0).unwrap().as_primitive::<TimestampMicrosecondType>();
        let found = runs.classes.iter().map(|class| values.value(*class as usize)).collect();
        let of_rows = (0..rows.len()).map(|row| runs.of_rows(&(row..row + 1)).len());
        assert_eq!(of_rows.collect::<Vec<_>>(), rows.iter().map(Vec::len).collect::<Vec<_>>());
        (found, runs.ends)
    }

    #[test]
    fn every_list_of_times_is_found_again() {
        let field = Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false);
        let schema = Arc::new(Schema::new(vec![field]));
        let mut timeline = Timeline::new(&schema, Some(0), vec![Arc::new(Column::new("ts", 0))]).unwrap().unwrap();
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let rows: Vec<Vec<i64>> = (0..20)
                .map(|_| {
                    let (first, missing) = (draw(3) as i64 * 24, draw(4));
                    let mut row: Vec<i64> = (first..first + 24).filter(|_| draw(8) >= missing).collect();
                    match draw(4) {
                        0 => row.reverse(),
                        1 => row.sort_by_key(|time| (time * 7919) % 31),
                        _ => {}
                    }
                    row
                })
                .collect();
            let (found, ends) = by_runs(&mut timeline, &rows);
            let times: Vec<i64> = rows.into_iter().flatten().collect();
            assert_eq!(found, times);
            assert_eq!(ends, (1..=times.len() as u32).collect::<Vec<_>>());
        }
        assert_eq!(timeline.classes(), 72);
    }
}
