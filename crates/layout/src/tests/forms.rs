use arrow::array::ArrayRef;

use crate::plan::Layout;
use crate::schema::{Encoding, FieldType, KeyTail, TailPart};
use crate::spec::{ColumnSpec, FamilySpec, TableSpec, TimestampSpec};
use crate::time::{DAY, MINUTE};

use super::reference_loader::{
    MS, NOON, batch, bools, cells, column, decimals, floats, ints, key_of, meters, source, table, texts, times, uints,
};

fn key(template: &str, fields: &[(&str, FieldType, ArrayRef)]) -> Result<Vec<u8>, String> {
    let mut kinds: Vec<(&str, FieldType)> = fields.iter().map(|(name, kind, _)| (*name, *kind)).collect();
    let mut columns: Vec<ArrayRef> = fields.iter().map(|(.., array)| array.clone()).collect();
    if !kinds.iter().any(|(name, _)| *name == "ts") {
        kinds.push(("ts", FieldType::Timestamp));
        columns.push(times(&[NOON]));
    }
    let source = source(&kinds, "ts");
    let layout = Layout::compile(&table(template, &[("F", &[("Q", "{ts}")])]), &source)
        .map_err(|errors| errors[0].to_string())?;
    let mut encoder = layout.encoder();
    let laid = encoder.encode(&batch(&source, columns)).map_err(|error| error.to_string())?;
    match laid.rejected.first() {
        Some(reject) => Err(reject.reason.to_string()),
        None => Ok(key_of(&layout, &encoder, &laid, 0)),
    }
}

fn of(template: &str, kind: FieldType, array: ArrayRef) -> String {
    let key = key(template, &[("f", kind, array)]);
    key.map_or_else(|error| format!("! {error}"), |key| String::from_utf8_lossy(&key).into_owned())
}

fn time(template: &str, time: i64) -> String {
    let key = key(template, &[("ts", FieldType::Timestamp, times(&[time]))]);
    key.map_or_else(|error| format!("! {error}"), |key| String::from_utf8_lossy(&key).into_owned())
}

#[test]
fn every_form_of_a_number() {
    use FieldType::{Float64, Int64, UInt64};
    assert_eq!(of("{f}", UInt64, uints(&[3])), "3");
    assert_eq!(of("{f:02}", UInt64, uints(&[3])), "03");
    assert_eq!(of("{f:010}", UInt64, uints(&[987_654])), "0000987654");
    assert_eq!(of("{f:020}", UInt64, uints(&[u64::MAX])), "18446744073709551615");
    assert_eq!(of("{f:02}", UInt64, uints(&[100])), "! wider than its 2 bytes");
    assert_eq!(of("{f:02}", Int64, ints(&[-1])), "! negative in a zero-padded field");
    assert_eq!(of("{f}", Int64, ints(&[-17])), "-17");
    assert_eq!(of("{f:<4}|", Int64, ints(&[-17])), "-17 |");
    assert_eq!(of("{f:reversed}", UInt64, uints(&[100_001])), "100001");
    assert_eq!(of("{f:reversed}", UInt64, uints(&[100_002])), "200001");
    assert_eq!(of("{f}", Float64, floats(&[Some(12.34)])), "12.34");
    assert_eq!(of("{f}", FieldType::Bool, bools(&[true])), "true");
    let decimal = FieldType::Decimal { precision: 10, scale: 2 };
    for (digits, text) in [(2890, "28.90"), (0, "0.00"), (-5, "-0.05"), (60_060, "600.60")] {
        assert_eq!(of("{f}", decimal, decimals(&[digits])), text);
    }
    assert_eq!(key("{f:be}", &[("f", UInt64, uints(&[258]))]).unwrap(), [0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn every_form_of_text() {
    use FieldType::Text;
    assert_eq!(of("{f:<6}#", Text, texts(&["ZXZ"])), "ZXZ   #");
    assert_eq!(of("{f:<2}", Text, texts(&["abc"])), "! wider than its 2 bytes");
    assert_eq!(of("{f:<4}#", Text, texts(&["üü"])), "üü#");
    assert_eq!(of("{f:<4}#", Text, texts(&["üüü"])), "! wider than its 4 bytes");
    assert_eq!(of("{f:<4}", Text, texts(&["a "])), "! ends with a space, which padding would lose");
    assert_eq!(of("{f:reversed}", Text, texts(&["aé1"])), "1éa");
    assert_eq!(of("{f:domain}", Text, texts(&["drive.google.com"])), "com.google.drive");
    assert_eq!(of("{f:domain}", Text, texts(&["en.wikipedia.org"])), "org.wikipedia.en");
    assert_eq!(of("{{{f}}}", Text, texts(&["x"])), "{x}");
    assert_eq!(of("{f}#{ts:%Y}", Text, texts(&["a#b"])), "! contains the delimiter `#`");
    assert_eq!(of("{f}--{ts:%Y}", Text, texts(&["a-"])), "! contains the delimiter `--`");
    assert_eq!(of("{f}-{ts:%Y}", Text, texts(&["a"])), "a-2021");
    assert_eq!(of("{f}{ts:%Y%m}", Text, texts(&["any#thing"])), "any#thing202103");
    assert_eq!(of("{f}", Text, texts(&[""])), "! the row key is empty");
    assert_eq!(of("{f:percent}#{ts:%Y}", Text, texts(&["a#b%\n"])), "a%23b%25%0A#2021");
    assert_eq!(of("{f:percent}#{ts:%Y}", FieldType::Int64, ints(&[-5])), "-5#2021");
    assert_eq!(of("{f:percent}--{ts:%Y}", Text, texts(&["a-"])), "a%2D--2021");
    // The escape itself has the delimiter.
    assert_eq!(of("{f:percent}2{ts:%Y}", Text, texts(&["2"])), "! contains the delimiter `2`");
    let long = "x".repeat(4097);
    assert_eq!(of("{f}", Text, texts(&[&long])), "! the row key is over 4096 bytes");
    assert_eq!(of("{f:hash}", Text, texts(&["x"])), format!("{:016x}", xxhash_rust::xxh3::xxh3_64(b"x")));
    let salt = 1 + xxhash_rust::xxh3::xxh3_64(b"abc") % 3;
    assert_eq!(of("{salt(f, 3)}#{f}", Text, texts(&["abc"])), format!("{salt}#abc"));
}

#[test]
fn every_form_of_a_time() {
    let moment = NOON + 34 * MINUTE + 56_789 * MS + 12;
    for (template, text) in [
        ("{ts}", "2021-03-05T12:34:56.789012Z"),
        ("{ts:%Y%m%d}", "20210305"),
        ("{ts:%Y-%m-%d-%H%M}", "2021-03-05-1234"),
        ("{ts:%Y%m%d%H%M%S%3f}", "20210305123456789"),
        ("{ts:%F %T%.6f}", "2021-03-05 12:34:56.789012"),
        ("{ts:%j %G-W%V}", "064 2021-W09"),
        ("{ts:%b %a}", "Mar Fri"),
        ("{ts:%Y%m%d%H|Europe/Paris}", "2021030513"),
        ("{ts:%Y%m%d%H%M|America/New_York}", "202103050734"),
        ("{ts:s}", "1614947696"),
        ("{ts:ms}", "1614947696789"),
        ("{ts:us}", "1614947696789012"),
        ("{ts:ms-reversed}", "9223370421907079018"),
        ("100%{ts:%%%Y}", "100%%2021"),
    ] {
        assert_eq!(time(template, moment), text, "{template}");
    }
    assert_eq!(time("{ts:ms}", -1), "! a timestamp before 1970");
    let range = "! outside the years 1 to 9999, whose times queries can work with";
    for beyond in [
        253_402_300_800_000_000,
        1_000_000_000_000_000_000,
        *crate::time::TIMESTAMP_RANGE.end() + 1,
        *crate::time::TIMESTAMP_RANGE.start() - 1,
        i64::MIN,
    ] {
        assert_eq!(time("{ts:%Y}", beyond), range, "{beyond}");
        assert_eq!(time("{ts:s}", beyond), range, "{beyond}");
    }
    assert_eq!(time("{ts:%Y}", *crate::time::TIMESTAMP_RANGE.end()), "9999");
}

#[test]
fn row_key_cases_of_the_guides() {
    use FieldType::{Text, Timestamp, UInt64};
    let text = |value: &str| texts(&[value]);
    let at = |value: i64| times(&[value]);
    let moment = 1_425_213_003_000_000 + 1_000 * MS + 3 * MS;
    let battery = [("user", Text, text("Corrie")), ("ts", Timestamp, at(moment))];
    assert_eq!(moment, 1_425_213_004_003_000);
    let salt = 1 + xxhash_rust::xxh3::xxh3_64(b"1425213004003") % 3;
    let cases = [
        ("BATTERY#{user}#{ts:%Y%m%d%H%M%S%3f}", &battery, "BATTERY#Corrie#20150301123004003".into()),
        ("BATTERY#{salt(ts, 3)}#{ts:%Y%m%d%H%M%S%3f}", &battery, format!("BATTERY#{salt}#20150301123004003")),
        ("LoL#{user}#{ts:%Y%m%d}", &battery, "LoL#Corrie#20150301".into()),
        ("VEGGIEGARDEN#{ts:%Y%m01}", &battery, "VEGGIEGARDEN#20150301".into()),
        ("{user}#memusage#{ts:ms}", &battery, "Corrie#memusage#1425213004003".into()),
        ("machine_{user}#{ts:ms-reversed}", &battery, "machine_Corrie#9223370611641771804".into()),
    ];
    for (template, fields, expected) in cases {
        assert_eq!(String::from_utf8(key(template, fields).unwrap()).unwrap(), expected);
    }
    let device = [
        ("tenant", Text, text("altostrat")),
        ("kind", Text, text("phone")),
        ("id", Text, text("4c410523")),
        ("ts", Timestamp, at(NOON)),
    ];
    assert_eq!(key("{tenant}#{kind}#{id}#{ts:%Y%m%d}", &device).unwrap(), b"altostrat#phone#4c410523#20210305");
    let quote = [
        ("exchange", Text, text("NASDAQ")),
        ("symbol", Text, text("ZXZZT")),
        ("ts", Timestamp, at(1_426_535_612_156_000)),
    ];
    assert_eq!(key("{exchange:<6}#{symbol:<5}#{ts:ms}", &quote).unwrap(), b"NASDAQ#ZXZZT#1426535612156");
    let meter = [("meter", UInt64, uints(&[987_654])), ("ts", Timestamp, at(NOON))];
    assert_eq!(key("{ts:%Y%m%d}#{meter:010}", &meter).unwrap(), b"20210305#0000987654");
}

#[test]
fn tails_begin_at_the_leftmost_time() {
    let fields = [("m", FieldType::UInt64), ("h", FieldType::Text), ("ts", FieldType::Timestamp)];
    let source = source(&fields, "ts");
    let digits = |n| TailPart::Digits(n);
    let literal = |text: &str| TailPart::Literal(text.into());
    for (template, parts) in [
        ("{m:010}#{ts:%Y%m%d}", vec![digits(8)]),
        ("{ts:%Y%m%d}#{m:010}", vec![digits(8), literal("#"), digits(10)]),
        ("{h}#{ts:%G-W%V}", vec![digits(4), literal("-W"), digits(2)]),
        ("{h}#{ts:ms-reversed}", vec![digits(19)]),
        ("{salt(ts, 3)}#{ts:%Y%m%d}x", vec![digits(8), literal("x")]),
        ("{ts:%Y}#{h}#{m:05}{ts:ms}", vec![digits(13)]),
        ("{ts:ms}#{m:010}", vec![]),
        ("{h}{ts:ms}", vec![]),
        ("{h}#{m:05}", vec![]),
        ("{ts:ms}#{h}", vec![]),
    ] {
        let layout = Layout::compile(&table(template, &[("F", &[("Q", "{h}")])]), &source).unwrap();
        assert_eq!(layout.stored().tail, KeyTail { parts }, "{template}");
    }
}

#[test]
fn smart_meters_are_the_guides_cells() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let day = 1_501_027_200_000_000;
    let times = times(&[day, day + 15 * MINUTE, day + 23 * 60 * MINUTE + 45 * MINUTE]);
    let batch = batch(&source, vec![uints(&[987_654; 3]), times, floats(&[Some(12.34), Some(13.45), None])]);
    assert_eq!(
        cells(&layout, &batch),
        [
            "0000987654#20170726 METER:ID=987654 @0",
            "0000987654#20170726 METER:0000=12.34 @1501027200000",
            "0000987654#20170726 METER:0015=13.45 @1501028100000",
        ]
    );
    let mut encoder = layout.encoder();
    let laid = encoder.encode(&batch).unwrap();
    assert!(laid.rows.is_none() && laid.groups[0].timestamps.is_none());
    assert!(laid.groups[0].columns[0].to_data().ptr_eq(&batch.column(0).to_data()));
    assert_eq!(laid.tail, [20_170_726; 3]);
    assert_eq!(encoder.prefixes().get(0), b"0000987654#");
    assert_eq!(encoder.qualifiers(1).unwrap().len(), 3);
}

#[test]
fn balloons_in_all_their_columns() {
    let fields = [
        ("region", FieldType::Text),
        ("balloon", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("pressure", FieldType::UInt64),
        ("temperature", FieldType::Float64),
    ];
    let source = source(&fields, "ts");
    let batch = batch(
        &source,
        vec![
            texts(&["us-west2"; 2]),
            uints(&[3698; 2]),
            times(&[NOON, NOON + MINUTE]),
            uints(&[94_558, 94_122]),
            floats(&[Some(9.5), None]),
        ],
    );
    let ms = NOON / MS;
    let mut spec = table("{region}#{balloon}#{metric}#week1", &[("m", &[("{value}", "")])]);
    spec.unpivot = vec!["pressure".into(), "temperature".into()];
    let layout = Layout::compile(&spec, &source).unwrap();
    assert_eq!(
        cells(&layout, &batch),
        [
            format!("us-west2#3698#pressure#week1 m:94122= @{}", ms + 60_000),
            format!("us-west2#3698#pressure#week1 m:94558= @{ms}"),
            format!("us-west2#3698#temperature#week1 m:9.5= @{ms}"),
        ]
    );
    let each = ColumnSpec {
        each: true,
        except: vec!["region".into(), "balloon".into(), "ts".into()],
        ..column("{column}", "{value}")
    };
    let families = vec![FamilySpec { name: "m".into(), columns: vec![each], ..FamilySpec::default() }];
    let spec = TableSpec { row_key: "{region}#{balloon}#{ts:%Y-%m-%d-%H%M}".into(), families, ..TableSpec::default() };
    let layout = Layout::compile(&spec, &source).unwrap();
    assert_eq!(
        cells(&layout, &batch),
        [
            format!("us-west2#3698#2021-03-05-1200 m:pressure=94558 @{ms}"),
            format!("us-west2#3698#2021-03-05-1200 m:temperature=9.5 @{ms}"),
            format!("us-west2#3698#2021-03-05-1201 m:pressure=94122 @{}", ms + 60_000),
        ]
    );
}

#[test]
fn encodings_and_timestamps() {
    let fields = [
        ("id", FieldType::Text),
        ("n", FieldType::Int64),
        ("x", FieldType::Float64),
        ("ts", FieldType::Timestamp),
        ("seen", FieldType::Timestamp),
    ];
    let source = source(&fields, "ts");
    let with = |qualifier: &str, value: &str, encoding, timestamp| ColumnSpec {
        encoding,
        timestamp,
        ..column(qualifier, value)
    };
    let columns = vec![
        with("n", "{n}", Encoding::Int64, TimestampSpec::Zero),
        with("x", "{x}", Encoding::Float64, TimestampSpec::Implied),
        with("b", "{id}", Encoding::Bytes, TimestampSpec::Field("seen".into())),
        with("mixed", "{id}={n:06}", Encoding::Text, TimestampSpec::Field("seen".into())),
    ];
    let spec = TableSpec {
        row_key: "{id}".into(),
        families: vec![FamilySpec { name: "F".into(), columns, ..FamilySpec::default() }],
        ..TableSpec::default()
    };
    let layout = Layout::compile(&spec, &source).unwrap();
    let batch = batch(
        &source,
        vec![texts(&["k"]), ints(&[0x4142]), floats(&[Some(2.0)]), times(&[NOON + 7]), times(&[NOON + DAY])],
    );
    let (ms, day) = (NOON / MS, DAY / MS);
    assert_eq!(
        cells(&layout, &batch),
        [
            "k F:n=\0\0\0\0\0\0AB @0".to_owned(),
            format!("k F:x=@\0\0\0\0\0\0\0 @{ms}"),
            format!("k F:b=k @{}", ms + day),
            format!("k F:mixed=k=016706 @{}", ms + day),
        ]
    );
}
