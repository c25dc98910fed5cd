//! No record is lost: each one read is accepted, filtered or rejected, and the cells of accepted ones are written,
//! replaced by later ones, or counted as empty with their position.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use proptest::prelude::*;
use tidetable_layout::TableSpec;
use tidetable_layout::spec::{ColumnSpec, FamilySpec, TimestampSpec};

use model::{DAY, Event, File, START, World};
use tidetable_ingest::{FileFeed, Loaded};

/// A column: its qualifier, its value and whether it is at timestamp 0.
type Column = (&'static str, &'static str, bool);

const LIMIT: u64 = 256 << 20;

fn table(row_key: &str, columns: &[Column]) -> TableSpec {
    let column = |(qualifier, value, zero): &Column| ColumnSpec {
        qualifier: (*qualifier).to_owned(),
        value: (*value).to_owned(),
        timestamp: if *zero { TimestampSpec::Zero } else { TimestampSpec::Implied },
        ..ColumnSpec::default()
    };
    // A family each, so that no two share cells.
    let families = columns.iter().enumerate().map(|(at, own)| FamilySpec {
        name: format!("F{at}"),
        columns: vec![column(own)],
        ..FamilySpec::default()
    });
    TableSpec {
        name: "T".to_owned(),
        row_key: row_key.to_owned(),
        families: families.collect(),
        ..TableSpec::default()
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let event =
        (0u64..2, 0i64..2, 0i64..2, prop_oneof![Just(""), Just("a"), Just("b")], 0u64..3, prop::option::of(0i64..3));
    event.prop_map(|(id, day, hour, q, v, w)| Event {
        id,
        time: START + day * DAY + hour * 3_600_000_000,
        q: q.to_owned(),
        v,
        w,
    })
}

fn any_column() -> impl Strategy<Value = Column> {
    let qualifier = prop_oneof![Just("c"), Just("{q}"), Just("x{w}"), Just("{q}-{w}"), Just("{id}")];
    let value = prop_oneof![Just("{v}"), Just("{w}"), Just("{q}"), Just("w={w}"), Just(""), Just("{id}")];
    (qualifier, value, any::<bool>())
}

/// The text that a template makes of an event; `None` if a field is null, such as empty text in CSV.
fn print(template: &str, event: &Event) -> Option<String> {
    let mut text = template.to_owned();
    let w = event.w.map(|w| w.to_string());
    let q = Some(event.q.clone()).filter(|q| !q.is_empty());
    for (field, value) in
        [("{q}", q), ("{w}", w), ("{v}", Some(event.v.to_string())), ("{id}", Some(event.id.to_string()))]
    {
        if text.contains(field) {
            text = text.replace(field, &value?);
        }
    }
    Some(text)
}

/// Whether row key and qualifier determine the value: then replacing it loses nothing.
fn repeats((qualifier, value, _): &Column) -> bool {
    value.is_empty()
        || *value == "{id}"
        || qualifier.contains(value)
        || (*value == "w={w}" && qualifier.contains("{w}"))
}

#[derive(Debug, Default, PartialEq)]
struct Expected {
    rejected: u64,
    /// Line of each, the first below the header is 2.
    empty: Vec<u64>,
    cells: u64,
    overwritten: u64,
}

/// The expected counts for the events of one file, whose windows are days.
fn expected(columns: &[Column], events: &[Event]) -> Expected {
    let mut found = Expected::default();
    let mut written: BTreeMap<(u64, usize, String, i64), u64> = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        let cells: Vec<(usize, Option<String>)> = (columns.iter().enumerate())
            .filter(|(_, column)| print(column.1, event).is_some())
            .map(|(place, column)| (place, print(column.0, event)))
            .collect();
        if cells.iter().any(|(_, qualifier)| qualifier.is_none()) {
            found.rejected += 1;
            continue;
        }
        if cells.is_empty() {
            found.empty.push(at as u64 + 2);
        }
        for (place, qualifier) in cells {
            let of_key = |template: &str| template.is_empty() || template == "{id}" || !template.contains('{');
            let zero = columns[place].2 || of_key(columns[place].0) && of_key(columns[place].1);
            // Cells of different windows are never in one SST of a load.
            let day = (event.time - START) / DAY;
            let time = if zero { day } else { event.time };
            *written.entry((event.id, place, qualifier.unwrap_or_default(), time)).or_default() += 1;
        }
    }
    for ((_, place, ..), times) in written {
        found.cells += 1;
        found.overwritten += if repeats(&columns[place]) { 0 } else { times - 1 };
    }
    found
}

fn check(columns: &[Column], events: &[Event]) {
    let world = World::of(&table("{id:02}", columns), "", LIMIT);
    world.write(&File::of("a.csv", events));
    let lines = Mutex::new(BTreeSet::new());
    let stats = world.load_counted(&|row| {
        assert_eq!(row.table.as_deref(), Some("T"));
        lines.lock().unwrap().insert(row.line);
    });
    let Expected { rejected, empty, cells, overwritten } = expected(columns, events);
    assert_eq!(stats.rows_read, events.len() as u64);
    assert_eq!((stats.rows_rejected, lines.into_inner().unwrap().len() as u64), (rejected, rejected));
    assert_eq!(stats.rows_accepted + stats.rows_filtered + stats.rows_rejected, stats.rows_read);
    assert_eq!(stats.rows_empty, empty.len() as u64);
    let place = stats.first_empty.map(|row| (row.file, row.line));
    assert_eq!(place, empty.first().map(|line| ("inputs/a.csv".to_owned(), *line)));
    assert_eq!((stats.cells, stats.overwritten), (cells, overwritten), "{columns:?}");
}

#[test]
fn a_null_qualifier_rejects_the_row_whose_cell_it_would_lose() {
    let event = |q: &str, w| Event { id: 1, time: START, q: q.to_owned(), v: 7, w };
    let events = [event("a", Some(1)), event("", Some(2)), event("", None), event("b", None)];
    check(&[("{q}", "{w}", false)], &events);
    check(&[("{q}", "{v}", false)], &events);
    check(&[("{q}", "", true)], &events);
}

#[test]
fn cells_written_over_at_timestamp_0_count_but_not_those_that_follow_from_the_key() {
    let event = |v| Event { id: 1, time: START, q: "a".to_owned(), v, w: Some(3) };
    let events = [event(1), event(2), event(2)];
    let columns = [("v", "{v}", true), ("ID", "{id}", false), ("tag", "{q}", true), ("{q}", "{q}", true)];
    assert_eq!(expected(&columns, &events).overwritten, 4);
    check(&columns, &events);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_layout_no_record_is_lost(
        columns in prop::collection::vec(any_column(), 1..4),
        events in prop::collection::vec(any_event(), 1..12),
    ) {
        check(&columns, &events);
    }
}

/// Cells that inputs of a load replace in each other are counted alike, in however many units it runs.
#[test]
fn units_count_what_they_replace_in_each_other() {
    let event = |id: u64, hour: i64, v: u64| Event { id, time: START + hour * DAY / 24, q: "a".to_owned(), v, w: None };
    let world = World::new(true, "");
    for (name, events) in [
        ("1.csv", vec![event(1, 1, 1), event(1, 2, 2), event(2, 1, 3)]),
        ("2.csv", vec![event(1, 1, 7), event(1, 2, 2), event(2, 30, 4)]),
        ("3.csv", vec![event(1, 1, 8), event(3, 1, 5)]),
    ] {
        world.write(&File::of(name, &events));
    }
    let (storage, source, base, plan) = world.to_load();
    let feed = FileFeed { storage: &storage, source: &source };
    let counts = |mut loaded: Vec<Loaded>| {
        let stats = loaded.remove(0).stats;
        (stats.rows_read, stats.rows_accepted, stats.overwritten, stats.overwritten_changed, stats.written_over())
    };
    let at_once = counts(world.load_planned(&base, &plan, &feed, &|_| {}).unwrap());
    // Three rows of two cells, of which two rows have other values.
    assert_eq!(at_once, (8, 8, 6, 4, 6));
    assert_eq!(counts(world.load_in_units(&base, &plan, &feed).unwrap()), at_once);
}
