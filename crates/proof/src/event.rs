//! Generated inputs: their rows, and a feed of them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use tidetable_ingest::{Feed, FeedEnd, FeedPiece};
use tidetable_layout::{Field, FieldType, SourceSchema};
use tidetable_source::{ContentHash, Growth, InputFile, TextShape};
use tidetable_store::StoreError;
use xxhash_rust::xxh3::xxh3_128;

use crate::random::Random;

/// 2018-01-01, in microseconds since the epoch: the first day of generated rows.
pub const START: i64 = 1_514_764_800_000_000;
/// An hour in microseconds, the step of generated times.
pub const HOUR: i64 = 3_600_000_000;
/// A day in microseconds, the window of the tables.
pub const DAY: i64 = 24 * HOUR;

/// A row of an input, in the columns of [`source`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Part of the row key; rows of one id and day share a row.
    pub id: u64,
    /// Microseconds since the epoch, whole hours from [`START`] on.
    pub time: i64,
    /// Part of a qualifier, so that a family has dynamic columns.
    pub q: u64,
    /// A value, unique per event, by which a wrong answer is traced to its input.
    pub v: u64,
    /// A value that may be missing: then there is no cell.
    pub w: Option<i64>,
    /// A value that is summed in an aggregate family; it may be negative.
    pub n: i64,
}

/// Spread of the rows of a run: the smaller, the more rows coincide.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// Distinct ids, and so rows of undated tables.
    pub ids: u64,
    /// Days from [`START`] on, and so windows.
    pub days: u64,
    /// Hours of a day that have rows.
    pub hours: u64,
}

impl Event {
    /// A random event within `spread`; `v` makes it unique.
    pub fn any(random: &mut Random, spread: Spread, v: u64) -> Self {
        let time = START + random.below(spread.days) as i64 * DAY + random.below(spread.hours) as i64 * HOUR;
        let w = (!random.one_in(4)).then(|| random.below(100) as i64);
        Self { id: random.below(spread.ids), time, q: random.below(3), v, w, n: random.below(9) as i64 - 4 }
    }
}

/// The columns of the rows. Those after `n` are derived from the others, so that there is a column of every type.
pub fn source() -> SourceSchema {
    let fields = [
        ("id", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("q", FieldType::Text),
        ("v", FieldType::UInt64),
        ("w", FieldType::Int64),
        ("n", FieldType::Int64),
        ("f", FieldType::Float64),
        ("d", FieldType::Decimal { precision: 12, scale: 2 }),
        ("b", FieldType::Bool),
        ("day", FieldType::Date),
        ("s", FieldType::Text),
    ];
    SourceSchema { fields: fields.map(|(name, kind)| Field { name: name.to_owned(), kind }).to_vec(), time: 1 }
}

fn batch(events: &[Event]) -> Result<RecordBatch, StoreError> {
    let decimals = events.iter().map(|event| event.w.map(|w| i128::from(w) * 100 + i128::from(event.v % 100)));
    let columns: [(&str, ArrayRef); 11] = [
        ("id", Arc::new(UInt64Array::from_iter_values(events.iter().map(|event| event.id)))),
        (
            "ts",
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(events.iter().map(|event| event.time)).with_timezone("UTC"),
            ),
        ),
        ("q", Arc::new(StringArray::from_iter_values(events.iter().map(|event| format!("q{}", event.q))))),
        ("v", Arc::new(UInt64Array::from_iter_values(events.iter().map(|event| event.v)))),
        ("w", Arc::new(Int64Array::from_iter(events.iter().map(|event| event.w)))),
        ("n", Arc::new(Int64Array::from_iter_values(events.iter().map(|event| event.n)))),
        ("f", Arc::new(Float64Array::from_iter_values(events.iter().map(|event| (event.v * 37 % 1000) as f64 / 8.0)))),
        ("d", Arc::new(Decimal128Array::from_iter(decimals).with_precision_and_scale(12, 2)?)),
        ("b", Arc::new(BooleanArray::from_iter(events.iter().map(|event| Some(event.v % 3 == 0))))),
        ("day", Arc::new(Date32Array::from_iter_values(events.iter().map(|event| (event.time / DAY) as i32)))),
        ("s", Arc::new(StringArray::from_iter_values(events.iter().map(|event| format!("text {}", event.v * 7 % 53))))),
    ];

    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Inputs for a load, with their rows: a [`Feed`] that also does the work of discovery.
pub trait Source: Feed {
    /// The inputs, as discovery would list them, in the order of their paths.
    fn found(&self) -> Vec<InputFile>;

    /// The hash of an input's content, which the store compares with the recorded one.
    fn hash(&self, input: &InputFile) -> ContentHash;

    /// Growth of an input since it had this size and hash, in rows, if it has only grown.
    fn growth(&self, input: &InputFile, held: (u64, ContentHash)) -> Option<Growth>;
}

/// Inputs in memory, whose content may change. Each has a version, which is its fingerprint.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    contents: Vec<(u64, Arc<Vec<Event>>)>,
}

impl Inputs {
    /// Number of inputs, of which each has a path.
    pub fn len(&self) -> usize {
        self.contents.len()
    }

    /// Whether no input was added yet.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// Adds an input with these rows, under a path of its own.
    pub fn add(&mut self, events: Vec<Event>) {
        self.contents.push((1, Arc::new(events)));
    }

    /// Replaces the content of input `at`, from 0, and so its fingerprint.
    pub fn change(&mut self, at: usize, events: Vec<Event>) {
        if let Some((version, content)) = self.contents.get_mut(at) {
            *version += 1;
            *content = Arc::new(events);
        }
    }

    /// The rows of each input, in the order in which they were added.
    pub fn events(&self) -> impl Iterator<Item = &[Event]> {
        self.contents.iter().map(|(_, events)| events.as_slice())
    }

    fn content(&self, input: &InputFile) -> Option<&(u64, Arc<Vec<Event>>)> {
        self.contents.get(input.path.strip_prefix("input-")?.parse::<usize>().ok()?)
    }
}

fn path(at: usize) -> String {
    format!("input-{at:06}")
}

impl Source for Inputs {
    fn found(&self) -> Vec<InputFile> {
        let mut found = Vec::with_capacity(self.contents.len());
        for (at, (version, _)) in self.contents.iter().enumerate() {
            found.push(InputFile::of_rows(&path(at), &version.to_string()));
        }
        found
    }

    fn hash(&self, input: &InputFile) -> ContentHash {
        let content = self.content(input).map(|(_, events)| format!("{}{events:?}", input.path));
        ContentHash(xxh3_128(content.unwrap_or_default().as_bytes()))
    }

    fn growth(&self, _: &InputFile, _: (u64, ContentHash)) -> Option<Growth> {
        None
    }
}

impl Feed for Inputs {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>, StoreError> {
        let Some((_, events)) = self.content(input) else {
            return Err(StoreError::InputChanged { path: input.path.clone() });
        };
        let all_given = give_events(events, cuts, give)?;
        Ok(all_given.then(|| FeedEnd { hash: self.hash(input), bytes: 0, loaded: None, shape: TextShape::default() }))
    }
}

/// Passes rows on in pieces, which begin at `cuts` too; returns `false` if stopped.
///
/// # Errors
/// Those of making batches.
pub(crate) fn give_events(
    events: &[Event],
    cuts: &[u64],
    give: &mut dyn FnMut(FeedPiece, u64) -> bool,
) -> Result<bool, StoreError> {
    let ends = cuts.iter().map(|cut| *cut as usize).chain([events.len()]);
    let mut start = 0;
    for end in ends.filter(|end| *end <= events.len()) {
        for piece in events[start..end].chunks(10_000) {
            if !give(FeedPiece::Rows(batch(piece)?), 0) {
                return Ok(false);
            }
        }
        start = end;
    }
    Ok(true)
}
