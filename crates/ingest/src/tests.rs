//! Rows built from events, and merged from SSTs in all splits of these.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use proptest::prelude::*;
use tidetable_layout::encode::{Dictionary, EncodedBatch, EncodedGroup};
use tidetable_layout::hll::{Distinct, Sketch};
use tidetable_layout::schema::{Encoding, KeyTail, Merge as Kind, Packed, PackedForm, QualifierKind, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, StoredSchema, ValueType};
use tidetable_store::merge::{Merge, emptied};
use tidetable_store::{GcFilter, GcRule};
use tidetable_store::{Result, StoreError};

use crate::sort::chunk::{AllRanks, Chunk, Prefixes};
use crate::sort::partition::{Events, Partition};
use crate::sort::piece::PieceEvents;
use crate::sort::ranks::Ranks;
use crate::sort::rows;
use crate::spill::file::SpillFile;
use crate::spill::merge::RangeEvents;
use crate::spill::ranges::key_ranges;

const ROWS: [&str; 3] = ["a", "b", "c"];
const QUALIFIERS: [&str; 3] = ["x", "y", "z"];
/// Values of an event; each column takes one of them.
const VALUES: usize = 3;

/// One event: its row, its qualifier in dynamic groups, its time where it is stored, and its values.
#[derive(Debug, Clone)]
struct Event {
    row: usize,
    qualifier: usize,
    time: i64,
    values: [Option<i64>; VALUES],
}

fn column(family: &str, merge: Kind) -> Column {
    let (value, encoding) = match merge {
        Kind::Newest => (ValueType::Field(FieldType::Int64), Encoding::Text),
        Kind::Max => (ValueType::Field(FieldType::UInt64), Encoding::Int64),
        Kind::Hll => (ValueType::Bytes, Encoding::Bytes),
        Kind::Sum | Kind::Min => (ValueType::Field(FieldType::Int64), Encoding::Int64),
    };
    Column { family: family.to_owned(), qualifier: family.as_bytes().to_vec(), value, encoding, merge }
}

/// A group at timestamp 0, one with versions, one with qualifiers as data, all of these columns.
fn schema(columns: &[Column], upsert: bool) -> StoredSchema {
    let group = |qualifier, timestamps| Group { qualifier, timestamps, packed: None, columns: columns.to_vec() };
    let groups = vec![
        group(QualifierKind::Constant, TimestampKind::Zero),
        group(QualifierKind::Constant, TimestampKind::Stored),
        group(QualifierKind::Dynamic, TimestampKind::Stored),
    ];
    StoredSchema { tail: KeyTail::default(), groups, upsert }
}

fn aggregates() -> StoredSchema {
    let kinds = [Kind::Sum, Kind::Min, Kind::Max, Kind::Hll];
    schema(&kinds.map(|kind| column(kind.word(), kind)), false)
}

fn aggregates_and_newest() -> StoredSchema {
    schema(&[column("n", Kind::Newest), column("sum", Kind::Sum), column("m", Kind::Newest)], false)
}

fn plain(upsert: bool) -> StoredSchema {
    schema(&[column("n", Kind::Newest), column("m", Kind::Newest)], upsert)
}

/// Records of a bucket, which may have equal times.
fn buckets() -> StoredSchema {
    let columns = vec![column("n", Kind::Newest), column("m", Kind::Newest)];
    let form = PackedForm::Repeated { fields: Vec::new(), number: 1 };
    let packed = Some(Packed { family: "F".to_owned(), qualifier: b"blob".to_vec(), form });
    let group = Group { qualifier: QualifierKind::Constant, timestamps: TimestampKind::Stored, packed, columns };
    StoredSchema { tail: KeyTail::default(), groups: vec![group], upsert: false }
}

fn array(column: &Column, value: usize, events: &[Event]) -> ArrayRef {
    let values = events.iter().map(|event| event.values[value % VALUES]);
    match column.value.arrow() {
        DataType::UInt64 => Arc::new(UInt64Array::from_iter(values.map(|v| v.map(i64::unsigned_abs)))),
        DataType::Binary => {
            let sketch = |value: i64| {
                let mut bytes = Vec::new();
                Distinct::Integer(value.cast_unsigned()).write_sketch(&mut bytes);
                bytes
            };
            Arc::new(BinaryArray::from_iter(values.map(|value| value.map(sketch))))
        }
        _ => Arc::new(Int64Array::from_iter(values)),
    }
}

/// The block a load makes of events.
fn built(schema: &StoredSchema, events: &[Event]) -> Result<Block> {
    built_of_rows(schema, events, None)
}

/// The same, of events of these rows of the source.
fn built_of_rows(schema: &StoredSchema, events: &[Event], units: Option<Vec<u32>>) -> Result<Block> {
    let mut pieces = built_in_pieces(schema, events, units, usize::MAX)?;
    assert_eq!(pieces.len(), 1);
    Ok(pieces.remove(0))
}

/// The same in pieces of at most so many events, unless a piece is of one row.
fn built_in_pieces(
    schema: &StoredSchema,
    events: &[Event],
    units: Option<Vec<u32>>,
    most: usize,
) -> Result<Vec<Block>> {
    let chunks = chunks(schema, events, units.as_deref());
    let ranks = ranks(schema);
    let events = Events { chunks: &chunks, window: 0, ranks: &ranks, first_unit: 0 };
    Ok(built_of_events(schema, events, most)?.blocks)
}

/// What a load makes of events.
#[derive(Default)]
struct Built {
    blocks: Vec<Block>,
    overwritten: u64,
    lost: BTreeSet<u64>,
}

fn built_of_events(schema: &StoredSchema, events: Events<'_>, most: usize) -> Result<Built> {
    let mut built = Built::default();
    let partition = Partition::new(schema, events, most);
    for piece in 0..partition.len() {
        let sorted = PieceEvents::collect(&partition, piece)?;
        let written = rows::build(schema, &sorted, events.ranks, &|_, _| false)?;
        built.blocks.push(written.block);
        built.overwritten += written.overwritten;
        built.lost.extend(written.lost);
    }
    Ok(built)
}

/// Events as two chunks. Events of one row of the source are in one.
fn chunks(schema: &StoredSchema, events: &[Event], units: Option<&[u32]>) -> [Chunk; 2] {
    let half = row_start(units, events.len() / 2);
    let chunk = |part: Range<usize>| {
        let events = &events[part.clone()];
        let groups = schema.groups.iter().map(|group| EncodedGroup {
            qualifier: (group.qualifier == QualifierKind::Dynamic)
                .then(|| events.iter().map(|event| event.qualifier as u32).collect()),
            timestamps: (group.timestamps == TimestampKind::Stored)
                .then(|| events.iter().map(|event| event.time).collect()),
            columns: group.columns.iter().enumerate().map(|(at, column)| array(column, at, events)).collect(),
        });
        let encoded = EncodedBatch {
            rows: units.map(|units| units[part.clone()].to_vec()),
            prefix: events.iter().map(|event| event.row as u32).collect(),
            tail: Vec::new(),
            time: Vec::new(),
            groups: groups.collect(),
            rejected: Vec::new(),
        };
        let all = 0..events.len();
        let windows = BTreeMap::from([(0, Vec::from([all]))]);
        Chunk { place: (0, part.start as u64), worker: 0, bytes: 0, encoded, units: None, windows }
    };
    [chunk(0..half), chunk(half..events.len())]
}

/// The first event of the source row that has event `at`.
fn row_start(units: Option<&[u32]>, mut at: usize) -> usize {
    while units.is_some_and(|units| at > 0 && units.get(at) == units.get(at - 1)) {
        at -= 1;
    }
    at
}

fn ranks(schema: &StoredSchema) -> AllRanks {
    let ranked = |names: &[&str]| {
        let mut dictionary = Dictionary::new();
        names.iter().for_each(|name| {
            dictionary.intern(name.as_bytes());
        });
        Ranks::new(&[&dictionary])
    };
    let qualifiers =
        schema.groups.iter().map(|group| (group.qualifier == QualifierKind::Dynamic).then(|| ranked(&QUALIFIERS)));
    AllRanks { prefixes: Prefixes::Names(ranked(&ROWS)), qualifiers: qualifiers.collect() }
}

/// As [`built_of_events`], of events that are spilled in `spills` parts as pages of `most` events, and merged in ranges of
/// `range_bytes`.
fn merged_spills(
    schema: &StoredSchema,
    events: &[Event],
    units: Option<&[u32]>,
    parts: usize,
    most: usize,
    range_bytes: u64,
) -> Result<Built> {
    let file = SpillFile::create(&std::env::temp_dir())?;
    let ranks = ranks(schema);
    let (mut spills, mut start) = (Vec::new(), 0);
    for part in 1..=parts {
        let end = row_start(units, events.len() * part / parts);
        let chunks = chunks(schema, &events[start..end], units.map(|units| &units[start..end]));
        let events = Events { chunks: &chunks, window: 0, ranks: &ranks, first_unit: (part as u64) << 32 };
        spills.push(file.write(schema, events, most, &|| Ok(()))?);
        start = end;
    }

    let mut built = Built::default();
    for (number, range) in (0u64..).zip(key_ranges(&spills, range_bytes)) {
        let RangeEvents { chunks, ranks } = RangeEvents::read(schema, &spills, 0, &range, None)?;
        let events = Events { chunks: &chunks, window: 0, ranks: &ranks, first_unit: 1 << 63 | number << 32 };
        let more = built_of_events(schema, events, usize::MAX)?;
        built.blocks.extend(more.blocks);
        built.overwritten += more.overwritten;
        built.lost.extend(more.lost);
    }
    Ok(built)
}

/// The value of a cell as text, to compare.
fn shown(array: &dyn Array, at: usize) -> Option<String> {
    array.is_valid(at).then(|| match array.data_type() {
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(at).to_string(),
        DataType::Binary => format!("{:?}", array.as_binary::<i32>().value(at)),
        _ => array.as_primitive::<Int64Type>().value(at).to_string(),
    })
}

/// Row, group, qualifier and timestamp of a record.
type RecordKey = (String, usize, String, Reverse<i64>);

/// The records of blocks, in their order.
fn records(blocks: &[Block]) -> Vec<(RecordKey, Vec<Option<String>>)> {
    let mut out = Vec::new();
    for block in blocks {
        for row in 0..block.keys.len() {
            for (at, group) in block.groups.iter().enumerate() {
                let group = group.as_ref().unwrap();
                for record in group.records(row) {
                    let name = group.qualifiers.as_ref().map(|q| q.dictionary[q.codes[record] as usize].to_vec());
                    let time = group.timestamps.as_ref().map_or(0, |times| times[record]);
                    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                    let key = (text(block.keys.get(row)), at, name.map(text).unwrap_or_default(), Reverse(time));
                    let values = group.columns.iter().map(|values| shown(values.as_ref().unwrap(), record)).collect();
                    out.push((key, values));
                }
            }
        }
    }
    out
}

fn merged(schema: &StoredSchema, sources: &[Vec<Block>]) -> Vec<Block> {
    let sources = sources.iter().enumerate().map(|(order, blocks)| {
        let blocks: Vec<Result<Block>> = blocks.iter().cloned().map(Ok).collect();
        (order as u64, blocks.into_iter())
    });
    Merge::new(Arc::new(schema.clone()), sources.collect()).collect::<Result<_>>().unwrap()
}

fn any_event() -> impl Strategy<Value = Event> {
    let value = || prop_oneof![1 => Just(None), 3 => (-4i64..5).prop_map(Some)];
    (0usize..3, 0usize..3, 0i64..4, [value(), value(), value()]).prop_map(|(row, qualifier, time, values)| Event {
        row,
        qualifier,
        time: time * 1000,
        values,
    })
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(), 0..40)
}

/// Splits events into the inputs of three SSTs.
fn cut(events: &[Event], cuts: (usize, usize)) -> [&[Event]; 3] {
    let (first, second) = (cuts.0.min(cuts.1).min(events.len()), cuts.0.max(cuts.1).min(events.len()));
    [&events[..first], &events[first..second], &events[second..]]
}

/// However the events are split and the SSTs merged, the records equal those of one load of all events.
fn check_cuts(schema: &StoredSchema, events: &[Event], cuts: (usize, usize)) {
    let whole = vec![built(schema, events).unwrap()];
    for most in [1, 9] {
        assert_eq!(records(&built_in_pieces(schema, events, None, most).unwrap()), records(&whole));
    }
    let parts = cut(events, cuts).map(|part| vec![built(schema, part).unwrap()]);
    let [a, b, c] = parts.clone();
    let at_once = merged(schema, &parts);
    assert_eq!(records(&at_once), records(&whole));
    let left = merged(schema, &[merged(schema, &[a.clone(), b.clone()]), c.clone()]);
    let right = merged(schema, &[a, merged(schema, &[b, c])]);
    assert_eq!(records(&left), records(&whole));
    assert_eq!(records(&right), records(&whole));
}

/// Model of a table of newest cells and aggregates, built event by event.
fn model(schema: &StoredSchema, events: &[Event]) -> BTreeMap<RecordKey, Vec<Option<String>>> {
    let mut values: BTreeMap<(RecordKey, usize), Vec<i64>> = BTreeMap::new();
    for event in events {
        for (at, group) in schema.groups.iter().enumerate() {
            let qualifier = if group.qualifier == QualifierKind::Dynamic { QUALIFIERS[event.qualifier] } else { "" };
            let time = if group.timestamps == TimestampKind::Stored { event.time } else { 0 };
            for column in 0..group.columns.len() {
                if let Some(value) = event.values[column % VALUES] {
                    let key = (ROWS[event.row].to_owned(), at, qualifier.to_owned(), Reverse(time));
                    values.entry((key, column)).or_default().push(value);
                }
            }
        }
    }
    let mut out: BTreeMap<RecordKey, Vec<Option<String>>> = BTreeMap::new();
    for ((key, column), values) in values {
        let columns = &schema.groups[key.1].columns;
        let held = match columns[column].merge {
            Kind::Newest => values.last().unwrap().to_string(),
            Kind::Sum => values.iter().sum::<i64>().to_string(),
            Kind::Min => values.iter().min().unwrap().to_string(),
            Kind::Max => values.iter().map(|value| value.unsigned_abs()).max().unwrap().to_string(),
            Kind::Hll => {
                let mut sketch = Sketch::of(Distinct::Integer(values[0].cast_unsigned()));
                values[1..].iter().for_each(|v| sketch.add(Distinct::Integer(v.cast_unsigned())).unwrap());
                let mut bytes = Vec::new();
                sketch.write(&mut bytes);
                format!("{bytes:?}")
            }
        };
        out.entry(key).or_insert_with(|| vec![None; columns.len()])[column] = Some(held);
    }
    out
}

/// Model of upsert: keeps the last event of the greatest time of each row, with or without values.
fn newest_of_rows(events: &[Event]) -> Vec<Event> {
    let last = |row: usize| events.iter().filter(|event| event.row == row).max_by_key(|event| event.time);
    (0..ROWS.len()).filter_map(last).cloned().collect()
}

proptest! {
    #[test]
    fn aggregates_fold_alike_in_loads_and_merges(events in any_events(), cuts in (0usize..40, 0usize..40)) {
        for schema in [aggregates(), aggregates_and_newest()] {
            check_cuts(&schema, &events, cuts);
            let built: BTreeMap<_, _> = records(&[built(&schema, &events).unwrap()]).into_iter().collect();
            prop_assert_eq!(built, model(&schema, &events));
        }
    }

    #[test]
    fn spilled_windows_are_merged_as_if_they_had_stayed(
        events in any_events(),
        repeats in 1u32..4,
        parts in 1usize..5,
        most in 1usize..9,
        range_bytes in 1u64..3000,
    ) {
        let schemas = [aggregates(), aggregates_and_newest(), plain(false), plain(true), buckets()];
        let rows: Vec<u32> = (0..events.len() as u32).map(|event| event / repeats).collect();
        for (schema, units) in schemas.iter().flat_map(|schema| [(schema, None), (schema, Some(rows.as_slice()))]) {
            let chunks = chunks(schema, &events, units);
            let all = Events { chunks: &chunks, window: 0, ranks: &ranks(schema), first_unit: 0 };
            let whole = built_of_events(schema, all, usize::MAX).unwrap();
            let merged = merged_spills(schema, &events, units, parts, most, range_bytes).unwrap();
            prop_assert_eq!(records(&merged.blocks), records(&whole.blocks));
            prop_assert_eq!(merged.overwritten, whole.overwritten);
            prop_assert_eq!(merged.lost.len(), whole.lost.len());
        }
    }

    #[test]
    fn aggregates_need_no_order(events in any_events(), places in prop::collection::vec(0usize..3, 40)) {
        let schema = aggregates();
        let mut parts: [Vec<Event>; 3] = Default::default();
        for (event, place) in events.iter().zip(places) {
            parts[place].insert(0, event.clone());
        }
        let parts = parts.map(|part| vec![built(&schema, &part).unwrap()]);
        prop_assert_eq!(records(&merged(&schema, &parts)), records(&[built(&schema, &events).unwrap()]));
    }

    #[test]
    fn records_side_by_side_are_a_set(events in any_events(), cuts in (0usize..40, 0usize..40), seed in 0usize..40) {
        let schema = buckets();
        check_cuts(&schema, &events, cuts);
        let whole = records(&[built(&schema, &events).unwrap()]);
        // Every distinct record once, in whichever SST it came.
        let mut distinct: Vec<_> = (events.iter())
            .filter(|event| event.values[0].is_some() || event.values[1].is_some())
            .map(|event| (event.row, Reverse(event.time), event.values[0], event.values[1]))
            .collect();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(whole.len(), distinct.len());
        let mut turned = events.clone();
        turned.rotate_left(seed.min(events.len()));
        let parts = cut(&turned, cuts).map(|part| vec![built(&schema, part).unwrap()]);
        let sorted = |mut records: Vec<_>| {
            records.sort_unstable();
            records
        };
        let again = merged(&schema, &[parts[2].clone(), parts[0].clone(), parts[1].clone(), parts[0].clone()]);
        prop_assert_eq!(sorted(records(&again)), sorted(whole));
    }

    #[test]
    fn a_newer_event_replaces_its_row(events in any_events(), cuts in (0usize..40, 0usize..40)) {
        let schema = plain(true);
        check_cuts(&schema, &events, cuts);
        let whole = records(&[built(&schema, &events).unwrap()]);
        let is_stored = |(key, _): &(RecordKey, Vec<Option<String>>)| key.1 > 0;
        // Cells at timestamp 0 come from all events, the others from one.
        let (stored, zero): (Vec<_>, Vec<_>) = whole.into_iter().partition(is_stored);
        // A row without values keeps only its time, once, invisible to readers.
        let (emptied, stored): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|(_, values)| values.iter().all(Option::is_none));
        let newest = newest_of_rows(&events);
        let has = |event: &&Event| event.values[0].is_none() && event.values[1].is_none();
        let times = |event: &Event| (ROWS[event.row].to_owned(), Reverse(event.time));
        let expected: Vec<_> = newest.iter().filter(has).map(times).collect();
        prop_assert_eq!(emptied.into_iter().map(|(key, _)| (key.0, key.3)).collect::<Vec<_>>(), expected);
        let block = built(&schema, &events).unwrap();
        prop_assert_eq!(emptied::any(&schema, &block), newest.iter().any(|event| has(&event)));
        let seen = records(&[emptied::take_out(&schema, block).unwrap()]);
        prop_assert!(seen.iter().all(|(_, values)| values.iter().any(Option::is_some)));
        let all = model(&plain(false), &events).into_iter().filter(|(key, _)| key.1 == 0).collect::<Vec<_>>();
        let one = model(&plain(false), &newest);
        prop_assert_eq!(zero, all);
        prop_assert_eq!(stored, one.into_iter().filter(|(key, _)| key.1 > 0).collect::<Vec<_>>());
    }

    #[test]
    fn collecting_twice_is_collecting_once(
        events in any_events(),
        rules in prop::collection::vec(any_rule(), 2),
        now in 0i64..5000,
    ) {
        let schema = aggregates_and_newest();
        let rules = ["n", "sum"].iter().zip(rules).map(|(family, rule)| ((*family).to_owned(), rule)).collect();
        if let Some(collector) = GcFilter::new(&schema, &rules, now) {
            let once = collector.apply(&schema, built(&schema, &events).unwrap()).unwrap();
            let twice = collector.apply(&schema, once.clone()).unwrap();
            prop_assert_eq!(records(&[twice]), records(&[once]));
        }
    }
}

fn any_rule() -> impl Strategy<Value = GcRule> {
    let item = prop_oneof![
        (1u32..4).prop_map(|n| format!("maxversions={n}")),
        (1u32..5).prop_map(|ms| format!("maxage={ms}ms")),
        Just("never".to_owned()),
    ];
    let rule = item.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), prop_oneof![Just("and"), Just("or")], inner)
            .prop_map(|(a, joint, b)| format!("({a}) {joint} ({b})"))
    });
    rule.prop_map(|text| GcRule::parse(&text).unwrap())
}

fn event(row: usize, time: i64, values: [Option<i64>; VALUES]) -> Event {
    Event { row, qualifier: 0, time, values }
}

#[test]
fn rules_are_judged_after_cells_are_merged() {
    let schema = schema(&[column("sum", Kind::Sum)], false);
    let rules = [("sum".to_owned(), GcRule::parse("maxversions=1").unwrap())].into();
    let collector = GcFilter::new(&schema, &rules, 0).unwrap();
    // Two versions in each SST, the newer one in both: it is one version, and holds what both brought.
    let one = |time: i64, value: i64| event(0, time, [Some(value), None, None]);
    let parts = [[one(1000, 1), one(2000, 10)], [one(2000, 20), one(1000, 2)]];
    let merged = merged(&schema, &parts.map(|part| vec![built(&schema, &part).unwrap()]));
    let left = collector.apply(&schema, merged.into_iter().next().unwrap()).unwrap();
    let versions: Vec<_> = records(&[left]).into_iter().filter(|(key, _)| key.1 == 1).collect();
    assert_eq!(versions, [(("a".to_owned(), 1, String::new(), Reverse(2000)), vec![Some("30".to_owned())])]);
}

#[test]
fn a_sum_that_is_too_great_is_told() {
    let schema = schema(&[column("sum", Kind::Sum)], false);
    let great = |row: usize| event(row, 1000, [Some(i64::MAX), None, None]);
    let is_told = |error: StoreError| match error.of_table("SALES") {
        StoreError::SumOverflow { table, row, column, .. } => {
            assert_eq!([table, row, column], ["SALES", "b", "sum:sum"])
        }
        other => panic!("{other}"),
    };
    is_told(built(&schema, &[great(0), great(1), event(1, 1000, [Some(1), None, None])]).unwrap_err());
    let parts = [great(1), event(1, 1000, [Some(1), None, None])];
    let parts = parts.map(|event| vec![Ok(built(&schema, &[event]).unwrap())].into_iter());
    let mut merge = Merge::new(Arc::new(schema), (0..).zip(parts).collect());
    is_told(merge.next().unwrap().unwrap_err());
}

#[test]
fn events_of_one_row_of_the_source_replace_a_row_together() {
    let schema = plain(true);
    let events = [event(0, 1000, [Some(1), None, None]), event(0, 2000, [Some(2), None, None])];
    let both = [
        Event { qualifier: 1, ..event(0, 2000, [Some(3), None, None]) },
        Event { qualifier: 2, ..event(0, 2000, [Some(4), None, None]) },
    ];
    let all: Vec<Event> = events.into_iter().chain(both).collect();
    // The last two are of one row: an unpivoted one, say.
    let newest = records(&[built_of_rows(&schema, &all, Some(vec![0, 1, 2, 2])).unwrap()]);
    let dynamic: Vec<_> = newest.iter().filter(|(key, _)| key.1 == 2).map(|(key, _)| key.2.as_str()).collect();
    assert_eq!(dynamic, ["y", "z"]);
}
