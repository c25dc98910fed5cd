//! `UNPACK`: expands history columns to a row for each timestamp.
//!
//! A function of the history columns returns a list of structs, one per timestamp; DataFusion unnests it beside the
//! other columns. See [`unpack`].

use std::cmp::Reverse;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Column, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Name of the column that `UNPACK` adds: the time of the cells that a row shows.
pub const TIMESTAMP: &str = "_timestamp";
const NAME: &str = "unpack_history";
const UNPACKED: &str = "__unpacked";

/// Plans a row for each timestamp of the history columns of `input`, newest first; other columns repeat. `_timestamp`
/// comes before the first history column.
pub fn unpack(input: LogicalPlan) -> Result<LogicalPlan> {
    let columns: Vec<(Column, bool)> = input
        .schema()
        .iter()
        .map(|(table, field)| (Column::from((table, field)), history(field.data_type()).is_some()))
        .collect();
    let expand = columns.iter().filter(|(_, history)| *history).map(|(column, _)| Expr::Column(column.clone()));
    let expand = function().call(expand.collect()).alias(UNPACKED);
    let others = columns.iter().filter(|(_, history)| !*history).map(|(column, _)| Expr::Column(column.clone()));

    let mut shown = Vec::with_capacity(columns.len() + 1);
    let mut place = 0;
    for (column, history) in &columns {
        if !history {
            shown.push(Expr::Column(column.clone()));
            continue;
        }
        if place == 0 {
            shown.push(unpacked(TIMESTAMP).alias(TIMESTAMP));
        }
        shown.push(unpacked(&part(place)).alias_qualified(column.relation.clone(), &column.name));
        place += 1;
    }

    LogicalPlanBuilder::from(input)
        .project(others.chain([expand]).collect::<Vec<_>>())?
        .unnest_column(Column::from_name(UNPACKED))?
        .project(shown)?
        .build()
}

/// The part `name` of the list of structs, after it is unnested.
fn unpacked(name: &str) -> Expr {
    get_field(Expr::Column(Column::from_name(UNPACKED)), name)
}

/// Whether a plan has a history column, so that `UNPACK` has something to expand.
pub fn has_history(plan: &LogicalPlan) -> bool {
    plan.schema().fields().iter().any(|field| history(field.data_type()).is_some())
}

/// Whether `kind` is the versions of one column: `ARRAY<STRUCT<timestamp, value>>`.
pub(crate) fn is_history(kind: &DataType) -> bool {
    cell_value(kind).is_some()
}

/// Struct field name for the history column at `place`.
fn part(place: usize) -> String {
    format!("c{place}")
}

/// The types that the history of a column or of a family has.
enum History<'a> {
    /// `ARRAY<STRUCT<timestamp, value>>`: the type of a value of a column.
    Cells(&'a FieldRef),
    /// `MAP<K, ARRAY<STRUCT<timestamp, value>>>`: a map of `K` to values.
    Family(&'a FieldRef, &'a FieldRef),
}

fn history(kind: &DataType) -> Option<History<'_>> {
    if let DataType::Map(entries, _) = kind {
        let DataType::Struct(fields) = entries.data_type() else { return None };
        let [key, versions] = fields.as_ref() else { return None };
        return Some(History::Family(key, cell_value(versions.data_type())?));
    }
    cell_value(kind).map(History::Cells)
}

fn cell_value(kind: &DataType) -> Option<&FieldRef> {
    let DataType::List(item) = kind else { return None };
    let DataType::Struct(fields) = item.data_type() else { return None };
    match fields.as_ref() {
        [time, value]
            if time.name() == "timestamp"
                && value.name() == "value"
                && matches!(time.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _)) =>
        {
            Some(value)
        }
        _ => None,
    }
}

/// The field for a history column at one timestamp.
fn at_one_time(place: usize, kind: &DataType) -> Option<Field> {
    Some(match history(kind)? {
        History::Cells(value) => Field::new(part(place), value.data_type().clone(), true),
        History::Family(key, value) => {
            let value = Field::new("value", value.data_type().clone(), true);
            let entries = Fields::from(vec![key.as_ref().clone(), value]);
            let entries = Field::new("entries", DataType::Struct(entries), false);
            Field::new(part(place), DataType::Map(Arc::new(entries), false), true)
        }
    })
}

/// The fields of the struct of one timestamp: the time, and a value for each history column.
fn element(kinds: &[DataType]) -> Option<Fields> {
    let time = Field::new(TIMESTAMP, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false);
    let parts = kinds.iter().enumerate().map(|(place, kind)| at_one_time(place, kind));
    let parts = parts.collect::<Option<Vec<Field>>>()?;
    Some(std::iter::once(time).chain(parts).collect())
}

pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Unpack { signature: Signature::variadic_any(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Unpack {
    signature: Signature,
}

impl ScalarUDFImpl for Unpack {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match element(kinds) {
            Some(fields) => Ok(DataType::List(Arc::new(Field::new("item", DataType::Struct(fields), true)))),
            None => plan_err!("{NAME} takes columns with history"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let kinds: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
        let inputs = arrays.iter().map(Input::new).collect::<Option<Vec<_>>>();
        match (inputs, element(&kinds)) {
            (Some(inputs), Some(fields)) => Ok(ColumnarValue::Array(expand(inputs, fields, args.number_rows)?)),
            _ => exec_err!("{NAME} takes columns with history"),
        }
    }
}

/// A history column, and its values taken so far.
struct Input<'a> {
    /// The maps of a family; `None` for a single column.
    family: Option<&'a MapArray>,
    cells: &'a ListArray,
    times: &'a TimestampMicrosecondArray,
    values: &'a ArrayRef,
    /// Indexes of the values taken; for a family none is null.
    taken: Vec<Option<u32>>,
    /// For a family, indexes of the keys taken, and the end of each map.
    keys: Vec<u32>,
    ends: Vec<i32>,
}

/// A cell of the row that is expanded, before its cells are grouped by time.
struct TimedCell {
    time: i64,
    input: usize,
    key: u32,
    value: u32,
}

impl<'a> Input<'a> {
    fn new(array: &'a ArrayRef) -> Option<Self> {
        let family = array.as_map_opt();
        let cells: &ListArray = match family {
            Some(family) => family.values().as_list_opt::<i32>()?,
            None => array.as_list_opt::<i32>()?,
        };
        let [times, values] = cells.values().as_struct_opt()?.columns() else { return None };
        let times = times.as_primitive_opt::<TimestampMicrosecondType>()?;
        Some(Self { family, cells, times, values, taken: Vec::new(), keys: Vec::new(), ends: vec![0] })
    }

    fn find(&self, input: usize, row: usize, found: &mut Vec<TimedCell>) {
        let lists = match self.family {
            Some(family) if family.is_null(row) => return,
            Some(family) => ends(family.value_offsets(), row),
            None => row..row + 1,
        };
        for list in lists.filter(|list| self.cells.is_valid(*list)) {
            let cells = ends(self.cells.value_offsets(), list);
            found.extend(cells.map(|cell| TimedCell {
                time: self.times.value(cell),
                input,
                key: list as u32,
                value: cell as u32,
            }));
        }
    }

    /// The values at each timestamp, of the type of `field`.
    fn finish(self, field: &Field) -> Result<ArrayRef> {
        let values = take(self.values, &UInt32Array::from(self.taken), None)?;
        let (Some(family), DataType::Map(entries, sorted)) = (self.family, field.data_type()) else {
            return Ok(values);
        };
        let DataType::Struct(fields) = entries.data_type() else { return Ok(values) };
        let keys = take(family.keys(), &UInt32Array::from(self.keys), None)?;
        let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let offsets = OffsetBuffer::new(self.ends.into());
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, None, *sorted)?))
    }
}

/// The entries of the list at `at`.
fn ends(offsets: &[i32], at: usize) -> std::ops::Range<usize> {
    let [start, end] = [at, at + 1].map(|at| offsets.get(at).map_or(0, |end| *end as usize));
    start..end
}

/// Expands the history columns of all rows: for each row the list of its timestamps, newest first, with their values.
fn expand(mut inputs: Vec<Input<'_>>, fields: Fields, rows: usize) -> Result<ArrayRef> {
    let mut times: Vec<i64> = Vec::new();
    let mut row_ends = vec![0];
    let mut found: Vec<TimedCell> = Vec::new();

    for row in 0..rows {
        found.clear();
        for (at, input) in inputs.iter().enumerate() {
            input.find(at, row, &mut found);
        }
        // Stable sort: columns, and keys within them, keep their order.
        found.sort_by_key(|found| Reverse(found.time));
        for cells in found.chunk_by(|a, b| a.time == b.time) {
            times.extend(cells.first().map(|first| first.time));
            for cell in cells {
                let Some(input) = inputs.get_mut(cell.input) else { continue };
                if input.family.is_some() {
                    input.keys.push(cell.key);
                    input.taken.push(Some(cell.value));
                } else if input.taken.len() < times.len() {
                    input.taken.push(Some(cell.value));
                }
            }

            for input in &mut inputs {
                match input.family {
                    Some(_) => input.ends.push(input.taken.len() as i32),
                    None => input.taken.resize(times.len(), None),
                }
            }
        }
        row_ends.push(times.len() as i32);
    }

    let mut columns: Vec<ArrayRef> = vec![Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))];
    for (input, field) in inputs.into_iter().zip(fields.iter().skip(1)) {
        columns.push(input.finish(field)?);
    }

    let item = Arc::new(Field::new("item", DataType::Struct(fields.clone()), true));
    let structs = StructArray::try_new(fields, columns, None)?;
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::new(row_ends.into()), Arc::new(structs), None)?))
}
