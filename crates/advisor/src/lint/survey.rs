//! Facts of a trial: each layout is read once, cell by cell.

use std::collections::{BTreeSet, HashMap, HashSet};

use tidetable_layout::error::RejectReason;
use tidetable_layout::outline::{FieldForm, PartContent, template_parts};
use tidetable_layout::time::SECOND;
use tidetable_layout::{FieldType, Layout};
use tidetable_runner::Job;
use tidetable_runner::workload::{Need, Query, Workload};
use tidetable_sql::CellRef;
use xxhash_rust::xxh3::xxh3_128;

use crate::comparison::value_columns;
use crate::error::{AdvisorError, Result};
use crate::measure::{Measured, measure};
use crate::queries::{Asked, ask};
use crate::spread::{Axis, Spread, WriteLog, spread};
use crate::trial::{Draw, DrawSpec, Row, Trial, TrialReject, TrialTable, Visitor, Write};

use super::facts::{
    CellFacts, DataFacts, FieldFacts, PairFacts, QueryFacts, Reads, RejectFacts, RejectKind, RowFacts, TableFacts,
    ValueFacts, WriteFacts,
};

/// Most values of a column of the row key that are kept.
const MOST_VALUES: usize = 1 << 20;

/// What the rows of a job say about those of its tables that a trial has encoded, with what queries read of them: a
/// workload, and what the trial drew for it.
///
/// # Errors
/// If an encoded layout cannot be read, or a query fits no table.
pub fn survey(job: &Job, trial: &Trial, workload: Option<(&Workload, &[DrawSpec])>) -> Result<DataFacts> {
    let Some(axis) = Axis::of_trial(trial, None) else { return Ok(DataFacts::default()) };
    let mut tables = Vec::with_capacity(trial.tables.len());
    for encoded in &trial.tables {
        if let Some(table) = job.table(&encoded.name) {
            tables.push(survey_table(encoded, &table.layout, axis, &trial.rejects)?);
        }
    }
    if let Some((workload, specs)) = workload {
        let values = value_columns(trial);
        let measured = trial.tables.iter().map(|table| measure(table, false)).collect::<Result<Vec<_>>>()?;
        let measured: Vec<_> = trial.tables.iter().zip(&measured).collect();
        for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
            ask_tables(&measured, query, (spec, draws), &values, &mut tables)?;
        }
    }
    Ok(DataFacts { tables })
}

/// Asks a query of every table that has its columns.
fn ask_tables(
    encoded: &[(&TrialTable, &Measured)],
    query: &Query,
    drawn: (&DrawSpec, &[Draw]),
    values: &[String],
    tables: &mut [TableFacts],
) -> Result<()> {
    let (mut failed, mut answered) = (None, false);
    for (encoded, measured) in encoded {
        let asked = match ask(encoded, measured, query, drawn, values) {
            Err(error @ AdvisorError::Predicate { .. }) => {
                failed = Some(error);
                continue;
            }
            asked => asked?,
        };
        answered = true;
        if let Some(facts) = tables.iter_mut().find(|facts| facts.name == encoded.name) {
            facts.queries.push(query_facts(query, &asked));
        }
    }
    failed.filter(|_| !answered).map_or(Ok(()), Err)
}

fn query_facts(query: &Query, asked: &Asked) -> QueryFacts {
    let reads = |need| match need {
        Need::Point => Reads::Point,
        Need::Range => Reads::Range,
        Need::Scan => Reads::Scan,
    };
    QueryFacts {
        name: query.name.clone(),
        reads: reads(asked.need),
        must: query.must.map(reads),
        columns: query.columns.clone(),
        newest: query.newest,
        atomic: query.atomic,
        rows: asked.rows.p50,
        cells: asked.cells.p50,
        values: asked.values.p50,
    }
}

fn survey_table(encoded: &TrialTable, layout: &Layout, axis: Axis, rejects: &[TrialReject]) -> Result<TableFacts> {
    let mut survey = Survey::new(encoded, layout, axis);
    encoded.visit(&mut survey)?;
    let mut facts = survey.finish();
    facts.overwritten = encoded.overwritten_cells()?;
    facts.rejects = rejects.iter().filter_map(|reject| reject_of(reject, &encoded.name)).collect();
    let log = WriteLog::of_table(encoded, axis)?;
    facts.writes = writes(&log, &spread(&log), encoded)?;
    Ok(facts)
}

/// A rejected row as a rule knows it; other reasons are those of the source.
fn reject_of(reject: &TrialReject, table: &str) -> Option<RejectFacts> {
    if reject.layout.as_deref() != Some(table) {
        return None;
    }
    let is = |reason: RejectReason| reject.reason == reason.to_string();
    let delimiter = RejectReason::Delimiter { literal: String::new() }.to_string();
    let kind = if is(RejectReason::KeyTooLong) {
        RejectKind::Key
    } else if is(RejectReason::QualifierTooLong) {
        RejectKind::Qualifier
    } else if is(RejectReason::CellTooLong) {
        RejectKind::Cell
    } else if reject.reason.starts_with(delimiter.trim_end_matches('`')) {
        RejectKind::Delimiter
    } else {
        return None;
    };
    let column = reject.column.clone().unwrap_or_default();
    Some(RejectFacts { kind, column, rows: reject.rows, example: reject.raw.clone() })
}

fn writes(log: &WriteLog, spread: &Spread, encoded: &TrialTable) -> Result<WriteFacts> {
    let mut totals: Vec<u64> = spread.totals.iter().copied().filter(|total| *total > 0).collect();
    totals.sort_unstable();
    let rank = |per_cent: usize| {
        let rank = (totals.len() * per_cent).div_ceil(100).max(1);
        totals.get(rank - 1).copied().unwrap_or_default()
    };
    let hottest =
        log.slices.iter().flat_map(|slice| &slice.rows).max_by_key(|(rank, rows)| (*rows, std::cmp::Reverse(*rank)));
    let (mut hottest_key, mut at) = (Vec::new(), 0);
    encoded.each_key(|key, _| {
        if hottest.is_some_and(|(rank, _)| *rank == at) {
            hottest_key.extend_from_slice(key);
        }
        at += 1;
        Ok(())
    })?;
    let rows = hottest.map_or(0, |(_, rows)| *rows);
    Ok(WriteFacts {
        slices: totals.len() as u64,
        cut_slices: spread.few.by_slice.len() as u64,
        top_share: spread.few.quantile(950),
        hottest_rate: f64::from(rows) / log.axis.width.max(1) as f64,
        hottest_key,
        median: rank(50),
        high: rank(95),
    })
}

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
struct Survey<'a> {
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
}

impl<'a> Survey<'a> {
    fn new(encoded: &TrialTable, layout: &'a Layout, axis: Axis) -> Self {
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

    fn finish(self) -> TableFacts {
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
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        self.see_key(row);
        if row.cells > 0 {
            self.facts.rows += 1;
            self.facts.cells += row.cells;
            self.facts.bytes += row.bytes.total();
            self.facts.name_bytes += row.bytes.family + row.bytes.qualifier;
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
        Ok(())
    }
}
