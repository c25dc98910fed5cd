//! Size limits of rows and cells, as in Bigtable.
//!
//! The size of a row is, for each of its cells, the bytes of family, qualifier and value, and 8 for the timestamp;
//! its key is not counted. A cheap upper bound comes first; only rows that it does not clear are measured. A row in
//! several SSTs is measured in each of them here, and as a whole by the commit (see `limits`).

use arrow::array::{Array, AsArray};
use serde::{Deserialize, Serialize};
use tidetable_layout::cell::CellWriter;
use tidetable_layout::schema::{Encoding, QualifierKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, StoredSchema, ValueType};

use crate::error::{Result, StoreError};

/// A row and its size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LargestRow {
    /// Row key, as text.
    pub key: String,
    /// Bytes of its cells: family, qualifier, value, and 8 for the timestamp of each.
    pub bytes: u64,
}

/// Limit on the bytes of a row.
pub const ROW_LIMIT: u64 = 256 << 20;
/// Recommended limit on the bytes of a row.
const ROW_ADVISED: u64 = 100_000_000;
/// Recommended limit on the bytes of a cell. Cells over 100 MiB do not occur: their rows are rejected.
const CELL_ADVISED: usize = 10_000_000;
/// Bytes of the timestamp of a cell.
const TIMESTAMP: u64 = 8;

/// Rows and cells over the recommended limits, and rows over the hard limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Rows over the recommended limit.
    pub rows: u64,
    /// Cells over the recommended limit.
    pub cells: u64,
    /// The largest row over the recommended limit.
    pub largest: Option<LargestRow>,
    /// Upper bound on the bytes of a row.
    pub most: u64,
    /// Index and bytes of each row over the limit.
    pub over: Vec<(usize, u64)>,
}

impl Sizes {
    /// The sizes of the rows `keys`, if none is over the limit.
    ///
    /// # Errors
    /// [`StoreError::RowTooLarge`] for the first that is.
    pub fn within_limit(self, keys: &Keys) -> Result<Self> {
        match self.over.first() {
            Some((row, bytes)) => Err(too_large(&keys.get(*row), *bytes)),
            None => Ok(self),
        }
    }
}

/// The error for a row over the limit; the caller sets the table.
pub fn too_large(key: &[u8], bytes: u64) -> StoreError {
    StoreError::RowTooLarge { table: String::new(), row: String::from_utf8_lossy(key).into_owned(), bytes }
}

/// Finds rows and cells over the recommended limits, and rows over `limit` bytes.
pub fn measure(schema: &StoredSchema, block: &Block, limit: u64) -> Sizes {
    measure_against(schema, block, ROW_ADVISED.min(limit), limit)
}

fn measure_against(schema: &StoredSchema, block: &Block, advised: u64, limit: u64) -> Sizes {
    let groups = schema.groups.iter().zip(&block.groups);
    let parts: Vec<GroupSizes<'_>> =
        groups.filter_map(|(group, held)| GroupSizes::new(group, held.as_ref()?)).collect();

    let mut sizes = Sizes { cells: parts.iter().map(GroupSizes::large_cells).sum(), ..Sizes::default() };
    for row in 0..block.keys.len() {
        let bound = parts.iter().map(|part| part.bound(row, row)).sum::<u64>();
        if bound <= advised {
            sizes.most = sizes.most.max(bound);
            continue;
        }

        let bytes = parts.iter().map(|part| part.exact(row)).sum::<u64>();
        sizes.most = sizes.most.max(bytes);
        if bytes > limit {
            sizes.over.push((row, bytes));
        }
        if bytes > advised {
            sizes.rows += 1;
            if sizes.largest.as_ref().is_none_or(|largest| largest.bytes < bytes) {
                let key = String::from_utf8_lossy(&block.keys.get(row)).into_owned();
                sizes.largest = Some(LargestRow { key, bytes });
            }
        }
    }

    sizes
}

/// The sizes of the records of one column group of a block.
struct GroupSizes<'a> {
    group: &'a Group,
    held: &'a GroupBlock,
    /// Upper bound on the bytes of a record, without values of variable width.
    record: u64,
    /// Columns of variable width, collected once: most groups have none.
    texts: Vec<&'a dyn Array>,
}

impl<'a> GroupSizes<'a> {
    fn new(group: &'a Group, held: &'a GroupBlock) -> Option<Self> {
        let dictionary = held.qualifiers.iter().flat_map(|qualifiers| &qualifiers.dictionary);
        let longest = dictionary.map(|name| name.len()).max().unwrap_or(0) as u64;
        let values = group.columns.iter().map(|column| widest(column).unwrap_or(0)).sum::<u64>();
        let record = match &group.packed {
            // One cell, which contains the name and punctuation or the tag of each field.
            Some(packed) => {
                let fields: u64 = group.columns.iter().map(|column| column.qualifier.len() as u64 + TIMESTAMP).sum();
                (packed.family.len() + packed.qualifier.len()) as u64 + longest + TIMESTAMP + fields
            }
            None => group.columns.iter().map(|column| around(column) + longest).sum(),
        };
        let texts =
            held.columns.iter().flatten().map(AsRef::as_ref).filter(|array| offsets(*array).is_some()).collect();

        (!held.is_empty()).then_some(Self { group, held, record: record + values, texts })
    }

    /// Upper bound on the bytes of the rows `first` to `last`.
    fn bound(&self, first: usize, last: usize) -> u64 {
        let records = self.held.records(first).start..self.held.records(last).end;
        let values = self.texts.iter().map(|array| data_bytes(*array, records.clone()));
        records.len() as u64 * self.record + values.sum::<u64>()
    }

    /// Bytes of a row.
    fn exact(&self, row: usize) -> u64 {
        // The encoding of packed cells is not known here; the bound is close.
        if self.group.packed.is_some() {
            return self.bound(row, row);
        }

        let (mut bytes, mut value) = (0, Vec::new());
        for (column, array) in self.group.columns.iter().zip(&self.held.columns) {
            let Some(array) = array else { continue };
            let mut writer = CellWriter::new(column, array.as_ref());
            for record in self.held.records(row).filter(|record| array.is_valid(*record)) {
                value.clear();
                writer.write(record, &mut value);
                bytes += around(column) + self.qualifier(record) + value.len() as u64;
            }
        }
        bytes
    }

    /// Bytes of the qualifier of a record.
    fn qualifier(&self, record: usize) -> u64 {
        let all = self.held.qualifiers.as_ref().filter(|_| self.group.qualifier == QualifierKind::Dynamic);
        let name = all.and_then(|all| all.dictionary.get(*all.codes.get(record)? as usize));
        name.map_or(0, |name| name.len() as u64)
    }

    /// Number of cells over the recommended limit.
    fn large_cells(&self) -> u64 {
        let mut count = 0;
        for array in &self.texts {
            // Mostly all values of an array together are smaller.
            if data_bytes(*array, 0..array.len()) > CELL_ADVISED as u64 {
                let sizes = (0..array.len()).map(|value| data_bytes(*array, value..value + 1));
                count += sizes.filter(|bytes| *bytes > CELL_ADVISED as u64).count() as u64;
            }
        }

        count
    }
}

/// Bytes of a cell without its value and the qualifier of its record.
fn around(column: &Column) -> u64 {
    (column.family.len() + column.qualifier.len()) as u64 + TIMESTAMP
}

/// Upper bound on the bytes of a value; `None` if its width is variable.
fn widest(column: &Column) -> Option<u64> {
    let ValueType::Field(kind) = column.value else {
        return if column.value == ValueType::Empty { Some(0) } else { None };
    };
    Some(match (column.encoding, kind) {
        (_, FieldType::Text) => return None,
        (Encoding::Int64 | Encoding::Float64, _) => 8,
        (_, FieldType::Bool) => 5,
        (_, FieldType::UInt64 | FieldType::Int64) => 20,
        // A sign, a point and a zero before it.
        (_, FieldType::Decimal { precision, scale }) => u64::from(precision.max(scale)) + 3,
        (_, FieldType::Float64 | FieldType::Timestamp | FieldType::Date) => 32,
    })
}

/// Bytes of text and binary values; 0 for values of fixed width.
fn data_bytes(array: &dyn Array, range: std::ops::Range<usize>) -> u64 {
    let offsets = offsets(array).unwrap_or_default();
    offsets
        .get(range.end)
        .zip(offsets.get(range.start))
        .map_or(0, |(end, start)| u64::from((end - start).cast_unsigned()))
}

/// Where the values of a text or binary array begin and end; `None` for values of fixed width.
fn offsets(array: &dyn Array) -> Option<&[i32]> {
    let texts = array.as_string_opt::<i32>().map(|texts| texts.value_offsets());
    texts.or_else(|| Some(array.as_binary_opt::<i32>()?.value_offsets()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{StringArray, UInt64Array};
    use tidetable_layout::block::Qualifiers;
    use tidetable_layout::schema::{KeyTail, TimestampKind};

    use super::*;

    fn column(family: &str, qualifier: &str, value: FieldType) -> Column {
        Column {
            family: family.to_owned(),
            qualifier: qualifier.as_bytes().to_vec(),
            value: ValueType::Field(value),
            encoding: Encoding::Text,
            merge: Default::default(),
        }
    }

    /// Two rows: `a` of two records, `b` of one; the qualifiers are `x` and `yy`.
    fn block() -> (StoredSchema, Block) {
        let columns = vec![column("FAM", "", FieldType::UInt64), column("OTHER", "", FieldType::Text)];
        let group =
            Group { qualifier: QualifierKind::Dynamic, timestamps: TimestampKind::Stored, packed: None, columns };
        let mut keys = Keys::new(Arc::new(KeyTail::default()));
        keys.push(b"a", 0);
        keys.push(b"b", 0);
        let held = GroupBlock {
            row_ends: vec![2, 3],
            qualifiers: Some(Qualifiers {
                dictionary: vec![b"x".as_slice().into(), b"yy".as_slice().into()],
                codes: vec![0, 1, 1],
            }),
            timestamps: Some(vec![0, 0, 0]),
            columns: vec![
                Some(Arc::new(UInt64Array::from(vec![Some(1), None, Some(1234)]))),
                Some(Arc::new(StringArray::from(vec![None, Some("text"), Some("longer text")]))),
            ],
            sums: Vec::new(),
        };
        let schema = StoredSchema { tail: KeyTail::default(), groups: vec![group], upsert: false };
        (schema, Block { keys, groups: vec![Some(held)] })
    }

    #[test]
    fn a_row_takes_the_bytes_of_its_cells() {
        let (schema, block) = block();
        // FAM:x=1 and OTHER:yy=text; FAM:yy=1234 and OTHER:yy=longer text.
        let (a, b) = ((3 + 1 + 8 + 1) + (5 + 2 + 8 + 4), (3 + 2 + 8 + 4) + (5 + 2 + 8 + 11));
        let sizes = measure_against(&schema, &block, 0, 1000);
        let largest = Some(LargestRow { key: "b".to_owned(), bytes: b });
        assert_eq!(sizes, Sizes { rows: 2, largest: largest.clone(), most: b, ..Sizes::default() });
        assert_eq!(measure_against(&schema, &block, a, 1000).rows, 1);
        let unseen = measure_against(&schema, &block, 1000, 1000);
        assert_eq!((unseen.rows, unseen.largest, &unseen.over[..]), (0, None, &[][..]));
        assert!(unseen.most >= b && unseen.most < 4 * b, "a bound: {}", unseen.most);
        assert!(measure_against(&schema, &block, b, b).within_limit(&block.keys).is_ok());
        let over = measure_against(&schema, &block, 0, b - 1);
        assert_eq!((&over.over[..], &over.largest), (&[(1, b)][..], &largest));
        match over.within_limit(&block.keys).unwrap_err() {
            StoreError::RowTooLarge { row, bytes, .. } => assert_eq!((row.as_str(), bytes), ("b", b)),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_bound_is_never_less() {
        let (schema, block) = block();
        let part = GroupSizes::new(&schema.groups[0], block.groups[0].as_ref().unwrap()).unwrap();
        for row in 0..2 {
            assert!(part.bound(row, row) >= part.exact(row));
        }
        assert_eq!(part.bound(0, 1), part.bound(0, 0) + part.bound(1, 1));
    }
}
