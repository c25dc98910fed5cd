//! What a filter needs of a table: the row keys, columns and timestamps outside of which no cell changes its answer.

use std::ops::Range;
use std::sync::Arc;

use tidetable_cells::{Columns, intersection};
use tidetable_layout::KeyRange;

use crate::serve::filter::tree::{Filter, NameFilter};

/// The timestamps of all cells.
const ALL_TIMES: Range<i64> = i64::MIN..i64::MAX;
/// Keys that a scan looks up one by one, rather than all.
const MOST_RANGES: usize = 1_000;

/// The cells that a filter depends on: those that satisfy all of these.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Row keys; all if `None`.
    keys: Option<Vec<KeyRange>>,
    names: Names,
    pub(crate) times: Range<i64>,
    /// Whether values are compared or returned.
    pub(crate) values: bool,
}

/// Columns, as a formula of filters of names.
#[derive(Debug, Clone)]
enum Names {
    All,
    One(NameFilter),
    And(Vec<Self>),
    Or(Vec<Self>),
}

impl Names {
    fn passes(&self, family: &str, qualifier: Option<&[u8]>) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => name.passes(family, qualifier),
            Self::And(all) => all.iter().all(|names| names.passes(family, qualifier)),
            Self::Or(any) => any.iter().any(|names| names.passes(family, qualifier)),
        }
    }
}

impl Wanted {
    /// All cells of the table, with their values.
    pub(crate) fn everything() -> Self {
        Self { keys: None, names: Names::All, times: ALL_TIMES, values: true }
    }

    /// The cells that the answer of a filter depends on.
    pub(crate) fn of(filter: &Filter) -> Self {
        Self { values: !drops_values(filter) || compares_values(filter), ..wanted(filter) }
    }

    /// The columns; `None` if all are.
    pub(crate) fn columns(&self) -> Option<Columns> {
        if matches!(self.names, Names::All) {
            return None;
        }
        let names = self.names.clone();
        Some(Arc::new(move |family: &str, qualifier: Option<&[u8]>| names.passes(family, qualifier)))
    }

    /// The keys in `ranges`, which are disjoint, of rows that count.
    pub(crate) fn ranges(&self, ranges: &[KeyRange]) -> Vec<KeyRange> {
        match &self.keys {
            Some(keys) => intersection(keys, ranges),
            None => ranges.to_vec(),
        }
    }

    fn and(self, other: Self) -> Self {
        let names = match (self.names, other.names) {
            (Names::All, names) | (names, Names::All) => names,
            // Flat: a chain may be thousands long.
            (Names::And(mut all), other) => {
                all.push(other);
                Names::And(all)
            }
            (one, other) => Names::And(vec![one, other]),
        };
        let times = self.times.start.max(other.times.start)..self.times.end.min(other.times.end);
        let keys = match (self.keys, other.keys) {
            (Some(one), Some(other)) => Some(intersection(&one, &other)),
            (one, other) => one.or(other),
        };
        Self { keys, names, times, values: true }
    }

    fn or(self, other: Self) -> Self {
        let names = match (self.names, other.names) {
            (Names::All, _) | (_, Names::All) => Names::All,
            (Names::Or(mut any), other) => {
                any.push(other);
                Names::Or(any)
            }
            (one, other) => Names::Or(vec![one, other]),
        };
        let times = match (self.times.is_empty(), other.times.is_empty()) {
            (true, _) => other.times,
            (_, true) => self.times,
            _ => self.times.start.min(other.times.start)..self.times.end.max(other.times.end),
        };
        let keys =
            self.keys.zip(other.keys).map(|(one, other)| KeyRange::disjoint(one.into_iter().chain(other).collect()));
        Self { keys: keys.filter(|keys| keys.len() <= MOST_RANGES), names, times, values: true }
    }
}

fn wanted(filter: &Filter) -> Wanted {
    let everything = Wanted::everything();
    match filter {
        Filter::Nothing => Wanted { keys: Some(Vec::new()), ..everything },
        Filter::Name { name, .. } => Wanted { names: Names::One(name.clone()), ..everything },
        Filter::Times(times) => Wanted { times: times.clone(), ..everything },
        Filter::Key(pattern) => Wanted { keys: pattern.key_ranges(), ..everything },
        Filter::Chain(filters) => chain(filters),
        Filter::Interleave(filters) => filters.iter().map(wanted).reduce(Wanted::or).unwrap_or(everything),
        // The predicate decides about the cells of both branches.
        Filter::Condition { predicate, yes, no, .. } => wanted(predicate).or(wanted(yes)).or(wanted(no)),
        _ => everything,
    }
}

/// A filter of a chain sees what those before it let through. What it needs holds for the whole chain as long as these look
/// at cells by themselves, or at the cells of a column.
fn chain(filters: &[Filter]) -> Wanted {
    let mut all = Wanted::everything();
    let mut by_column = false;

    for filter in filters {
        let mut own = wanted(filter);
        if by_column {
            // Of a column all cells count, or none.
            own.times = ALL_TIMES;
        }
        all = all.and(own);
        match filter {
            Filter::ColumnLimit(_) => by_column = true,
            Filter::All
            | Filter::Nothing
            | Filter::Key(_)
            | Filter::Sample { .. }
            | Filter::Name { .. }
            | Filter::Times(_)
            | Filter::Value(_)
            | Filter::Values(_)
            | Filter::Strip
            | Filter::Label(_) => {}
            _ => break,
        }
    }
    all
}

/// Whether each cell that comes out has lost its value.
fn drops_values(filter: &Filter) -> bool {
    match filter {
        Filter::Strip | Filter::Nothing => true,
        // Cells of a sink are those before the rest of the chain.
        Filter::Chain(filters) => !filters.iter().any(has_sink) && filters.iter().any(drops_values),
        Filter::Interleave(filters) => filters.iter().all(drops_values),
        Filter::Condition { yes, no, .. } => drops_values(yes) && drops_values(no),
        _ => false,
    }
}

fn has_sink(filter: &Filter) -> bool {
    match filter {
        Filter::Sink => true,
        Filter::Chain(filters) | Filter::Interleave(filters) => filters.iter().any(has_sink),
        _ => false,
    }
}

fn compares_values(filter: &Filter) -> bool {
    match filter {
        Filter::Value(_) | Filter::Values(_) => true,
        Filter::Chain(filters) | Filter::Interleave(filters) => filters.iter().any(compares_values),
        Filter::Condition { predicate, yes, no, .. } => {
            [predicate, yes, no].iter().any(|filter| compares_values(filter))
        }
        _ => false,
    }
}
