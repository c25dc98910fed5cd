use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use tidetable_layout::schema::{Encoding, Merge, Packed, PackedForm, QualifierKind, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, Projection, StoredSchema, ValueType};

use crate::gc::apply::GcFilter;
use crate::gc::rule::GcRule;

const DAY: i64 = 86_400_000_000;

fn rule(text: &str) -> GcRule {
    GcRule::parse(text).unwrap()
}

#[test]
fn versions_and_ages() {
    assert!(!rule("maxversions=2").drops(1, 0, 0));
    assert!(rule("maxversions=2").drops(2, 0, 0));
    assert!(!rule("maxage=30d").drops(0, 0, 30 * DAY), "as old as allowed stays");
    assert!(rule("maxage=30d").drops(0, -1, 30 * DAY));
    assert!(!rule("never").drops(9, 0, i64::MAX));
}

#[test]
fn unions_and_intersections() {
    let (old, new) = (0, 10 * DAY);
    let now = 11 * DAY;
    let union = rule("maxage=5d or maxversions=1");
    assert!(union.drops(0, old, now) && union.drops(1, new, now) && !union.drops(0, new, now));
    let both = rule("maxage=5d and maxversions=1");
    assert!(!both.drops(0, old, now) && !both.drops(1, new, now) && both.drops(1, old, now));
}

#[test]
fn rules_are_read_from_left_to_right() {
    // (never and maxversions=1) or maxage=5d, and never and (maxversions=1 or maxage=5d)
    assert!(rule("never and maxversions=1 or maxage=5d").drops(0, 0, 6 * DAY));
    assert!(!rule("never and (maxversions=1 or maxage=5d)").drops(0, 0, 6 * DAY));
    assert!(rule("((maxage=1h) and (maxversions=3)) or maxversions=9").drops(9, DAY, DAY));
}

#[test]
fn ages_of_the_newest_version() {
    const DAY: i64 = 86_400_000_000;
    for (text, days) in [
        ("never", None),
        ("maxversions=3", None),
        ("maxage=2d", Some(2)),
        ("maxversions=1 and maxage=2d", None),
        ("maxversions=1 or maxage=2d", Some(2)),
        ("maxage=3d and maxage=2d", Some(3)),
        ("maxage=3d or (maxversions=2 and maxage=2d)", Some(3)),
    ] {
        let rule = rule(text);
        assert_eq!(rule.age_of_newest(), days.map(|days| days * DAY), "{text}");
        // As cells are removed.
        for days in 0..5 {
            let goes = rule.drops(0, -days * DAY - 1, 0);
            assert_eq!(goes, rule.age_of_newest().is_some_and(|age| days * DAY >= age), "{text}, {days}");
        }
    }
}

#[test]
fn wrong_rules_are_pointed_at() {
    for (bad, wanted, at) in [
        ("", "`maxversions=N`", 0..0),
        ("maxversions=0", "a number", 0..13),
        ("maxversions=2 and maxage=30", "an age", 18..27),
        ("maxage=d", "an age", 0..8),
        ("maxage=4294967295d", "an age", 0..18),
        ("maxversions=1 maxage=1d", "`and`", 14..23),
        ("(maxversions=1", "`)`", 14..14),
        ("maxversions=1)", "`and`", 13..14),
        ("maxversions=1 and", "`maxversions=N`", 17..17),
        ("()", "`maxversions=N`", 1..2),
        ("keep", "`maxversions=N`", 0..4),
    ] {
        let error = GcRule::parse(bad).unwrap_err();
        assert!(error.wanted.starts_with(wanted), "{bad}: {error}");
        assert_eq!(error.at, at, "{bad}");
    }
}

/// The remains of a row with two records of two fields after `rule`; the newest lacks the second field.
fn left_of_packed(form: PackedForm, rule_text: &str, now: i64) -> Vec<(i64, Option<u64>, Option<u64>)> {
    let column = |name: &str| Column {
        family: "F".to_owned(),
        qualifier: name.as_bytes().to_vec(),
        value: ValueType::Field(FieldType::UInt64),
        encoding: Encoding::Text,
        merge: Merge::Newest,
    };
    let packed = Packed { family: "F".to_owned(), qualifier: b"q".to_vec(), form };
    let group = Group {
        qualifier: QualifierKind::Constant,
        timestamps: TimestampKind::Stored,
        packed: Some(packed),
        columns: vec![column("a"), column("b")],
    };
    let schema = StoredSchema { tail: Default::default(), groups: vec![group], upsert: false };
    let mut keys = Keys::new(Arc::new(schema.tail.clone()));
    keys.push(b"k", 0);
    let values = |of: [Option<u64>; 2]| -> Option<Arc<dyn Array>> { Some(Arc::new(UInt64Array::from(of.to_vec()))) };
    let records = GroupBlock {
        row_ends: vec![2],
        qualifiers: None,
        timestamps: Some(vec![10 * DAY, 0]),
        columns: vec![values([Some(1), Some(2)]), values([None, Some(3)])],
        sums: Vec::new(),
    };
    let rules = BTreeMap::from([("F".to_owned(), rule(rule_text))]);
    let collector = GcFilter::new(&schema, &rules, now).unwrap();
    // The rule needs no field.
    let mut projection = Projection::all(&schema);
    projection.groups[0].as_mut().unwrap().columns = vec![false, true];
    collector.widen(&schema, &mut projection);
    assert_eq!(projection.groups[0].as_ref().unwrap().columns, [false, true]);
    let left = collector.apply(&schema, Block { keys, groups: vec![Some(records)] }).unwrap();
    let group = left.groups[0].as_ref().unwrap();
    let value = |column: usize, at: usize| {
        let values = group.columns[column].as_ref().unwrap().as_primitive::<UInt64Type>();
        values.is_valid(at).then(|| values.value(at))
    };
    let times = group.timestamps.as_ref().unwrap();
    times.iter().enumerate().map(|(at, time)| (*time, value(0, at), value(1, at))).collect()
}

#[test]
fn a_packed_record_goes_or_stays_whole() {
    let all = || PackedForm::Repeated { fields: Vec::new(), number: 1 };
    let (newer, older) = ((10 * DAY, Some(1), None), (0, Some(2), Some(3)));
    assert_eq!(left_of_packed(PackedForm::Json, "maxversions=1", 0), [newer]);
    assert_eq!(left_of_packed(PackedForm::Json, "maxage=5d", 11 * DAY), [newer]);
    assert_eq!(left_of_packed(PackedForm::Json, "maxversions=2", 0), [newer, older]);
    // One cell of the row, with one version, at timestamp 0.
    assert_eq!(left_of_packed(all(), "maxversions=1", 0), [newer, older]);
    assert_eq!(left_of_packed(all(), "maxage=12d", 11 * DAY), [newer, older]);
    assert_eq!(left_of_packed(all(), "maxage=10d", 11 * DAY), []);
}

#[test]
fn what_rules_remove_at_any_age() {
    for (text, most) in [
        ("maxversions=3", Some(3)),
        ("maxage=1d", None),
        ("never", None),
        ("maxversions=3 and maxage=1d", None),
        ("maxversions=3 or maxage=1d", Some(3)),
        ("maxversions=3 or maxversions=2", Some(2)),
        ("maxversions=3 and maxversions=2", Some(3)),
        ("(maxversions=3 and never) or maxversions=5", Some(5)),
    ] {
        let versions = rule(text).of_versions();
        assert_eq!(versions.map(|rule| rule.always_kept()), most, "{text}");
    }
}
