//! Words that stand for a missing value in a column of numbers, such as "No Data".

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::StringArray;
use tidetable_layout::FieldType;

use crate::sample::candidate::values;
use crate::sample::numbers::forms::is_number;
use crate::spec::SourceSpec;
use crate::value::notation::Notation;

/// Words of data loggers, historians and spreadsheets, in lower case.
const KNOWN: [&str; 48] = [
    "no data",
    "nodata",
    "no_data",
    "no value",
    "bad",
    "bad input",
    "bad data",
    "bad quality",
    "i/o timeout",
    "timeout",
    "pt created",
    "scan off",
    "scan timeout",
    "shutdown",
    "comm fail",
    "error",
    "err",
    "fault",
    "failed",
    "fail",
    "invalid",
    "missing",
    "unknown",
    "offline",
    "overflow",
    "underflow",
    "over range",
    "under range",
    "out of range",
    "not available",
    "not connect",
    "unavailable",
    "undefined",
    "nil",
    "nan",
    "null",
    "n.a.",
    "n.d.",
    "nd",
    "#n/a",
    "#value!",
    "#ref!",
    "#div/0!",
    "#num!",
    "--",
    "---",
    "----",
    "keine daten",
];
/// The null of database dumps, which no text is.
const NEVER_A_VALUE: &str = "\\N";
/// Most different words, and their greatest share of the values, as one in so many.
const MOST_WORDS: usize = 12;
const SHARE: usize = 5;
/// Fewest different numbers of a column of integers that are measured, not names.
const MEASURED: usize = 20;

/// A null marker of another column that a column of text has among its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMarker {
    /// The marker, such as `NA`.
    pub marker: String,
    /// How many of the sampled rows have it.
    pub count: u64,
}

/// The words among the values of a column of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// Each word, and how often it is there.
    pub counts: BTreeMap<String, u64>,
    /// The indices of their values among those of the column.
    pub places: Vec<usize>,
    /// The first word, in the order of the file.
    pub first: String,
}

/// Declares the null markers that columns were inferred with: those of all columns are the file's. A marker that a column of
/// text has beside other values is one of its values, so the columns in which it is null declare it for themselves. Returns
/// what each column of text keeps, with the most frequent marker.
pub(super) fn declare_markers(
    spec: &mut SourceSpec,
    markers: &[BTreeSet<String>],
    texts: &[Vec<&StringArray>],
) -> Vec<Option<KeptMarker>> {
    let all: BTreeSet<&str> = markers.iter().flatten().map(String::as_str).filter(|m| *m != NEVER_A_VALUE).collect();
    let mut kept: Vec<Option<KeptMarker>> = Vec::with_capacity(texts.len());
    let mut values_too: BTreeSet<&str> = BTreeSet::new();
    for (column, texts) in spec.columns.iter().zip(texts) {
        if all.is_empty() || column.kind != FieldType::Text {
            kept.push(None);
            continue;
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut has_others = false;
        for value in values(texts) {
            match all.get(value) {
                Some(marker) => *counts.entry(*marker).or_default() += 1,
                None => has_others |= !value.is_empty(),
            }
        }

        counts.retain(|_, _| has_others);
        values_too.extend(counts.keys().copied());
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        kept.push(most.map(|(marker, count)| KeptMarker { marker: marker.to_owned(), count }));
    }

    let empty = || std::iter::once(String::new());
    let mut of_file: BTreeSet<String> = empty().collect();
    for (column, markers) in spec.columns.iter_mut().zip(markers) {
        if markers.iter().any(|marker| values_too.contains(marker.as_str())) {
            column.null = Some(empty().chain(markers.iter().cloned()).collect());
        } else {
            of_file.extend(markers.iter().cloned());
        }
    }
    spec.csv.null = of_file.into_iter().collect();
    kept
}

/// Whether a word is known to stand for a missing value.
fn is_known(word: &str) -> bool {
    KNOWN.contains(&word.to_lowercase().as_str())
}

/// The words among `values`, if all others are numbers and the words stand for missing ones.
pub(super) fn find(values: &[&str], notation: Notation) -> Option<Words> {
    let most = values.len() / SHARE;
    let mut words = Words { counts: BTreeMap::new(), places: Vec::new(), first: String::new() };
    for (at, value) in values.iter().enumerate() {
        if is_number(value, notation) {
            continue;
        }
        if words.places.len() >= most || words.counts.len() > MOST_WORDS {
            return None;
        }
        if words.places.is_empty() {
            words.first = (*value).to_owned();
        }
        words.places.push(at);
        *words.counts.entry((*value).to_owned()).or_default() += 1;
    }
    let all_known = words.counts.keys().all(|word| is_known(word));
    let all_repeat = words.counts.iter().all(|(word, count)| is_known(word) || *count > 1 && !is_name(word));
    let fits = !words.places.is_empty() && words.counts.len() <= MOST_WORDS && (all_known || all_repeat);
    fits.then_some(words)
}

/// Whether a column of this type is measured, so that its words are no names: integers are names if they are few.
pub(super) fn is_measured(kind: FieldType, words: &Words, distinct: usize) -> bool {
    match kind {
        FieldType::Float64 | FieldType::Decimal { .. } => true,
        FieldType::Int64 | FieldType::UInt64 => distinct > MEASURED || words.counts.keys().all(|word| is_known(word)),
        _ => false,
    }
}

/// Whether a value is letters and digits and nothing else, and has both.
pub(super) fn is_name(value: &str) -> bool {
    value.chars().any(char::is_alphabetic)
        && value.chars().any(char::is_numeric)
        && value.chars().all(char::is_alphanumeric)
}
