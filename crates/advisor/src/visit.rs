//! What one pass over the cells of a layout finds.

use std::collections::{BTreeSet, HashMap, HashSet};

use tidetable_layout::cell::CellRef;
use tidetable_layout::outline::{FieldForm, PartContent, template_parts};
use tidetable_layout::time::SECOND;
use tidetable_layout::{FieldType, Layout};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Result;
use crate::facts::{CellFacts, FieldFacts, PairFacts, RowFacts, TableFacts, ValueFacts};
use crate::spread::Axis;
use crate::trial::{Row, TIMESTAMP_BYTES, TrialTable, Visitor};

/// Most values of a column of the row key that are kept.
const MOST_VALUES: usize = 1 << 20;
/// Bytes that a field of a protobuf message has beside its value: its number and its length, a byte each for the first 15
/// fields and for values below 128 bytes.
const FIELD_BYTES: u64 = 2;

/// A part of the row key that prints a column.
struct KeyColumn {
    /// Its place among the parts of the key.
    part: usize,
    name: String,
    is_text: bool,
    /// First second and rows, by value.
    values: HashMap<Vec<u8>, (i64, u64)>,
    /// The value of the row before, with the rows that are not yet counted: neighbours mostly have the same.
    last: Option<(Vec<u8>, i64, u64)>,
    complete: bool,
}

/// Collects the [`TableFacts`] of a layout as its cells and rows go by.
pub(crate) struct Survey<'a> {
    layout: &'a Layout,
    axis: Axis,
    facts: TableFacts,
    columns: Vec<KeyColumn>,
    /// Hashes of the pairs of values of adjacent columns of text: (index of the left one, pairs).
    pairs: Vec<(usize, HashSet<u128>)>,
    /// Sets of families that a row has: for each family of the layout, whether it is there.
    together: BTreeSet<Vec<bool>>,
    /// Of the row that is being read: its families, and the timestamps of its cells.
    families: Vec<bool>,
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
    pub(crate) fn new(encoded: &'a TrialTable, axis: Axis) -> Self {
        let layout = &encoded.layout;
        let columns = KeyColumn::all(layout);
        let mut pairs = Vec::new();
        for (at, pair) in columns.windows(2).enumerate() {
            if pair.iter().all(|column| column.is_text) {
                pairs.push((at, HashSet::new()));
            }
        }

        let facts = TableFacts {
            name: encoded.name.clone(),
            source_rows: encoded.stats.rows_accepted,
            repeated: encoded.repeated,
            ..TableFacts::default()
        };
        Self {
            layout,
            axis,
            facts,
            columns,
            pairs,
            together: BTreeSet::new(),
            families: vec![false; layout.spec().families.len()],
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
            if let Some(value) = parts.get(column.part) {
                column.see(value, first, rows);
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
        if self.times.len() > 1 {
            self.times.sort_unstable();
            self.times.dedup();
        }
        self.events.push((self.column.0.len(), self.times.len()));
        self.times.clear();
    }

    /// What stands out of a row, without its key.
    fn facts_of(&self, row: &Row<'_>) -> RowFacts {
        let [first, last] = [row.writes.first(), row.writes.last()].map(|write| write.map_or(0, |write| write.second));
        let middle = (first + (last - first) / 2) * SECOND;

        let (mut seconds, mut slices) = (0, 0);
        let (mut second, mut slice) = (None, 0..0);
        for write in row.writes {
            if !slice.contains(&write.second) {
                slice = self.axis.slice_with(write.second).1;
                slices += 1;
            }
            seconds += u64::from(second.replace(write.second) != Some(write.second));
        }

        RowFacts {
            key: Vec::new(),
            bytes: row.bytes.total(),
            cells: row.cells,
            later_cells: self.timestamps.iter().filter(|time| **time > middle).count() as u64,
            seconds,
            slices,
            span: (last - first) * SECOND,
            last: last * SECOND,
        }
    }

    /// Keeps the row where it is the most of its table by some measure.
    fn see_row(&mut self, row: &Row<'_>) {
        let seen = self.facts_of(row);
        let most = row.writes.iter().map(|write| write.rows).max().unwrap_or(0);
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
                *kept = RowFacts { key: row.key.to_vec(), ..seen.clone() };
            }
        }
    }

    pub(crate) fn finish(self) -> TableFacts {
        let apart = self.apart();
        let mut pairs = Vec::with_capacity(self.pairs.len());
        for (at, seen) in &self.pairs {
            if let Some([left, right]) = self.columns.get(*at..*at + 2) {
                let (left, right) = (left.name.clone(), right.name.clone());
                pairs.push(PairFacts { left, right, pairs: seen.len() as u64 });
            }
        }

        let fields = self.columns.into_iter().map(KeyColumn::finish).collect();
        TableFacts { apart, pairs, fields, ..self.facts }
    }

    /// Pairs of families that both have cells, and no row has cells of both.
    fn apart(&self) -> Vec<(String, String)> {
        let families = &self.layout.spec().families;
        let mut apart = Vec::new();
        for (at, one) in families.iter().enumerate() {
            for (other_at, other) in families.iter().enumerate().skip(at + 1) {
                let are_filled = self.meet(at, at) && self.meet(other_at, other_at);
                if are_filled && !self.meet(at, other_at) {
                    apart.push((one.name.clone(), other.name.clone()));
                }
            }
        }
        apart
    }

    /// Whether a row has cells of both families.
    fn meet(&self, family: usize, other: usize) -> bool {
        let mut rows = self.together.iter();
        rows.any(|row| [family, other].iter().all(|at| row.get(*at).copied().unwrap_or_default()))
    }
}

impl KeyColumn {
    /// The columns of a layout's row key whose values rules ask for, from left to right.
    fn all(layout: &Layout) -> Vec<Self> {
        let mut columns = Vec::new();
        for (part, content) in template_parts(&layout.spec().row_key).iter().enumerate() {
            let PartContent::Field { name, form } = &content.content else { continue };
            let field = layout.source().fields.iter().find(|field| field.name == *name);
            let kind = field.map_or(FieldType::Text, |field| field.kind);
            // Values of times and hashes are as many as rows, and no rule asks for them.
            let is_time = matches!(kind, FieldType::Timestamp | FieldType::Date);
            if is_time || matches!(form, FieldForm::Hash | FieldForm::Salt(_) | FieldForm::BigEndian) {
                continue;
            }
            columns.push(Self {
                part,
                name: name.clone(),
                is_text: kind == FieldType::Text,
                values: HashMap::new(),
                last: None,
                complete: true,
            });
        }
        columns
    }

    fn see(&mut self, value: &[u8], first: i64, rows: u64) {
        match &mut self.last {
            Some((last, seen, count)) if last == value => {
                *seen = first.min(*seen);
                *count += rows;
            }
            _ => {
                self.count_last();
                self.last = Some((value.to_vec(), first, rows));
            }
        }
    }

    fn count_last(&mut self) {
        let Some((value, first, rows)) = self.last.take() else { return };
        if let Some((seen, count)) = self.values.get_mut(&value) {
            *seen = first.min(*seen);
            *count += rows;
        } else if self.values.len() < MOST_VALUES {
            self.values.insert(value, (first, rows));
        } else {
            self.complete = false;
        }
    }

    fn finish(mut self) -> FieldFacts {
        self.count_last();
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
        if cell.timestamp > 0 {
            self.timestamps.push(cell.timestamp);
        }

        let same = self.versions > 0 && self.column.0 == cell.family && self.column.1 == cell.qualifier;
        if !same {
            if self.column.0 != cell.family || self.times.is_empty() {
                self.end_family();
                self.column.0.clear();
                self.column.0.push_str(cell.family);
                let at = self.layout.spec().families.iter().position(|family| family.name == cell.family);
                if let Some(filled) = at.and_then(|at| self.families.get_mut(at)) {
                    *filled = true;
                }
            }
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
            self.facts.message_bytes += self.field_bytes;
            for (family, events) in &self.events {
                let cell_bytes = (row.key.len() + family + 1) as u64 + TIMESTAMP_BYTES;
                self.facts.message_bytes += cell_bytes * *events as u64;
            }

            if row.key.len() > self.facts.longest_key.len() {
                self.facts.longest_key = row.key.to_vec();
            }
            if !self.together.contains(&self.families) {
                self.together.insert(self.families.clone());
            }
        }

        self.see_row(row);
        self.families.fill(false);
        self.timestamps.clear();
        self.events.clear();
        self.times.clear();
        (self.field_bytes, self.versions) = (0, 0);
        Ok(())
    }
}
