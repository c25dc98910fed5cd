use std::sync::Arc;

use arrow::array::{Array, UInt64Array};

use crate::error::{ColumnPart, EncodeError, LayoutError, Place, RejectReason};
use crate::plan::Layout;
use crate::schema::{Encoding, FieldType};
use crate::spec::{TableSpec, TimestampSpec};
use crate::time::DAY;

use super::reference_loader::{NOON, batch, column, floats, meters, source, table, texts, times, uints};

fn errors(spec: &TableSpec) -> Vec<LayoutError> {
    let fields = [
        ("host", FieldType::Text),
        ("meter", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("kwh", FieldType::Float64),
    ];
    Layout::compile(spec, &source(&fields, "ts")).err().unwrap_or_default()
}

fn one(row_key: &str) -> String {
    let found = errors(&table(row_key, &[("F", &[("q", "{kwh}")])]));
    let lines = found.iter().map(|error| {
        assert_eq!(error.place, Place::RowKey);
        format!("{}..{}: {error}", error.span.start, error.span.end)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn templates_are_refused_where_they_are_wrong() {
    for (template, expected) in [
        ("{metr:010}", "1..5: no column `metr` in the source; did you mean `meter`?"),
        ("{meter", "0..6: `{` has no `}`"),
        ("a}b", "1..2: `}` closes nothing"),
        ("{}", "0..2: the field has no name"),
        ("{host:revesred}", "6..14: no form `revesred`"),
        ("{salt(host)}", "0..12: `salt` is written {salt(column, n)}"),
        ("{meter:00}", "7..9: the width must be from 1 to 20"),
        ("{ts:%Y-W%V}", "4..10: `%V` counts weeks of `%G`"),
        ("{ts:%Y|Europe/Pari}", "7..18: no time zone `Europe/Pari`"),
        ("{ts:%Y%E}", "6..8: `%E` is not a supported time directive"),
        // Chrono reads it, and does not print it.
        ("{ts:%Y%#z}", "6..9: `%#z` is not a supported time directive"),
        ("{host:010}", "0..10: `010` does not go with `host`, which is text: it takes an integer"),
        ("{kwh:ms}", "0..8: `an epoch` does not go with `kwh`, which is float64"),
        ("{host}{meter}", "0..6: `host` varies in width and nothing marks its end"),
        ("{host}{meter:05}#{host}", "0..6: `host` varies in width"),
        ("const", "0..5: the row key is empty"),
    ] {
        let found = one(template);
        assert!(found.starts_with(expected), "{template}: {found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
    assert_eq!(one("{a}{b}{meter:05}").lines().count(), 2);
    assert_eq!(one("{host}{meter:05}{ts:ms}"), "");
}

#[test]
fn columns_are_refused_all_at_once() {
    let mut spec = table("{meter}", &[("F", &[("q", "{kwh}"), ("q", "{host}"), ("{host}", "{kw}")]), ("F", &[])]);
    spec.families[0].columns.push(column("x{ts:%H}", "{kwh}"));
    spec.families[0].columns.push(column("x{ts:%M}", "{kwh}"));
    spec.families[0].columns.push(column("y{ts:%M}", "{kwh}"));
    spec.families[0].columns[0].encoding = Encoding::Int64;
    spec.families[0].columns[1].timestamp = TimestampSpec::Field("host".into());
    let place = |column, part| Place::Column { family: 0, column, part };
    let found = errors(&spec);
    let places: Vec<Place> = found.iter().map(|error| error.place).collect();
    assert_eq!(
        places,
        [
            place(0, ColumnPart::Encoding),
            place(1, ColumnPart::Timestamp),
            place(2, ColumnPart::Value),
            Place::Family(1),
            place(1, ColumnPart::Qualifier),
            place(4, ColumnPart::Qualifier),
        ],
        "{found:?}"
    );
    assert!(found[2].to_string().contains("did you mean `kwh`?"));
}

#[test]
fn qualifiers_of_different_width_or_start_go_together() {
    for (left, right, fits) in [
        ("a{ts:%H}", "b{ts:%H}", true),
        ("{ts:%H}", "{ts:%H%M}", true),
        ("a{host}", "ab{host}", false),
        ("{host}", "{ts:%H}", false),
        ("{ts:%H}", "{ts:%H}", false),
    ] {
        let found = errors(&table("{meter}", &[("F", &[(left, "{kwh}"), (right, "{kwh}")])]));
        assert_eq!(found.is_empty(), fits, "{left} {right}");
    }
}

#[test]
fn rejected_rows_say_why_and_the_rest_moves_up() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let mut encoder = layout.encoder();
    let too_wide = 10_000_000_000;
    let meters = Arc::new(UInt64Array::from(vec![Some(1), None, Some(too_wide), Some(2), Some(1)]));
    let batch = batch(&source, vec![meters, times(&[NOON, NOON, NOON, -DAY, NOON]), floats(&[Some(1.5); 5])]);
    let laid = encoder.encode(&batch).unwrap();
    assert_eq!(laid.rows, Some(vec![0, 4]));
    assert_eq!((laid.prefix.len(), laid.tail.len(), laid.time.len()), (2, 2, 2));
    assert_eq!(laid.prefix[0], laid.prefix[1]);
    assert!(laid.groups.iter().all(|group| group.columns.iter().all(|column| column.len() == 2)));
    let reasons: Vec<(usize, Option<&str>, &RejectReason)> =
        laid.rejected.iter().map(|reject| (reject.row, reject.column.as_deref(), &reject.reason)).collect();
    assert_eq!(
        reasons,
        [
            (1, Some("meter"), &RejectReason::Null),
            (2, Some("meter"), &RejectReason::TooWide { width: 10 }),
            (3, Some("ts"), &RejectReason::NegativeTimestamp),
        ]
    );
    // The same again, now that the meter is known to the encoder.
    assert_eq!(encoder.encode(&batch).unwrap().rejected.len(), 3);
}

#[test]
fn rejected_texts_stay_rejected() {
    let fields = [("host", FieldType::Text), ("q", FieldType::Text), ("ts", FieldType::Timestamp)];
    let source = source(&fields, "ts");
    let spec = table("{host}#{ts:ms}", &[("F", &[("ID", "{host}"), ("{q}", "{q}")])]);
    let layout = Layout::compile(&spec, &source).unwrap();
    let mut encoder = layout.encoder();
    let hosts = ["a", "b#", "c", "b#", "a", "a"];
    let qualifiers = ["x", "x", "ID", "x", "ID", "y"];
    let batch = batch(&source, vec![texts(&hosts), texts(&qualifiers), times(&[NOON; 6])]);
    for _ in 0..3 {
        let laid = encoder.encode(&batch).unwrap();
        assert_eq!(laid.rows, Some(vec![0, 5]));
        assert_eq!(laid.rejected.iter().map(|reject| reject.row).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(laid.rejected[1].reason, RejectReason::ConstantQualifier { qualifier: "ID".into() });
    }
}

#[test]
fn what_is_rejected_does_not_depend_on_what_came_before() {
    let (mut spec, source) = meters();
    spec.row_key = "{meter:010}".into();
    for (qualifier, fine) in [("{ts:%H%M}", [0, 2]), ("{ts:%H%M%S}", [0, 2]), ("{ts:%M|Europe/Paris}", [0, 2])] {
        spec.families[0].columns[1].qualifier = qualifier.into();
        let layout = Layout::compile(&spec, &source).unwrap();
        // 400 years are whole days, so the far moment prints as the near one does.
        let far = NOON + 20 * 146_097 * DAY;
        let batch = batch(&source, vec![uints(&[1; 3]), times(&[NOON, far, NOON]), floats(&[Some(1.0); 3])]);
        let mut encoder = layout.encoder();
        for _ in 0..2 {
            let laid = encoder.encode(&batch).unwrap();
            assert_eq!(laid.rows, Some(fine.to_vec()), "{qualifier}");
            assert_eq!((laid.rejected[0].row, &laid.rejected[0].reason), (1, &RejectReason::TimeRange));
        }
        let alone = layout.encoder().encode(&batch.slice(1, 1)).unwrap();
        assert_eq!(alone.rejected.len(), 1, "{qualifier}");
    }
}

#[test]
fn days_beyond_all_times_are_rejected() {
    let fields = [("host", FieldType::Text), ("day", FieldType::Date), ("ts", FieldType::Timestamp)];
    let source = source(&fields, "ts");
    for key in ["{host}#{day:%Y%m%d}", "{host}#{day:%H%j}", "{host}#{day}", "{host}#{day:%A}"] {
        let layout = Layout::compile(&table(key, &[("F", &[("Q", "{host}")])]), &source).unwrap();
        let days = Arc::new(arrow::array::Date32Array::from(vec![i32::MAX, 17_373, i32::MIN]));
        let batch = batch(&source, vec![texts(&["a", "b", "c"]), days, times(&[NOON; 3])]);
        let laid = layout.encoder().encode(&batch).unwrap();
        assert_eq!(laid.rows, Some(vec![1]), "{key}");
        assert!(laid.rejected.iter().all(|reject| reject.reason == RejectReason::Year), "{key}");
    }
}

#[test]
fn batches_with_and_without_nulls_share_their_codes() {
    let fields = [("host", FieldType::Text), ("meter", FieldType::UInt64), ("ts", FieldType::Timestamp)];
    let source = source(&fields, "ts");
    for key in ["{host}#{ts:%Y}", "{meter}#{ts:%Y}", "{host:<4}"] {
        let layout = Layout::compile(&table(key, &[("F", &[("{host}", "{meter}")])]), &source).unwrap();
        let mut encoder = layout.encoder();
        let mut lay = |hosts: Vec<Option<&str>>, meters: Vec<Option<u64>>| {
            let moments = times(&vec![NOON; hosts.len()]);
            let hosts = Arc::new(arrow::array::StringArray::from(hosts));
            encoder.encode(&batch(&source, vec![hosts, Arc::new(UInt64Array::from(meters)), moments])).unwrap().prefix
        };
        assert_eq!(lay(vec![Some("a"), Some("b")], vec![Some(1), Some(2)]), [0, 1], "{key}");
        assert_eq!(lay(vec![Some("b"), None, Some("c")], vec![Some(2), None, Some(3)]), [1, 2], "{key}");
        let last = lay(vec![Some("c"), Some("d"), Some("a")], vec![Some(3), Some(4), Some(1)]);
        assert_eq!(last, [2, 3, 0], "{key}");
        let all: Vec<&[u8]> = encoder.prefixes().iter().collect();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len(), "{key}");
    }
}

#[test]
fn batches_of_another_shape_are_errors() {
    let (spec, source) = meters();
    let layout = Layout::compile(&spec, &source).unwrap();
    let batch = batch(&source, vec![uints(&[1]), times(&[NOON]), floats(&[None])]);
    let missing = batch.project(&[0, 1]).unwrap();
    assert!(matches!(layout.encoder().encode(&missing), Err(EncodeError::MissingColumn { column }) if column == "kwh"));
    assert_eq!(layout.encoder().encode(&batch).unwrap().prefix, [0]);
}

#[test]
fn fingerprints_tell_layouts_apart() {
    let (spec, source) = meters();
    let print = |spec: &TableSpec| Layout::compile(spec, &source).unwrap().fingerprint();
    let first = print(&spec);
    assert_eq!((first.len(), &first), (32, &print(&spec)));
    let mut other = spec.clone();
    other.granularity = crate::spec::Granularity::Micros;
    assert_ne!(print(&other), first);
    let mut other = spec.clone();
    other.families[0].columns[1].encoding = Encoding::Float64;
    assert_ne!(print(&other), first);
}
