//! Pages of a spill: some events of a window in the order of their row keys, with the names that they use.
//!
//! A page is a sequence of streams in Arrow's IPC format, compressed with LZ4: the events, the prefixes of their row
//! keys, and the qualifiers of each dynamic group. An event begins a new prefix or goes on with the one before, which
//! takes a bit; of keys that are numbers a page has the steps from one to the next.

use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Field, Int64Type, Schema, UInt32Type, UInt64Type};
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use tidetable_layout::StoredSchema;
use tidetable_layout::encode::{EncodedBatch, EncodedGroup, KeyNumbers};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_store::Result;

use crate::sort::chunk::{AllRanks, Prefixes};
use crate::sort::order::Row;
use crate::sort::piece::PieceEvents;
use crate::sort::ranks::Ranks;
use crate::spill::names::{Names, damaged};

/// Name of the first column of events.
const BEGINS: &str = "begins";
/// Approximate bytes that a name takes while a range is sorted, beside its own: its ends, ranks and entries to sort.
const NAME_BYTES: usize = 64;
/// Bytes of the codes of an event in memory: of its prefix and of its key's tail.
const EVENT_BYTES: usize = 12;

/// A row key, in the order of rows: the name of its prefix, then its tail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) prefix: Vec<u8>,
    pub(crate) tail: u64,
}

impl RowKey {
    fn new(row: &Row, prefixes: &Prefixes) -> Self {
        match prefixes {
            Prefixes::Names(names) => Self { prefix: names.name(row.rank).to_vec(), tail: row.tail },
            Prefixes::Numbers(numbers) => {
                let mut prefix = Vec::new();
                numbers.write_prefix(row.tail, &mut prefix);
                Self { prefix, tail: numbers.tail(row.tail) }
            }
        }
    }
}

/// A page as it is written, with what is kept of it in memory to find its events again.
#[derive(Debug)]
pub(crate) struct EncodedPage {
    pub(crate) bytes: Vec<u8>,
    pub(crate) first: RowKey,
    pub(crate) last: RowKey,
    pub(crate) events: usize,
    /// Approximate bytes of its events and names in memory.
    pub(crate) weight: u64,
}

/// The events of a page; codes are places in the names of the page.
#[derive(Debug)]
pub(crate) struct PageEvents {
    pub(crate) prefixes: Names,
    /// Whether row keys are numbers, and no prefixes.
    pub(crate) are_numbers: bool,
    /// Of each group; `None` if it is constant.
    pub(crate) qualifiers: Vec<Option<Names>>,
    pub(crate) encoded: EncodedBatch,
    /// The source row of each event, if rows make several.
    pub(crate) units: Option<Vec<u64>>,
}

impl EncodedPage {
    /// Encodes some of the events of a piece; there must be one.
    ///
    /// # Errors
    /// If values of several chunks cannot be put together, or not encoded.
    pub(crate) fn new(
        schema: &StoredSchema,
        piece: &PieceEvents,
        events: Range<u32>,
        ranks: &AllRanks,
    ) -> Result<Self> {
        let rows = rows_of(&piece.rows, &events);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Err(damaged()) };
        let mut page = PageColumns::default();
        let prefixes = match &ranks.prefixes {
            Prefixes::Names(names) => page.push_names(rows, &events, names),
            Prefixes::Numbers(_) => {
                page.push_numbers(rows, &events);
                Names::default()
            }
        };
        if let Some(units) = &piece.units {
            let units = units[events.start as usize..events.end as usize].to_vec();
            page.push("unit", Arc::new(UInt64Array::from(units)));
        }

        let mut qualifiers = Vec::new();
        for (at, group) in piece.groups.iter().enumerate() {
            let range = events.start as usize..events.end as usize;
            if let (Some(own), Some(names)) = (&group.qualifiers, &ranks.qualifiers[at]) {
                let (codes, used) = local_codes(&own[range.clone()], names);
                page.push(&format!("qualifier of {at}"), Arc::new(UInt32Array::from(codes)));
                qualifiers.push(used);
            }
            if let Some(times) = &group.timestamps {
                page.push(&format!("timestamp of {at}"), Arc::new(Int64Array::from(times[range].to_vec())));
            }
            for column in 0..schema.groups[at].columns.len() {
                page.push(&format!("value {column} of {at}"), group.values(column, events.clone())?);
            }
        }

        let names: usize =
            qualifiers.iter().chain([&prefixes]).map(|names| names.bytes() + names.len() * NAME_BYTES).sum();
        let weight = names + page.memory() + events.len() * EVENT_BYTES;
        let mut bytes = Vec::new();
        write_stream(&page.into_batch()?, &mut bytes)?;
        for names in [&prefixes].into_iter().chain(&qualifiers) {
            write_stream(&names.to_batch()?, &mut bytes)?;
        }
        let [first, last] = [first, last].map(|row| RowKey::new(row, &ranks.prefixes));
        Ok(Self { bytes, first, last, events: events.len(), weight: weight as u64 })
    }
}

/// The columns of the events of a page.
#[derive(Default)]
struct PageColumns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl PageColumns {
    fn push(&mut self, name: &str, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    /// Adds the row keys of events that are numbers.
    fn push_numbers(&mut self, rows: &[Row], events: &Range<u32>) {
        let mut steps = Vec::with_capacity(events.len());
        let mut before = 0;
        for row in rows {
            let count = (row.end.min(events.end) - row.start.max(events.start)) as usize;
            steps.push(row.tail - before);
            steps.resize(steps.len() + count - 1, 0);
            before = row.tail;
        }
        self.push("step", Arc::new(UInt64Array::from(steps)));
    }

    /// Adds the row keys of events, and returns the prefixes that they use.
    fn push_names(&mut self, rows: &[Row], events: &Range<u32>, ranks: &Ranks) -> Names {
        let mut prefixes = Names::default();
        let (mut begins, mut tails) = (Vec::with_capacity(events.len()), Vec::with_capacity(events.len()));
        let mut last = None;
        for row in rows {
            let count = (row.end.min(events.end) - row.start.max(events.start)) as usize;
            let is_new = last != Some(row.rank);
            if is_new {
                prefixes.push(ranks.name(row.rank));
                last = Some(row.rank);
            }
            begins.push(is_new);
            begins.resize(begins.len() + count - 1, false);
            tails.resize(tails.len() + count, row.tail);
        }

        self.push(BEGINS, Arc::new(BooleanArray::new(BooleanBuffer::from(begins), None)));
        self.push("tail", Arc::new(UInt64Array::from(tails)));
        prefixes
    }

    fn memory(&self) -> usize {
        self.arrays.iter().map(|array| array.to_data().get_slice_memory_size().unwrap_or_default()).sum()
    }

    fn into_batch(self) -> Result<RecordBatch> {
        Ok(RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)?)
    }
}

impl PageEvents {
    /// Decodes a page of a table with this schema.
    ///
    /// # Errors
    /// If it is not one.
    pub(crate) fn decode(schema: &StoredSchema, bytes: &[u8]) -> Result<Self> {
        let mut rest = Cursor::new(bytes);
        let batch = read_stream(&mut rest)?;
        let prefixes = Names::of_batch(&read_stream(&mut rest)?)?;

        let mut columns = batch.columns().iter();
        let mut next = || columns.next().ok_or_else(damaged);
        let keys = next()?;
        let (prefix, tail) = match (keys.as_boolean_opt(), keys.as_primitive_opt::<UInt64Type>()) {
            (Some(begins), _) => {
                let tails = next()?.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
                (codes(begins), tails.values().to_vec())
            }
            (None, Some(steps)) => (vec![0; steps.len()], sums(steps.values())),
            (None, None) => return Err(damaged()),
        };
        let are_numbers = keys.as_boolean_opt().is_none();
        let has_units = batch.schema_ref().field_with_name("unit").is_ok();
        let units = match has_units {
            true => Some(next()?.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?.values().to_vec()),
            false => None,
        };

        let (mut groups, mut qualifiers) = (Vec::new(), Vec::new());
        for group in &schema.groups {
            let is_dynamic = group.qualifier == QualifierKind::Dynamic;
            let qualifier = match is_dynamic {
                true => Some(next()?.as_primitive_opt::<UInt32Type>().ok_or_else(damaged)?.values().to_vec()),
                false => None,
            };
            let timestamps = match group.timestamps {
                TimestampKind::Stored => {
                    Some(next()?.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?.values().to_vec())
                }
                _ => None,
            };
            let columns = (0..group.columns.len()).map(|_| next().cloned()).collect::<Result<_>>()?;
            groups.push(EncodedGroup { qualifier, timestamps, columns });
            qualifiers.push(is_dynamic.then(|| Names::of_batch(&read_stream(&mut rest)?)).transpose()?);
        }
        let encoded = EncodedBatch { rows: None, prefix, tail, time: Vec::new(), groups, rejected: Vec::new() };
        Ok(Self { prefixes, are_numbers, qualifiers, encoded, units })
    }

    /// Number of events, which all columns of the page have.
    pub(crate) fn len(&self) -> usize {
        self.encoded.prefix.len()
    }

    /// The number of events before row key `key`, of a layout whose keys have these numbers.
    pub(crate) fn before(&self, key: &RowKey, numbers: Option<&KeyNumbers>) -> usize {
        let tails = &self.encoded.tail;
        if let (true, Some(numbers)) = (self.are_numbers, numbers) {
            let number = numbers.number(&key.prefix, key.tail).unwrap_or(u64::MAX);
            return tails.partition_point(|tail| *tail < number);
        }
        let begin =
            self.encoded.prefix.partition_point(|code| self.prefixes.get(*code as usize) < key.prefix.as_slice());
        let prefixes = &self.encoded.prefix[begin..];
        let alike = prefixes.partition_point(|code| self.prefixes.get(*code as usize) == key.prefix.as_slice());
        begin + tails[begin..begin + alike].partition_point(|tail| *tail < key.tail)
    }

    /// Makes numbers of its row keys.
    ///
    /// # Errors
    /// If the prefixes are not those of a layout with these numbers.
    pub(crate) fn make_numbers(&mut self, numbers: &KeyNumbers) -> Result<()> {
        if self.are_numbers {
            return Ok(());
        }
        let prefixes = self.prefixes.iter().map(|prefix| numbers.number(prefix, 0));
        let prefixes: Vec<u64> = prefixes.collect::<Option<_>>().ok_or_else(damaged)?;
        for (code, tail) in self.encoded.prefix.iter_mut().zip(&mut self.encoded.tail) {
            *tail += prefixes.get(*code as usize).copied().ok_or_else(damaged)?;
            *code = 0;
        }
        self.prefixes = Names::default();
        self.are_numbers = true;
        Ok(())
    }

    /// Leaves only these events; the names that they use stay all.
    pub(crate) fn keep(&mut self, events: Range<usize>) {
        cut(&mut self.encoded.prefix, &events);
        cut(&mut self.encoded.tail, &events);
        if let Some(units) = &mut self.units {
            cut(units, &events);
        }

        for group in &mut self.encoded.groups {
            if let Some(codes) = &mut group.qualifier {
                cut(codes, &events);
            }
            if let Some(times) = &mut group.timestamps {
                cut(times, &events);
            }
            for column in &mut group.columns {
                *column = column.slice(events.start, events.len());
            }
        }
    }
}

/// Leaves only these values, in memory of their own.
fn cut<T: Clone>(values: &mut Vec<T>, events: &Range<usize>) {
    *values = values[events.clone()].to_vec();
}

/// The codes of events, of which these begin a new prefix; the first does.
fn codes(begins: &BooleanArray) -> Vec<u32> {
    let mut codes = Vec::with_capacity(begins.len());
    let mut next = 0u32;
    for begins in begins.values() {
        next += u32::from(begins);
        codes.push(next.wrapping_sub(1));
    }
    codes
}

/// The sum of all steps up to each.
fn sums(steps: &[u64]) -> Vec<u64> {
    let mut sum = 0u64;
    let mut sums = Vec::with_capacity(steps.len());
    for step in steps {
        sum = sum.wrapping_add(*step);
        sums.push(sum);
    }
    sums
}

/// The rows with events in a range, which is not empty.
fn rows_of<'a>(rows: &'a [Row], events: &Range<u32>) -> &'a [Row] {
    let first = rows.partition_point(|row| row.end <= events.start);
    let end = rows.partition_point(|row| row.start < events.end);
    &rows[first..end]
}

/// The ranks as codes of the names that they use, in the order of these.
fn local_codes(ranks: &[u32], names: &Ranks) -> (Vec<u32>, Names) {
    let mut used = ranks.to_vec();
    used.sort_unstable();
    used.dedup();

    let mut own = Names::default();
    used.iter().for_each(|rank| own.push(names.name(*rank)));
    let codes = ranks.iter().map(|rank| used.partition_point(|before| before < rank) as u32).collect();
    (codes, own)
}

fn write_stream(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(out, batch.schema_ref(), options)?;
    writer.write(batch)?;
    Ok(writer.finish()?)
}

fn read_stream(bytes: &mut Cursor<&[u8]>) -> Result<RecordBatch> {
    let mut reader = StreamReader::try_new(bytes, None)?;
    let batch = reader.next().ok_or_else(damaged)??;
    // To the end of the stream, where the next begins.
    match reader.next() {
        None => Ok(batch),
        Some(_) => Err(damaged()),
    }
}
