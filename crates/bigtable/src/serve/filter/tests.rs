//! The evaluator against a model that follows the words of the API, a row of cells at a time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use proptest::prelude::*;

use crate::cells::{CellBatch, CellBatchBuilder, ColumnId};
use crate::proto::data::row_filter::{Chain, Condition, Filter as Sent, Interleave};
use crate::proto::data::{ColumnRange, RowFilter, TimestampRange, ValueRange, column_range, value_range};
use crate::serve::filter::{CompiledFilter, Evaluator, Picked, PickedRows, Wanted, compile};

/// Bytes that patterns and lists may hold.
const MEMORY: usize = 1 << 20;

/// A cell as it goes through the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelCell {
    family: String,
    qualifier: Vec<u8>,
    time: i64,
    value: Vec<u8>,
    label: Option<String>,
    stripped: bool,
}

impl ModelCell {
    fn column(&self) -> (&str, &[u8]) {
        (&self.family, &self.qualifier)
    }

    /// Its value as filters see it.
    fn seen(&self) -> &[u8] {
        if self.stripped { &[] } else { &self.value }
    }
}

/// Key and cells.
type ModelRow = (Vec<u8>, Vec<ModelCell>);

fn filter(filter: Sent) -> RowFilter {
    RowFilter { filter: Some(filter) }
}

fn chain(filters: Vec<RowFilter>) -> RowFilter {
    filter(Sent::Chain(Chain { filters }))
}

fn interleave(filters: Vec<RowFilter>) -> RowFilter {
    filter(Sent::Interleave(Interleave { filters }))
}

thread_local! {
    static KNOWN: RefCell<HashMap<Vec<u8>, regex::bytes::Regex>> = RefCell::default();
}

/// Whole matches, by another way than the evaluator's: only what the generated patterns need.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let compiled = || {
        let pattern = std::str::from_utf8(pattern).unwrap();
        regex::bytes::Regex::new(&format!("(?s-u)^(?:{})$", pattern.replace(r"\C", "."))).unwrap()
    };
    KNOWN.with_borrow_mut(|known| known.entry(pattern.to_vec()).or_insert_with(compiled).is_match(text))
}

/// Evaluates filters cell by cell, until they have made too many.
struct Model<'a> {
    key: &'a [u8],
    /// Cells that went to a sink.
    sunk: Vec<ModelCell>,
    /// Cells that may still be made.
    left: usize,
}

impl Model<'_> {
    /// The cells of the row that pass; `None` if that makes too many.
    fn passed(&mut self, sent: &RowFilter, cells: Vec<ModelCell>) -> Option<Vec<ModelCell>> {
        self.left = self.left.checked_sub(cells.len() + 1)?;
        let keep = |keeps: &dyn Fn(&ModelCell) -> bool| cells.iter().filter(|cell| keeps(cell)).cloned().collect();
        let by_row = |keeps: bool| if keeps { cells.clone() } else { Vec::new() };
        Some(match sent.filter.as_ref().unwrap() {
            Sent::Chain(chain) => {
                let mut cells = cells;
                for filter in &chain.filters {
                    cells = self.passed(filter, cells)?;
                }
                cells
            }
            Sent::Interleave(all) => {
                let mut merged = Vec::new();
                for filter in &all.filters {
                    merged.extend(self.passed(filter, cells.clone())?);
                }
                sorted(merged)
            }
            Sent::Condition(condition) => {
                let found = self.passed(condition.predicate_filter.as_ref().unwrap(), cells.clone())?;
                let branch = if found.is_empty() { &condition.false_filter } else { &condition.true_filter };
                match branch {
                    Some(filter) => self.passed(filter, cells)?,
                    None => Vec::new(),
                }
            }
            Sent::Sink(_) => {
                self.sunk.extend(cells);
                Vec::new()
            }
            Sent::PassAllFilter(_) => cells,
            Sent::BlockAllFilter(_) => Vec::new(),
            Sent::RowKeyRegexFilter(pattern) => by_row(matches(pattern, self.key)),
            Sent::FamilyNameRegexFilter(pattern) => keep(&|cell| matches(pattern.as_bytes(), cell.family.as_bytes())),
            Sent::ColumnQualifierRegexFilter(pattern) => keep(&|cell| matches(pattern, &cell.qualifier)),
            Sent::ColumnRangeFilter(range) => keep(&|cell| is_in_columns(range, cell)),
            Sent::TimestampRangeFilter(range) => keep(&|cell| {
                let end = range.end_timestamp_micros;
                cell.time >= range.start_timestamp_micros && (end == 0 || cell.time < end)
            }),
            Sent::ValueRegexFilter(pattern) => keep(&|cell| matches(pattern, cell.seen())),
            Sent::ValueRangeFilter(range) => keep(&|cell| is_in_values(range, cell.seen())),
            Sent::CellsPerRowOffsetFilter(count) => cells.into_iter().skip(*count as usize).collect(),
            Sent::CellsPerRowLimitFilter(count) => cells.into_iter().take(*count as usize).collect(),
            Sent::CellsPerColumnLimitFilter(count) => {
                let columns = cells.chunk_by(|one, other| one.column() == other.column());
                columns.flat_map(|column| column.iter().take(*count as usize)).cloned().collect()
            }
            Sent::StripValueTransformer(_) => {
                sorted(cells.into_iter().map(|cell| ModelCell { stripped: true, ..cell }).collect())
            }
            Sent::ApplyLabelTransformer(label) => {
                sorted(cells.into_iter().map(|cell| ModelCell { label: Some(label.clone()), ..cell }).collect())
            }
            Sent::RowSampleFilter(_) => unreachable!("samples are not generated"),
        })
    }
}

fn is_in_columns(range: &ColumnRange, cell: &ModelCell) -> bool {
    use column_range::{EndQualifier, StartQualifier};
    let qualifier = cell.qualifier.as_slice();
    cell.family == range.family_name
        && match &range.start_qualifier {
            Some(StartQualifier::StartQualifierClosed(start)) => qualifier >= start,
            Some(StartQualifier::StartQualifierOpen(start)) => qualifier > start,
            None => true,
        }
        && match &range.end_qualifier {
            Some(EndQualifier::EndQualifierClosed(end)) => qualifier <= end,
            Some(EndQualifier::EndQualifierOpen(end)) => qualifier < end,
            None => true,
        }
}

fn is_in_values(range: &ValueRange, value: &[u8]) -> bool {
    use value_range::{EndValue, StartValue};
    let starts = match &range.start_value {
        Some(StartValue::StartValueClosed(start)) => value >= start,
        Some(StartValue::StartValueOpen(start)) => value > start,
        None => true,
    };
    starts
        && match &range.end_value {
            Some(EndValue::EndValueClosed(end)) => value <= end,
            Some(EndValue::EndValueOpen(end)) => value < end,
            None => true,
        }
}

/// Cells in their order. The API leaves that of equal cells open: those with the same label and value come together, in the
/// order in which the first of them came.
fn sorted(mut cells: Vec<ModelCell>) -> Vec<ModelCell> {
    let place = |cell: &ModelCell| (cell.family.clone(), cell.qualifier.clone(), Reverse(cell.time));
    cells.sort_by_key(place);
    let mut out: Vec<ModelCell> = Vec::new();
    for copies in cells.chunk_by(|one, other| place(one) == place(other)) {
        let kind = |cell: &ModelCell| (cell.label.clone(), cell.stripped);
        let mut kinds: Vec<_> = copies.iter().map(kind).collect();
        let mut known = HashSet::new();
        kinds.retain(|kind| known.insert(kind.clone()));
        out.extend(kinds.iter().flat_map(|wanted| copies.iter().filter(move |cell| kind(cell) == *wanted)).cloned());
    }
    out
}

fn batch_of(rows: &[ModelRow]) -> CellBatch {
    let id = |cell: &ModelCell| ColumnId {
        family: cell.family.as_str().into(),
        qualifier: Bytes::from(cell.qualifier.clone()),
    };
    let mut columns: Vec<ColumnId> = rows.iter().flat_map(|(_, cells)| cells).map(id).collect();
    columns.sort();
    columns.dedup();
    let mut builder = CellBatchBuilder::new(columns.clone().into());
    for (key, cells) in rows {
        for cell in cells {
            let column = columns.binary_search(&id(cell)).unwrap();
            builder.cell(column as u32, cell.time, |out| out.extend_from_slice(&cell.value));
        }
        builder.end_row(|out| out.extend_from_slice(key));
    }
    builder.finish()
}

/// An answer, with copies counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    rows: Vec<Vec<Picked>>,
    is_in_row: bool,
}

impl PickedRows for Counted {
    fn goes_on(&mut self) -> bool {
        true
    }

    fn cells(&mut self, row: usize, picked: &[Picked], ends: bool) -> bool {
        if !self.is_in_row {
            assert_eq!(row, self.rows.len(), "rows come in order, each once");
            self.rows.push(Vec::new());
        }
        self.rows[row].extend(picked);
        self.is_in_row = !ends;
        true
    }
}

/// The answer of an evaluator that holds about `memory` bytes, and what it held.
fn counted(filter: &CompiledFilter, batch: &CellBatch, memory: usize) -> (Counted, usize) {
    let mut evaluator = Evaluator::new(filter, memory);
    // Twice, as for batches that have the same columns.
    assert!(evaluator.run(batch, &mut Counted::default()));
    let mut answer = Counted::default();
    assert!(evaluator.run(batch, &mut answer));
    (answer, evaluator.most_held())
}

/// Cells with their values and labels: family, qualifier, timestamp, value, label.
type Shown = (String, Vec<u8>, i64, Vec<u8>, Option<String>);

/// The rows of a batch with the cells that pass.
fn evaluated(sent: &RowFilter, batch: &CellBatch) -> Vec<(Vec<u8>, Vec<Shown>)> {
    let filter = compile(sent, MEMORY).unwrap();
    let (answer, _) = counted(&filter, batch, MEMORY);
    // A cell at a time.
    assert_eq!(counted(&filter, batch, 0).0, answer);
    let cell = |picked: &Picked| {
        let cell = picked.cell as usize;
        let value = if picked.stripped { Vec::new() } else { batch.value(cell).to_vec() };
        let label = picked.label.map(|label| filter.labels[usize::from(label)].to_string());
        let shown =
            (batch.family(cell).to_owned(), batch.qualifier(cell).to_vec(), batch.timestamp(cell), value, label);
        std::iter::repeat_n(shown, picked.copies as usize)
    };
    let row = |row: usize| (batch.key(row).to_vec(), answer.rows[row].iter().flat_map(cell).collect());
    (0..batch.rows()).map(row).filter(|(_, cells): &(Vec<u8>, Vec<Shown>)| !cells.is_empty()).collect()
}

/// The same by the model; `None` if it makes too many cells.
fn modelled(sent: &RowFilter, rows: &[ModelRow]) -> Option<Vec<(Vec<u8>, Vec<Shown>)>> {
    let mut out = Vec::new();
    for (key, cells) in rows {
        let mut model = Model { key, sunk: Vec::new(), left: 200_000 };
        let mut passed = model.passed(sent, cells.clone())?;
        passed.append(&mut model.sunk);
        let shown = |cell: ModelCell| {
            let value = cell.seen().to_vec();
            (cell.family, cell.qualifier, cell.time, value, cell.label)
        };
        let passed: Vec<Shown> = sorted(passed).into_iter().map(shown).collect();
        out.extend((!passed.is_empty()).then(|| (key.clone(), passed)));
    }
    Some(out)
}

/// The rows without what a filter says it does not need.
fn pushed(sent: &RowFilter, rows: &[ModelRow]) -> Vec<ModelRow> {
    let wanted = Wanted::of(&compile(sent, MEMORY).unwrap().root);
    let columns = wanted.columns();
    let ranges = wanted.ranges(&[tidetable_layout::KeyRange::all()]);
    let keeps = |cell: &&ModelCell| {
        let passes = columns
            .as_ref()
            .is_none_or(|passes| passes(&cell.family, Some(&cell.qualifier)) && passes(&cell.family, None));
        passes && wanted.times.contains(&cell.time)
    };
    let cell = |cell: &ModelCell| match wanted.values {
        true => cell.clone(),
        false => ModelCell { value: Vec::new(), ..cell.clone() },
    };
    let row = |(key, cells): &ModelRow| (key.clone(), cells.iter().filter(keeps).map(cell).collect::<Vec<_>>());
    let in_range = |(key, _): &&ModelRow| ranges.iter().any(|range| range.contains(key));
    rows.iter().filter(in_range).map(row).filter(|(_, cells)| !cells.is_empty()).collect()
}

fn pattern() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "a|b", "a.*", r"\C*", "[ab]", "", "b+", "x?", "(a|c)b?", r"\C", "ab"])
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["", "a", "ab", "b", "ba", "c"]).prop_map(Bytes::from)
}

fn leaf(in_condition: bool) -> impl Strategy<Value = RowFilter> {
    let bounded = || (0..3_u8, bytes());
    let columns = ("[fg]", bounded(), bounded()).prop_map(|(family_name, (start, from), (end, to))| ColumnRange {
        family_name,
        start_qualifier: match start {
            0 => None,
            1 => Some(column_range::StartQualifier::StartQualifierClosed(from)),
            _ => Some(column_range::StartQualifier::StartQualifierOpen(from)),
        },
        end_qualifier: match end {
            0 => None,
            1 => Some(column_range::EndQualifier::EndQualifierClosed(to)),
            _ => Some(column_range::EndQualifier::EndQualifierOpen(to)),
        },
    });
    let values = (bounded(), bounded()).prop_map(|((start, from), (end, to))| ValueRange {
        start_value: match start {
            0 => None,
            1 => Some(value_range::StartValue::StartValueClosed(from)),
            _ => Some(value_range::StartValue::StartValueOpen(from)),
        },
        end_value: match end {
            0 => None,
            1 => Some(value_range::EndValue::EndValueClosed(to)),
            _ => Some(value_range::EndValue::EndValueOpen(to)),
        },
    });
    let times = (-1..5_i64, 0..5_i64).prop_map(|(start_timestamp_micros, end_timestamp_micros)| TimestampRange {
        start_timestamp_micros,
        end_timestamp_micros,
    });
    let sink = if in_condition { Sent::PassAllFilter(true) } else { Sent::Sink(true) };
    prop_oneof![
        Just(Sent::PassAllFilter(true)),
        Just(Sent::BlockAllFilter(true)),
        Just(sink),
        Just(Sent::StripValueTransformer(true)),
        pattern().prop_map(|pattern| Sent::RowKeyRegexFilter(if pattern.is_empty() { "c" } else { pattern }.into())),
        pattern().prop_map(|pattern| Sent::FamilyNameRegexFilter(pattern.replace('a', "f").replace('b', "g"))),
        pattern().prop_map(|pattern| Sent::ColumnQualifierRegexFilter(pattern.into())),
        pattern().prop_map(|pattern| Sent::ValueRegexFilter(pattern.into())),
        columns.prop_map(Sent::ColumnRangeFilter),
        values.prop_map(Sent::ValueRangeFilter),
        times.prop_map(Sent::TimestampRangeFilter),
        (0..4).prop_map(Sent::CellsPerRowOffsetFilter),
        (1..4).prop_map(Sent::CellsPerRowLimitFilter),
        (1..4).prop_map(Sent::CellsPerColumnLimitFilter),
    ]
    .prop_map(filter)
}

fn tree(in_condition: bool) -> BoxedStrategy<RowFilter> {
    let label = "[a-z0-9-]{1,15}".prop_map(|label| filter(Sent::ApplyLabelTransformer(label)));
    leaf(in_condition)
        .prop_recursive(4, 24, 4, move |inner| {
            let several = prop::collection::vec(inner.clone(), 2..4);
            // A chain has at most one filter with labels.
            let labelled =
                (prop::collection::vec(leaf(in_condition), 1..3), label.clone()).prop_map(|(mut all, label)| {
                    all.push(label);
                    chain(all)
                });
            let branch = leaf(true).prop_recursive(2, 8, 3, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 2..4).prop_map(chain),
                    prop::collection::vec(inner, 2..4).prop_map(interleave),
                ]
            });
            let condition = (branch.clone(), prop::option::of(branch.clone()), prop::option::of(branch)).prop_map(
                |(predicate, yes, no)| {
                    filter(Sent::Condition(Box::new(Condition {
                        predicate_filter: Some(Box::new(predicate)),
                        true_filter: yes.map(Box::new),
                        false_filter: no.map(Box::new),
                    })))
                },
            );
            prop_oneof![
                several
                    .clone()
                    .prop_filter("labels", |all| compile(&chain(all.clone()), MEMORY).is_ok())
                    .prop_map(chain),
                several.prop_map(interleave),
                condition,
                labelled,
            ]
        })
        .boxed()
}

fn rows() -> impl Strategy<Value = Vec<ModelRow>> {
    let cell = ("[fg]", bytes(), 0..5_i64, bytes()).prop_map(|(family, qualifier, time, value)| {
        let (qualifier, value) = (qualifier.to_vec(), value.to_vec());
        ModelCell { family, qualifier, time, value, label: None, stripped: false }
    });
    let cells = prop::collection::vec(cell, 1..12).prop_map(|cells: Vec<ModelCell>| {
        let mut cells = sorted(cells);
        cells.dedup_by_key(|cell| (cell.family.clone(), cell.qualifier.clone(), cell.time));
        cells
    });
    let keys = prop::sample::subsequence(vec!["a", "aa", "ab", "b", "ba", "c"], 1..6);
    (keys, prop::collection::vec(cells, 6))
        .prop_map(|(keys, cells)| keys.into_iter().map(|key| key.as_bytes().to_vec()).zip(cells).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn filters_do_as_the_api_says(sent in tree(false), rows in rows()) {
        prop_assert_eq!(Some(evaluated(&sent, &batch_of(&rows))), modelled(&sent, &rows));
    }

    #[test]
    fn what_is_not_wanted_changes_nothing(sent in tree(false), rows in rows()) {
        let few = pushed(&sent, &rows);
        prop_assert_eq!(evaluated(&sent, &batch_of(&few)), evaluated(&sent, &batch_of(&rows)));
    }
}

fn cell(qualifier: &str, time: i64) -> ModelCell {
    let (family, qualifier) = ("f".to_owned(), qualifier.as_bytes().to_vec());
    ModelCell { family, qualifier, time, value: b"value".to_vec(), label: None, stripped: false }
}

/// Rows of so many cells, of ten columns.
fn wide(rows: usize, cells: usize) -> CellBatch {
    let of_row = || -> Vec<ModelCell> {
        (0..cells).map(|at| cell(&format!("q{}", at * 10 / cells), (cells - at) as i64)).collect()
    };
    batch_of(&(0..rows).map(|row| (format!("r{row:06}").into_bytes(), of_row())).collect::<Vec<_>>())
}

fn several(count: usize, of: impl Fn(usize) -> RowFilter) -> Vec<RowFilter> {
    (0..count).map(of).collect()
}

#[test]
fn copies_are_counted_and_not_held() {
    let all = || filter(Sent::PassAllFilter(true));
    let label = |at: usize| filter(Sent::ApplyLabelTransformer(format!("l{at}")));
    let eight = || interleave(several(8, |_| all()));
    // (filter, copies of each cell, rows)
    let cases = [
        (chain(several(6, |_| eight())), 8_u64.pow(6), 300),
        (chain(several(1_400, |_| interleave(several(2, |_| all())))), u64::MAX, 4),
        (interleave(several(1_900, label)), 1_900, 1),
        (chain(vec![interleave(several(100, label)), interleave(several(100, |_| all()))]), 10_000, 1),
        (chain(vec![filter(Sent::CellsPerColumnLimitFilter(10)), chain(several(15, |_| eight()))]), 8_u64.pow(15), 4),
        ((0..18).fold(all(), |inner, _| interleave(vec![inner, filter(Sent::StripValueTransformer(true))])), 19, 4),
    ];
    for (sent, copies, rows) in cases {
        let compiled = compile(&sent, MEMORY).unwrap();
        let memory = 16 << 20;
        let (answer, held) = counted(&compiled, &wide(rows, 100), memory);
        assert!(held <= memory, "{held} bytes for {copies} copies");
        assert_eq!(answer.rows.len(), rows);
        for row in &answer.rows {
            let of_cells: Vec<u64> = row
                .chunk_by(|one, other| one.cell == other.cell)
                .map(|of_cell| of_cell.iter().fold(0, |sum: u64, picked| sum.saturating_add(picked.copies)))
                .collect();
            assert_eq!(of_cells, [copies; 100]);
        }
    }
}

#[test]
fn a_row_is_evaluated_in_pieces() {
    let limit = |count| filter(Sent::CellsPerRowLimitFilter(count));
    let condition = |predicate, yes, no| {
        filter(Sent::Condition(Box::new(Condition {
            predicate_filter: Some(Box::new(predicate)),
            true_filter: Some(Box::new(yes)),
            false_filter: Some(Box::new(no)),
        })))
    };
    let column = |name: &str| filter(Sent::ColumnQualifierRegexFilter(name.to_owned().into()));
    let strip = || filter(Sent::StripValueTransformer(true));
    // The last column decides about the first, the second condition about what the first lets through.
    let last_column = || condition(column("q9"), chain(vec![strip(), limit(70_000)]), column("none"));
    let sent = chain(vec![
        last_column(),
        condition(
            chain(vec![column("q7"), filter(Sent::CellsPerRowOffsetFilter(9_999))]),
            column("none"),
            limit(69_000),
        ),
        interleave(vec![filter(Sent::CellsPerColumnLimitFilter(3)), filter(Sent::CellsPerRowOffsetFilter(68_998))]),
    ]);
    let compiled = compile(&sent, MEMORY).unwrap();
    let batch = wide(1, 100_000);
    let (whole, _) = counted(&compiled, &batch, usize::MAX);
    assert_eq!(whole.rows[0].iter().map(|picked| picked.copies).sum::<u64>(), 7 * 3 + 2);
    for memory in [1 << 14, 1 << 20] {
        let (answer, held) = counted(&compiled, &batch, memory);
        assert!(held <= memory, "{held} > {memory}");
        assert_eq!(answer, whole);
    }
}

/// Random filters that follow from a seed.
struct Random {
    state: u64,
    /// Filters that the tree may still have.
    left: usize,
}

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % limit
    }

    /// A leaf that no limit of the API refuses.
    fn leaf(&mut self) -> RowFilter {
        let texts = ["a", "a|b", ".*", r"\C*", "b+", "x?", "[ab]{1,9}", "q", ""];
        let text = Bytes::from(texts[self.below(texts.len())]);
        filter(match self.below(12) {
            0 => Sent::BlockAllFilter(true),
            1 => Sent::StripValueTransformer(true),
            2 => Sent::FamilyNameRegexFilter(["f", "g", "f|g"][self.below(3)].to_owned()),
            3 => Sent::ColumnQualifierRegexFilter(text),
            4 => Sent::ValueRegexFilter(text),
            5 => Sent::CellsPerRowOffsetFilter(self.below(4) as i32),
            6 => Sent::CellsPerRowLimitFilter(1 + self.below(30) as i32),
            7 => Sent::CellsPerColumnLimitFilter(1 + self.below(4) as i32),
            8 => Sent::RowKeyRegexFilter(if text.is_empty() { "a.*".into() } else { text }),
            9 => Sent::TimestampRangeFilter(TimestampRange { start_timestamp_micros: 1, end_timestamp_micros: 4 }),
            _ => Sent::PassAllFilter(true),
        })
    }

    /// A filter of at most `depth` levels.
    fn tree(&mut self, depth: usize, in_condition: bool, has_labels: bool) -> RowFilter {
        self.left = self.left.saturating_sub(1);
        if depth == 1 || self.left == 0 || self.below(16) == 0 {
            return match self.below(20) {
                0 if !in_condition => filter(Sent::Sink(true)),
                1 if has_labels => {
                    filter(Sent::ApplyLabelTransformer(["one", "two", "three"][self.below(3)].to_owned()))
                }
                _ => self.leaf(),
            };
        }
        let (count, next) = (2 + self.below(3), depth - 1);
        match self.below(5) {
            // Of a chain one filter may give labels.
            0 | 1 => chain((0..count).map(|at| self.tree(next, in_condition, has_labels && at == 1)).collect()),
            2 | 3 => interleave((0..count).map(|_| self.tree(next, in_condition, has_labels)).collect()),
            _ => filter(Sent::Condition(Box::new(Condition {
                predicate_filter: Some(Box::new(self.tree(next, true, false))),
                true_filter: (self.below(5) > 0).then(|| Box::new(self.tree(next, true, has_labels))),
                false_filter: (self.below(5) > 0).then(|| Box::new(self.tree(next, true, has_labels))),
            }))),
        }
    }
}

/// Random filters up to the limits of the service. Those that the model can evaluate give the same cells; all stay within
/// their memory, and give the same cells however little of it they have. `TIDETABLE_FILTERS` names another number.
#[test]
fn random_filters_stay_within_their_memory() {
    let filters = std::env::var("TIDETABLE_FILTERS").ok().and_then(|number| number.parse().ok()).unwrap_or(120);
    let rows: Vec<ModelRow> = ["a", "ab", "b"]
        .iter()
        .map(|key| {
            let mut cells = Vec::new();
            for (family, qualifier) in [("f", "a"), ("f", "ab"), ("f", "q"), ("g", "b")] {
                for time in [4, 3, 1] {
                    let value = [key.as_bytes(), qualifier.as_bytes()].concat();
                    cells.push(ModelCell { family: family.to_owned(), time, value, ..cell(qualifier, time) });
                }
            }
            (key.as_bytes().to_vec(), cells)
        })
        .collect();
    let batch = batch_of(&rows);
    let mut random = Random { state: 20_261_125, left: 0 };
    let (mut compared, mut deepest, mut largest) = (0, 0, 0);
    let mut tried = 0;
    while tried < filters {
        let depth = 2 + random.below(19);
        random.left = [8, 30, 100, 1_200][random.below(4)];
        let sent = random.tree(depth, false, true);
        // It may have more bytes than are allowed.
        let Ok(compiled) = compile(&sent, MEMORY) else { continue };
        tried += 1;
        (deepest, largest) = (deepest.max(compiled.depth), largest.max(compiled.nodes));
        let (answer, held) = counted(&compiled, &batch, MEMORY);
        assert!(held <= MEMORY, "{held}: {sent:?}");
        assert_eq!(counted(&compiled, &batch, MEMORY / 64).0, answer, "{sent:?}");
        if let Some(expected) = modelled(&sent, &rows) {
            assert_eq!(evaluated(&sent, &batch), expected, "{sent:?}");
            compared += 1;
        }
    }
    assert!(compared > filters / 2 && deepest > 15 && largest > 300, "{compared} of {filters}, {deepest}, {largest}");
}

fn refusal(sent: RowFilter) -> String {
    compile(&sent, MEMORY).map(|_| String::new()).unwrap_or_else(|refusal| refusal.to_string())
}

#[test]
fn invalid_filters_are_refused() {
    let all = || filter(Sent::PassAllFilter(true));
    let label = |label: &str| filter(Sent::ApplyLabelTransformer(label.to_owned()));
    let condition = |predicate: Option<RowFilter>, yes: RowFilter| {
        filter(Sent::Condition(Box::new(Condition {
            predicate_filter: predicate.map(Box::new),
            true_filter: Some(Box::new(yes)),
            false_filter: None,
        })))
    };
    let sink = || filter(Sent::Sink(true));
    for (sent, field) in [
        (chain(vec![all()]), "chain"),
        (interleave(vec![]), "interleave"),
        (condition(None, all()), "condition"),
        (condition(Some(all()), sink()), "sink"),
        (condition(Some(chain(vec![all(), sink()])), all()), "sink"),
        (filter(Sent::RowKeyRegexFilter("".into())), "row_key_regex_filter"),
        (filter(Sent::PassAllFilter(false)), "pass_all_filter"),
        (filter(Sent::BlockAllFilter(false)), "block_all_filter"),
        (filter(Sent::RowSampleFilter(1.0)), "row_sample_filter"),
        (filter(Sent::RowSampleFilter(f64::NAN)), "row_sample_filter"),
        (filter(Sent::FamilyNameRegexFilter("a:b".to_owned())), "family_name_regex_filter"),
        (filter(Sent::ValueRegexFilter("(".into())), "value_regex_filter"),
        (filter(Sent::CellsPerRowOffsetFilter(-1)), "cells_per_row_offset_filter"),
        (filter(Sent::CellsPerRowLimitFilter(0)), "cells_per_row_limit_filter"),
        (filter(Sent::CellsPerColumnLimitFilter(0)), "cells_per_column_limit_filter"),
        (label(""), "apply_label_transformer"),
        (label("a-very-long-label"), "apply_label_transformer"),
        (label("Upper"), "apply_label_transformer"),
        (chain(vec![label("a"), interleave(vec![label("b"), all()])]), "chain"),
    ] {
        assert!(refusal(sent).contains(&format!("'{field}'")), "{field}");
    }
    assert_eq!(refusal(interleave(vec![label("a"), label("b-1")])), "");
    assert_eq!(refusal(RowFilter::default()), "");
}

#[test]
fn filters_have_a_greatest_size_and_depth() {
    let nested = |depth: usize| {
        let all = || filter(Sent::PassAllFilter(true));
        (1..depth).fold(all(), |inner, _| chain(vec![inner, all()]))
    };
    assert_eq!(refusal(nested(20)), "");
    assert!(refusal(nested(21)).contains("20 levels"));
    let large = |bytes: usize| filter(Sent::ValueRegexFilter("a".repeat(bytes).into()));
    assert_eq!(refusal(large(20_000)), "");
    assert!(refusal(large(20_480)).contains("20480"));
}

#[test]
fn samples_have_about_their_share_of_rows() {
    let rows: Vec<ModelRow> = (0..4_000).map(|row| (format!("{row:06}").into_bytes(), vec![cell("q", 0)])).collect();
    let batch = batch_of(&rows);
    let sample = |rate: f64| filter(Sent::RowSampleFilter(rate));
    let share = |sent: &RowFilter| evaluated(sent, &batch).len();
    assert!((800..1_200).contains(&share(&sample(0.25))), "{}", share(&sample(0.25)));
    // Two samples of a chain are independent of each other.
    let both = chain(vec![sample(0.5), sample(0.5)]);
    assert!((800..1_200).contains(&share(&both)), "{}", share(&both));
    assert_eq!(evaluated(&both, &batch), evaluated(&both, &batch));
}
