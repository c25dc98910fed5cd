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

/// The data of one table.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    /// Its name.
    pub name: String,
    /// Source rows that were encoded.
    pub source_rows: u64,
    /// Rows.
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
    /// The largest cell.
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
}

/// How much of a table a query reads, from best to worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Single rows.
    Point,
    /// Ranges of keys.
    #[default]
    Range,
    /// All rows.
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
    /// Its name.
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
    /// Rows it reads.
    pub rows: u64,
    /// Cells it reads.
    pub cells: u64,
    /// Values it returns.
    pub values: u64,
    /// Key ranges it reads.
    pub ranges: u64,
    /// The aggregate it wants of values, `sum`, `min` or `max`, if it wants nothing else.
    pub aggregate: Option<&'static str>,
}

/// A row.
#[derive(Debug, Clone, Default)]
pub struct RowFacts {
    /// Its key.
    pub key: Vec<u8>,
    /// Bytes of its cells.
    pub bytes: u64,
    /// Its cells.
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

/// A cell.
#[derive(Debug, Clone, Default)]
pub struct CellFacts {
    /// Key of its row.
    pub key: Vec<u8>,
    /// Family and qualifier.
    pub column: String,
    /// Bytes of its value.
    pub bytes: u64,
}

/// How the writes of a table spread.
#[derive(Debug, Clone, Default)]
pub struct WriteFacts {
    /// Slices with writes.
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
    /// The reason.
    pub kind: RejectKind,
    /// The column at fault.
    pub column: String,
    /// Rows.
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
    /// Its source rows.
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
