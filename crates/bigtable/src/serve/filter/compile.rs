//! Checks and compiles row filters.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use crate::proto::data::row_filter::{self, Filter as Sent};
use crate::proto::data::{ColumnRange, RowFilter, ValueRange, column_range, value_range};
use crate::serve::filter::patterns::{Pattern, Patterns};
use crate::serve::filter::tree::{ByteRange, CompiledFilter, Counted, Filter, NameFilter};
use crate::serve::refusal::Refusal;

/// Greatest size of a serialized filter, bytes.
const MOST_BYTES: usize = 20_480;
/// Greatest depth of nested filters.
const MOST_DEPTH: usize = 20;
/// Greatest length of a label.
const MOST_LABEL: usize = 15;

/// Compiles a filter, whose patterns hold at most about `memory` bytes at a time.
///
/// # Errors
/// If it is not valid, as an `INVALID_ARGUMENT`.
pub(crate) fn compile(filter: &RowFilter, memory: usize) -> Result<CompiledFilter, Refusal> {
    let bytes = filter.encoded_len();
    if bytes > MOST_BYTES {
        return Err(Refusal::FilterSize { bytes, most: MOST_BYTES });
    }
    let mut compiler = Compiler {
        patterns: Patterns::new(memory),
        nodes: 0,
        depth: 0,
        names: 0,
        counters: 0,
        conditions: 0,
        samples: 0,
        joins: false,
        labels: Vec::new(),
    };
    let root = compiler.filter(filter, 1, false)?;

    // Only where copies of a cell meet can they differ.
    let kinds = if compiler.joins { 2 * (compiler.labels.len() + 1) } else { 1 };
    let Compiler { nodes, depth, counters, conditions, labels, .. } = compiler;
    Ok(CompiledFilter { root, labels, nodes, depth, counters, conditions, kinds })
}

struct Compiler {
    patterns: Arc<Patterns>,
    /// Filters so far, and the deepest level.
    nodes: usize,
    depth: usize,
    /// Filters of names, filters that count, conditions and samples, so far.
    names: usize,
    counters: usize,
    conditions: usize,
    samples: u64,
    /// Whether cells of several filters are merged.
    joins: bool,
    labels: Vec<Arc<str>>,
}

impl Compiler {
    fn filter(&mut self, filter: &RowFilter, depth: usize, in_condition: bool) -> Result<Filter, Refusal> {
        if depth > MOST_DEPTH {
            return Err(Refusal::FilterDepth { most: MOST_DEPTH });
        }
        self.nodes += 1;
        self.depth = self.depth.max(depth);

        let Some(filter) = &filter.filter else { return Ok(Filter::All) };
        Ok(match filter {
            Sent::Chain(row_filter::Chain { filters }) => {
                let filters = self.several("chain", filters, depth, in_condition)?;
                if filters.iter().filter(|filter| gives_labels(filter)).count() > 1 {
                    return Err(invalid("chain", "it may have one filter that applies labels"));
                }
                Filter::Chain(filters)
            }
            Sent::Interleave(row_filter::Interleave { filters }) => {
                self.joins = true;
                Filter::Interleave(self.several("interleave", filters, depth, in_condition)?)
            }
            Sent::Condition(condition) => {
                let predicate = condition.predicate_filter.as_deref();
                let predicate = predicate.ok_or_else(|| invalid("condition", "it has no predicate_filter"))?;
                let predicate = Box::new(self.filter(predicate, depth + 1, true)?);
                let index = self.conditions;
                self.conditions += 1;
                let yes = self.branch(condition.true_filter.as_deref(), depth)?;
                let no = self.branch(condition.false_filter.as_deref(), depth)?;
                Filter::Condition { index, predicate, yes, no }
            }
            Sent::Sink(_) if in_condition => return Err(invalid("sink", "it cannot be used within a condition")),
            Sent::Sink(on) => {
                self.joins = true;
                set("sink", *on, Filter::Sink)?
            }
            Sent::PassAllFilter(on) => set("pass_all_filter", *on, Filter::All)?,
            Sent::BlockAllFilter(on) => set("block_all_filter", *on, Filter::Nothing)?,
            Sent::StripValueTransformer(on) => set("strip_value_transformer", *on, Filter::Strip)?,
            Sent::RowKeyRegexFilter(text) if text.is_empty() => {
                return Err(invalid("row_key_regex_filter", "it must not be empty: no row key is"));
            }
            Sent::RowKeyRegexFilter(text) => Filter::Key(self.pattern("row_key_regex_filter", text)?),
            Sent::RowSampleFilter(rate) => {
                if !(*rate > 0.0 && *rate < 1.0) {
                    return Err(invalid("row_sample_filter", "it must be greater than 0 and less than 1"));
                }
                self.samples += 1;
                Filter::Sample { rate: *rate, seed: self.samples }
            }
            Sent::FamilyNameRegexFilter(text) if text.contains(':') => {
                return Err(invalid("family_name_regex_filter", "it must not contain a colon"));
            }
            Sent::FamilyNameRegexFilter(text) => {
                let pattern = self.pattern("family_name_regex_filter", text.as_bytes())?;
                self.name(NameFilter::Family(pattern))
            }
            Sent::ColumnQualifierRegexFilter(text) => {
                let pattern = self.pattern("column_qualifier_regex_filter", text)?;
                self.name(NameFilter::Qualifier(pattern))
            }
            Sent::ColumnRangeFilter(range) => {
                let family = range.family_name.as_str().into();
                self.name(NameFilter::Columns { family, qualifiers: qualifiers(range) })
            }
            Sent::TimestampRangeFilter(range) => {
                let (start, end) = (range.start_timestamp_micros, range.end_timestamp_micros);
                Filter::Times(start..if end == 0 { i64::MAX } else { end })
            }
            Sent::ValueRegexFilter(text) => Filter::Value(self.pattern("value_regex_filter", text)?),
            Sent::ValueRangeFilter(range) => Filter::Values(values(range)),
            Sent::CellsPerRowOffsetFilter(cells) => {
                Filter::RowOffset(self.counted("cells_per_row_offset_filter", *cells, 0)?)
            }
            Sent::CellsPerRowLimitFilter(cells) => {
                Filter::RowLimit(self.counted("cells_per_row_limit_filter", *cells, 1)?)
            }
            Sent::CellsPerColumnLimitFilter(cells) => {
                Filter::ColumnLimit(self.counted("cells_per_column_limit_filter", *cells, 1)?)
            }
            Sent::ApplyLabelTransformer(label) => Filter::Label(self.label(label)?),
        })
    }

    /// The branch of a condition at `depth`; without a filter it lets nothing through.
    fn branch(&mut self, filter: Option<&RowFilter>, depth: usize) -> Result<Box<Filter>, Refusal> {
        let filter = filter.map(|filter| self.filter(filter, depth + 1, true)).transpose()?;
        Ok(Box::new(filter.unwrap_or(Filter::Nothing)))
    }

    fn several(
        &mut self,
        field: &'static str,
        filters: &[RowFilter],
        depth: usize,
        in_condition: bool,
    ) -> Result<Vec<Filter>, Refusal> {
        if filters.len() < 2 {
            return Err(invalid(field, "it must have two filters or more"));
        }
        filters.iter().map(|filter| self.filter(filter, depth + 1, in_condition)).collect()
    }

    fn name(&mut self, name: NameFilter) -> Filter {
        self.names += 1;
        Filter::Name { index: self.names - 1, name }
    }

    fn counted(&mut self, field: &'static str, cells: i32, least: u64) -> Result<Counted, Refusal> {
        let problem = if least == 0 { "it must not be negative" } else { "it must be 1 or more" };
        let cells = u64::try_from(cells).ok().filter(|cells| *cells >= least);
        self.counters += 1;
        Ok(Counted { index: self.counters - 1, cells: cells.ok_or_else(|| invalid(field, problem))? })
    }

    fn pattern(&self, field: &'static str, text: &[u8]) -> Result<Pattern, Refusal> {
        let pattern = self.patterns.pattern(text);
        pattern.map_err(|said| Refusal::Filter { field, problem: format!("not a regular expression: {said}") })
    }

    fn label(&mut self, label: &str) -> Result<u16, Refusal> {
        let is_plain = label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if label.is_empty() || label.len() > MOST_LABEL || !is_plain {
            return Err(invalid("apply_label_transformer", "a label has 1 to 15 characters of a-z, 0-9 and -"));
        }
        if let Some(known) = self.labels.iter().position(|known| **known == *label) {
            return Ok(known as u16);
        }
        self.labels.push(label.into());
        Ok(self.labels.len() as u16 - 1)
    }
}

fn invalid(field: &'static str, problem: &'static str) -> Refusal {
    Refusal::Filter { field, problem: problem.to_owned() }
}

fn set(field: &'static str, on: bool, filter: Filter) -> Result<Filter, Refusal> {
    if on { Ok(filter) } else { Err(invalid(field, "it must be true if it is set")) }
}

/// Whether cells come out of a filter with labels.
fn gives_labels(filter: &Filter) -> bool {
    match filter {
        Filter::Label(_) => true,
        Filter::Chain(filters) | Filter::Interleave(filters) => filters.iter().any(gives_labels),
        Filter::Condition { yes, no, .. } => gives_labels(yes) || gives_labels(no),
        _ => false,
    }
}

fn bound<T>(bound: Option<T>, of: impl FnOnce(T) -> Bound<Bytes>) -> Bound<Bytes> {
    bound.map_or(Bound::Unbounded, of)
}

fn qualifiers(range: &ColumnRange) -> ByteRange {
    let start = bound(range.start_qualifier.clone(), |start| match start {
        column_range::StartQualifier::StartQualifierClosed(start) => Bound::Included(start),
        column_range::StartQualifier::StartQualifierOpen(start) => Bound::Excluded(start),
    });
    let end = bound(range.end_qualifier.clone(), |end| match end {
        column_range::EndQualifier::EndQualifierClosed(end) => Bound::Included(end),
        column_range::EndQualifier::EndQualifierOpen(end) => Bound::Excluded(end),
    });
    ByteRange { start, end }
}

fn values(range: &ValueRange) -> ByteRange {
    let start = bound(range.start_value.clone(), |start| match start {
        value_range::StartValue::StartValueClosed(start) => Bound::Included(start),
        value_range::StartValue::StartValueOpen(start) => Bound::Excluded(start),
    });
    let end = bound(range.end_value.clone(), |end| match end {
        value_range::EndValue::EndValueClosed(end) => Bound::Included(end),
        value_range::EndValue::EndValueOpen(end) => Bound::Excluded(end),
    });
    ByteRange { start, end }
}
