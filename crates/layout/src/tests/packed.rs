use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, StringArray, UInt64Array};
use proptest::prelude::*;

use crate::block::Block;
use crate::cell::{CellWriter, PackedWriter};
use crate::error::{ColumnPart, Place, RejectReason};
use crate::plan::Layout;
use crate::schema::{Encoding, FieldType, Merge, MessageField, ProtoType};
use crate::spec::{ColumnSpec, MessageSpec, PackedSpec, SourceSchema, TableSpec, TimestampSpec};
use crate::time::{DAY, MINUTE};

use super::reference_loader::{
    MS, NOON, batch, column, decimals, decode_checked, floats, ints, lines, load, project, source, table, texts, times,
    uints,
};
use super::round_trip::{check_order, events, sorted, wide_batch, wide_source};

fn message(name: &str, fields: &[(&str, u32, ProtoType)]) -> MessageSpec {
    let field = |(name, number, kind): &(&str, u32, ProtoType)| MessageField {
        name: (*name).to_owned(),
        number: *number,
        kind: *kind,
    };
    MessageSpec {
        name: name.into(),
        fields: fields.iter().map(field).collect(),
        list: (format!("{name}List"), 1),
        ..MessageSpec::default()
    }
}

fn packed(qualifier: &str, packed: PackedSpec) -> ColumnSpec {
    ColumnSpec { packed, ..column(qualifier, "") }
}

fn of_message(qualifier: &str) -> ColumnSpec {
    packed(qualifier, PackedSpec::Message("Reading".into()))
}

fn of_all(qualifier: &str) -> ColumnSpec {
    packed(qualifier, PackedSpec::Repeated("Reading".into()))
}

fn json(qualifier: &str, except: &[&str]) -> ColumnSpec {
    let except = except.iter().map(|name| (*name).to_owned()).collect();
    ColumnSpec { except, ..packed(qualifier, PackedSpec::Json) }
}

/// A table of these columns, and `Reading` of these fields.
fn spec(row_key: &str, columns: Vec<ColumnSpec>, fields: &[(&str, u32, ProtoType)]) -> TableSpec {
    let mut spec = table(row_key, &[("m", &[])]);
    spec.families[0].columns = columns;
    if !fields.is_empty() {
        spec.messages.push(message("Reading", fields));
    }
    spec
}

/// The measurements of the guides: balloon 3698, one a minute.
fn balloons() -> (SourceSchema, Vec<ArrayRef>) {
    let fields = [
        ("balloon", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("pressure", FieldType::UInt64),
        ("temperature", FieldType::Decimal { precision: 10, scale: 2 }),
        ("humidity", FieldType::Int64),
    ];
    let columns: Vec<ArrayRef> = vec![
        uints(&[3698, 3698, 3698]),
        times(&[NOON, NOON + MINUTE, NOON + 2 * MINUTE]),
        Arc::new(UInt64Array::from(vec![Some(94_558), Some(0), None])),
        decimals(&[950, 60_060, -5]),
        Arc::new(arrow::array::Int64Array::from(vec![Some(65), None, Some(-1)])),
    ];
    (source(&fields, "ts"), columns)
}

const BALLOON: [(&str, u32, ProtoType); 3] =
    [("humidity", 16, ProtoType::Sint32), ("pressure", 1, ProtoType::Uint64), ("temperature", 2, ProtoType::String)];

/// Every cell of the packed groups: key, `family:qualifier`, milliseconds, bytes.
type Cells = Vec<(String, String, i64, Vec<u8>)>;

fn cells(layout: &Layout, block: &Block) -> Cells {
    let mut out = Vec::new();
    for (group, stored) in block.groups.iter().zip(&layout.stored().groups) {
        let Some(packed) = &stored.packed else { continue };
        let group = group.as_ref().unwrap();
        let arrays = group.columns.iter().map(|array| array.as_ref().unwrap().as_ref());
        let mut writer = PackedWriter::new(stored, arrays).unwrap();
        for row in 0..block.keys.len() {
            let records = group.records(row);
            let all = if records.is_empty() { vec![] } else { vec![records.clone()] };
            let single = || records.clone().map(|record| record..record + 1).collect();
            for cell in if stored.keeps_duplicates() { all } else { single() } {
                let qualifier = match &group.qualifiers {
                    Some(own) => own.dictionary[own.codes[cell.start] as usize].to_vec(),
                    None => packed.qualifier.clone(),
                };
                let time = group.timestamps.as_ref().filter(|_| !stored.keeps_duplicates());
                let time = time.map_or(0, |times| times[cell.start]) / MS;
                let mut bytes = Vec::new();
                writer.write(cell, &mut bytes);
                let name = format!("{}:{}", packed.family, String::from_utf8(qualifier).unwrap());
                out.push((String::from_utf8(block.keys.get(row)).unwrap(), name, time, bytes));
            }
        }
    }
    out
}

fn compiled(spec: &TableSpec, source: &SourceSchema) -> Layout {
    Layout::compile(spec, source).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn a_message_an_event() {
    let (source, columns) = balloons();
    let spec = spec("us-west2#{balloon}#{ts:%Y-%m-%d-%H%M}", vec![of_message("blob")], &BALLOON);
    let layout = compiled(&spec, &source);
    let block = load(&layout, &[batch(&source, columns)]);
    let ms = NOON / MS;
    // Ascending numbers; what is null is absent, and what is 0 is there.
    let first = b"\x08\xde\xe2\x05\x12\x049.50\x80\x01\x82\x01";
    let second = b"\x08\x00\x12\x06600.60";
    let third = b"\x12\x05-0.05\x80\x01\x01";
    let row = |minute: i64, bytes: &[u8]| {
        let key = format!("us-west2#3698#2021-03-05-120{minute}");
        (key, "m:blob".to_owned(), ms + minute * 60_000, bytes.to_vec())
    };
    assert_eq!(cells(&layout, &block), [row(0, first), row(1, second), row(2, third)]);
    assert_eq!(
        lines(&decode_checked(&layout, &block)),
        [
            "3698 | 2021-03-05T12:00:00Z | 94558 | 9.50 | 65",
            "3698 | 2021-03-05T12:01:00Z | 0 | 600.60 | -",
            "3698 | 2021-03-05T12:02:00Z | - | -0.05 | -1",
        ]
    );
}

#[test]
fn a_message_of_all_events_of_a_row() {
    let (source, mut columns) = balloons();
    // The last comes first, and two are at one moment.
    columns[1] = times(&[NOON + MINUTE, NOON + MINUTE, NOON]);
    let mut spec = spec("us-west2#{balloon}#{ts:%G-W%V}", vec![of_all("blob")], &BALLOON);
    spec.messages[0].list.1 = 3;
    let layout = compiled(&spec, &source);
    let block = load(&layout, &[batch(&source, columns)]);
    let third = b"\x1a\x0a\x12\x05-0.05\x80\x01\x01";
    let both = [&b"\x1a\x0e\x08\xde\xe2\x05\x12\x049.50\x80\x01\x82\x01"[..], b"\x1a\x0a\x08\x00\x12\x06600.60"];
    let found = cells(&layout, &block);
    assert_eq!(found.len(), 1);
    let (key, name, time, bytes) = &found[0];
    assert_eq!((key.as_str(), name.as_str(), *time), ("us-west2#3698#2021-W09", "m:blob", 0));
    let rest = bytes.strip_prefix(&third[..]).unwrap();
    assert!(rest == both.concat() || rest == [both[1], both[0]].concat(), "{rest:x?}");
    assert_eq!(
        sorted(lines(&decode_checked(&layout, &block))),
        [
            "3698 | 2021-03-05T12:00:00Z | - | -0.05 | -1",
            "3698 | 2021-03-05T12:01:00Z | 0 | 600.60 | -",
            "3698 | 2021-03-05T12:01:00Z | 94558 | 9.50 | 65",
        ]
    );
    // One field is read alone.
    let projection = layout.projection(&[2]);
    assert_eq!(projection.groups[0].as_ref().unwrap().columns, [true, false, false]);
}

#[test]
fn an_object_an_event() {
    let fields = [
        ("person", FieldType::Text),
        ("ts", FieldType::Timestamp),
        ("paid", FieldType::Decimal { precision: 10, scale: 2 }),
        ("ratio", FieldType::Float64),
        ("big", FieldType::UInt64),
        ("day", FieldType::Date),
    ];
    let source = source(&fields, "ts");
    let layout =
        compiled(&spec("{person}", vec![json("row", &[]), json("some{ts:%H}", &["ts", "ratio"])], &[]), &source);
    let columns: Vec<ArrayRef> = vec![
        texts(&["José", "a\"b"]),
        times(&[NOON + 1500, NOON]),
        decimals(&[60_060, 0]),
        floats(&[Some(f64::NAN), None]),
        uints(&[u64::MAX, 0]),
        Arc::new(Date32Array::from(vec![Some(17_562), None])),
    ];
    let block = load(&layout, &[batch(&source, columns)]);
    let cell = |key: &str, name: &str, text: &str| {
        (key.to_owned(), name.to_owned(), (NOON + if key == "José" { MS } else { 0 }) / MS, text.as_bytes().to_vec())
    };
    let max = u64::MAX;
    assert_eq!(
        cells(&layout, &block),
        [
            cell(
                "José",
                "m:row",
                &format!(
                    r#"{{"person":"José","ts":"2021-03-05T12:00:00.001500Z","paid":600.60,"ratio":"NaN","big":{max},"day":"2018-01-31"}}"#
                )
            ),
            cell("a\"b", "m:row", r#"{"person":"a\"b","ts":"2021-03-05T12:00:00Z","paid":0.00,"big":0}"#),
            cell("José", "m:some12", &format!(r#"{{"person":"José","paid":600.60,"big":{max},"day":"2018-01-31"}}"#)),
            cell("a\"b", "m:some12", r#"{"person":"a\"b","paid":0.00,"big":0}"#),
        ]
    );
    assert_eq!(lines(&decode_checked(&layout, &block)).len(), 2);
    // The object has the time to the microsecond, the cell to the millisecond.
    assert!(lines(&decode_checked(&layout, &block))[0].contains("12:00:00.001500Z"));
}

#[test]
fn cells_of_the_row_stand_beside_its_events() {
    let fields =
        [("host", FieldType::Text), ("ts", FieldType::Timestamp), ("a", FieldType::UInt64), ("b", FieldType::UInt64)];
    let source = source(&fields, "ts");
    // Two groups of the row as a whole: a column, and an object of nothing but the key.
    let columns = vec![column("ID", "{host}"), json("key", &["ts", "a", "b"]), of_all("blob"), column("a", "{a}")];
    let layout = compiled(&spec("{host}", columns, &[("b", 1, ProtoType::Uint64)]), &source);
    let data: Vec<ArrayRef> = vec![
        texts(&["x", "x", "x", "y"]),
        times(&[NOON, NOON, NOON + MINUTE, NOON]),
        Arc::new(UInt64Array::from(vec![Some(1), Some(2), None, None])),
        Arc::new(UInt64Array::from(vec![Some(10), Some(20), Some(30), None])),
    ];
    let block = load(&layout, &[batch(&source, data)]);
    let found = cells(&layout, &block);
    let text =
        |cell: &(String, String, i64, Vec<u8>)| (cell.1.clone(), cell.2, String::from_utf8_lossy(&cell.3).into_owned());
    assert_eq!(text(&found[0]), ("m:key".into(), 0, r#"{"host":"x"}"#.into()));
    assert_eq!(text(&found[1]), ("m:key".into(), 0, r#"{"host":"y"}"#.into()));
    assert_eq!((found.len(), found[2].1.as_str(), found[2].2), (3, "m:blob", 0));
    // Of the column the newest value of a moment is left, which both events have; the message has both. A row
    // without events is a record of its own.
    assert_eq!(
        sorted(lines(&decode_checked(&layout, &block))),
        [
            "x | 2021-03-05T12:00:00Z | 2 | 10",
            "x | 2021-03-05T12:00:00Z | 2 | 20",
            "x | 2021-03-05T12:01:00Z | - | 30",
            "y | - | - | -",
        ]
    );
}

#[test]
fn values_that_a_message_cannot_hold_reject_their_row() {
    let fields =
        [("id", FieldType::UInt64), ("ts", FieldType::Timestamp), ("v", FieldType::Int64), ("f", FieldType::Float64)];
    let source = source(&fields, "ts");
    let message = [("v", 1, ProtoType::Uint32), ("f", 2, ProtoType::Float)];
    let layout = compiled(&spec("{id:03}", vec![of_message("q")], &message), &source);
    let columns = vec![
        uints(&[1, 2, 3, 4]),
        times(&[NOON; 4]),
        ints(&[-1, 4_294_967_296, 7, 8]),
        Arc::new(Float64Array::from(vec![Some(1.0), None, Some(1e300), None])) as ArrayRef,
    ];
    let laid = layout.encoder().encode(&batch(&source, columns)).unwrap();
    assert_eq!(laid.rows, Some(vec![3]));
    let reasons: Vec<(Option<&str>, &RejectReason)> =
        laid.rejected.iter().map(|reject| (reject.column.as_deref(), &reject.reason)).collect();
    let range = |kind| RejectReason::ProtoRange { kind };
    assert_eq!(reasons, [(Some("v"), &range("uint32")), (Some("v"), &range("uint32")), (Some("f"), &range("float"))]);
}

#[test]
fn a_record_without_fields_is_no_cell() {
    let (source, mut columns) = balloons();
    columns[2] = Arc::new(UInt64Array::from(vec![None, Some(0), None]));
    let layout = compiled(&spec("{balloon}", vec![of_message("q")], &BALLOON[1..2]), &source);
    let block = load(&layout, &[batch(&source, columns)]);
    assert_eq!(cells(&layout, &block), [("3698".to_owned(), "m:q".to_owned(), (NOON + MINUTE) / MS, vec![8, 0])]);
}

#[test]
fn one_value_as_a_literal() {
    let fields = [("id", FieldType::UInt64), ("ts", FieldType::Timestamp), ("v", FieldType::Text)];
    let source = source(&fields, "ts");
    let mut columns = vec![column("v", "{v}"), column("id", "{id}"), column("both", "{id}-{v}")];
    columns.iter_mut().for_each(|column| column.encoding = Encoding::Json);
    let layout = compiled(&spec("{id:03}#{ts:ms}", columns, &[]), &source);
    let block = load(&layout, &[batch(&source, vec![uints(&[7]), times(&[NOON]), texts(&["say \"hi\""])])]);
    let mut found = Vec::new();
    for (group, stored) in block.groups.iter().flatten().zip(&layout.stored().groups) {
        for (array, column) in group.columns.iter().flatten().zip(&stored.columns) {
            let mut bytes = Vec::new();
            CellWriter::new(column, array.as_ref()).write(0, &mut bytes);
            found.push(String::from_utf8(bytes).unwrap());
        }
    }
    assert_eq!(sorted(found), [r#""7-say \"hi\"""#, r#""say \"hi\"""#, "7"]);
    assert_eq!(lines(&decode_checked(&layout, &block)), ["7 | 2021-03-05T12:00:00Z | say \"hi\""]);
}

#[test]
fn mistakes_are_refused_where_they_are() {
    let (source, _) = balloons();
    let errors = |spec: TableSpec| {
        let found = Layout::compile(&spec, &source).err().unwrap_or_default();
        let part = |place| if let Place::Column { part, .. } = place { Some(part) } else { None };
        found.iter().map(|error| (part(error.place), error.to_string())).collect::<Vec<_>>()
    };
    let one = |column: ColumnSpec, fields: &[(&str, u32, ProtoType)]| {
        let found = errors(spec("{balloon}", vec![column], fields));
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    };
    let starts = |(part, said): (Option<ColumnPart>, String), expected: ColumnPart, start: &str| {
        assert_eq!(part, Some(expected), "{said}");
        assert!(said.starts_with(start), "{said}");
    };
    use ColumnPart::{Except, Packed, Qualifier, Timestamp, Value};
    starts(
        one(packed("q", PackedSpec::Message("Readin".into())), &BALLOON),
        Packed,
        "no message `Readin`: declare it; did you mean `Reading`?",
    );
    starts(
        one(of_message("q"), &[("presure", 1, ProtoType::Uint64)]),
        Packed,
        "no column `presure` in the source; did you mean `pressure`?",
    );
    starts(
        one(of_message("q"), &[("pressure", 0, ProtoType::Uint64)]),
        Packed,
        "field `pressure` of message `Reading` has number 0: write 1 to 536870911",
    );
    starts(
        one(of_message("q"), &[("pressure", 19_500, ProtoType::Uint64)]),
        Packed,
        "field `pressure` of message `Reading` has number 19500",
    );
    starts(
        one(of_message("q"), &[("pressure", 1, ProtoType::Uint64), ("humidity", 1, ProtoType::Int64)]),
        Packed,
        "fields `pressure` and `humidity` of message `Reading` have one number, 1",
    );
    starts(
        one(of_message("q"), &[("pressure", 1, ProtoType::Uint64), ("pressure", 2, ProtoType::Uint64)]),
        Packed,
        "message `Reading` has the field `pressure` twice",
    );
    for (field, kind, said) in [
        (
            "pressure",
            ProtoType::Double,
            "field `pressure` of message `Reading` is double, and the column `pressure` is uint64: it takes an integer type",
        ),
        (
            "temperature",
            ProtoType::Double,
            "field `temperature` of message `Reading` is double, and the column `temperature` is a decimal: it takes string",
        ),
        (
            "ts",
            ProtoType::String,
            "field `ts` of message `Reading` is string, and the column `ts` is a timestamp: it takes int64 (microseconds)",
        ),
    ] {
        starts(one(of_message("q"), &[(field, 1, kind)]), Packed, said);
    }
    starts(
        one(json("q", &["balloon", "ts", "pressure", "temperature", "humidity"]), &[]),
        Packed,
        "`except` leaves no column",
    );
    starts(one(json("q", &["presure"]), &[]), Except(0), "no column `presure`");
    starts(one(ColumnSpec { value: "{pressure}".into(), ..json("q", &[]) }, &[]), Value, "`value` does not go with");
    starts(
        one(ColumnSpec { except: vec!["ts".into()], ..of_message("q") }, &BALLOON),
        Except(0),
        "`except` does not go with",
    );
    starts(one(of_all("q{ts:%H}"), &BALLOON), Qualifier, "one cell holds all events of a row");
    let timed = ColumnSpec { timestamp: TimestampSpec::Field("ts".into()), ..of_all("q") };
    starts(one(timed, &BALLOON), Timestamp, "a cell of all events of a row has timestamp 0");
    assert_eq!(
        errors(spec("{balloon}", vec![ColumnSpec { timestamp: TimestampSpec::Zero, ..of_all("q") }], &BALLOON)),
        []
    );
    let mut unpivoted = spec("{balloon}", vec![json("q", &[])], &[]);
    unpivoted.unpivot = vec!["pressure".into()];
    starts(errors(unpivoted).remove(0), Packed, "a cell of several columns needs them together");
    let mut sums = spec("{balloon}", vec![json("q", &[])], &[]);
    sums.families[0].kind = Merge::Sum;
    starts(errors(sums).remove(0), Packed, "family `m` merges numbers");
    let twice = errors(spec("{balloon}", vec![json("q", &[]), of_message("q"), column("q", "{pressure}")], &BALLOON));
    assert_eq!(twice.len(), 3, "{twice:?}");
    assert!(twice.iter().all(|(part, said)| *part == Some(Qualifier) && said.contains("already a column")));
}

#[test]
fn a_qualifier_of_data_may_not_be_the_name_of_a_packed_cell() {
    let fields = [("id", FieldType::UInt64), ("ts", FieldType::Timestamp), ("q", FieldType::Text)];
    let source = source(&fields, "ts");
    for columns in [vec![json("all", &[]), column("{q}", "")], vec![column("all", "{q}"), json("{q}", &[])]] {
        let layout = compiled(&spec("{id:03}", columns, &[]), &source);
        let batch = batch(&source, vec![uints(&[1, 2]), times(&[NOON; 2]), texts(&["x", "all"])]);
        let laid = layout.encoder().encode(&batch).unwrap();
        assert_eq!(laid.rejected[0].reason, RejectReason::ConstantQualifier { qualifier: "all".into() });
    }
}

#[test]
fn the_proto_of_a_table() {
    let (source, _) = balloons();
    let fields = [("ts", 3, ProtoType::Int64), BALLOON[1], BALLOON[2]];
    let mut both = spec("{balloon}", vec![of_message("one"), of_all("all")], &fields);
    assert_eq!(
        compiled(&both, &source).proto().unwrap(),
        r#"// Cells of the table T.
syntax = "proto3";

// One event.
message Reading {
  // Microseconds since 1970-01-01T00:00:00Z.
  optional int64 ts = 3;
  optional uint64 pressure = 1;
  // An exact decimal with 2 digits after the point, such as 1.00.
  optional string temperature = 2;
}

// The events of a row, by ascending time.
message ReadingList {
  repeated Reading readings = 1;
}
"#
    );
    // The user's own text, with the list that it lacks.
    both.messages[0].proto = Some("syntax = \"proto3\"; message Reading { optional uint64 pressure = 1; }".into());
    let text = compiled(&both, &source).proto().unwrap();
    assert!(text.starts_with("syntax") && text.ends_with("repeated Reading readings = 1;\n}\n"), "{text}");
    both.messages[0].has_list = true;
    assert_eq!(compiled(&both, &source).proto(), both.messages[0].proto);
    assert_eq!(compiled(&spec("{balloon}", vec![json("q", &[])], &BALLOON), &source).proto(), None);
}

#[test]
fn an_encoded_field_is_found_by_its_value_and_not_by_a_range() {
    use std::ops::Bound;

    use crate::pushdown::{FieldBound, Scalar, ValueSet};
    let fields = [("host", FieldType::Text), ("ts", FieldType::Timestamp), ("v", FieldType::UInt64)];
    let source = source(&fields, "ts");
    let layout = compiled(&table("{host:percent}#{ts:%Y%m%d}", &[("F", &[("v", "{v}")])]), &source);
    assert_eq!(layout.record_order(), [] as [usize; 0]);
    let hosts = ["a#b", "a", "100%", "é"];
    let whole = batch(&source, vec![texts(&hosts), times(&[NOON; 4]), uints(&[1, 2, 3, 4])]);
    let found = decode_checked(&layout, &load(&layout, std::slice::from_ref(&whole)));
    assert_eq!(sorted(lines(&found)), sorted(lines(&whole)));
    let bound = |set| [FieldBound { field: "host".into(), set }];
    let ranges = layout.key_ranges(&bound(ValueSet::In(vec![Scalar::Text("a#b".into())])));
    assert_eq!((ranges.len(), ranges[0].start.as_slice()), (1, &b"a%23b#"[..]));
    let low = Bound::Included(Scalar::Text("b".into()));
    let open = layout.key_ranges(&bound(ValueSet::Range { low, high: Bound::Unbounded }));
    assert_eq!((open.len(), open[0].start.as_slice(), &open[0].end), (1, &b""[..], &None));
}

/// Packed layouts that keep every column of [`wide_source`].
fn lossless() -> Vec<TableSpec> {
    let all = [
        ("meter", 4, ProtoType::Fixed64),
        ("seq", 3, ProtoType::Sint64),
        ("kwh", 1, ProtoType::Double),
        ("price", 20_000, ProtoType::String),
    ];
    let mut split = spec(
        "{meter:012}#{site}",
        vec![packed("a", PackedSpec::Message("A".into())), packed("b", PackedSpec::Message("B".into()))],
        &[],
    );
    split.messages = vec![message("A", &all[1..2]), message("B", &all[2..])];
    let mut repeated_twice = spec(
        "{meter:012}#{site:percent}",
        vec![packed("a", PackedSpec::Repeated("A".into())), packed("b", PackedSpec::Repeated("B".into()))],
        &[],
    );
    repeated_twice.messages = split.messages.clone();
    vec![
        spec("{site}#{meter:012}#{ts:%Y%m%d}", vec![of_message("m{ts:%H%M}"), column("ID", "{meter}")], &all),
        spec("{site:percent}#", vec![of_all("all"), column("ID", "{site}")], &all),
        spec("{site}#{ts:%G%V}", vec![of_all("all")], &all),
        spec("{meter:reversed}", vec![json("{site}", &[])], &[]),
        spec("{site}", vec![json("x{meter:012}", &["site"]), column("y{meter}", "{kwh}")], &[]),
        spec("{site:percent}/{ts:%Y%m%d}", vec![of_all("all"), json("{meter}", &["site", "meter"])], &all),
        split,
        repeated_twice,
    ]
}

proptest! {
    #[test]
    fn packed_layouts_come_back(at in 0..lossless().len(), events in events()) {
        let source = wide_source();
        let layout = compiled(&lossless()[at], &source);
        prop_assert_eq!(layout.lost(), []);
        let whole = wide_batch(&source, &events);
        prop_assert!(layout.encoder().encode(&whole).unwrap().rejected.is_empty());
        let block = load(&layout, std::slice::from_ref(&whole));
        let found = decode_checked(&layout, &block);
        // Two groups that do not tell which meter a moment is of belong to every event of the moment.
        let joined = sorted(lines(&found));
        for line in lines(&whole) {
            prop_assert!(joined.contains(&line), "{} {line}\n{joined:?}", layout.spec().row_key);
        }
        if at != 5 {
            prop_assert_eq!(joined, sorted(lines(&whole)), "{}", layout.spec().row_key);
        }
        check_order(&layout, &found);
        for (.., bytes) in cells(&layout, &block) {
            prop_assert!(!bytes.is_empty());
        }
        let fields: Vec<usize> = vec![0];
        prop_assert_eq!(layout.decode(project(&layout, &block, &fields), &fields).unwrap().num_rows(), found.num_rows());
    }
}

#[test]
fn a_day_of_events_is_one_cell() {
    let fields = [("id", FieldType::UInt64), ("ts", FieldType::Timestamp), ("v", FieldType::Text)];
    let source = source(&fields, "ts");
    let layout = compiled(&spec("{id:03}", vec![of_all("all")], &[("v", 1, ProtoType::Bytes)]), &source);
    let times_of: Vec<i64> = (0..1440).map(|minute| NOON - NOON % DAY + minute * MINUTE).collect();
    let values: StringArray = (0..1440).map(|minute| Some(format!("v{minute}"))).collect();
    let batch = batch(&source, vec![uints(&[1; 1440]), times(&times_of), Arc::new(values)]);
    let found = cells(&layout, &load(&layout, &[batch]));
    assert_eq!(found.len(), 1);
    let expected: Vec<u8> = (0..1440)
        .flat_map(|minute| {
            let text = format!("v{minute}");
            let length = text.len() as u8;
            [vec![10, length + 2, 10, length], text.into_bytes()].concat()
        })
        .collect();
    assert_eq!(found[0].3, expected);
}
