//! What the rows of a job say about its tables: the numbers that rules compare with limits.

use crate::trial::Overwritten;

/// The data of a job.
#[derive(Debug, Clone, Default)]
pub struct DataFacts {
    /// By table, in job order.
    pub tables: Vec<TableFacts>,
}

impl DataFacts {
    /// The facts of a table.
    pub fn table(&self, name: &str) -> Option<&TableFacts> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// What the rows of one table are in its layout: the subject of rules that need data.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    /// The table's name in the job file.
    pub name: String,
    /// Source rows that were encoded.
    pub source_rows: u64,
    /// Distinct row keys with a cell.
    pub rows: u64,
    /// Cells, before garbage collection.
    pub cells: u64,
    /// Bytes of these cells: key, family, qualifier, value and a timestamp of 8 each.
    pub bytes: u64,
    /// Bytes of families and qualifiers among them.
    pub name_bytes: u64,
    /// The longest row key.
    pub longest_key: Vec<u8>,
    /// The row with most bytes.
    pub largest_row: RowFacts,
    /// The row with most cells.
    pub fullest_row: RowFacts,
    /// The cell with most bytes of value.
    pub largest_cell: CellFacts,
    /// The row whose events have most distinct seconds.
    pub longest_row: RowFacts,
    /// What later source rows replaced.
    pub overwritten: Overwritten,
    /// Source rows that can be repeats, equal to an earlier one in all columns; `None` if that is not known.
    pub repeated: Option<u64>,
    /// Bytes as cells if the cells of an event were one message in each family.
    pub message_bytes: u64,
    /// Most versions of a column of a row.
    pub most_versions: u64,
    /// The row with most source rows in one second, where cells were replaced.
    pub overwritten_key: Vec<u8>,
    /// The row that most slices write.
    pub rewritten: RowFacts,
    /// Families with cells that no row has together.
    pub apart: Vec<(String, String)>,
    /// How writes spread over the keys and over time.
    pub writes: WriteFacts,
    /// Rows that cannot be encoded, by reason.
    pub rejects: Vec<RejectFacts>,
    /// Columns of the row key.
    pub fields: Vec<FieldFacts>,
    /// Adjacent columns of text in the row key.
    pub pairs: Vec<PairFacts>,
    /// What queries read of it, in the order of their file.
    pub queries: Vec<QueryFacts>,
    /// The same at the scale that a workload declares; `None` without one.
    pub scale: Option<ScaleFacts>,
}

/// The rows of a table at a declared scale, at the end of the time that they are kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScaleFacts {
    /// Source rows a second.
    pub rate: f64,
    /// Whether the workload declares how many there will be.
    pub is_rate_declared: bool,
    /// Days that rows are kept.
    pub keep_days: f64,
    /// By what the rows grow.
    pub row_growth: RowGrowth,
    /// Bytes of the largest row.
    pub row_bytes: f64,
    /// Source rows a second of the busiest row.
    pub row_rate: f64,
    /// KiB that a source row writes, at least 1. A rewritten row has grown, and is half of its size on average.
    pub write_kib: f64,
    /// Slices of time in which a row is written that has no time in its key; 0 of others.
    pub row_slices: u64,
    /// Source rows a second that go to the end of one series: behind the busiest values of the columns before the time. `None`
    /// if keys hold no time, or these values were not counted.
    pub series_rate: Option<f64>,
    /// The same of the busiest values of all columns of the row key: of a row that holds all events of these.
    pub entity_rate: Option<f64>,
    /// Whether no column comes before the time.
    pub is_time_first: bool,
}

/// The factors by which a row grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowGrowth {
    /// Of entities that its key does not name; in a row of one instant, of those that write at it.
    pub entities: f64,
    /// Of the rate of an entity.
    pub rate: f64,
    /// Of the time that it covers.
    pub time: f64,
    /// Of its source rows, what could be expected of it: the fullest of many rows that hold one or two is full by chance, and
    /// only what is expected grows.
    pub expected: f64,
}

impl Default for RowGrowth {
    fn default() -> Self {
        Self { entities: 1.0, rate: 1.0, time: 1.0, expected: 1.0 }
    }
}

impl RowGrowth {
    /// By what the bytes of the row grow: the product of the factors.
    pub fn factor(&self) -> f64 {
        self.all() * self.expected
    }

    /// By what a row grows of which all is expected.
    pub fn all(&self) -> f64 {
        self.entities * self.rate * self.time
    }

    /// `x 100 entities x 24 time`: the factors that are not 1, with an empty text if all are.
    pub(crate) fn text(&self) -> String {
        let factors = [
            (self.expected, "expected of it"),
            (self.entities, "entities"),
            (self.rate, "the rate"),
            (self.time, "the time"),
        ];
        let factors = factors.into_iter().filter(|(factor, _)| (factor - 1.0).abs() > 0.005);
        factors.map(|(factor, of)| format!(" x {} {of}", short(factor))).collect()
    }
}

/// Zeros behind the point from which on a number is written with an exponent.
const MOST_ZEROS: usize = 5;

/// A number with two or three digits that mean something.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        small @ 0.0..0.1 => {
            let zeros = (-small.log10()).floor() as usize;
            if zeros < MOST_ZEROS { format!("{number:.*}", zeros + 2) } else { format!("{number:.1e}") }
        }
        0.0..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// How much of a table a query reads, from best to worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Single rows: every key range holds one key.
    Point,
    /// Ranges of keys that begin with a fixed column or time.
    #[default]
    Range,
    /// All rows: the query fixes nothing that leads the key.
    Scan,
}

impl Reads {
    /// Its name in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Point => "single rows",
            Self::Range => "ranges of keys",
            Self::Scan => "all rows",
        }
    }
}

/// What a query reads of a table: medians over what was drawn for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryFacts {
    /// Its name in the file of queries.
    pub name: String,
    /// How much it reads.
    pub reads: Reads,
    /// The worst it may read, if it says so.
    pub must: Option<Reads>,
    /// Columns it wants; all if empty.
    pub columns: Vec<String>,
    /// Whether it wants the newest first.
    pub newest: bool,
    /// Whether it must see the rows it reads at one instant.
    pub atomic: bool,
    /// Rows in its key ranges.
    pub rows: u64,
    /// Cells of these rows, wanted or not.
    pub cells: u64,
    /// Values of the wanted columns in the records that match.
    pub values: u64,
    /// Key ranges it reads.
    pub ranges: u64,
    /// The aggregate it wants of values, `sum`, `min` or `max`, if it wants nothing else.
    pub aggregate: Option<&'static str>,
}

/// A row that stands out, such as the largest of its table; without a key if the table has none.
#[derive(Debug, Clone, Default)]
pub struct RowFacts {
    /// Its row key, as bytes.
    pub key: Vec<u8>,
    /// Bytes of its cells.
    pub bytes: u64,
    /// The number of its cells, versions included.
    pub cells: u64,
    /// Cells in the second half of its time.
    pub later_cells: u64,
    /// Distinct seconds of its events.
    pub seconds: u64,
    /// Slices of time in which source rows write it.
    pub slices: u64,
    /// Microseconds from its first event to its last.
    pub span: i64,
    /// Time of its last event, microseconds since 1970.
    pub last: i64,
}

/// A cell that stands out, such as the largest of its table.
#[derive(Debug, Clone, Default)]
pub struct CellFacts {
    /// Key of its row.
    pub key: Vec<u8>,
    /// Family and qualifier as `family:qualifier`.
    pub column: String,
    /// Bytes of its value.
    pub bytes: u64,
}

/// How the writes of a table spread.
#[derive(Debug, Clone, Default)]
pub struct WriteFacts {
    /// Slices of time in which a source row is written.
    pub slices: u64,
    /// Slices before which keys are known, so that these can be cut into ranges.
    pub cut_slices: u64,
    /// Of the keys known before a slice, cut into 10 ranges of equal count, the share of the slice's source rows that lands in
    /// the fullest range: rank 95 of 100 of all slices.
    pub top_share: f64,
    /// Source rows a second of the row with the most in one slice.
    pub hottest_rate: f64,
    /// Key of that row.
    pub hottest_key: Vec<u8>,
    /// Source rows of a slice, rank 50 of 100 of those with writes.
    pub median: u64,
    /// Rank 95 of 100.
    pub high: u64,
    /// Source rows a second, if the queries declare how many there will be.
    pub declared: Option<f64>,
}

/// Why rows cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectKind {
    /// A value holds the literal that ends it in the key.
    Delimiter,
    /// The key is too long.
    Key,
    /// The qualifier is too long.
    Qualifier,
    /// The cell is too large.
    Cell,
}

/// Rows that cannot be encoded for one reason.
#[derive(Debug, Clone)]
pub struct RejectFacts {
    /// The limit or the delimiter that rejects them.
    pub kind: RejectKind,
    /// The column at fault.
    pub column: String,
    /// Source rows that are rejected for it.
    pub rows: u64,
    /// One of the values.
    pub example: String,
}

/// The values of a column of the row key.
#[derive(Debug, Clone, Default)]
pub struct FieldFacts {
    /// Name of the column.
    pub name: String,
    /// Its values as the key has them, in the order in which they are first seen.
    pub values: Vec<ValueFacts>,
    /// Whether these are all of them.
    pub complete: bool,
}

/// A value of a column of the row key.
#[derive(Debug, Clone, Default)]
pub struct ValueFacts {
    /// As the key has it.
    pub text: String,
    /// Source rows that have it.
    pub rows: u64,
    /// The second of its first event.
    pub first: i64,
}

/// How two columns of the row key depend on each other.
#[derive(Debug, Clone, Default)]
pub struct PairFacts {
    /// The column on the left.
    pub left: String,
    /// The column on its right.
    pub right: String,
    /// Pairs of values that occur.
    pub pairs: u64,
}

/// Values that must be new for their order to mean something.
pub(crate) const FEWEST_NEW: usize = 20;
/// Share of new values that are greater than all before them, of numbers that are sequential.
pub(crate) const SEQUENTIAL: f64 = 0.9;

impl FieldFacts {
    /// How many of the values that are first seen later than others are greater than all before them. Values of one second
    /// have no order. `None` unless all are numbers.
    pub(crate) fn in_order(&self) -> Option<NewValues> {
        let numbers = self.values.iter().map(|value| Some((value.first, value.text.parse().ok()?)));
        let numbers: Vec<(i64, u128)> = numbers.collect::<Option<_>>()?;
        let first = numbers.first()?.0;

        let mut new = NewValues { all: 0, greater: 0 };
        let (mut greatest_before, mut greatest, mut second) = (0, 0, first);
        for (seen, number) in numbers {
            if seen != second {
                (greatest_before, second) = (greatest, seen);
            }
            if seen != first {
                new.all += 1;
                new.greater += usize::from(number > greatest_before);
            }
            greatest = greatest.max(number);
        }
        Some(new)
    }

    /// Whether the values are numbers that come in sequence.
    pub(crate) fn is_sequential(&self) -> bool {
        let Some(NewValues { all, greater }) = self.in_order() else { return false };
        all >= FEWEST_NEW && greater as f64 >= SEQUENTIAL * all as f64
    }
}

/// The values of a column that are first seen in a later second than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewValues {
    pub(crate) all: usize,
    /// Those that are greater than all values of earlier seconds.
    pub(crate) greater: usize,
}

impl TableFacts {
    /// The values of a column of the row key.
    pub(crate) fn field(&self, name: &str) -> Option<&FieldFacts> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A row key as people read it: text where it is text, else with escapes.
pub(crate) fn shown(key: &[u8]) -> String {
    key.utf8_chunks()
        .flat_map(|chunk| {
            let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
            let valid = chunk.valid().chars();
            let valid = valid.map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
            valid.chain(invalid).collect::<Vec<_>>()
        })
        .collect()
}
