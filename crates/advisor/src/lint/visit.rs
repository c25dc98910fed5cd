//! What one pass over the cells of a layout finds.

use std::collections::{BTreeSet, HashMap, HashSet};

use tidetable_layout::outline::{FieldForm, PartContent, template_parts};
use tidetable_layout::time::SECOND;
use tidetable_layout::{FieldType, Layout};
use tidetable_sql::CellRef;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Result;
use crate::spread::Axis;
use crate::trial::{Row, TrialTable, Visitor, Write};

use super::facts::{CellFacts, FieldFacts, PairFacts, RowFacts, TableFacts, ValueFacts};

/// Most values of a column of the row key that are kept.
const MOST_VALUES: usize = 1 << 20;
/// Bytes that a field of a protobuf message has beside its value: its number and its length, a byte each for the first 15
/// fields and for values below 128 bytes.
const FIELD_BYTES: u64 = 2;
/// Bytes of a cell's timestamp.
const TIMESTAMP_BYTES: u64 = 8;

/// A part of the row key that prints a column.
struct KeyColumn {
    /// Its place among the parts of the key.
    part: usize,
    name: String,
    is_text: bool,
    /// First second and rows, by value.
    values: HashMap<Vec<u8>, (i64, u64)>,
    complete: bool,
}

/// What is known so far.
pub(super) struct Survey<'a> {
    layout: &'a Layout,
    axis: Axis,
    facts: TableFacts,
    columns: Vec<KeyColumn>,
    /// Hashes of the pairs of values of adjacent columns of text: (index of the left one, pairs).
    pairs: Vec<(usize, HashSet<u128>)>,
    /// Sets of families that a row has.
    together: BTreeSet<Vec<String>>,
    /// Of the row that is being read: its families, and the timestamps of its cells.
    families: BTreeSet<String>,
    timestamps: Vec<i64>,
    /// Most source rows in one second of a row.
    most_in_second: u64,
    /// Of the row that is being read: bytes of the fields of messages, and for each family its length and its events.
    field_bytes: u64,
    events: Vec<(usize, usize)>,
    /// Of the family that is being read: timestamps of its cells.
    times: Vec<i64>,
    /// Of the column that is being read: its name, and versions.
    column: (String, Vec<u8>),
    versions: u64,
}

impl<'a> Survey<'a> {
    pub(super) fn new(encoded: &'a TrialTable, axis: Axis) -> Self {
        let layout = &encoded.layout;
        let kind_of = |name: &str| {
            let mut fields = layout.source().fields.iter();
            fields.find(|field| field.name == name).map_or(FieldType::Text, |field| field.kind)
        };
        let parts = template_parts(&layout.spec().row_key);
        let columns = parts.iter().enumerate().filter_map(|(part, content)| {
            let PartContent::Field { name, form } = &content.content else { return None };
            let kind = kind_of(name);
            // Values of times and hashes are as many as rows, and no rule asks for them.
            let asked = !matches!(kind, FieldType::Timestamp | FieldType::Date)
                && !matches!(form, FieldForm::Hash | FieldForm::Salt(_) | FieldForm::BigEndian);
            let is_text = kind == FieldType::Text;
            asked.then(|| KeyColumn { part, name: name.clone(), is_text, values: HashMap::new(), complete: true })
        });
        let columns: Vec<KeyColumn> = columns.collect();
        let adjacent = columns.windows(2).enumerate().filter_map(|(at, pair)| match pair {
            [left, right] if left.is_text && right.is_text => Some((at, HashSet::new())),
            _ => None,
        });
        let pairs = adjacent.collect();
        let facts = TableFacts {
            name: encoded.name.clone(),
            source_rows: encoded.stats.rows_accepted,
            ..TableFacts::default()
        };
        Self {
            layout,
            axis,
            facts,
            columns,
            pairs,
            together: BTreeSet::new(),
            families: BTreeSet::new(),
            timestamps: Vec::new(),
            most_in_second: 0,
            field_bytes: 0,
            events: Vec::new(),
            times: Vec::new(),
            column: (String::new(), Vec::new()),
            versions: 0,
        }
    }

    /// Counts the values of the columns in a row key.
    fn see_key(&mut self, row: &Row<'_>) {
        let Some(parts) = self.layout.split_key(row.key) else { return };
        let first = row.writes.first().map_or(0, |write| write.second);
        let rows: u64 = row.writes.iter().map(|write| write.rows).sum();
        for column in &mut self.columns {
            let Some(value) = parts.get(column.part) else { continue };
            let has_room = column.values.len() < MOST_VALUES;
            match column.values.get_mut(*value) {
                Some((seen, count)) => {
                    *seen = first.min(*seen);
                    *count += rows;
                }
                None if has_room => {
                    column.values.insert(value.to_vec(), (first, rows));
                }
                None => column.complete = false,
            }
        }
        for (at, seen) in &mut self.pairs {
            if let Some([left, right]) = self.columns.get(*at..*at + 2)
                && let (Some(left), Some(right)) = (parts.get(left.part), parts.get(right.part))
                && left.len() + right.len() > 0
            {
                let length = (left.len() as u64).to_be_bytes();
                seen.insert(xxh3_128(&[&length[..], left, right].concat()));
            }
        }
    }

    /// Counts the events of the family that was read: a message of each would be a cell.
    fn end_family(&mut self) {
        if self.times.is_empty() {
            return;
        }
        self.times.sort_unstable();
        self.times.dedup();
        self.events.push((self.column.0.len(), self.times.len()));
        self.times.clear();
    }

    fn see_row(&mut self, row: &Row<'_>) {
        let seconds = |write: Option<&Write>| write.map_or(0, |write| write.second);
        let (first, last) = (seconds(row.writes.first()), seconds(row.writes.last()));
        let middle = (first + (last - first) / 2) * SECOND;
        let slices = row.writes.chunk_by(|one, next| self.axis.slice_of(one.second) == self.axis.slice_of(next.second));
        let distinct = row.writes.chunk_by(|one, next| one.second == next.second);
        let seen = RowFacts {
            key: row.key.to_vec(),
            bytes: row.bytes.total(),
            cells: row.cells,
            later_cells: self.timestamps.iter().filter(|time| **time > middle).count() as u64,
            seconds: distinct.count() as u64,
            slices: slices.count() as u64,
            span: (last - first) * SECOND,
            last: last * SECOND,
        };
        let most = row.writes.iter().map(|write| write.rows).max().unwrap_or_default();
        let facts = &mut self.facts;
        if most > self.most_in_second {
            self.most_in_second = most;
            facts.overwritten_key = row.key.to_vec();
        }
        for (kept, number) in [
            (&mut facts.longest_row, (|row: &RowFacts| row.seconds) as fn(&RowFacts) -> u64),
            (&mut facts.rewritten, |row: &RowFacts| row.slices),
            (&mut facts.largest_row, |row: &RowFacts| row.bytes),
            (&mut facts.fullest_row, |row: &RowFacts| row.cells),
        ] {
            if number(&seen) > number(kept) {
                *kept = seen.clone();
            }
        }
    }

    pub(super) fn finish(self) -> TableFacts {
        let declared: Vec<&String> = self.layout.spec().families.iter().map(|family| &family.name).collect();
        let meet =
            |one: &String, other: &String| self.together.iter().any(|row| row.contains(one) && row.contains(other));
        let filled = |family: &String| self.together.iter().any(|row| row.contains(family));
        let mut apart = Vec::new();
        for (at, one) in declared.iter().enumerate() {
            for other in declared.iter().skip(at + 1) {
                if filled(one) && filled(other) && !meet(one, other) {
                    apart.push(((*one).clone(), (*other).clone()));
                }
            }
        }
        let name = |at: usize| self.columns.get(at).map(|column| column.name.clone()).unwrap_or_default();
        let pairs = self.pairs.iter().map(|(at, seen)| PairFacts {
            left: name(*at),
            right: name(at + 1),
            pairs: seen.len() as u64,
        });
        let pairs = pairs.collect();
        let fields = self.columns.into_iter().map(KeyColumn::finish).collect();
        TableFacts { apart, pairs, fields, ..self.facts }
    }
}

impl KeyColumn {
    fn finish(self) -> FieldFacts {
        let values = self.values.into_iter().map(|(text, (first, rows))| ValueFacts {
            text: String::from_utf8_lossy(&text).into_owned(),
            rows,
            first,
        });
        let mut values: Vec<ValueFacts> = values.collect();
        values.sort_by(|one, other| (one.first, &one.text).cmp(&(other.first, &other.text)));
        FieldFacts { name: self.name, values, complete: self.complete }
    }
}

impl Visitor for Survey<'_> {
    fn cell(&mut self, cell: &CellRef<'_>) -> Result<()> {
        let bytes = cell.value.len() as u64;
        if bytes > self.facts.largest_cell.bytes {
            let column = format!("{}:{}", cell.family, String::from_utf8_lossy(cell.qualifier));
            self.facts.largest_cell = CellFacts { key: cell.row_key.to_vec(), column, bytes };
        }
        if !self.families.contains(cell.family) {
            self.families.insert(cell.family.to_owned());
        }
        if cell.timestamp > 0 {
            self.timestamps.push(cell.timestamp);
        }
        let same = self.versions > 0 && self.column.0 == cell.family && self.column.1 == cell.qualifier;
        if !same {
            if self.column.0 != cell.family {
                self.end_family();
            }
            self.column.0.clear();
            self.column.0.push_str(cell.family);
            self.column.1.clear();
            self.column.1.extend_from_slice(cell.qualifier);
            self.versions = 0;
        }
        self.versions += 1;
        self.facts.most_versions = self.facts.most_versions.max(self.versions);
        self.field_bytes += FIELD_BYTES + bytes;
        self.times.push(cell.timestamp);
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        self.see_key(row);
        if row.cells > 0 {
            self.facts.rows += 1;
            self.facts.cells += row.cells;
            self.facts.bytes += row.bytes.total();
            self.facts.name_bytes += row.bytes.family + row.bytes.qualifier;
            self.end_family();
            let cells = |(family, events): &(usize, usize)| {
                ((row.key.len() + family + 1) as u64 + TIMESTAMP_BYTES) * *events as u64
            };
            self.facts.message_bytes += self.events.iter().map(cells).sum::<u64>() + self.field_bytes;
            if row.key.len() > self.facts.longest_key.len() {
                self.facts.longest_key = row.key.to_vec();
            }
            let families: Vec<String> = std::mem::take(&mut self.families).into_iter().collect();
            if !self.together.contains(&families) {
                self.together.insert(families);
            }
        }
        self.see_row(row);
        self.families.clear();
        self.timestamps.clear();
        self.events.clear();
        self.times.clear();
        (self.field_bytes, self.versions) = (0, 0);
        Ok(())
    }
}
