//! The evaluator against a model that follows the words of the API, a row of cells at a time.

use std::cmp::Reverse;

use bytes::Bytes;
use proptest::prelude::*;

use crate::cells::{CellBatch, CellBatchBuilder, ColumnId};
use crate::proto::data::row_filter::{Chain, Condition, Filter as Sent, Interleave};
use crate::proto::data::{ColumnRange, RowFilter, TimestampRange, ValueRange, column_range, value_range};
use crate::serve::filter::{Evaluator, Wanted, compile};

/// Family, qualifier, timestamp, value, label.
type ModelCell = (String, Vec<u8>, i64, Vec<u8>, Option<String>);

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

/// Whole matches, by another way than the evaluator's: only what the generated patterns need.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let pattern = std::str::from_utf8(pattern).unwrap();
    regex::bytes::Regex::new(&format!("(?s-u)^(?:{})$", pattern.replace(r"\C", "."))).unwrap().is_match(text)
}

/// The cells of a row that pass; `sunk` collects those that went to a sink.
fn model(sent: &RowFilter, key: &[u8], cells: Vec<ModelCell>, sunk: &mut Vec<ModelCell>) -> Vec<ModelCell> {
    let keep = |keeps: &dyn Fn(&ModelCell) -> bool| cells.iter().filter(|cell| keeps(cell)).cloned().collect();
    let by_row = |keeps: bool| if keeps { cells.clone() } else { Vec::new() };
    match sent.filter.as_ref().unwrap() {
        Sent::Chain(chain) => chain.filters.iter().fold(cells, |cells, filter| model(filter, key, cells, sunk)),
        Sent::Interleave(all) => {
            sorted(all.filters.iter().flat_map(|filter| model(filter, key, cells.clone(), sunk)).collect())
        }
        Sent::Condition(condition) => {
            let found = model(condition.predicate_filter.as_ref().unwrap(), key, cells.clone(), sunk);
            let branch = if found.is_empty() { &condition.false_filter } else { &condition.true_filter };
            branch.as_ref().map_or(Vec::new(), |filter| model(filter, key, cells, sunk))
        }
        Sent::Sink(_) => {
            sunk.extend(cells);
            Vec::new()
        }
        Sent::PassAllFilter(_) => cells,
        Sent::BlockAllFilter(_) => Vec::new(),
        Sent::RowKeyRegexFilter(pattern) => by_row(matches(pattern, key)),
        Sent::FamilyNameRegexFilter(pattern) => keep(&|cell| matches(pattern.as_bytes(), cell.0.as_bytes())),
        Sent::ColumnQualifierRegexFilter(pattern) => keep(&|cell| matches(pattern, &cell.1)),
        Sent::ColumnRangeFilter(range) => keep(&|cell| {
            use column_range::{EndQualifier, StartQualifier};
            cell.0 == range.family_name
                && match &range.start_qualifier {
                    Some(StartQualifier::StartQualifierClosed(start)) => cell.1.as_slice() >= start,
                    Some(StartQualifier::StartQualifierOpen(start)) => cell.1.as_slice() > start,
                    None => true,
                }
                && match &range.end_qualifier {
                    Some(EndQualifier::EndQualifierClosed(end)) => cell.1.as_slice() <= end,
                    Some(EndQualifier::EndQualifierOpen(end)) => cell.1.as_slice() < end,
                    None => true,
                }
        }),
        Sent::TimestampRangeFilter(range) => keep(&|cell| {
            let end = range.end_timestamp_micros;
            cell.2 >= range.start_timestamp_micros && (end == 0 || cell.2 < end)
        }),
        Sent::ValueRegexFilter(pattern) => keep(&|cell| matches(pattern, &cell.3)),
        Sent::ValueRangeFilter(range) => keep(&|cell| {
            use value_range::{EndValue, StartValue};
            let starts = match &range.start_value {
                Some(StartValue::StartValueClosed(start)) => cell.3.as_slice() >= start,
                Some(StartValue::StartValueOpen(start)) => cell.3.as_slice() > start,
                None => true,
            };
            starts
                && match &range.end_value {
                    Some(EndValue::EndValueClosed(end)) => cell.3.as_slice() <= end,
                    Some(EndValue::EndValueOpen(end)) => cell.3.as_slice() < end,
                    None => true,
                }
        }),
        Sent::CellsPerRowOffsetFilter(count) => cells.into_iter().skip(*count as usize).collect(),
        Sent::CellsPerRowLimitFilter(count) => cells.into_iter().take(*count as usize).collect(),
        Sent::CellsPerColumnLimitFilter(count) => {
            let of_column = |a: &ModelCell, b: &ModelCell| (&a.0, &a.1) == (&b.0, &b.1);
            let newer = |at: usize| cells[..at].iter().filter(|cell| of_column(cell, &cells[at])).count();
            (0..cells.len()).filter(|at| newer(*at) < *count as usize).map(|at| cells[at].clone()).collect()
        }
        Sent::StripValueTransformer(_) => {
            cells.into_iter().map(|(f, q, time, _, label)| (f, q, time, Vec::new(), label)).collect()
        }
        Sent::ApplyLabelTransformer(label) => {
            cells.into_iter().map(|(f, q, time, value, _)| (f, q, time, value, Some(label.clone()))).collect()
        }
        Sent::RowSampleFilter(_) => unreachable!("samples are not generated"),
    }
}

fn sorted(mut cells: Vec<ModelCell>) -> Vec<ModelCell> {
    cells.sort_by(|a, b| (&a.0, &a.1, Reverse(a.2)).cmp(&(&b.0, &b.1, Reverse(b.2))));
    cells
}

fn batch_of(rows: &[ModelRow]) -> CellBatch {
    let id = |cell: &ModelCell| ColumnId { family: cell.0.as_str().into(), qualifier: Bytes::from(cell.1.clone()) };
    let mut columns: Vec<ColumnId> = rows.iter().flat_map(|(_, cells)| cells).map(id).collect();
    columns.sort();
    columns.dedup();
    let mut builder = CellBatchBuilder::new(columns.clone().into());
    for (key, cells) in rows {
        for cell in cells {
            let column = columns.binary_search(&id(cell)).unwrap();
            builder.cell(column as u32, cell.2, |out| out.extend_from_slice(&cell.3));
        }
        builder.end_row(|out| out.extend_from_slice(key));
    }
    builder.finish()
}

/// The rows of a batch with the cells that pass.
fn evaluated(sent: &RowFilter, batch: &CellBatch) -> Vec<ModelRow> {
    let (filter, labels) = compile(sent).unwrap();
    let mut evaluator = Evaluator::new(&filter);
    // Twice, as for batches that have the same columns.
    evaluator.picks(batch);
    let picks = evaluator.picks(batch);
    let cell = |picked: &super::Picked| {
        let cell = picked.cell as usize;
        let value = if picked.stripped { Vec::new() } else { batch.value(cell).to_vec() };
        let label = picked.label.map(|label| labels[usize::from(label)].to_string());
        (batch.family(cell).to_owned(), batch.qualifier(cell).to_vec(), batch.timestamp(cell), value, label)
    };
    let row = |row: usize| (batch.key(row).to_vec(), picks.row(row).iter().map(cell).collect());
    (0..batch.rows()).map(row).filter(|(_, cells): &ModelRow| !cells.is_empty()).collect()
}

fn modelled(sent: &RowFilter, rows: &[ModelRow]) -> Vec<ModelRow> {
    let row = |(key, cells): &ModelRow| {
        let mut sunk = Vec::new();
        let mut passed = model(sent, key, cells.clone(), &mut sunk);
        passed.extend(sunk);
        (key.clone(), sorted(passed))
    };
    rows.iter().map(row).filter(|(_, cells)| !cells.is_empty()).collect()
}

/// The rows without what a filter says it does not need.
fn pushed(sent: &RowFilter, rows: &[ModelRow]) -> Vec<ModelRow> {
    let wanted = Wanted::of(&compile(sent).unwrap().0);
    let columns = wanted.columns();
    let ranges = wanted.ranges(&[tidetable_layout::KeyRange::all()]);
    let keeps = |cell: &&ModelCell| {
        let passes = columns.as_ref().is_none_or(|passes| passes(&cell.0, Some(&cell.1)) && passes(&cell.0, None));
        passes && wanted.times.contains(&cell.2)
    };
    let cell = |cell: &ModelCell| match wanted.values {
        true => cell.clone(),
        false => (cell.0.clone(), cell.1.clone(), cell.2, Vec::new(), cell.4.clone()),
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
                several.clone().prop_filter("labels", |all| compile(&chain(all.clone())).is_ok()).prop_map(chain),
                several.prop_map(interleave),
                condition,
                labelled,
            ]
        })
        .boxed()
}

fn rows() -> impl Strategy<Value = Vec<ModelRow>> {
    let cell = ("[fg]", bytes(), 0..5_i64, bytes())
        .prop_map(|(family, qualifier, time, value)| (family, qualifier.to_vec(), time, value.to_vec(), None));
    let cells = prop::collection::vec(cell, 1..12).prop_map(|cells: Vec<ModelCell>| {
        let mut cells = sorted(cells);
        cells.dedup_by_key(|cell| (cell.0.clone(), cell.1.clone(), cell.2));
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
        prop_assert_eq!(evaluated(&sent, &batch_of(&rows)), modelled(&sent, &rows));
    }

    #[test]
    fn what_is_not_wanted_changes_nothing(sent in tree(false), rows in rows()) {
        let few = pushed(&sent, &rows);
        prop_assert_eq!(evaluated(&sent, &batch_of(&few)), evaluated(&sent, &batch_of(&rows)));
    }
}

fn refusal(sent: RowFilter) -> String {
    compile(&sent).map(|_| String::new()).unwrap_or_else(|refusal| refusal.to_string())
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
    let cell = || ("f".to_owned(), b"q".to_vec(), 0, Vec::new(), None);
    let rows: Vec<ModelRow> = (0..4_000).map(|row| (format!("{row:06}").into_bytes(), vec![cell()])).collect();
    let batch = batch_of(&rows);
    let sample = |rate: f64| filter(Sent::RowSampleFilter(rate));
    let share = |sent: &RowFilter| evaluated(sent, &batch).len();
    assert!((800..1_200).contains(&share(&sample(0.25))), "{}", share(&sample(0.25)));
    // Two samples of a chain are independent of each other.
    let both = chain(vec![sample(0.5), sample(0.5)]);
    assert!((800..1_200).contains(&share(&both)), "{}", share(&both));
    assert_eq!(evaluated(&both, &batch), evaluated(&both, &batch));
}
