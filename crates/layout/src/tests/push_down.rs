use std::ops::Bound;

use proptest::prelude::*;

use crate::plan::Layout;
use crate::pushdown::{FieldBound, KeyRange, ValueSet};
use crate::scalar::Scalar;
use crate::schema::FieldType;
use crate::time::DAY;

use super::reference_loader::{MS, NOON, batch, floats, key_of, meters, source, table, texts, times, uints};

fn one(field: &str, value: Scalar) -> FieldBound {
    FieldBound { field: field.into(), set: ValueSet::In(vec![value]) }
}

fn between(field: &str, low: Bound<Scalar>, high: Bound<Scalar>) -> FieldBound {
    FieldBound { field: field.into(), set: ValueSet::Range { low, high } }
}

fn range(start: &str, end: &str) -> KeyRange {
    KeyRange { start: start.as_bytes().to_vec(), end: Some(end.as_bytes().to_vec()) }
}

fn at(time: i64) -> Scalar {
    Scalar::Timestamp(time)
}

#[test]
fn a_meter_and_its_days_are_one_tight_range() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let days = between("ts", Bound::Included(at(NOON)), Bound::Excluded(at(NOON + 2 * DAY - DAY / 2)));
    let meter = one("meter", Scalar::UInt64(987_654));
    assert_eq!(
        layout.key_ranges(&[meter.clone(), days.clone()]),
        [range("0000987654#20210305", "0000987654#20210307")]
    );
    assert_eq!(layout.key_ranges(std::slice::from_ref(&meter)), [range("0000987654#", "0000987654$")]);
    assert_eq!(layout.key_ranges(&[days]), [KeyRange::all()]);
    assert_eq!(layout.key_ranges(&[]), [KeyRange::all()]);
    assert_eq!(layout.key_ranges(&[one("meter", Scalar::UInt64(10_000_000_000))]), []);
    assert_eq!(layout.key_ranges(&[one("meter", Scalar::Int64(-1))]), []);
    let day = one("ts", at(NOON));
    assert_eq!(layout.key_ranges(&[meter, day]), [range("0000987654#20210305", "0000987654#20210305\0")]);
    let two = FieldBound { field: "meter".into(), set: ValueSet::In(vec![Scalar::UInt64(9), Scalar::UInt64(3)]) };
    assert_eq!(layout.key_ranges(&[two]), [range("0000000003#", "0000000003$"), range("0000000009#", "0000000009$")]);
    let some = between("meter", Bound::Excluded(Scalar::UInt64(8)), Bound::Included(Scalar::UInt64(11)));
    assert_eq!(layout.key_ranges(std::slice::from_ref(&some)), [range("0000000009", "0000000012")]);
    let none = between("meter", Bound::Unbounded, Bound::Included(Scalar::UInt64(8)));
    assert_eq!(layout.key_ranges(&[some, none]), []);
}

#[test]
fn salts_and_leading_times_are_enumerated() {
    let fields = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
    let source = source(&fields, "ts");
    let compile = |key: &str| Layout::compile(&table(key, &[("F", &[("q", "{kwh}")])]), &source).unwrap();
    let hour = between("ts", Bound::Included(at(NOON)), Bound::Excluded(at(NOON + DAY / 24)));
    let salted = compile("B#{salt(ts, 3)}#{ts:%Y%m%d%H}").key_ranges(std::slice::from_ref(&hour));
    let expected =
        ["1", "2", "3"].map(|salt| range(&format!("B#{salt}#2021030512"), &format!("B#{salt}#2021030512\0")));
    assert_eq!(salted, expected);
    let meter = one("meter", Scalar::UInt64(5));
    let days = between("ts", Bound::Included(at(NOON)), Bound::Included(at(NOON + DAY)));
    let by_day = compile("{ts:%Y%m%d}#{meter:03}").key_ranges(&[days, meter.clone()]);
    assert_eq!(by_day, [range("20210305#005", "20210305#005\0"), range("20210306#005", "20210306#005\0")]);
    let reversed = compile("{meter:03}#{ts:ms-reversed}").key_ranges(&[meter, hour]);
    let digits = |time: i64| i64::MAX - time / MS;
    let (first, last) = (digits(NOON + DAY / 24 - 1), digits(NOON));
    assert_eq!(reversed, [range(&format!("005#{first}"), &format!("005#{}", last + 1))]);
}

fn scalar_bound(low: Scalar, high: Scalar, shape: u8) -> ValueSet {
    match shape {
        0 => ValueSet::In(vec![low]),
        1 => ValueSet::In(vec![low, high]),
        2 => ValueSet::Range { low: Bound::Included(low), high: Bound::Excluded(high) },
        3 => ValueSet::Range { low: Bound::Excluded(low), high: Bound::Included(high) },
        4 => ValueSet::Range { low: Bound::Unbounded, high: Bound::Included(high) },
        _ => ValueSet::Range { low: Bound::Included(low), high: Bound::Unbounded },
    }
}

fn meets<T: PartialOrd>(set: &ValueSet, value: &T, of: impl Fn(&Scalar) -> T) -> bool {
    match set {
        ValueSet::In(values) => values.iter().any(|own| of(own) == *value),
        ValueSet::Range { low, high } => {
            let above = match low {
                Bound::Included(low) => *value >= of(low),
                Bound::Excluded(low) => *value > of(low),
                Bound::Unbounded => true,
            };
            above
                && match high {
                    Bound::Included(high) => *value <= of(high),
                    Bound::Excluded(high) => *value < of(high),
                    Bound::Unbounded => true,
                }
        }
    }
}

const KEYS: &[&str] = &[
    "{meter:010}#{ts:%Y%m%d}",
    "{site}#{meter:05}#{ts:ms}",
    "{site}~{meter}",
    "{ts:%Y%m%d}#{site}",
    "{ts:%Y%m%d%H%M}{meter:06}",
    "{ts:%Y%m}#{meter:05}",
    "{ts:%G-W%V}#{site}#{meter}",
    "{ts:%d%m%Y}#{meter:05}",
    "{salt(ts, 4)}#{ts:s}",
    "{salt(site, 12)}#{site:<4}{ts:ms-reversed}",
    "{site:reversed}#{ts:%Y%j}",
    "{meter:be}#{site:hash}#{ts:us}",
    "{ts}#{meter:05}",
    "{ts:%Y%m%d%H|America/New_York}#{meter:05}",
    "{meter:reversed}#{site:domain}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn no_row_that_meets_the_bounds_is_missed(
        key in 0..KEYS.len(),
        rows in prop::collection::vec(("[a-c~!]{1,3}", 0u64..30, 0i64..40_000_000), 1..30),
        bounds in prop::collection::vec((0u8..3, 0usize..30, 0usize..30, 0u8..6), 1..4),
    ) {
        let fields = [("site", FieldType::Text), ("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
        let source = source(&fields, "ts");
        let layout = Layout::compile(&table(KEYS[key], &[("F", &[("s", "{site}"), ("m", "{meter}"), ("q", "{kwh}")])]), &source).unwrap();
        let micros: Vec<i64> = rows.iter().map(|row| row.2 * 1_234_567).collect();
        let batch = batch(
            &source,
            vec![
                texts(&rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>()),
                uints(&rows.iter().map(|row| row.1).collect::<Vec<_>>()),
                times(&micros),
                floats(&vec![Some(1.0); rows.len()]),
            ],
        );
        let exact = KEYS[key].contains("us}") || KEYS[key].contains("{ts}");
        // What records return: cell timestamps are milliseconds.
        let seen = |micros: i64| if exact { micros } else { micros - micros % MS };
        let pick = |at: usize| &rows[at % rows.len()];
        let bounds: Vec<FieldBound> = bounds
            .iter()
            .map(|(field, low, high, shape)| {
                let (low, high) = (pick(*low), pick(*high));
                let text = |row: &(String, u64, i64)| Scalar::Text(row.0.clone());
                let number = |row: &(String, u64, i64)| Scalar::UInt64(row.1);
                let time = |row: &(String, u64, i64)| at(seen(row.2 * 1_234_567));
                match field {
                    0 => FieldBound { field: "site".into(), set: scalar_bound(text(low), text(high), *shape) },
                    1 => FieldBound { field: "meter".into(), set: scalar_bound(number(low), number(high), *shape) },
                    _ => FieldBound { field: "ts".into(), set: scalar_bound(time(low), time(high), *shape) },
                }
            })
            .collect();
        let ranges = layout.key_ranges(&bounds);
        for pair in ranges.windows(2) {
            prop_assert!(pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start));
        }
        let mut encoder = layout.encoder();
        let laid = encoder.encode(&batch).unwrap();
        for event in 0..laid.prefix.len() {
            let row = laid.rows.as_ref().map_or(event, |rows| rows[event] as usize);
            let all = bounds.iter().all(|bound| match bound.field.as_str() {
                "site" => meets(&bound.set, &rows[row].0, |scalar| if let Scalar::Text(text) = scalar { text.clone() } else { String::new() }),
                "meter" => meets(&bound.set, &rows[row].1, |scalar| if let Scalar::UInt64(value) = scalar { *value } else { 0 }),
                _ => meets(&bound.set, &seen(micros[row]), |scalar| if let Scalar::Timestamp(time) = scalar { *time } else { 0 }),
            });
            let bytes = key_of(&layout, &encoder, &laid, event);
            prop_assert!(!all || ranges.iter().any(|range| range.contains(&bytes)), "{} {:?} {:?}", String::from_utf8_lossy(&bytes), ranges, bounds);
        }
    }
}
