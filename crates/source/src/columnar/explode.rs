//! Lists whose elements are events: rows with a list become a row for each of its elements, as `each` of a source says.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::error::ArrowError;

use crate::columnar::columns::values;
use crate::reject::RejectReason;

/// The lists of a source that are events.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lists(Vec<String>);

/// A batch with a row for each event.
#[derive(Debug)]
pub(crate) struct Exploded {
    pub batch: RecordBatch,
    /// For each row that of the file; `None` if they are the same.
    pub records: Option<Vec<u32>>,
    /// Rows of the file without events, because something is wrong with their lists.
    pub faults: Vec<(u32, RejectReason)>,
}

impl Lists {
    /// The lists at these paths.
    pub fn new(paths: Vec<String>) -> Self {
        Self(paths)
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

    /// The schema of the events.
    pub fn schema(&self, schema: &Arc<Schema>) -> Result<Arc<Schema>, ArrowError> {
        Ok(self.explode(RecordBatch::new_empty(Arc::clone(schema)))?.batch.schema())
    }

    /// Makes a row of each event. Lists inside each other are taken from the outside in.
    pub fn explode(&self, batch: RecordBatch) -> Result<Exploded, ArrowError> {
        let mut exploded = Exploded { batch, records: None, faults: Vec::new() };
        loop {
            let schema = exploded.batch.schema();
            let mut next: Vec<Vec<String>> =
                self.0.iter().filter_map(|list| first_list(schema.fields(), list, &mut Vec::new())).collect();
            next.sort_unstable();
            next.dedup();
            // Lists inside of others come later.
            let outermost = |path: &Vec<String>| !next.iter().any(|other| other != path && path.starts_with(other));
            let step: Vec<Vec<String>> = next.iter().filter(|path| outermost(path)).cloned().collect();
            if step.is_empty() {
                return Ok(exploded);
            }
            exploded = step_into(exploded, &step)?;
        }
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

/// The element of a list.
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
fn step_into(exploded: Exploded, paths: &[Vec<String>]) -> Result<Exploded, ArrowError> {
    let Exploded { batch, records, mut faults } = exploded;
    let mut lists = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(array) = values(&batch, path)? else { continue };
        let Some(item) = item(array.data_type()) else { continue };
        lists.push(cast(&array, &DataType::LargeList(Arc::clone(item)))?);
    }

    let mut rows: Vec<u32> = Vec::new();
    let mut elements: Vec<Vec<u64>> = vec![Vec::new(); lists.len()];
    for row in 0..batch.num_rows() {
        let of_file = records.as_ref().map_or(row as u32, |records| records.get(row).copied().unwrap_or_default());
        if let Some(at) = lists.iter().position(|list| list.is_null(row)) {
            let list = paths.get(at).map(|path| path.join(".")).unwrap_or_default();
            faults.push((of_file, RejectReason::NoList { list }));
            continue;
        }
        let lengths = lists.iter().map(|list| list.as_list::<i64>().value_length(row) as usize);
        let (least, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
        if least != most {
            faults.push((of_file, RejectReason::UnequalLists { least, most }));
            continue;
        }
        rows.extend(std::iter::repeat_n(row as u32, most));
        for (list, elements) in lists.iter().zip(&mut elements) {
            let start = list.as_list::<i64>().value_offsets().get(row).copied().unwrap_or_default().cast_unsigned();
            elements.extend(start..start + most as u64);
        }
    }

    let taken_rows = UInt32Array::from(rows.clone());
    let mut taken = Vec::with_capacity(lists.len());
    for (list, elements) in lists.iter().zip(elements) {
        taken.push(take(list.as_list::<i64>().values(), &UInt64Array::from(elements), None)?);
    }
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let inside: Vec<(&[String], &ArrayRef)> = paths
            .iter()
            .zip(&taken)
            .filter(|(path, _)| path.first() == Some(field.name()))
            .map(|(path, array)| (path.get(1..).unwrap_or_default(), array))
            .collect();
        let column = match inside.as_slice() {
            [([], whole)] => Arc::clone(whole),
            [] => take(column, &taken_rows, None)?,
            _ => replaced(&take(column, &taken_rows, None)?, &inside)?,
        };
        fields.push(Field::clone(field).with_data_type(column.data_type().clone()).with_nullable(true));
        columns.push(column);
    }

    let records = rows.iter().map(|row| match &records {
        Some(records) => records.get(*row as usize).copied().unwrap_or_default(),
        None => *row,
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
    Ok(Exploded { batch, records: Some(records.collect()), faults })
}

/// A struct with other arrays at these paths.
fn replaced(array: &ArrayRef, inside: &[(&[String], &ArrayRef)]) -> Result<ArrayRef, ArrowError> {
    if let [([], whole)] = inside {
        return Ok(Arc::clone(whole));
    }
    let Some(parent) = array.as_struct_opt() else { return Ok(Arc::clone(array)) };
    let mut fields = Vec::with_capacity(parent.num_columns());
    let mut columns = Vec::with_capacity(parent.num_columns());
    for (field, column) in parent.fields().iter().zip(parent.columns()) {
        let below: Vec<(&[String], &ArrayRef)> = inside
            .iter()
            .filter(|(path, _)| path.first() == Some(field.name()))
            .map(|(path, array)| (path.get(1..).unwrap_or_default(), *array))
            .collect();
        let column = if below.is_empty() { Arc::clone(column) } else { replaced(column, &below)? };
        fields.push(Arc::new(Field::clone(field).with_data_type(column.data_type().clone()).with_nullable(true)));
        columns.push(column);
    }
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, parent.nulls().cloned())?))
}
