//! Fingerprints are stored in manifests: their values may never change for a layout that a past build could declare.

use crate::fingerprint::fingerprint;
use crate::schema::{Encoding, FieldType, Merge, MessageField, ProtoType};
use crate::spec::{
    ColumnSpec, FamilySpec, Field, Granularity, MessageSpec, PackedSpec, SourceSchema, TableSpec, TimestampSpec, Window,
};

/// A layout with every variant that is hashed at least once; it need not compile.
fn everything(window: Window) -> (TableSpec, SourceSchema) {
    let column = |encoding, timestamp, packed| ColumnSpec {
        qualifier: "{ts:%H%M}".to_owned(),
        value: "{kwh}".to_owned(),
        encoding,
        timestamp,
        each: packed == PackedSpec::None,
        except: vec!["a".to_owned(), "b \"c\"".to_owned()],
        packed,
    };
    let columns = vec![
        column(Encoding::Text, TimestampSpec::Implied, PackedSpec::None),
        column(Encoding::Int64, TimestampSpec::Zero, PackedSpec::Json),
        column(Encoding::Float64, TimestampSpec::Field("Zeit \"ü\"".to_owned()), PackedSpec::Message("M".to_owned())),
        column(Encoding::Bytes, TimestampSpec::Implied, PackedSpec::Repeated("M".to_owned())),
        column(Encoding::Json, TimestampSpec::Implied, PackedSpec::None),
    ];
    let kinds = [Merge::Newest, Merge::Sum, Merge::Min, Merge::Max, Merge::Hll];
    let families = kinds.map(|kind| FamilySpec { name: format!("F{}", kind as u8), columns: columns.clone(), kind });
    let types = [
        ProtoType::Double,
        ProtoType::Float,
        ProtoType::Int32,
        ProtoType::Int64,
        ProtoType::Uint32,
        ProtoType::Uint64,
        ProtoType::Sint32,
        ProtoType::Sint64,
        ProtoType::Fixed32,
        ProtoType::Fixed64,
        ProtoType::Sfixed32,
        ProtoType::Sfixed64,
        ProtoType::Bool,
        ProtoType::String,
        ProtoType::Bytes,
        ProtoType::Timestamp,
    ];
    let fields =
        types.iter().zip(1..).map(|(kind, number)| MessageField { name: format!("f{number}"), number, kind: *kind });
    let spec = TableSpec {
        name: "T".to_owned(),
        row_key: "{id}#{ts:ms}".to_owned(),
        window,
        granularity: if window == Window::Day { Granularity::Micros } else { Granularity::Millis },
        unpivot: vec!["x".to_owned(), "y".to_owned()],
        families: families.to_vec(),
        upsert: true,
        messages: vec![MessageSpec {
            name: "M".to_owned(),
            fields: fields.collect(),
            list: ("Ms".to_owned(), 7),
            proto: None,
            has_list: false,
        }],
    };
    let kinds = [
        FieldType::UInt64,
        FieldType::Int64,
        FieldType::Float64,
        FieldType::Decimal { precision: 10, scale: 2 },
        FieldType::Text,
        FieldType::Bool,
        FieldType::Timestamp,
        FieldType::Date,
    ];
    let fields =
        kinds.iter().enumerate().map(|(index, kind)| Field { name: format!("c{index}"), kind: *kind }).collect();
    (spec, SourceSchema { fields, time: 6 })
}

#[test]
fn fingerprints_stay_what_they_were() {
    let golden = [
        (Window::Hour, "598ee6b2017d0ff3d15fc772f5e6a5fc"),
        (Window::Day, "f662c67046c7087153008d36a1a8aa6d"),
        (Window::Week, "0e2cb8abdc3313d9db6f7f0f42f16b00"),
        (Window::Month, "94af143d4ea815b828d7178577917d36"),
        (Window::None, "5b93cb77e10888e981ab32a466df6d23"),
    ];
    for (window, expected) in golden {
        let (spec, source) = everything(window);
        assert_eq!(fingerprint(&spec, &source), expected, "{window:?}");
    }
    let small = TableSpec {
        name: "S".to_owned(),
        row_key: "{id}".to_owned(),
        families: vec![FamilySpec { name: "F".to_owned(), ..FamilySpec::default() }],
        ..TableSpec::default()
    };
    let source = SourceSchema { fields: vec![Field { name: "id".to_owned(), kind: FieldType::Text }], time: 0 };
    assert_eq!(fingerprint(&small, &source), "e282c243f2155c889ce130ffe2e57ef0");
}
