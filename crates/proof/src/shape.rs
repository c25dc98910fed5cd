//! Tables of every file shape, small and large.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_layout::schema::{Encoding, Merge, MessageField, ProtoType};
use tidetable_layout::spec::{ColumnSpec, FamilySpec, Granularity, MessageSpec, PackedSpec, TimestampSpec};
use tidetable_layout::{TableSpec, Window};
use tidetable_store::version::DeleteTarget;

use crate::event::{Event, Inputs, START, Spread};
use crate::finding::Result;
use crate::random::Random;
use crate::sim::Shelf;
use crate::step::Step;
use crate::world::{World, table_spec};

/// A finished table.
#[derive(Debug)]
pub struct Shape {
    /// Its description.
    pub name: &'static str,
    /// Its files.
    pub shelf: Shelf,
}

fn column(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { qualifier: qualifier.to_owned(), value: value.to_owned(), ..ColumnSpec::default() }
}

fn family(name: &str, kind: Merge, columns: Vec<ColumnSpec>) -> FamilySpec {
    FamilySpec { name: name.to_owned(), columns, kind }
}

fn table(row_key: &str, families: Vec<FamilySpec>) -> TableSpec {
    TableSpec { name: "T".to_owned(), row_key: row_key.to_owned(), families, ..TableSpec::default() }
}

/// A column of every type and encoding.
fn every_type() -> TableSpec {
    let encoded = |qualifier: &str, encoding| ColumnSpec { encoding, ..column(qualifier, &format!("{{{qualifier}}}")) };
    let mut columns: Vec<ColumnSpec> =
        ["v", "w", "f", "d", "b", "day", "s"].iter().map(|name| column(name, &format!("{{{name}}}"))).collect();
    columns.push(ColumnSpec { qualifier: "w8".to_owned(), ..encoded("w", Encoding::Int64) });
    columns.push(ColumnSpec { qualifier: "f8".to_owned(), ..encoded("f", Encoding::Float64) });
    columns.push(ColumnSpec { qualifier: "raw".to_owned(), ..encoded("s", Encoding::Bytes) });
    columns.push(column("both-{q}", "{v} and {s}"));
    TableSpec {
        granularity: Granularity::Micros,
        ..table("{id:05}#{ts:%Y%m%d%H}", vec![family("F", Merge::Newest, columns)])
    }
}

fn packed() -> TableSpec {
    let field = |(number, (name, kind)): (usize, (&str, ProtoType))| MessageField {
        name: name.to_owned(),
        number: number as u32 + 1,
        kind,
    };
    let fields =
        [("v", ProtoType::Uint64), ("w", ProtoType::Sint64), ("f", ProtoType::Double), ("s", ProtoType::String)];
    let message = MessageSpec {
        name: "Reading".to_owned(),
        fields: fields.into_iter().enumerate().map(field).collect(),
        list: ("Readings".to_owned(), 1),
        ..MessageSpec::default()
    };
    let packed = |qualifier: &str, packed| ColumnSpec { packed, ..column(qualifier, "") };
    let columns = vec![
        packed("one", PackedSpec::Message("Reading".to_owned())),
        packed("all", PackedSpec::Repeated("Reading".to_owned())),
        packed("json", PackedSpec::Json),
    ];
    TableSpec { messages: vec![message], ..table("{id:05}#{ts:%Y%m%d}", vec![family("F", Merge::Newest, columns)]) }
}

fn aggregates() -> TableSpec {
    let number = |qualifier: &str, value: &str| ColumnSpec { encoding: Encoding::Int64, ..column(qualifier, value) };
    let zero = |spec| ColumnSpec { timestamp: TimestampSpec::Zero, ..spec };
    let families = vec![
        family("SUM", Merge::Sum, vec![zero(number("{ts:%Y-%m}", "{n}"))]),
        family("MIN", Merge::Min, vec![zero(number("n", "{n}"))]),
        family("MAX", Merge::Max, vec![zero(number("w", "{w}"))]),
        family("HLL", Merge::Hll, vec![zero(ColumnSpec { encoding: Encoding::Bytes, ..column("who", "{s}") })]),
    ];
    table("{id:05}", families)
}

fn upsert() -> TableSpec {
    let columns = vec![column("v", "{v}"), column("q-{q}", "{s}"), column("w", "{w}")];
    TableSpec { upsert: true, window: Window::None, ..table("{id:05}", vec![family("F", Merge::Newest, columns)]) }
}

fn unpivoted() -> TableSpec {
    let columns = vec![column("{ts:%H%M}", "{value}")];
    let unpivot = vec!["w".to_owned(), "n".to_owned()];
    TableSpec { unpivot, ..table("{id:05}#{metric}#{ts:%Y%m%d}", vec![family("F", Merge::Newest, columns)]) }
}

/// Makes a table by these steps.
fn made(name: &'static str, spec: &TableSpec, gc: &[(&str, &str)], steps: &[Step], run: u64) -> Result<Shape> {
    let gc: BTreeMap<String, String> =
        gc.iter().map(|(family, rule)| ((*family).to_owned(), (*rule).to_owned())).collect();
    let shelf = Shelf::default();
    let world = World::of(Arc::new(shelf.clone()), spec, gc, run)?;
    let mut inputs = Inputs::default();
    for step in steps {
        if let Step::Load(events) = step {
            inputs.add(events.clone());
        }
        world.act(step, &inputs, START)?;
    }
    Ok(Shape { name, shelf })
}

/// `loads` loads of `rows` rows.
fn loads(seed: u64, loads: usize, rows: usize, spread: Spread) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut value = 0;
    let mut event = || {
        value += 1;
        Event::any(&mut random, spread, value)
    };
    (0..loads).map(|_| Step::Load((0..rows).map(|_| event()).collect())).collect()
}

/// A small table of each shape.
///
/// # Errors
/// If one cannot be made.
pub fn small() -> Result<Vec<Shape>> {
    let spread = Spread { ids: 4, days: 1, hours: 5 };
    let drop = Step::Drop(DeleteTarget::Prefix { prefix: b"00001".to_vec() });
    let fresh = loads(1, 1, 12, spread);
    let dense = [loads(2, 3, 6, spread), vec![Step::Compact(0)]].concat();
    let dropped = [loads(3, 2, 8, spread), vec![drop]].concat();
    Ok(vec![
        made("fresh", &table_spec(true), &[], &fresh, 1)?,
        made("undated with a rule", &table_spec(false), &[("F", "maxversions=1")], &fresh, 2)?,
        made("compacted", &table_spec(true), &[], &dense, 3)?,
        made("with a drop", &table_spec(true), &[], &dropped, 4)?,
        made("every type", &every_type(), &[], &fresh, 5)?,
        made("every type, compacted", &every_type(), &[], &dense, 6)?,
        made("packed", &packed(), &[], &dense, 7)?,
        made("aggregates", &aggregates(), &[], &dense, 8)?,
        made("upsert", &upsert(), &[], &dense, 9)?,
        made("unpivoted", &unpivoted(), &[], &fresh, 10)?,
    ])
}

/// Tables of several stripes and many pages.
///
/// # Errors
/// If one cannot be made.
pub fn large() -> Result<Vec<Shape>> {
    let spread = Spread { ids: 20_000, days: 2, hours: 24 };
    let rows = loads(11, 1, 150_000, spread);
    let dense = [loads(12, 2, 60_000, spread), vec![Step::Compact(0)]].concat();
    Ok(vec![
        made("large, fresh", &table_spec(true), &[], &rows, 11)?,
        made("large, every type, compacted", &every_type(), &[], &dense, 12)?,
    ])
}
