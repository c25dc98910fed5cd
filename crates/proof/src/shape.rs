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
use crate::world::{World, column, family, table_spec};

/// A finished table, to be damaged and read.
#[derive(Debug)]
pub struct Shape {
    /// What is special about it, for findings.
    pub name: &'static str,
    /// All files of its store, in memory.
    pub shelf: Shelf,
}

/// A column of the source under its own name, in this encoding.
fn encoded(name: &str, encoding: Encoding) -> ColumnSpec {
    ColumnSpec { encoding, ..column(name, &format!("{{{name}}}")) }
}

/// A column of big-endian numbers with timestamp 0, as aggregates have them.
fn number(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { encoding: Encoding::Int64, timestamp: TimestampSpec::Zero, ..column(qualifier, value) }
}

fn table(row_key: &str, families: Vec<FamilySpec>) -> TableSpec {
    TableSpec { name: "T".to_owned(), row_key: row_key.to_owned(), families, ..TableSpec::default() }
}

/// A column of every type and encoding.
fn every_type() -> TableSpec {
    let mut columns: Vec<ColumnSpec> =
        ["v", "w", "f", "d", "b", "day", "s"].iter().map(|name| encoded(name, Encoding::Text)).collect();
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
    let fields =
        [("v", ProtoType::Uint64), ("w", ProtoType::Sint64), ("f", ProtoType::Double), ("s", ProtoType::String)];
    let fields = (1..).zip(fields).map(|(number, (name, kind))| MessageField { name: name.to_owned(), number, kind });
    let message = MessageSpec {
        name: "Reading".to_owned(),
        fields: fields.collect(),
        list: ("Readings".to_owned(), 1),
        ..MessageSpec::default()
    };

    let columns = [
        ("one", PackedSpec::Message("Reading".to_owned())),
        ("all", PackedSpec::Repeated("Reading".to_owned())),
        ("json", PackedSpec::Json),
    ];
    let columns = columns.map(|(qualifier, packed)| ColumnSpec { packed, ..column(qualifier, "") }).to_vec();
    TableSpec { messages: vec![message], ..table("{id:05}#{ts:%Y%m%d}", vec![family("F", Merge::Newest, columns)]) }
}

fn aggregates() -> TableSpec {
    let sketch = ColumnSpec { encoding: Encoding::Bytes, timestamp: TimestampSpec::Zero, ..column("who", "{s}") };
    let families = vec![
        family("SUM", Merge::Sum, vec![number("{ts:%Y-%m}", "{n}")]),
        family("MIN", Merge::Min, vec![number("n", "{n}")]),
        family("MAX", Merge::Max, vec![number("w", "{w}")]),
        family("HLL", Merge::Hll, vec![sketch]),
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

/// As many loads of as many rows, from a seed of their own.
fn loads(seed: u64, loads: usize, rows: usize, spread: Spread) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = Vec::with_capacity(loads);
    let mut values = 1..;
    for _ in 0..loads {
        let events = values.by_ref().take(rows).map(|value| Event::any(&mut random, spread, value));
        steps.push(Step::Load(events.collect()));
    }
    steps
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
