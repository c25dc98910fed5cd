//! The CSV of `cbt import`: a line of families, a line of qualifiers, and a line for each row.
//!
//! ```text
//! ,METER,,                      family of each column; an empty one repeats the one before
//! ,0000,0100,0200               qualifier of each column
//! 0000987654#20170726,28.90@1501027200000000,,
//! ```
//! An empty value is no cell. A value may carry its timestamp behind its last `@`, as with `timestamp=value-encoded`; without one
//! its timestamp is 0. Older cells of a column are on further lines of the row.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int64Builder, ListArray, RecordBatch, StringBuilder, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::decompress::Decoded;
use crate::dump::cells::{CELLS, FAMILY, KEY, QUALIFIER, TIMESTAMP, VALUE};
use crate::error::SourceError;
use crate::format::{BYTE_ORDER_MARK, Foreign, Format};

/// Bytes that are read at once, at least.
const PIECE: usize = 1 << 20;
/// Bytes of the longest line that is read.
const LONGEST_LINE: usize = 256 << 20;
/// Cells of a batch, unless one row has more.
const BATCH_CELLS: usize = 1 << 16;

/// Values of a file whose timestamps tell that it is such a file.
const TELLING_VALUES: usize = 1000;

/// The rows of such a file.
pub(crate) struct CbtRows {
    bytes: Box<Decoded>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read as lines.
    taken: usize,
    has_ended: bool,
    /// The number of the line at hand, from 1.
    line: u64,
    /// For each field of a line behind the key, the column of its cells.
    columns: Vec<CellColumn>,
    schema: SchemaRef,
    rows: RowsBuilder,
}

/// A column of the table in Bigtable.
#[derive(Debug)]
struct CellColumn {
    family: String,
    qualifier: Vec<u8>,
}

/// The fields of a line, without their quotes.
#[derive(Debug, Default)]
struct LineFields {
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// What stands at the beginning of some bytes.
enum Line {
    /// A line of so many bytes.
    Whole(usize),
    /// The beginning of a line.
    Open,
    Wrong(&'static str),
}

/// Rows that are to become a batch; the cells of the last may go on in the next line.
#[derive(Default)]
struct RowsBuilder {
    keys: BinaryBuilder,
    last_key: Vec<u8>,
    ends: Vec<i32>,
    families: StringBuilder,
    qualifiers: BinaryBuilder,
    timestamps: Int64Builder,
    values: BinaryBuilder,
    cells: usize,
}

impl CbtRows {
    /// Reads the two lines of columns.
    ///
    /// # Errors
    /// [`SourceError::Foreign`], [`SourceError::NotDump`], [`SourceError::DumpLine`], [`SourceError::BlockUnfinished`], and those
    /// of reading.
    pub fn open(bytes: Decoded) -> Result<Self, SourceError> {
        let mut rows = Self::begin(bytes)?;
        rows.read_columns()?;
        Ok(rows)
    }

    /// Whether a CSV is one of `cbt` by its content: it has both lines of columns, and timestamps behind its first values. Without
    /// timestamps it may as well be a table with two lines of names.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn are_in(bytes: Decoded) -> Result<bool, SourceError> {
        let mut rows = Self::begin(bytes)?;
        let text = rows.buffer.get(rows.taken..).unwrap_or_default();
        // No other line is read, as it could be endless.
        if !text.starts_with(b",") && !text.starts_with(b"\"\",") {
            return Ok(false);
        }
        rows.read_columns()?;
        Ok(rows.columns.iter().all(|column| is_family(&column.family)) && rows.have_times())
    }

    /// Reads the beginning.
    fn begin(bytes: Decoded) -> Result<Self, SourceError> {
        let cell = DataType::Struct(cell_fields());
        let cells = DataType::List(Field::new("item", cell, false).into());
        let fields = vec![Field::new(KEY, DataType::Binary, false), Field::new(CELLS, cells, false)];
        let mut rows = Self {
            bytes: Box::new(bytes),
            buffer: Vec::new(),
            taken: 0,
            has_ended: false,
            line: 1,
            columns: Vec::new(),
            schema: Arc::new(Schema::new(fields)),
            rows: RowsBuilder::default(),
        };
        rows.read_more()?;
        if let Some(format) = Foreign::of(&rows.buffer) {
            return Err(SourceError::Foreign { path: rows.path(), format });
        }
        if rows.buffer.starts_with(BYTE_ORDER_MARK) {
            rows.taken = BYTE_ORDER_MARK.len();
        }
        Ok(rows)
    }

    /// Whether the first values have timestamps, all of them. What follows a line that cannot be read is not looked at.
    fn have_times(&mut self) -> bool {
        let mut fields = LineFields::default();
        let mut found = 0;
        while found < TELLING_VALUES && self.next_line(&mut fields).unwrap_or(false) {
            let values = (1..fields.ends.len()).map(|place| fields.get(place)).filter(|value| !value.is_empty());
            for value in values {
                if time_of(value).is_none() {
                    return false;
                }
                found += 1;
            }
        }
        found > 0
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The stored bytes: how many were read, and their hash.
    pub fn stored(&self) -> &Decoded {
        &self.bytes
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// [`SourceError::DumpLine`], [`SourceError::BlockUnfinished`], and those of reading.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        let mut fields = LineFields::default();
        while self.next_line(&mut fields)? {
            let found = fields.ends.len().saturating_sub(1);
            if found != self.columns.len() {
                let wanted = self.columns.len();
                return Err(self.wrong_line(&format!("{found} values behind the row key, and {wanted} columns")));
            }
            let key = fields.get(0);
            let done = match self.rows.is_full() && key != self.rows.last_key {
                true => self.take_batch()?,
                false => None,
            };
            self.rows.begin(key);
            for (place, column) in self.columns.iter().enumerate() {
                let value = fields.get(place + 1);
                if !value.is_empty() {
                    self.rows.push(column, value);
                }
            }
            self.line += 1;
            if done.is_some() {
                return Ok(done);
            }
        }
        self.take_batch()
    }

    /// Reads families and qualifiers. A file without lines is one that is not yet written: a dump of no rows has both.
    fn read_columns(&mut self) -> Result<(), SourceError> {
        let [mut families, mut qualifiers] = [LineFields::default(), LineFields::default()];
        if !self.next_line(&mut families)? {
            return Err(self.unfinished());
        }
        self.line += 1;
        if !self.next_line(&mut qualifiers)? {
            return Err(self.unfinished());
        }

        let are_columns = families.get(0).is_empty() && qualifiers.get(0).is_empty();
        if !are_columns || families.ends.len() != qualifiers.ends.len() {
            let found = (0..families.ends.len()).map(|at| String::from_utf8_lossy(families.get(at)).into_owned());
            let (path, found, format) = (self.path(), found.collect(), Format::Csv.key());
            return Err(SourceError::NotDump { path, found, format });
        }
        for place in 1..families.ends.len() {
            let family = match (families.get(place), self.columns.last()) {
                (b"", Some(before)) => before.family.clone(),
                (name, _) => match std::str::from_utf8(name) {
                    Ok(name) if !name.is_empty() => name.to_owned(),
                    _ => return Err(self.wrong_line("a column without the name of its family")),
                },
            };
            self.columns.push(CellColumn { family, qualifier: qualifiers.get(place).to_vec() });
        }
        self.line += 1;
        Ok(())
    }

    /// Reads the next line that is not blank; false at the end.
    fn next_line(&mut self, fields: &mut LineFields) -> Result<bool, SourceError> {
        loop {
            let at_hand = self.buffer.get(self.taken..).unwrap_or_default();
            match fields.read(at_hand) {
                Line::Whole(length) => {
                    self.taken += length;
                    if fields.ends.len() > 1 || !fields.get(0).is_empty() {
                        return Ok(true);
                    }
                    self.line += 1;
                }
                Line::Wrong(problem) => return Err(self.wrong_line(problem)),
                Line::Open if self.has_ended && at_hand.is_empty() => return Ok(false),
                // Without its line end, a line may be cut inside its last value.
                Line::Open if self.has_ended => return Err(self.unfinished()),
                Line::Open if at_hand.len() > LONGEST_LINE => {
                    let (path, line, bytes) = (self.path(), self.line, at_hand.len());
                    return Err(SourceError::RecordTooLong { path, line, bytes });
                }
                Line::Open => self.read_more()?,
            }
        }
    }

    /// Reads as much again as is at hand.
    fn read_more(&mut self) -> Result<(), SourceError> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let wanted = self.buffer.len().max(PIECE);
        self.has_ended = self.bytes.append(&mut self.buffer, wanted)? < wanted;
        Ok(())
    }

    fn take_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        let batch = std::mem::take(&mut self.rows).finish(&self.schema);
        batch.map_err(|source| SourceError::Arrow { path: self.path(), source })
    }

    fn path(&self) -> String {
        self.bytes.path().to_owned()
    }

    fn wrong_line(&self, problem: &str) -> SourceError {
        SourceError::DumpLine { path: self.path(), line: self.line, problem: problem.to_owned() }
    }

    fn unfinished(&self) -> SourceError {
        SourceError::BlockUnfinished { path: self.path(), format: Format::CbtCsv.name() }
    }
}

impl LineFields {
    /// Reads the line at the beginning of `bytes`.
    fn read(&mut self, bytes: &[u8]) -> Line {
        self.text.clear();
        self.ends.clear();
        let mut rest = bytes;
        loop {
            if let Some(quoted) = rest.strip_prefix(b"\"") {
                let Some(behind) = self.read_quoted(quoted) else { return Line::Open };
                rest = behind;
            } else {
                let Some(end) = rest.iter().position(|byte| matches!(byte, b',' | b'\n')) else { return Line::Open };
                let (text, behind) = rest.split_at(end);
                let text = if behind.starts_with(b"\n") { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
                self.text.extend_from_slice(text);
                rest = behind;
            }
            self.ends.push(self.text.len());
            rest = match rest {
                [b',', next @ ..] => next,
                [b'\n', next @ ..] | [b'\r', b'\n', next @ ..] => return Line::Whole(bytes.len() - next.len()),
                [] | [b'\r'] => return Line::Open,
                _ => return Line::Wrong("text behind the closing quote of a value"),
            };
        }
    }

    /// Reads a field behind its opening quote. Returns what follows its closing quote; `None` if there is none.
    fn read_quoted<'b>(&mut self, mut rest: &'b [u8]) -> Option<&'b [u8]> {
        loop {
            let (text, behind) = rest.split_at(memchr::memchr(b'"', rest)?);
            self.text.extend_from_slice(text);
            match behind {
                [b'"', b'"', next @ ..] => {
                    self.text.push(b'"');
                    rest = next;
                }
                [b'"', next @ ..] => return Some(next),
                _ => return None,
            }
        }
    }

    /// The field at a place; empty if there is none.
    fn get(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(place).copied().unwrap_or_default();
        self.text.get(start..end).unwrap_or_default()
    }
}

impl RowsBuilder {
    fn is_full(&self) -> bool {
        self.cells >= BATCH_CELLS
    }

    /// Begins the row with this key, unless it is the last.
    fn begin(&mut self, key: &[u8]) {
        if self.ends.is_empty() || self.last_key != key {
            self.keys.append_value(key);
            self.ends.push(self.cells as i32);
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
    }

    fn push(&mut self, column: &CellColumn, written: &[u8]) {
        let (value, timestamp) = time_of(written).unwrap_or((written, 0));
        self.families.append_value(&column.family);
        self.qualifiers.append_value(&column.qualifier);
        self.timestamps.append_value(timestamp);
        self.values.append_value(value);
        self.cells += 1;
        if let Some(end) = self.ends.last_mut() {
            *end = self.cells as i32;
        }
    }

    /// The rows, if there are any.
    fn finish(mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>, ArrowError> {
        if self.ends.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.families.finish()),
            Arc::new(self.qualifiers.finish()),
            Arc::new(self.timestamps.finish()),
            Arc::new(self.values.finish()),
        ];
        let cells = StructArray::try_new(cell_fields(), columns, None)?;
        let item = Field::new("item", DataType::Struct(cell_fields()), false);
        self.ends.insert(0, 0);
        let lists = ListArray::try_new(item.into(), OffsetBuffer::new(self.ends.into()), Arc::new(cells), None)?;
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish()), Arc::new(lists)];
        RecordBatch::try_new(Arc::clone(schema), columns).map(Some)
    }
}

fn cell_fields() -> Fields {
    Fields::from(vec![
        Field::new(FAMILY, DataType::Utf8, false),
        Field::new(QUALIFIER, DataType::Binary, false),
        Field::new(TIMESTAMP, DataType::Int64, false),
        Field::new(VALUE, DataType::Binary, false),
    ])
}

/// A value without its timestamp, and that, if what follows its last `@` is an integer as Go writes them.
fn time_of(written: &[u8]) -> Option<(&[u8], i64)> {
    let (value, time) = written.split_at_checked(memchr::memrchr(b'@', written)?)?;
    Some((value, integer(std::str::from_utf8(time.get(1..)?).ok()?)?))
}

/// Whether Bigtable allows a name of a family.
fn is_family(name: &str) -> bool {
    let mut letters = name.bytes();
    let is_word = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_';
    name.len() <= 64
        && letters.next().is_some_and(is_word)
        && letters.all(|letter| is_word(letter) || matches!(letter, b'-' | b'.'))
}

/// An integer whose prefix tells its base: `0x3e8`, `0o17`, `017`, `0b1`, `1000`.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", text.get(1..)?),
        [b'+', ..] => ("", text.get(1..)?),
        _ => ("", text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") => (16, lower.get(2..)?),
        Some("0o") => (8, lower.get(2..)?),
        Some("0b") => (2, lower.get(2..)?),
        Some(start) if start.starts_with('0') => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_digits { i64::from_str_radix(&format!("{sign}{digits}"), base).ok() } else { None }
}
