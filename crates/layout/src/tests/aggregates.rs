use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, StringArray};

use crate::cell::write_cell;
use crate::error::{Advice, ColumnPart, LostReason, Place};
use crate::hll::Sketch;
use crate::plan::Layout;
use crate::schema::{Encoding, FieldType, Merge, ValueType};
use crate::spec::{ColumnSpec, FamilySpec, SourceSchema, TableSpec, TimestampSpec};
use crate::time::DAY;

use super::reference_loader::{NOON, batch, column, source, table, times, uints};

fn sales() -> SourceSchema {
    let fields = [
        ("employee", FieldType::UInt64),
        ("ts", FieldType::Timestamp),
        ("customer", FieldType::Text),
        ("cents", FieldType::Int64),
        ("price", FieldType::Decimal { precision: 10, scale: 2 }),
    ];
    source(&fields, "ts")
}

/// A family of each kind, with one column each at timestamp 0.
fn spec(families: &[(Merge, &str)]) -> TableSpec {
    let family = |(kind, value): &(Merge, &str)| FamilySpec {
        name: kind.word().to_owned(),
        columns: vec![ColumnSpec { timestamp: TimestampSpec::Zero, ..column("{ts:%Y-%m}", value) }],
        kind: *kind,
    };
    TableSpec { families: families.iter().map(family).collect(), ..table("{employee:04}", &[]) }
}

fn problems(spec: &TableSpec) -> Vec<(Place, String)> {
    let errors = Layout::compile(spec, &sales()).err().unwrap_or_default();
    errors.into_iter().map(|error| (error.place, error.problem.to_string())).collect()
}

#[test]
fn numbers_have_eight_bytes_and_sketches_their_own() {
    let all =
        [(Merge::Sum, "{cents}"), (Merge::Min, "{cents}"), (Merge::Max, "{employee}"), (Merge::Hll, "{customer}")];
    let layout = Layout::compile(&spec(&all), &sales()).unwrap();
    let [group] = layout.stored().groups.as_slice() else { panic!("one group") };
    let held: Vec<_> = group.columns.iter().map(|column| (column.merge, column.value, column.encoding)).collect();
    let int64 = |kind| (ValueType::Field(kind), Encoding::Int64);
    let expected = [
        (Merge::Sum, int64(FieldType::Int64)),
        (Merge::Min, int64(FieldType::Int64)),
        (Merge::Max, int64(FieldType::UInt64)),
        (Merge::Hll, (ValueType::Bytes, Encoding::Bytes)),
    ];
    assert_eq!(held, expected.map(|(merge, (value, encoding))| (merge, value, encoding)));

    let rows = batch(
        &sales(),
        vec![
            uints(&[7, 7]),
            times(&[NOON, NOON + DAY]),
            Arc::new(StringArray::from(vec![Some("Fred"), None])),
            Arc::new(Int64Array::from(vec![Some(-2), None])),
            super::reference_loader::decimals(&[0, 0]),
        ],
    );
    let laid = layout.encoder().encode(&rows).unwrap();
    let cell = |at: usize, event: usize| {
        let mut bytes = Vec::new();
        write_cell(&group.columns[at], laid.groups[0].columns[at].as_ref(), event, &mut bytes);
        bytes
    };
    assert_eq!(cell(0, 0), (-2i64).to_be_bytes());
    assert_eq!(cell(2, 0), 7u64.to_be_bytes());
    assert_eq!(Sketch::read(&cell(3, 0)).unwrap().estimate(), 1);
    assert_eq!(laid.groups[0].columns[3].as_binary::<i32>().iter().filter(Option::is_some).count(), 1);
}

#[test]
fn sketches_that_something_else_made_are_kept_and_others_rejected() {
    let fields = [("id", FieldType::Text), ("ts", FieldType::Timestamp), ("state", FieldType::Text)];
    let source = source(&fields, "ts");
    let family = FamilySpec { name: "F".to_owned(), columns: vec![column("q", "{state:hex}")], kind: Merge::Hll };
    let spec = TableSpec { families: vec![family], ..table("{id}", &[]) };
    let layout = Layout::compile(&spec, &source).unwrap();
    let [group] = layout.stored().groups.as_slice() else { panic!("one group") };
    let one = "087010011802200882070b1001180f2014320396a32e";
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec()));
    let rows = batch(&source, vec![texts(&["a", "b"]), times(&[NOON, NOON]), texts(&[one, "ff"])]);
    let laid = layout.encoder().encode(&rows).unwrap();
    assert_eq!(laid.rejected.len(), 1);
    let mut bytes = Vec::new();
    write_cell(&group.columns[0], laid.groups[0].columns[0].as_ref(), 0, &mut bytes);
    assert_eq!(Sketch::read(&bytes).unwrap().estimate(), 1);
    let lost: Vec<_> = layout.lost().iter().map(|lost| lost.column.as_str()).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn what_merges_says_how_it_reads_back() {
    let layout = Layout::compile(&spec(&[(Merge::Sum, "{cents}"), (Merge::Hll, "{customer}")]), &sales()).unwrap();
    let names: Vec<String> = layout.records_schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["employee", "ts", "cents"]);
    let lost: Vec<_> = layout.lost().iter().map(|lost| (lost.column.as_str(), lost.why)).collect();
    assert_eq!(lost, [("customer", LostReason::Sketch), ("price", LostReason::Absent)]);
    let merged = Advice::Merged { column: "cents".to_owned(), kind: "sum" };
    assert!(layout.warnings().iter().any(|warning| warning.advice == merged));

    // A column that is also kept as it is reads back as that.
    let mut both = spec(&[(Merge::Sum, "{cents}")]);
    let each = vec![column("{ts:ms}", "{cents}")];
    both.families.push(FamilySpec { name: "each".into(), columns: each, ..Default::default() });
    let layout = Layout::compile(&both, &sales()).unwrap();
    assert!(layout.warnings().iter().all(|warning| !matches!(warning.advice, Advice::Merged { .. })));
}

#[test]
fn other_values_are_refused() {
    for (kind, value, said) in [
        (Merge::Sum, "{price}", "a family of kind sum takes an integer column, not a decimal: derive one"),
        (Merge::Min, "{customer}", "a family of kind min takes an integer column, not text"),
        (Merge::Max, "", "a family of kind max takes an integer column, not empty"),
        (Merge::Sum, "1", "a family of kind sum takes an integer column, not a template"),
        (Merge::Hll, "{price}", "a family of kind hll takes an integer or text column, not a decimal"),
    ] {
        let found = problems(&spec(&[(kind, value)]));
        let [(place, problem)] = found.as_slice() else { panic!("{found:?}") };
        assert!(
            matches!(place, Place::Column { part: ColumnPart::Value, .. }) && problem.starts_with(said),
            "{problem}"
        );
    }
    let mut encoded = spec(&[(Merge::Hll, "{customer}")]);
    encoded.families[0].columns[0].encoding = Encoding::Bytes;
    assert_eq!(problems(&encoded), []);
    encoded.families[0].kind = Merge::Sum;
    encoded.families[0].columns[0].value = "{customer}".into();
    assert!(problems(&encoded)[0].1.starts_with("cells of a family of kind sum are encoded as int64"));
    let mut upsert = spec(&[(Merge::Sum, "{cents}")]);
    upsert.upsert = true;
    assert_eq!(problems(&upsert), []);
    upsert.families[0].columns[0].timestamp = TimestampSpec::Implied;
    assert!(problems(&upsert)[0].1.contains("write `timestamp = 0`"));
}

#[test]
fn more_families_than_advised_draw_a_warning() {
    let mut spec = table("{employee:04}", &[]);
    let family =
        |at: usize| FamilySpec { name: format!("f{at}"), columns: vec![column("c", "{cents}")], ..Default::default() };
    spec.families = (0..100).map(family).collect();
    let warned = |spec: &TableSpec| {
        let layout = Layout::compile(spec, &sales()).unwrap();
        layout.warnings().iter().any(|warning| warning.advice == Advice::ManyFamilies { count: spec.families.len() })
    };
    assert!(!warned(&spec));
    spec.families.push(family(100));
    assert!(warned(&spec));
}
