//! Record reader: from blocks to the records that pass a query's filters, with their row columns.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, AsArray, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{Schema, SchemaRef, TimestampMicrosecondType};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, internal_err};
use datafusion::error::Result;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_plan::PhysicalExpr;
use tidetable_functions::ScanCast;
use tidetable_layout::decode::{RowValues, is_one_each, record_counts};
use tidetable_layout::error::DecodeError;
use tidetable_layout::{Block, Layout, Projection};
use tidetable_store::read::ValueRange;

use crate::error::{SqlError, external};
use crate::pushdown::dependence::is_of_row;
use crate::pushdown::value_range::value_range;
use crate::scan::spec::{ScanOutput, TableScan};

type Expr = Arc<dyn PhysicalExpr>;

/// Reads from blocks the records that pass the filters of a query.
pub(crate) struct RecordReader {
    scan: Arc<TableScan>,
    /// Name of the scan range, as messages show it.
    name: String,
    /// Fields that are read once a row.
    rows: Fields,
    row_filter: Vec<Expr>,
    /// Fields that are read of each record.
    records: Fields,
    /// Filters of one column each that pass a range of its values.
    ranges: Vec<(usize, ValueRange)>,
    /// The other filters, which are evaluated as expressions.
    record_filter: Vec<Expr>,
    /// Index of the event time among the record fields, and the range it must lie in.
    within: Option<(usize, Range<i64>)>,
    by_row: bool,
    wanted_rows: WantedRows,
}

/// A projection of a table's fields, and its schema.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Indexes of these fields in the table, ascending.
    at: Vec<usize>,
    schema: SchemaRef,
}

impl Fields {
    /// The columns of `schema` that `exprs` use, and those in `more`.
    pub(crate) fn of<'a>(schema: &Schema, exprs: impl Iterator<Item = &'a Expr>, more: &[usize]) -> Result<Self> {
        let mut at: Vec<usize> = exprs.flat_map(collect_columns).map(|column| column.index()).collect();
        at.extend(more);
        at.sort_unstable();
        at.dedup();
        let schema = Arc::new(schema.project(&at)?);
        Ok(Self { at, schema })
    }

    /// Rewrites an expression over the table to one over a batch of these fields.
    pub(crate) fn bind(&self, expr: &Expr) -> Result<Expr> {
        let bound = reassign_expr_columns(Arc::clone(expr), &self.schema)?;
        bound.transform_up(|expr| replaced(ScanCast::date(&expr, &self.schema), expr)).data()
    }

    /// As [`Self::bind_all`], for arguments of functions: casts of decimals to floats are replaced, too. Filters keep them: their
    /// ranges are found through the cast.
    pub(crate) fn bind_arguments(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        let mut bound = self.bind_all(exprs)?;
        for bound in &mut bound {
            let expr = Arc::clone(bound);
            *bound = expr.transform_up(|expr| replaced(ScanCast::float(&expr, &self.schema), expr)).data()?;
        }
        Ok(bound)
    }

    /// Rewrites several expressions, each as [`Self::bind`] does.
    pub(crate) fn bind_all<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.bind(expr)).collect()
    }

    /// The index among these of a field of the table, if it is one of them.
    pub(crate) fn place(&self, field: usize) -> Option<usize> {
        self.at.binary_search(&field).ok()
    }

    /// Indexes of table fields among these, which must hold them.
    pub(crate) fn places(&self, fields: &[usize]) -> Result<Vec<usize>> {
        let mut places = Vec::with_capacity(fields.len());
        for field in fields {
            let Some(place) = self.place(*field) else {
                return internal_err!("a column of records is not read");
            };
            places.push(place);
        }
        Ok(places)
    }

    /// Indexes of these fields in the table, ascending.
    pub(crate) fn at(&self) -> &[usize] {
        &self.at
    }

    /// A batch of these fields, with the end of each row's records.
    fn batch(&self, values: RowValues) -> Result<(RecordBatch, Vec<u32>)> {
        let options = RecordBatchOptions::new().with_row_count(Some(values.ends.len()));
        Ok((RecordBatch::try_new_with_options(Arc::clone(&self.schema), values.columns, &options)?, values.ends))
    }

    /// Schema of a batch of these fields, in the order of the table.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

fn replaced(cast: Result<Option<ScanCast>>, expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match cast? {
        Some(cast) => Transformed::yes(Arc::new(cast)),
        None => Transformed::no(expr),
    })
}

/// What a query reads beside the columns of its filters.
#[derive(Debug, Default)]
pub(crate) struct ReadRequest<'a> {
    /// Expressions that are evaluated once a row.
    pub(crate) of_rows: Vec<&'a Expr>,
    /// Expressions that are evaluated for each record.
    pub(crate) of_records: Vec<&'a Expr>,
    /// Fields of the table that are output.
    pub(crate) fields: &'a [usize],
    /// Whether the ends of rows are needed.
    pub(crate) by_row: bool,
    pub(crate) rows: WantedRows,
}

/// How close the rows of records are to those that are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WantedRows {
    /// Neighbours with equal fields of the row may be joined into one.
    #[default]
    Joined,
    /// Each is by itself; those without records may be missing.
    Apart,
    /// Each row is there as it is stored, because rows are counted.
    Every,
}

/// The records of a block that pass the filters.
pub(crate) struct Records {
    /// The row fields, for every row; rows without records may be among them.
    pub(crate) rows: RecordBatch,
    /// Whether neighbouring rows that agree in these fields are one.
    pub(crate) joined: bool,
    /// For each row the end of its records.
    pub(crate) ends: Vec<u32>,
    pub(crate) records: RecordBatch,
}

impl RecordReader {
    /// Reads records that pass `filter`, expressions over the table of `scan`; those that depend on the row are
    /// evaluated once per row.
    pub(crate) fn new(
        scan: &Arc<TableScan>,
        name: &str,
        table: &Schema,
        filter: &[Expr],
        wanted: &ReadRequest<'_>,
    ) -> Result<Self> {
        let layout = scan.snapshot.layout();
        let (of_rows, of_records): (Vec<&Expr>, Vec<&Expr>) =
            filter.iter().partition(|filter| is_of_row(layout, filter));
        let within = match &scan.output {
            ScanOutput::Records { within } => within.clone(),
            _ => None,
        };

        let mut more = wanted.fields.to_vec();
        more.extend(within.as_ref().map(|(time, _)| *time));
        let rows = Fields::of(table, of_rows.iter().chain(&wanted.of_rows).copied(), &[])?;
        let records = Fields::of(table, of_records.iter().chain(&wanted.of_records).copied(), &more)?;
        let within = within.and_then(|(time, range)| Some((records.place(time)?, range)));

        let bound = records.bind_all(of_records)?;
        let (ranges, others): (Vec<_>, Vec<_>) = bound
            .into_iter()
            .map(|filter| (value_range(&filter, &records.schema), filter))
            .partition(|(range, _)| range.is_some());

        Ok(Self {
            scan: Arc::clone(scan),
            name: name.to_owned(),
            wanted_rows: wanted.rows,
            by_row: wanted.by_row || !of_rows.is_empty() || !wanted.of_rows.is_empty(),
            row_filter: rows.bind_all(of_rows)?,
            ranges: ranges.into_iter().filter_map(|(range, _)| range).collect(),
            record_filter: others.into_iter().map(|(_, filter)| filter).collect(),
            rows,
            records,
            within,
        })
    }

    /// What a scan must read of blocks: the columns of the record fields.
    pub(crate) fn projection(&self) -> Projection {
        self.layout().projection(&self.records.at)
    }

    /// The fields of batches of rows, which expressions of rows are bound to.
    pub(crate) fn row_fields(&self) -> &Fields {
        &self.rows
    }

    /// The fields of batches of records, which expressions of records are bound to.
    pub(crate) fn record_fields(&self) -> &Fields {
        &self.records
    }

    fn layout(&self) -> &Layout {
        self.scan.snapshot.layout()
    }

    fn undecoded(&self, source: DecodeError) -> DataFusionError {
        undecoded(&self.scan, &self.name, source)
    }

    /// The records of a block that pass; `None` if there are none.
    pub(crate) fn read(&self, block: Block) -> Result<Option<Records>> {
        let (mut ends, mut mask, mut joined) = (Vec::new(), None, false);
        let mut rows = RecordBatch::new_empty(Arc::clone(&self.rows.schema));

        if self.by_row {
            let found = match self.wanted_rows {
                WantedRows::Joined => self.layout().decode_joined_rows(&block, &self.rows.at),
                WantedRows::Apart | WantedRows::Every => self.layout().decode_rows(&block, &self.rows.at),
            };
            let found = found.map_err(|error| self.undecoded(error))?;
            joined = found.joined;
            (rows, ends) = self.rows.batch(found)?;
            if let Some(kept) = passing(&self.row_filter, &rows)? {
                if kept.true_count() == 0 {
                    return Ok(None);
                }
                if kept.true_count() < kept.len() {
                    mask = Some(spread(&kept, &ends));
                }
            }
        }

        let mut records = self.layout().decode(block, &self.records.at).map_err(|error| self.undecoded(error))?;
        let inside = self.within.as_ref().map(|(at, range)| within(&records, *at, range)).transpose()?.flatten();
        for more in [inside, self.in_ranges(&records)?, passing(&self.record_filter, &records)?].into_iter().flatten() {
            mask = Some(match mask {
                Some(mask) => and(&mask, &more)?,
                None => more,
            });
        }

        if let Some(mask) = mask.filter(|mask| mask.true_count() < mask.len()) {
            if mask.true_count() == 0 {
                return Ok(None);
            }
            records = filter_record_batch(&records, &mask)?;
            if self.by_row && self.wanted_rows != WantedRows::Every && is_one_each(&ends) {
                rows = filter_record_batch(&rows, &mask)?;
                ends = (1..=records.num_rows() as u32).collect();
            } else {
                ends = ends_of(&mask, &ends);
            }
        }

        Ok((records.num_rows() > 0).then_some(Records { rows, joined, ends, records }))
    }
}

impl RecordReader {
    /// The records whose values are in the ranges of filters; `None` without such filters.
    fn in_ranges(&self, records: &RecordBatch) -> Result<Option<BooleanArray>> {
        let mut mask: Option<BooleanBuffer> = None;
        for (at, range) in &self.ranges {
            let more = records.columns().get(*at).and_then(|values| range.mask(values));
            let Some(more) = more else { return internal_err!("a range of values is of another type") };
            mask = Some(mask.map_or(more.clone(), |mask| &mask & &more));
        }
        Ok(mask.map(|mask| BooleanArray::new(mask, None)))
    }
}

/// Decodes `fields` from the keys of a block; with the end of each row's records.
pub(crate) fn read_rows(
    scan: &TableScan,
    name: &str,
    fields: &Fields,
    block: &Block,
) -> Result<(RecordBatch, Vec<u32>)> {
    let values = scan.snapshot.layout().decode_rows(block, &fields.at);
    fields.batch(values.map_err(|error| undecoded(scan, name, error))?)
}

/// The error for a scan range of this name.
fn undecoded(scan: &TableScan, name: &str, source: DecodeError) -> DataFusionError {
    let table = scan.snapshot.table().name().to_owned();
    external(SqlError::Decode { table, slice: name.to_owned(), source })
}

/// The rows of `batch` that pass all of `filters`; `None` without filters. Null does not pass.
pub(crate) fn passing(filters: &[Expr], batch: &RecordBatch) -> Result<Option<BooleanArray>> {
    let mut mask: Option<BooleanArray> = None;
    for filter in filters {
        // As in SQL engines, a filter is not evaluated where those before it let nothing through: it might fail there.
        if mask.as_ref().is_some_and(|mask| mask.true_count() == 0) {
            break;
        }
        let verdict = verdict(filter, batch)?;
        let verdict = if verdict.null_count() == 0 { verdict } else { prep_null_mask_filter(&verdict) };
        mask = Some(match mask {
            Some(mask) => and(&mask, &verdict)?,
            None => verdict,
        });
    }
    Ok(mask)
}

/// The rows of `batch` that pass `filter`; null where it is null.
pub(crate) fn verdict(filter: &Expr, batch: &RecordBatch) -> Result<BooleanArray> {
    let verdict = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    match verdict.as_boolean_opt() {
        Some(verdict) => Ok(verdict.clone()),
        None => internal_err!("the filter {filter} is not boolean"),
    }
}

/// Repeats the result of each row for all of its records.
fn spread(rows: &BooleanArray, ends: &[u32]) -> BooleanArray {
    if is_one_each(ends) {
        return rows.clone();
    }
    let mut mask = BooleanBufferBuilder::new(ends.last().map_or(0, |end| *end as usize));
    record_counts(ends).zip(rows.values()).for_each(|(records, kept)| mask.append_n(records, kept));
    BooleanArray::new(mask.finish(), None)
}

/// The ends of rows after their records were filtered by `mask`; rows without records stay.
fn ends_of(mask: &BooleanArray, ends: &[u32]) -> Vec<u32> {
    let (mut start, mut kept) = (0, 0);
    let mut kept_ends = Vec::with_capacity(ends.len());
    for end in ends {
        let records = (*end as usize).saturating_sub(start);
        kept += mask.values().slice(start, records).count_set_bits() as u32;
        start = *end as usize;
        kept_ends.push(kept);
    }
    kept_ends
}

/// The records whose time, column `at`, is in `range`; `None` if all are.
fn within(batch: &RecordBatch, at: usize, range: &Range<i64>) -> Result<Option<BooleanArray>> {
    let times = event_times(batch, at)?;
    if times.null_count() == 0 && times.values().iter().all(|time| range.contains(time)) {
        return Ok(None);
    }
    Ok(Some(times.iter().map(|time| Some(time.is_some_and(|time| range.contains(&time)))).collect()))
}

/// The event times in column `at` of a batch of records, in microseconds.
pub(crate) fn event_times(batch: &RecordBatch, at: usize) -> Result<&TimestampMicrosecondArray> {
    let times = batch.columns().get(at).and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
    times.ok_or_else(|| DataFusionError::Internal("the event time is not a timestamp".to_owned()))
}
