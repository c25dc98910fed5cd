//! Lists whose elements are events: rows with a list become a row for each of its elements, as `each` of a source says.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::error::ArrowError;

use crate::columnar::columns::values;
use crate::reject::RejectReason;

/// The lists of a source whose elements are events, as dotted paths.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lists(Vec<String>);

/// A batch with a row for each event.
#[derive(Debug)]
pub(crate) struct Exploded {
    pub batch: RecordBatch,
    /// For each row that of the file; `None` if they are the same.
    pub records: Option<Vec<u32>>,
    /// Rows of the file without events, by their numbers in the batch: something is wrong with their lists.
    pub faults: Vec<(u32, RejectReason)>,
    /// Rows of the file with an empty list, which gives no event.
    pub empty: Vec<u32>,
}

impl Lists {
    pub fn new(paths: Vec<String>) -> Self {
        Self(paths)
    }

    pub fn into_paths(self) -> Vec<String> {
        self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a root column has a list of events in it.
    pub fn is_root(&self, name: &str) -> bool {
        self.0.iter().any(|list| list == name || list.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// A path that is no list of the schema.
    pub fn missing(&self, schema: &Schema) -> Option<&str> {
        self.0.iter().find(|list| !leads_to_list(schema.fields(), list)).map(String::as_str)
    }

    /// The schema of the events of files with `schema`, whose lists are structs or values.
    pub fn schema(&self, schema: &Arc<Schema>) -> Result<Arc<Schema>, ArrowError> {
        Ok(self.explode(RecordBatch::new_empty(Arc::clone(schema)))?.batch.schema())
    }

    /// Makes a row of each event. Lists inside each other are taken from the outside in.
    pub fn explode(&self, batch: RecordBatch) -> Result<Exploded, ArrowError> {
        let mut exploded = Exploded { batch, records: None, faults: Vec::new(), empty: Vec::new() };
        loop {
            let schema = exploded.batch.schema();
            let mut found: Vec<Vec<String>> =
                self.0.iter().filter_map(|list| first_list(schema.fields(), list, &mut Vec::new())).collect();
            found.sort_unstable();
            found.dedup();

            // Lists inside of others come later.
            let mut outermost = found.clone();
            outermost.retain(|path| !found.iter().any(|other| other != path && path.starts_with(other)));
            if outermost.is_empty() {
                return Ok(exploded);
            }
            exploded = step_into(exploded, &outermost)?;
        }
    }
}

impl Exploded {
    /// The row of the file that an event is of, from 0 in the batch.
    pub fn record(&self, row: u32) -> u32 {
        self.records.as_ref().map_or(row, |records| records.get(row as usize).copied().unwrap_or_default())
    }
}

/// Whether the path leads to a list, also through other lists.
fn leads_to_list(fields: &Fields, path: &str) -> bool {
    fields.iter().any(|field| {
        let inside = match path.strip_prefix(field.name().as_str()) {
            Some("") => return item(field.data_type()).is_some(),
            Some(rest) => rest.strip_prefix('.'),
            None => None,
        };
        let inner = item(field.data_type()).map_or(field.data_type(), |item| item.data_type());
        match (inside, inner) {
            (Some(inside), DataType::Struct(children)) => leads_to_list(children, inside),
            _ => false,
        }
    })
}

/// The names that lead to the first list on a path.
fn first_list(fields: &Fields, path: &str, parents: &mut Vec<String>) -> Option<Vec<String>> {
    for field in fields {
        let Some(rest) = path.strip_prefix(field.name().as_str()) else { continue };
        let inside = rest.strip_prefix('.');
        if !rest.is_empty() && inside.is_none() {
            continue;
        }
        parents.push(field.name().clone());
        let found = match (item(field.data_type()), field.data_type(), inside) {
            (Some(_), ..) => Some(parents.clone()),
            (None, DataType::Struct(children), Some(inside)) => first_list(children, inside, parents),
            _ => None,
        };
        parents.pop();
        if found.is_some() {
            return found;
        }
    }
    None
}

fn item(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

/// Makes rows of the elements of lists that go side by side.
fn step_into(mut exploded: Exploded, paths: &[Vec<String>]) -> Result<Exploded, ArrowError> {
    let mut lists = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(array) = values(&exploded.batch, path)? else { continue };
        let Some(item) = item(array.data_type()) else { continue };
        lists.push(cast(&array, &DataType::LargeList(Arc::clone(item)))?);
    }

    let Elements { rows, indices } = Elements::of(&lists, paths, &mut exploded);
    let mut elements = Vec::with_capacity(lists.len());
    for (list, indices) in lists.iter().zip(indices) {
        elements.push(take(list.as_list::<i64>().values(), &UInt64Array::from(indices), None)?);
    }

    let records = rows.iter().map(|row| exploded.record(*row)).collect();
    let batch = with_elements(&exploded.batch, rows, paths, &elements)?;
    Ok(Exploded { batch, records: Some(records), ..exploded })
}

/// The elements of lists that go side by side.
struct Elements {
    /// For each element the row of the batch that it is in.
    rows: Vec<u32>,
    /// For each list the indices of its elements among its values.
    indices: Vec<Vec<u64>>,
}

impl Elements {
    /// Those of the rows whose lists are of one length; the other rows become faults of `exploded`.
    fn of(lists: &[ArrayRef], paths: &[Vec<String>], exploded: &mut Exploded) -> Self {
        let mut elements = Self { rows: Vec::new(), indices: vec![Vec::new(); lists.len()] };
        for row in 0..exploded.batch.num_rows() {
            let record = exploded.record(row as u32);
            if let Some(place) = lists.iter().position(|list| list.is_null(row)) {
                let list = paths.get(place).map(|path| path.join(".")).unwrap_or_default();
                exploded.faults.push((record, RejectReason::NoList { list }));
                continue;
            }

            let lengths = lists.iter().map(|list| list.as_list::<i64>().value_length(row) as usize);
            let (least, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
            if least != most {
                exploded.faults.push((record, RejectReason::UnequalLists { least, most }));
                continue;
            }

            if most == 0 {
                exploded.empty.push(record);
            }
            elements.rows.extend(std::iter::repeat_n(row as u32, most));
            for (list, indices) in lists.iter().zip(&mut elements.indices) {
                let offsets = list.as_list::<i64>().value_offsets();
                let start = offsets.get(row).copied().unwrap_or_default().cast_unsigned();
                indices.extend(start..start + most as u64);
            }
        }
        elements
    }
}

/// A column that takes the place of the list at `path`, counted from the array that it is put into.
struct Replacement<'a> {
    path: &'a [String],
    array: &'a ArrayRef,
}

impl<'a> Replacement<'a> {
    /// Those of `replacements` that are in the field of this name, with their paths from there.
    fn within(replacements: &[Self], field: &str) -> Vec<Self> {
        let mut within = Vec::new();
        for Replacement { path, array } in replacements {
            if let Some((_, path)) = path.split_first().filter(|(first, _)| *first == field) {
                within.push(Self { path, array });
            }
        }
        within
    }
}

/// The `rows` of a batch, in which the lists at `paths` are their elements.
fn with_elements(
    batch: &RecordBatch,
    rows: Vec<u32>,
    paths: &[Vec<String>],
    elements: &[ArrayRef],
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let rows = UInt32Array::from(rows);
    let replacements: Vec<Replacement<'_>> =
        paths.iter().zip(elements).map(|(path, array)| Replacement { path, array }).collect();

    let schema = batch.schema();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let within = Replacement::within(&replacements, field.name());
        let column = match within.as_slice() {
            [Replacement { path: [], array }] => Arc::clone(array),
            [] => take(column, &rows, None)?,
            _ => replaced(&take(column, &rows, None)?, &within)?,
        };
        fields.push(Field::clone(field).with_data_type(column.data_type().clone()).with_nullable(true));
        columns.push(column);
    }
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// A struct with other arrays at the paths of `replacements`.
fn replaced(array: &ArrayRef, replacements: &[Replacement<'_>]) -> Result<ArrayRef, ArrowError> {
    if let [Replacement { path: [], array }] = replacements {
        return Ok(Arc::clone(array));
    }
    let Some(parent) = array.as_struct_opt() else { return Ok(Arc::clone(array)) };

    let mut fields = Vec::with_capacity(parent.num_columns());
    let mut columns = Vec::with_capacity(parent.num_columns());
    for (field, column) in parent.fields().iter().zip(parent.columns()) {
        let within = Replacement::within(replacements, field.name());
        let column = if within.is_empty() { Arc::clone(column) } else { replaced(column, &within)? };
        fields.push(Arc::new(Field::clone(field).with_data_type(column.data_type().clone()).with_nullable(true)));
        columns.push(column);
    }
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, parent.nulls().cloned())?))
}
