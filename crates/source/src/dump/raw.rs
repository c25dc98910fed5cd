//! Cells of a dump as they are: a row for each, with key, qualifier and value in hexadecimal.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Builder, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use tidetable_layout::FieldType;

use crate::dump::cells::{CellLists, FAMILY, QUALIFIER, TIMESTAMP, VALUE};
use crate::dump::rows::DumpRows;
use crate::error::SourceError;
use crate::reject::RejectReason;
use crate::spec::ColumnSpec;

/// The column of row keys.
pub(super) const ROW_KEY: &str = "row_key";
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The columns that a source declares of cells as they are.
#[derive(Debug)]
pub(super) struct RawColumns {
    schema: SchemaRef,
    /// Declared columns beside those of families.
    declared: Vec<&'static str>,
    families: Vec<FamilyColumn>,
    /// Whether `value` is declared, which holds the cells of all families.
    takes_all: bool,
    /// Whether timestamps may have microseconds.
    keeps_micros: bool,
}

/// A column with the values of one family.
#[derive(Debug)]
struct FamilyColumn {
    name: String,
    family: String,
    /// Whether its cells are integers of eight bytes, such as sums; otherwise any bytes, in hexadecimal.
    holds_integers: bool,
}

/// Texts that are appended byte by byte.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<i32>,
}

/// The values of a family.
enum FamilyValues {
    Bytes { texts: Texts, is_set: Vec<bool> },
    Integers(Int64Builder),
}

impl RawColumns {
    /// Those of a source with these columns, of which `families` names the ones that hold one family.
    pub fn new(columns: &[ColumnSpec], families: &BTreeMap<String, String>, keeps_micros: bool) -> Self {
        let is_declared = |name: &str| columns.iter().any(|column| column.name == name);
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let mut fields = Vec::new();
        for name in [ROW_KEY, FAMILY, QUALIFIER, TIMESTAMP, VALUE] {
            let kind = if name == TIMESTAMP { time.clone() } else { DataType::Utf8 };
            fields.push(Field::new(name, kind, true));
        }

        let mut of_families = Vec::new();
        for (name, family) in families {
            let kind = columns.iter().find(|column| column.name == *name).map(|column| column.kind);
            let holds_integers = kind == Some(FieldType::Int64);
            let kind = if holds_integers { DataType::Int64 } else { DataType::Utf8 };
            fields.push(Field::new(name, kind, true));
            of_families.push(FamilyColumn { name: name.clone(), family: family.clone(), holds_integers });
        }
        Self {
            schema: Arc::new(Schema::new(fields)),
            declared: [ROW_KEY, FAMILY, QUALIFIER, TIMESTAMP, VALUE]
                .into_iter()
                .filter(|name| is_declared(name))
                .collect(),
            families: of_families,
            takes_all: is_declared(VALUE),
            keeps_micros,
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A row for each cell, with the declared columns.
    ///
    /// # Errors
    /// [`SourceError::DumpFamily`], and [`SourceError::Arrow`] for texts of more than 2 GiB.
    pub fn rows(&self, path: &str, cells: &CellLists) -> Result<DumpRows, SourceError> {
        let count = cells.cells();
        let [mut keys, mut families, mut qualifiers, mut values] = [(); 4].map(|()| Texts::new(count));
        let mut times = Vec::with_capacity(count);
        let mut of_families: Vec<FamilyValues> = self.families.iter().map(|column| column.values(count)).collect();
        let [has_key, has_family, has_qualifier, has_value] =
            [ROW_KEY, FAMILY, QUALIFIER, VALUE].map(|name| self.declared.contains(&name));

        let (mut records, mut faults, mut empty) = (Vec::with_capacity(count), Vec::new(), Vec::new());
        let mut key = Vec::new();
        for row in 0..cells.rows() {
            if let Some(reason) = cells.row_fault(row) {
                faults.push((row as u32, reason));
                continue;
            }
            let places = cells.cells_of(row);
            if places.is_empty() {
                empty.push(row as u32);
            }
            key.clear();
            put_hex(&mut key, cells.key(row));

            for place in places {
                if let Some(reason) = cells.cell_fault(place) {
                    faults.push((row as u32, reason));
                    continue;
                }
                let cell = cells.cell(place);
                let column = self.families.iter().position(|column| column.family == cell.family);
                if column.is_none() && !self.takes_all {
                    return Err(SourceError::DumpFamily { path: path.to_owned(), family: cell.family.to_owned() });
                }
                if !self.keeps_micros && cell.timestamp % 1000 != 0 {
                    faults.push((row as u32, RejectReason::NotMillis { timestamp: cell.timestamp }));
                    continue;
                }
                if let Some(reason) = self.length_fault(column, cell.value) {
                    faults.push((row as u32, reason));
                    continue;
                }

                for (at, values) in of_families.iter_mut().enumerate() {
                    values.push((Some(at) == column).then_some(cell.value));
                }
                if has_key {
                    keys.push(&key);
                }
                if has_family {
                    families.push(cell.family.as_bytes());
                }
                if has_qualifier {
                    qualifiers.push_hex(cell.qualifier);
                }
                if has_value {
                    values.push_hex(cell.value);
                }
                times.push(cell.timestamp);
                records.push(row as u32);
            }
        }

        let rows = records.len();
        let times = TimestampMicrosecondArray::from(times).with_timezone("UTC");
        let columns = self.columns(times, [keys, families, qualifiers, values], of_families);
        let batch = columns.and_then(|(fields, columns)| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        });
        let batch = batch.map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
        Ok(DumpRows { batch, records, faults, empty })
    }

    /// The declared columns with their fields; `texts` are keys, families, qualifiers and values.
    fn columns(
        &self,
        times: TimestampMicrosecondArray,
        texts: [Texts; 4],
        of_families: Vec<FamilyValues>,
    ) -> Result<(Vec<Field>, Vec<ArrayRef>), ArrowError> {
        let mut found: Vec<(&str, ArrayRef)> = vec![(TIMESTAMP, Arc::new(times))];
        for (name, texts) in [ROW_KEY, FAMILY, QUALIFIER, VALUE].into_iter().zip(texts) {
            if self.declared.contains(&name) {
                found.push((name, texts.finish(None)?));
            }
        }
        for (column, values) in self.families.iter().zip(of_families) {
            found.push((&column.name, values.finish()?));
        }
        Ok(found.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip())
    }

    /// What is wrong with the length of a value, in a column of integers.
    fn length_fault(&self, column: Option<usize>, value: &[u8]) -> Option<RejectReason> {
        let column = self.families.get(column?)?;
        let (family, bytes) = (column.family.clone(), value.len());
        (column.holds_integers && bytes != 8).then_some(RejectReason::NotEightBytes { family, bytes })
    }
}

impl FamilyColumn {
    fn values(&self, count: usize) -> FamilyValues {
        match self.holds_integers {
            true => FamilyValues::Integers(Int64Builder::with_capacity(count)),
            false => FamilyValues::Bytes { texts: Texts::new(count), is_set: Vec::with_capacity(count) },
        }
    }
}

impl FamilyValues {
    fn push(&mut self, value: Option<&[u8]>) {
        match self {
            Self::Bytes { texts, is_set } => {
                texts.push_hex(value.unwrap_or_default());
                is_set.push(value.is_some());
            }
            Self::Integers(builder) => {
                let bytes = value.and_then(|value| <[u8; 8]>::try_from(value).ok());
                builder.append_option(bytes.map(i64::from_be_bytes));
            }
        }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Bytes { texts, is_set } => texts.finish(Some(NullBuffer::from(is_set))),
            Self::Integers(mut builder) => Ok(Arc::new(builder.finish())),
        }
    }
}

impl Texts {
    fn new(count: usize) -> Self {
        let mut ends = Vec::with_capacity(count + 1);
        ends.push(0);
        Self { bytes: Vec::new(), ends }
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.end();
    }

    fn push_hex(&mut self, bytes: &[u8]) {
        put_hex(&mut self.bytes, bytes);
        self.end();
    }

    /// Ends a text. An offset that is too large is found by [`Self::finish`].
    fn end(&mut self) {
        self.ends.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err(ArrowError::OffsetOverflowError(self.bytes.len()));
        }
        let array = StringArray::try_new(OffsetBuffer::new(self.ends.into()), self.bytes.into(), nulls)?;
        Ok(Arc::new(array))
    }
}

fn put_hex(into: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0'));
        into.extend_from_slice(&[high, low]);
    }
}
