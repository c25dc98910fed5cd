//! How rows are written as time goes by.

use crate::facts::{RowGrowth, short, shown};
use crate::lint::found::Found;
use crate::lint::limits;
use crate::lint::rule::{Check, DESIGN, KEY_VISUALIZER, Needs, PERFORMANCE, Rule, Severity};
use crate::lint::subject::TableSubject;
use crate::trial::Overwritten;

/// Slices from which on shares and totals mean something.
const FEWEST_SLICES: u64 = 20;
/// Rows of the median slice from which on their share means something: a single row is always in one range.
const FEWEST_ROWS: u64 = 20;
/// Share of a slice's writes in one of ten ranges.
const TOP_SHARE: f64 = 0.5;
/// How many times the median a burst is.
const BURST: u64 = 5;

pub(super) static REWRITTEN: Rule = Rule {
    id: "K7",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "a row without a time in its key that is written in 100 slices of time or more, of 720 while it is kept",
    reason: "A row that is written again and again keeps one node busy and grows until garbage is collected; a row for each time is \
             written once",
    source: DESIGN,
    check: Check::Table(rewritten),
};

fn rewritten(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts.filter(|_| !table.has_time() && !table.table.spec.upsert) else { return Vec::new() };
    let row = &facts.rewritten;
    let scaled = facts.scale.as_ref().map_or(0, |scale| scale.row_slices);
    let slices = row.slices.max(scaled);
    let Some(passed) = limits::row_slices(slices) else { return Vec::new() };

    let key = &table.table.spec.row_key;
    let edit = table.with_key(|_| Some(format!("{key}#{{{}:ms}}", table.time())));
    let when = if slices > row.slices { " while it is kept" } else { "" };
    let message = format!("one row is written in {slices} slices of time{when}");
    let found = Found::new(Severity::Warn, table.whole_key(), message);
    vec![found.measure(passed.measured, passed.limit, "slices").keys([shown(&row.key)]).edit(edit)]
}

pub(super) static OVERWRITTEN: Rule = Rule {
    id: "K15",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "source rows that overwrite each other's cells; a warning if each is an equal row sent again",
    reason: "A cell is named by row, column and timestamp: of two readings with one name the later stays, and the other is lost",
    source: DESIGN,
    check: Check::Table(overwritten),
};

fn overwritten(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts.filter(|facts| facts.overwritten.rows > 0) else { return Vec::new() };
    if table.table.spec.upsert {
        return Vec::new();
    }
    let Overwritten { rows, cells } = facts.overwritten;
    let is_sent_again = facts.repeated.is_some_and(|repeated| rows <= repeated);
    let (severity, what) = match is_sent_again {
        true => (Severity::Warn, "equal rows that were sent again: nothing is lost, and each is written twice"),
        false => (Severity::Error, "same row, column and timestamp"),
    };
    let message = format!("later source rows replaced {cells} cells of {rows} source rows: {what}");
    let found = Found::new(severity, table.whole_key(), message).keys([shown(&facts.overwritten_key)]);
    vec![found.measure(rows as f64, 0.0, "source rows")]
}

pub(super) static ONE_RANGE: Rule = Rule {
    id: "W1",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "writes that go to one place: those of the busiest values of the columns before the time pass a node at the declared rate; \
            else rank 95 of 100 of the top shares of ten key ranges is 0.5 or more, in slices of 20 rows and \
            more; an error if that range passes a node at the declared rate, a note if it does not, a warning without a rate",
    reason: "Nodes share a table by ranges of keys, so a range that takes half of the writes keeps one node busy, however many there are",
    source: KEY_VISUALIZER,
    check: Check::Table(one_range),
};

fn one_range(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(writes) = table.facts.map(|facts| &facts.writes) else { return Vec::new() };
    // At scale the share of the busiest series decides, and not that of a range of what was measured.
    if let Some(found) = hot_series(table) {
        return vec![found];
    }
    if writes.cut_slices < FEWEST_SLICES || writes.median < FEWEST_ROWS || writes.top_share < TOP_SHARE {
        return Vec::new();
    }
    let message = format!("one of ten ranges of keys takes {:.0} % of the writes of a slice", 100.0 * writes.top_share);
    if let Some(found) = one_series(table, &message) {
        return vec![found];
    }
    let Some(declared) = writes.declared else {
        let found = Found::new(Severity::Warn, table.whole_key(), message);
        return vec![found.measure(writes.top_share, TOP_SHARE, "of the writes")];
    };
    let rate = writes.top_share * declared;
    let node = table.prices.node.writes_per_second;
    let severity = if rate > node { Severity::Error } else { Severity::Info };
    let message = format!("{message}: {rate:.0} a second at the declared rate");
    vec![Found::new(severity, table.whole_key(), message).measure(rate, node, "writes a second")]
}

/// The same at scale, of a key with a time: what is new of equal columns before the time goes to one place, and more entities
/// are other places.
fn one_series(table: &TableSubject<'_>, message: &str) -> Option<Found> {
    let scale = table.facts?.scale.as_ref().filter(|scale| scale.is_rate_declared)?;
    let rate = scale.series_rate?;
    let node = table.prices.node.writes_per_second;
    let of = if scale.is_time_first { "all go" } else { "those of the busiest entity go" };
    let message = format!("{message}; at the declared rate {of} to one place, {rate:.0} a second");
    Some(Found::new(Severity::Info, table.whole_key(), message).measure(rate, node, "writes a second"))
}

/// A series whose newest rows take more writes than a node, at the declared rate.
fn hot_series(table: &TableSubject<'_>) -> Option<Found> {
    let scale = table.facts?.scale.as_ref().filter(|scale| scale.is_rate_declared)?;
    let rate = scale.series_rate?;
    let passed = limits::series_writes(rate, scale.write_kib, table.prices)?;
    let (severity, of, salt) = match scale.is_time_first {
        true => (passed.severity, "all go", ""),
        false => (Severity::Warn, "those of the busiest entity go", "; a salt of the time would spread them"),
    };
    let writes = limits::writes_text(rate, scale.write_kib);
    let message =
        format!("at the declared rate {of} to one place, {writes}: {:.1} nodes{salt}", passed.measured / passed.limit);
    Some(Found::new(severity, table.whole_key(), message).measure(passed.measured, passed.limit, "writes a second"))
}

pub(super) static HOT_ROW: Rule = Rule {
    id: "W2",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "a row with more writes than a node takes, 14,000 a second of 1 KiB, at the declared rate if there is one",
    reason: "A row is never split, so no number of nodes helps it",
    source: PERFORMANCE,
    check: Check::Table(hot_row),
};

fn hot_row(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts else { return Vec::new() };
    let writes = &facts.writes;
    let scale = facts.scale.as_ref();
    let (rate, kib) = scale.map_or((writes.hottest_rate, 1.0), |scale| (scale.row_rate, scale.write_kib));
    let Some(passed) = limits::row_writes(rate, kib, table.prices) else { return Vec::new() };
    let growth = scale.map(|scale| RowGrowth { time: 1.0, ..scale.row_growth }.text()).unwrap_or_default();
    let measured = if growth.is_empty() { String::new() } else { format!(": {}{growth}", short(writes.hottest_rate)) };
    let message = format!("one row takes {}{measured}", limits::writes_text(rate, kib));
    let found = Found::new(passed.severity, table.whole_key(), message).keys([shown(&writes.hottest_key)]);
    vec![found.measure(passed.measured, passed.limit, "writes a second")]
}

pub(super) static BURSTS: Rule = Rule {
    id: "W3",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "writes in bursts: rank 95 of 100 of the slices is 5 times the median or more",
    reason: "Nodes are paid for the peak; writes that come all at once can often be spread by the sender",
    source: KEY_VISUALIZER,
    check: Check::Table(bursts),
};

fn bursts(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(writes) = table.facts.map(|facts| &facts.writes).filter(|writes| writes.slices >= FEWEST_SLICES) else {
        return Vec::new();
    };
    if writes.median == 0 || writes.high < BURST * writes.median {
        return Vec::new();
    }
    let times = writes.high as f64 / writes.median as f64;
    let message = format!("busy slices have {} rows, the median {}", writes.high, writes.median);
    vec![Found::new(Severity::Warn, table.at(), message).measure(times, BURST as f64, "times the median")]
}
