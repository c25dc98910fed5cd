use arrow::array::{Array, ArrayRef};

use crate::block::Block;
use crate::error::{DecodeError, LostReason};
use crate::plan::Layout;
use crate::schema::FieldType;
use crate::spec::{ColumnSpec, FamilySpec, SourceSchema, TableSpec, TimestampSpec, Window};
use crate::time::{DAY, MINUTE};

use super::reference_loader::{
    NOON, batch, column, decode_checked, floats, ints, lines, load, meters, project, source, table, texts, times, uints,
};

fn names(layout: &Layout) -> Vec<String> {
    layout.records_schema().fields().iter().map(|field| field.name().clone()).collect()
}

fn order(row_key: &str) -> Vec<String> {
    let fields = [
        ("host", FieldType::Text),
        ("meter", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("kwh", FieldType::Float64),
    ];
    let layout = Layout::compile(&table(row_key, &[("F", &[("q", "{kwh}")])]), &source(&fields, "ts")).unwrap();
    let names = names(&layout);
    layout.record_order().iter().map(|field| names[*field].clone()).collect()
}

#[test]
fn orders_are_promised_only_where_bytes_keep_them() {
    for (key, expected) in [
        ("{meter:010}#{ts:%Y%m%d}", vec!["meter", "ts"]),
        ("{meter:010}", vec!["meter", "ts"]),
        ("{meter}#{ts:ms}", vec![]),
        ("{host}#{ts:ms}", vec![]),
        ("{meter:010}#{host}", vec!["meter", "host", "ts"]),
        ("{host:<6}#{ts:ms}", vec!["host", "ts"]),
        ("{ts:%Y%m%d}#{meter:010}", vec![]),
        ("{ts:ms}#{meter:010}", vec!["ts", "meter"]),
        ("{meter:010}#{ts:ms-reversed}", vec!["meter"]),
        ("{meter:010}#{ts:%d%m%Y}", vec!["meter"]),
        ("{meter:010}#{ts:%Y%m%d|Europe/Paris}", vec!["meter"]),
        ("{salt(meter, 3)}#{meter:010}", vec![]),
    ] {
        assert_eq!(order(key), expected, "{key}");
    }
}

#[test]
fn fields_of_a_key_are_read_without_a_block() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let found = layout.row_field_of_key(b"0000000012#20260101", 0).unwrap();
    assert_eq!(found.to_data(), uints(&[12]).to_data());
    for key in [&b"0000000012#2026010x"[..], b"", b"20260101", b"00000000x2#20260101"] {
        assert!(matches!(layout.row_field_of_key(key, 0), Err(DecodeError::Key { .. })), "{}", key.escape_ascii());
    }
    assert!(matches!(layout.row_field_of_key(b"0000000012#20260101", 2), Err(DecodeError::NoField { field: 2, .. })));
}

#[test]
fn neighbours_that_agree_are_one_row() {
    let fields = [("site", FieldType::Text), ("meter", FieldType::UInt64), ("ts", FieldType::Timestamp)];
    let (spec, source) = (table("{site}#{meter}#{ts:ms}", &[("F", &[("q", "{meter}")])]), source(&fields, "ts"));
    let layout = Layout::compile(&spec, &source).unwrap();
    let sites = texts(&["a", "a", "a", "b", "b", "ba"]);
    let times = times(&[NOON, NOON + MINUTE, NOON, NOON, NOON + DAY, NOON]);
    let block = load(&layout, &[batch(&source, vec![sites, uints(&[1, 1, 2, 2, 2, 2]), times])]);
    let joined = |fields: &[usize]| {
        let found = layout.decode_joined_rows(&block, fields).unwrap();
        let plain = layout.decode_rows(&block, fields).unwrap();
        assert_eq!(plain.ends, [1, 2, 3, 4, 5, 6]);
        if !found.joined {
            let data = |columns: &[ArrayRef]| columns.iter().map(|column| column.to_data()).collect::<Vec<_>>();
            assert_eq!((data(&found.columns), &found.ends), (data(&plain.columns), &plain.ends));
        }
        (found.joined, found.ends, found.columns)
    };
    let (is_joined, ends, columns) = joined(&[0]);
    assert_eq!((is_joined, ends), (true, vec![3, 5, 6]));
    assert_eq!(columns[0].to_data(), texts(&["a", "b", "ba"]).to_data());
    let (is_joined, ends, columns) = joined(&[1]);
    assert_eq!((is_joined, ends), (true, vec![2, 6]));
    assert_eq!(columns[0].to_data(), uints(&[1, 2]).to_data());
    // Four runs of six rows are not worth it, and times lie elsewhere.
    assert!(!joined(&[0, 1]).0 && !joined(&[0, 2]).0 && !joined(&[]).0);
}

/// More days than a cache of key times holds, in an order that asks for each again.
#[test]
fn days_of_keys_and_clocks_of_qualifiers_make_times() {
    let fields = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
    let clock = ColumnSpec { timestamp: TimestampSpec::Zero, ..column("{ts:%H%M}", "{kwh}") };
    let family = FamilySpec { columns: vec![clock], ..FamilySpec::default() };
    for key in ["{meter:03}#{ts:%Y%m%d}", "{ts:%Y%m%d}#{meter:03}"] {
        let family = FamilySpec { name: "F".to_owned(), ..family.clone() };
        let spec =
            TableSpec { row_key: key.to_owned(), families: vec![family], window: Window::None, ..table(key, &[]) };
        let source = source(&fields, "ts");
        let layout = Layout::compile(&spec, &source).unwrap();
        let mut expected: Vec<(u64, i64)> = Vec::new();
        for meter in 1..=3 {
            for day in 0..700 {
                expected.extend([0, 7, 700].map(|minute| (meter, NOON - NOON % DAY + day * DAY + minute * MINUTE)));
            }
        }
        let (meters, instants): (Vec<u64>, Vec<i64>) = expected.iter().copied().unzip();
        let kwh: Vec<Option<f64>> = (0..expected.len()).map(|at| Some(at as f64)).collect();
        let block = load(&layout, &[batch(&source, vec![uints(&meters), times(&instants), floats(&kwh)])]);
        let found = layout.decode(project(&layout, &block, &[0, 1]), &[0, 1]).unwrap();
        let column = |at: usize| found.column(at).to_data();
        let mut pairs: Vec<(u64, i64)> = Vec::new();
        for row in 0..found.num_rows() {
            pairs.push((column(0).buffer::<u64>(0)[row], column(1).buffer::<i64>(0)[row]));
        }
        pairs.sort_unstable();
        assert_eq!(pairs, expected, "{key}");
    }
}

#[test]
fn meters_read_back_without_copying() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    assert_eq!((names(&layout), layout.record_order()), (vec!["meter".into(), "ts".into(), "kwh".into()], vec![0, 1]));
    assert!(layout.lost().is_empty());
    let columns =
        vec![uints(&[7, 7, 8]), times(&[NOON, NOON + MINUTE, NOON + DAY]), floats(&[Some(1.0), Some(2.0), Some(3.0)])];
    let block = load(&layout, &[batch(&source, columns)]);
    let projection = layout.projection(&[0, 2]);
    assert!(!projection.groups[1].as_ref().unwrap().timestamps);
    let stored = block.groups[1].as_ref().unwrap().columns[0].clone().unwrap();
    let found = layout.decode(project(&layout, &block, &[0, 1, 2]), &[0, 1, 2]).unwrap();
    assert!(found.column(2).to_data().ptr_eq(&stored.to_data()));
    assert_eq!(
        lines(&found),
        ["7 | 2021-03-05T12:00:00Z | 1.0", "7 | 2021-03-05T12:01:00Z | 2.0", "8 | 2021-03-06T12:00:00Z | 3.0"]
    );
    assert_eq!(layout.decode(project(&layout, &block, &[]), &[]).unwrap().num_rows(), 3);
}

#[test]
fn a_row_of_key_columns_alone_is_one_record() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let columns = vec![uints(&[7, 8, 8]), times(&[NOON, NOON, NOON + MINUTE]), floats(&[None, Some(2.0), None])];
    let block = load(&layout, &[batch(&source, columns)]);
    let expected = ["7 | 2021-03-05T00:00:00Z | -", "8 | 2021-03-05T12:00:00Z | 2.0"];
    assert_eq!(lines(&decode_checked(&layout, &block)), expected);
}

#[test]
fn versions_of_one_qualifier_come_by_time() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let second = 1_000_000;
    let columns = vec![uints(&[7; 3]), times(&[NOON + second, NOON, NOON + MINUTE]), floats(&[Some(1.0); 3])];
    let found = decode_checked(&layout, &load(&layout, &[batch(&source, columns)]));
    assert!(lines(&found).is_sorted());
}

fn quotes() -> (TableSpec, SourceSchema) {
    let fields = [
        ("exchange", FieldType::Text),
        ("symbol", FieldType::Text),
        ("quote_time", FieldType::Timestamp),
        ("bid", FieldType::Decimal { precision: 10, scale: 2 }),
    ];
    let columns: &[(&str, &str)] =
        &[("SYMBOL", "{symbol}"), ("BID", "{bid}"), ("QUOTETIME", "{quote_time:ms}"), ("EXCHANGE", "{exchange}")];
    let spec = table("{exchange:<6}#{symbol:<5}#{quote_time:ms}", &[("MD", columns)]);
    (spec, source(&fields, "quote_time"))
}

#[test]
fn quotes_read_back_from_their_keys() {
    let (spec, source) = quotes();
    let layout = Layout::compile(&spec, &source).unwrap();
    assert_eq!(layout.stored().groups[0].columns.len(), 3);
    let columns = vec![
        texts(&["NASDAQ", "NYSE"]),
        texts(&["ZXZZT", "Z"]),
        times(&[1_426_535_612_156_000; 2]),
        super::reference_loader::decimals(&[60_060, 100]),
    ];
    let found = decode_checked(&layout, &load(&layout, &[batch(&source, columns)]));
    assert_eq!(
        lines(&found),
        ["NASDAQ | ZXZZT | 2015-03-16T19:53:32.156Z | 600.60", "NYSE | Z | 2015-03-16T19:53:32.156Z | 1.00"]
    );
    assert_eq!(layout.record_order(), [0, 1, 2]);
}

#[test]
fn unpivoted_columns_stay_long() {
    let fields = [
        ("balloon", FieldType::UInt64),
        ("pressure", FieldType::Float64),
        ("temperature", FieldType::Float64),
        ("ts", FieldType::Timestamp),
    ];
    let source = source(&fields, "ts");
    for (key, qualifier, value) in [
        ("{balloon}#{metric}#{ts:%G-W%V}", "{value}", ""),
        ("{balloon}#{ts:%G-W%V}", "{metric}", "{value}"),
        ("{balloon}#{ts:%G-W%V}", "{metric}#{ts:%H%M}", "{value}"),
    ] {
        let mut spec = table(key, &[("m", &[(qualifier, value)])]);
        spec.unpivot = vec!["pressure".into(), "temperature".into()];
        let layout = Layout::compile(&spec, &source).unwrap();
        assert_eq!(names(&layout), ["balloon", "metric", "value", "ts"]);
        let columns = vec![
            uints(&[1, 1]),
            floats(&[Some(94.5), None]),
            floats(&[Some(9.5), Some(9.4)]),
            times(&[NOON, NOON + DAY]),
        ];
        let mut found = lines(&decode_checked(&layout, &load(&layout, &[batch(&source, columns)])));
        found.sort();
        assert_eq!(
            found,
            [
                "1 | pressure | 94.5 | 2021-03-05T12:00:00Z",
                "1 | temperature | 9.4 | 2021-03-06T12:00:00Z",
                "1 | temperature | 9.5 | 2021-03-05T12:00:00Z",
            ]
        );
    }
}

#[test]
fn groups_join_on_time_and_bound_fields() {
    let fields = [
        ("id", FieldType::Text),
        ("who", FieldType::Text),
        ("a", FieldType::Int64),
        ("b", FieldType::Int64),
        ("ts", FieldType::Timestamp),
    ];
    let source = source(&fields, "ts");
    let families: &[(&str, &[(&str, &str)])] =
        &[("A", &[("a", "{a}")]), ("B", &[("{ts:%H%M}", "{b}")]), ("C", &[("{who}", "")])];
    let layout = Layout::compile(&table("{id}#{ts:%Y%m%d}", families), &source).unwrap();
    let columns = vec![
        texts(&["x"; 3]),
        texts(&["ann", "bob", "ann"]),
        ints(&[1, 2, 3]),
        ints(&[10, 20, 30]),
        times(&[NOON, NOON + MINUTE, NOON + 2 * MINUTE]),
    ];
    let found = decode_checked(&layout, &load(&layout, &[batch(&source, columns)]));
    assert_eq!(
        lines(&found),
        [
            "x | ann | 1 | 10 | 2021-03-05T12:00:00Z",
            "x | bob | 2 | 20 | 2021-03-05T12:01:00Z",
            "x | ann | 3 | 30 | 2021-03-05T12:02:00Z",
        ]
    );
}

#[test]
fn what_cannot_be_read_back_is_named() {
    let fields = [
        ("host", FieldType::Text),
        ("a", FieldType::Text),
        ("b", FieldType::Text),
        ("gone", FieldType::Text),
        ("ts", FieldType::Timestamp),
        ("kwh", FieldType::Float64),
    ];
    let source = source(&fields, "ts");
    let zero = |qualifier: &str, value: &str| ColumnSpec { timestamp: TimestampSpec::Zero, ..column(qualifier, value) };
    let columns = vec![zero("{ts:%m%d}", "{kwh}"), zero("mix", "{a} {b}")];
    let families = vec![FamilySpec { name: "F".into(), columns, ..FamilySpec::default() }];
    let spec = TableSpec { row_key: "{host:hash}".into(), families, ..TableSpec::default() };
    let layout = Layout::compile(&spec, &source).unwrap();
    let lost: Vec<(&str, LostReason)> = layout.lost().iter().map(|lost| (lost.column.as_str(), lost.why)).collect();
    assert_eq!(
        lost,
        [
            ("host", LostReason::Hashed),
            ("a", LostReason::MixedText),
            ("b", LostReason::MixedText),
            ("gone", LostReason::Absent),
            ("ts", LostReason::IncompleteTime),
        ]
    );
    assert_eq!(names(&layout), ["kwh"]);
}

#[test]
fn time_is_put_together_from_key_and_qualifier() {
    let (mut spec, source) = meters();
    spec.families[0].columns[1].timestamp = TimestampSpec::Zero;
    let layout = Layout::compile(&spec, &source).unwrap();
    let columns = vec![uints(&[7; 2]), times(&[NOON, NOON + 5 * MINUTE]), floats(&[Some(1.0), Some(2.0)])];
    let found = decode_checked(&layout, &load(&layout, &[batch(&source, columns)]));
    assert_eq!(lines(&found), ["7 | 2021-03-05T12:00:00Z | 1.0", "7 | 2021-03-05T12:05:00Z | 2.0"]);
}

#[test]
fn blocks_of_another_layout_are_errors() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let block = load(&layout, &[batch(&source, vec![uints(&[7]), times(&[NOON]), floats(&[Some(1.0)])])]);
    let mut keys = crate::block::Keys::new(layout.stored().tail.clone().into());
    keys.push(b"nonsense", 20_210_305);
    let bad = Block { keys, groups: block.groups.clone() };
    assert!(matches!(layout.decode(bad, &[0]), Err(DecodeError::Key { key }) if key == "nonsense"));
    let none = Block { keys: block.keys.clone(), groups: vec![None, None] };
    assert!(matches!(layout.decode(none, &[2]), Err(DecodeError::NotProjected { .. })));
    assert!(matches!(layout.decode(block, &[9]), Err(DecodeError::NoField { .. })));
}

#[test]
fn keys_say_in_which_window_their_rows_lie() {
    let fields = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
    let windows = |key: &str, unit: Window| {
        let spec = TableSpec { window: unit, ..table(key, &[("F", &[("q", "{kwh}")])]) };
        let source = source(&fields, "ts");
        let layout = Layout::compile(&spec, &source).unwrap();
        let columns = vec![uints(&[7, 7, 8]), times(&[NOON, NOON + DAY, NOON - DAY]), floats(&[Some(1.0); 3])];
        let block = load(&layout, &[batch(&source, columns)]);
        let found = layout.row_windows(&block.keys).unwrap();
        assert_eq!(found.is_some(), layout.rows_lie_in_one_window() && unit != Window::None, "{key}");
        let rows = (0..block.keys.len()).map(|row| String::from_utf8(block.keys.get(row)).unwrap());
        found.map(|found| rows.zip(found).collect::<std::collections::BTreeMap<_, _>>())
    };
    for key in
        ["{meter:010}#{ts:%Y%m%d}", "{meter:010}#{ts:ms}", "{meter}#{ts:%Y%m%d}#{ts:%H%M}", "{ts:%Y%m}#{ts:%d}#{meter}"]
    {
        let found = windows(key, Window::Day).unwrap();
        let mut starts: Vec<i64> = found.into_values().collect();
        starts.sort_unstable();
        let day = crate::time::window_of(Window::Day, NOON);
        assert_eq!(starts, [day - DAY, day, day + DAY], "{key}");
    }
    for (key, unit) in [
        ("{meter:010}", Window::Day),
        ("{meter}#{ts:%Y%m}", Window::Day),
        ("{meter}#{ts:%Y%m%d|Europe/Paris}", Window::Day),
        ("{meter}#{ts:%Y%m%d}", Window::Hour),
        ("{meter}#{ts:%Y%m%d}", Window::None),
    ] {
        assert_eq!(windows(key, unit), None, "{key}");
    }
}
