use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use proptest::prelude::*;

use crate::plan::Layout;
use crate::schema::FieldType;
use crate::spec::{SourceSchema, TableSpec};

use super::reference_loader::{
    MS, batch, decimals, decode_checked, floats, ints, lines, load, meters, source, table, texts, times, uints,
};

pub(super) fn wide_source() -> SourceSchema {
    let fields = [
        ("site", FieldType::Text),
        ("meter", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("kwh", FieldType::Float64),
        ("price", FieldType::Decimal { precision: 10, scale: 2 }),
        ("seq", FieldType::Int64),
    ];
    source(&fields, "ts")
}

/// Layouts that keep every column of [`wide_source`].
fn lossless() -> Vec<TableSpec> {
    type Families = &'static [(&'static str, &'static [(&'static str, &'static str)])];
    let all: &[(&str, Families)] = &[
        (
            "{site}#{meter:012}#{ts:%Y%m%d}",
            &[("F", &[("ID", "{meter}"), ("k{ts:%H%M}", "{kwh}"), ("p{ts:%H%M}", "{price}"), ("s{ts:%H%M}", "{seq}")])],
        ),
        ("{meter:012}#{site}", &[("F", &[("kwh", "{kwh}"), ("price", "{price}"), ("seq", "{seq}")])]),
        ("{meter:reversed}#{site}", &[("F", &[("kwh", "{kwh}"), ("price", "{price}")]), ("G", &[("seq", "{seq}")])]),
        ("{site:<8}#{ts:ms}#{meter:012}", &[("F", &[("kwh", "{kwh}"), ("price", "{price}"), ("seq", "{seq}")])]),
        (
            "{salt(meter, 7)}#{meter}#{site}{ts:ms-reversed}",
            &[("F", &[("kwh", "{kwh}"), ("price", "{price}"), ("s{seq}", "")])],
        ),
        (
            "{meter:be}{site}{ts:%G%V}",
            &[("F", &[("q{ts:%Y%m%d}", "{kwh}")]), ("G", &[("q{ts:%Y%m%d}", "{price}"), ("s{ts:%H}", "{seq}")])],
        ),
        (
            "{site:hash}#{ts:%Y%m%d%H}",
            &[
                ("F", &[("{site}|{meter}", "{kwh}")]),
                ("G", &[("{site}|{meter}", "{price}")]),
                ("H", &[("{site}|{meter}", "{seq}")]),
            ],
        ),
        (
            "{ts:%Y-%m-%d|Europe/Paris}#{site:reversed}",
            &[("F", &[("{meter:012}#{seq}", "{kwh}")]), ("G", &[("{meter:012}#{seq}", "{price}"), ("x", "v{seq}")])],
        ),
    ];
    all.iter().map(|(key, families)| table(key, families)).collect()
}

pub(super) type Event = (String, u64, i64, Option<i32>, Option<i32>);

pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let site = prop_oneof![Just("a"), Just("b"), Just("a b"), Just("é!"), Just("~")];
    // Few values, so that events share rows, qualifiers and instants.
    let time = (0i64..3, 0i64..3, 0i64..3, 0i64..3)
        .prop_map(|(day, hour, minute, ms)| ((18_690 + day * 40) * 1440 + hour * 60 + minute) * 60_000 + ms);
    let one =
        (site.prop_map(str::to_owned), 0u64..4, time, prop::option::of(-500i32..500), prop::option::of(-500i32..500));
    prop::collection::vec(one, 1..40).prop_map(|events| {
        // One event for each entity and instant: a second would overwrite the first.
        let unique: BTreeMap<(String, u64, i64), Event> =
            events.into_iter().map(|event| ((event.0.clone(), event.1, event.2), event)).collect();
        unique.into_values().collect()
    })
}

pub(super) fn wide_batch(source: &SourceSchema, events: &[Event]) -> RecordBatch {
    let cents: Vec<i128> = events.iter().map(|event| i128::from(event.4.unwrap_or(7))).collect();
    batch(
        source,
        vec![
            texts(&events.iter().map(|event| event.0.as_str()).collect::<Vec<_>>()),
            uints(&events.iter().map(|event| event.1 * 1_000_003).collect::<Vec<_>>()),
            times(&events.iter().map(|event| event.2 * MS).collect::<Vec<_>>()),
            floats(&events.iter().map(|event| event.3.map(|kwh| f64::from(kwh) / 100.0)).collect::<Vec<_>>()),
            decimals(&cents),
            ints(&(0..events.len() as i64).collect::<Vec<_>>()),
        ],
    )
}

pub(super) fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// The values of the promised order, record by record, as comparable text.
pub(super) fn check_order(layout: &Layout, found: &RecordBatch) {
    use arrow::compute::{SortColumn, lexsort_to_indices};
    use std::sync::Arc;

    let order = layout.record_order();
    if order.is_empty() {
        return;
    }
    let columns: Vec<SortColumn> =
        order.iter().map(|field| SortColumn { values: Arc::clone(found.column(*field)), options: None }).collect();
    let indices = lexsort_to_indices(&columns, None).unwrap();
    let sorted = arrow::compute::take_record_batch(&found.project(&order).unwrap(), &indices).unwrap();
    assert_eq!(lines(&sorted), lines(&found.project(&order).unwrap()));
}

proptest! {
    #[test]
    fn meters_come_back(events in prop::collection::btree_map((0u64..5, 0i64..400_000), -500i32..500, 1..60), cut in 0usize..60) {
        let (spec, source) = meters();
        let layout = Layout::compile(&spec, &source).unwrap();
        let keys: Vec<(u64, i64)> = events.keys().copied().collect();
        let whole = batch(
            &source,
            vec![
                uints(&keys.iter().map(|key| key.0).collect::<Vec<_>>()),
                times(&keys.iter().map(|key| key.1 * 1_000_000).collect::<Vec<_>>()),
                floats(&events.values().map(|value| Some(f64::from(*value) / 8.0)).collect::<Vec<_>>()),
            ],
        );
        let cut = cut.min(whole.num_rows());
        let parts = [whole.slice(cut, whole.num_rows() - cut), whole.slice(0, cut)];
        let found = decode_checked(&layout, &load(&layout, &parts));
        // The keys of the map are in the order that is promised.
        prop_assert_eq!(lines(&found), lines(&whole));
        prop_assert_eq!(found.schema(), layout.records_schema());
    }

    #[test]
    fn lossless_layouts_come_back(at in 0..lossless().len(), events in events()) {
        let source = wide_source();
        let layout = Layout::compile(&lossless()[at], &source).unwrap();
        prop_assert_eq!(layout.lost(), []);
        let whole = wide_batch(&source, &events);
        prop_assert!(layout.encoder().encode(&whole).unwrap().rejected.is_empty());
        let found = decode_checked(&layout, &load(&layout, std::slice::from_ref(&whole)));
        prop_assert_eq!(sorted(lines(&found)), sorted(lines(&whole)), "{}", layout.spec().row_key);
        check_order(&layout, &found);
    }

    #[test]
    fn any_template_is_parsed_or_refused(row_key in "[{}a:%Y|#0<(),]{0,12}", value in "\\{(ts|seq)(:.{0,8})?\\}") {
        let spec = table(&row_key, &[("F", &[("q", value.as_str())])]);
        if let Err(errors) = Layout::compile(&spec, &wide_source()) {
            for error in errors {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
