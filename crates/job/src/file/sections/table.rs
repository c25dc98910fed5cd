//! Reads `[tables.NAME]` and compiles its layout.

use std::path::Path;

use serde_spanned::Spanned;
use tidetable_layout::error::Place;
use tidetable_layout::schema::{Encoding, Merge};
use tidetable_layout::spec::{ColumnSpec, FamilySpec, Granularity, MessageSpec, PackedSpec, TimestampSpec};
use tidetable_layout::{Layout, SourceSchema, TableSpec, Window};
use tidetable_sql::{Filter, Preparation};
use tidetable_store::GcRule;
use toml::de::DeValue;

use crate::file::fields::{Fields, Named, Reader, Text};
use crate::file::keys::{COLUMN, FAMILY, TABLE};
use crate::file::names::Id;
use crate::file::places::{ColumnPlaces, FamilyPlaces, TablePlaces};
use crate::file::problem::Mistake;
use crate::file::sections::allowance;
use crate::file::sections::declared_table::{Table, TableInput};
use crate::file::sections::messages::Messages;
use crate::file::sections::source::ReadSource;
use crate::file::sections::table_input;
use crate::file::words::nearest;

const WINDOWS: [(&str, Window); 5] = [
    ("day", Window::Day),
    ("hour", Window::Hour),
    ("week", Window::Week),
    ("month", Window::Month),
    ("none", Window::None),
];

const GRANULARITIES: [(&str, Granularity); 2] = [("millis", Granularity::Millis), ("micros", Granularity::Micros)];

const ENCODINGS: [(&str, Encoding); 5] = [
    ("text", Encoding::Text),
    ("int64", Encoding::Int64),
    ("float64", Encoding::Float64),
    ("bytes", Encoding::Bytes),
    ("json", Encoding::Json),
];

const KINDS: [(&str, Merge); 4] = [("sum", Merge::Sum), ("min", Merge::Min), ("max", Merge::Max), ("hll", Merge::Hll)];

/// What a table may read from: the sources of the job, and the tables before it in the file.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) sources: &'a [ReadSource],
    pub(crate) earlier: &'a [Table],
}

/// Reads one table and compiles its layout against its input: a source, or tables read before it. `None` if it is
/// invalid.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    named: &Named<'_>,
    Inputs { sources, earlier }: Inputs<'_>,
    messages: &mut Messages,
    folder: &Path,
) -> Option<Table> {
    let before = reader.count();
    if !Id::Table.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Table, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &TABLE, named.value, named.at.clone())?;
    let origin = table_input::read(reader, &fields, sources, earlier, folder);
    let row_key = fields.required_text(reader, "row_key");
    let predicate = fields.text(reader, "where");
    let window = fields.choice(reader, "window", &WINDOWS);
    let granularity = fields.choice(reader, "granularity", &GRANULARITIES);
    let unpivot = fields.texts(reader, "unpivot");
    let upsert = fields.choice(reader, "upsert", &[("row", true)]);
    fields.require(reader, "families");
    let families = fields.named("families");
    if families.is_empty() && fields.value("families").is_some() {
        reader.refuse(fields.key_at("families"), Mistake::Empty { key: "families" });
    }
    let allowances = allowance::read(reader, &fields);
    let mut rules = Vec::new();
    let families: Vec<_> = families.iter().filter_map(|named| family(reader, named, &mut rules)).collect();

    let row_key = row_key?;
    if families.is_empty() {
        return None;
    }
    let mut spec = TableSpec {
        name: named.name.to_owned(),
        row_key: row_key.owned(),
        window,
        granularity,
        unpivot: unpivot.iter().map(Text::owned).collect(),
        families: families.iter().map(|(spec, _)| spec.clone()).collect(),
        upsert,
        ..TableSpec::default()
    };
    let families = families.into_iter().map(|(_, places)| places).collect();
    let unpivot = unpivot.iter().map(Text::place).collect();
    let places = TablePlaces { at: named.at.clone(), row_key: row_key.place(), unpivot, families };
    let (from, schema) = origin?;
    let owner = match &from {
        TableInput::Source(name) => name.clone(),
        TableInput::Query { .. } => format!("query of {}", named.name),
    };
    spec.messages = used_messages(reader, &spec, &places, messages, &owner, &schema)?;
    let layout = compile(reader, &spec, &schema, &places)?;
    check_timestamps(reader, &layout, &places);
    if upsert && !layout.rows_lie_in_one_window() {
        reader.refuse(fields.key_at("upsert"), Mistake::UpsertAcrossWindows);
    }
    let filter = predicate.as_ref().and_then(|predicate| filter(reader, predicate, &schema));
    let table = Table {
        spec,
        from,
        predicate: predicate.map(|predicate| predicate.owned()),
        preparation: Preparation { derive: None, filter },
        gc: rules,
        layout,
        allowances,
        places,
    };
    (reader.count() == before).then_some(table)
}

/// The messages that the columns name; `None` if one is invalid.
fn used_messages(
    reader: &mut Reader<'_>,
    spec: &TableSpec,
    places: &TablePlaces,
    messages: &mut Messages,
    owner: &str,
    schema: &SourceSchema,
) -> Option<Vec<MessageSpec>> {
    let mut used: Vec<MessageSpec> = Vec::new();
    let mut is_sound = true;
    let columns = spec.families.iter().zip(&places.families);
    for (column, place) in columns.flat_map(|(family, named)| family.columns.iter().zip(&named.columns)) {
        let (PackedSpec::Message(name) | PackedSpec::Repeated(name)) = &column.packed else { continue };
        if used.iter().any(|message| message.name == *name) {
            continue;
        }

        if !messages.has(name) {
            let known = messages.names();
            let near = nearest(name, known.iter().map(String::as_str));
            let at = place.packed.as_ref().map_or_else(|| place.at.clone(), |text| text.at.clone());
            reader.refuse(at, Mistake::UnknownMessage { name: name.clone(), known, near });
            is_sound = false;
            continue;
        }

        match messages.of_source(reader, name, owner, schema) {
            Some(message) => used.push(message),
            None => is_sound = false,
        }
    }
    is_sound.then_some(used)
}

/// A row that lies in several windows must have event times as timestamps: equal cells of two windows have no order.
/// Aggregated cells need none.
fn check_timestamps(reader: &mut Reader<'_>, layout: &Layout, places: &TablePlaces) {
    if layout.rows_lie_in_one_window() {
        return;
    }

    let source = layout.source();
    let time = source.fields.get(source.time).map(|field| field.name.as_str());
    let families = layout.spec().families.iter().zip(&places.families);
    for (family, named) in families.filter(|(family, _)| family.kind.is_newest()) {
        for (column, place) in family.columns.iter().zip(&named.columns) {
            let is_event_time = match &column.timestamp {
                // The repeated events have their own times.
                _ if matches!(column.packed, PackedSpec::Repeated(_)) => true,
                TimestampSpec::Implied => true,
                TimestampSpec::Zero => false,
                TimestampSpec::Field(field) => time == Some(field),
            };
            if !is_event_time {
                reader.refuse(place.timestamp.clone(), Mistake::TimestampAcrossWindows);
            }
        }
    }
}

fn filter(reader: &mut Reader<'_>, predicate: &Text<'_>, schema: &SourceSchema) -> Option<Filter> {
    match Filter::new(&schema.fields, predicate.value) {
        Ok(filter) => Some(filter),
        Err(error) => {
            reader.refuse(predicate.at.clone(), Mistake::Expression { error });
            None
        }
    }
}

fn family(
    reader: &mut Reader<'_>,
    named: &Named<'_>,
    rules: &mut Vec<(String, String)>,
) -> Option<(FamilySpec, FamilyPlaces)> {
    if !Id::Family.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Family, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &FAMILY, named.value, named.at.clone())?;

    let mut aged = None;
    let gc = fields.text(reader, "gc");
    if let Some(rule) = &gc {
        match GcRule::parse(rule.value) {
            Ok(parsed) => {
                aged = Some(rule.at.clone()).filter(|_| parsed.looks_at_age());
                rules.push((named.name.to_owned(), rule.owned()));
            }
            Err(error) => reader.refuse(rule.within(error.at), Mistake::Gc { wanted: error.wanted }),
        }
    }

    let kind = fields.choice(reader, "kind", &KINDS);
    fields.require(reader, "columns");
    let list = fields.list("columns")?;
    if list.is_empty() {
        reader.refuse(fields.key_at("columns"), Mistake::Empty { key: "columns" });
    }
    let (columns, places): (Vec<_>, Vec<_>) = list.iter().filter_map(|value| column(reader, value, kind)).unzip();
    if columns.is_empty() {
        return None;
    }

    if let Some(at) = aged
        && columns.iter().any(|column| matches!(column.packed, PackedSpec::Repeated(_)))
    {
        reader.refuse(at, Mistake::AgeOfRepeated);
    }
    let spec = FamilySpec { name: named.name.to_owned(), columns, kind };
    Some((spec, FamilyPlaces { at: named.at.clone(), gc: gc.as_ref().map(Text::place), columns: places }))
}

fn column(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, kind: Merge) -> Option<(ColumnSpec, ColumnPlaces)> {
    let fields = Fields::of_value(reader, &COLUMN, value, value.span())?;
    // A qualifier may be empty, as in Bigtable.
    fields.require(reader, "qualifier");
    let qualifier = fields.text(reader, "qualifier");
    let content = fields.text(reader, "value");
    let encoding = fields.choice(reader, "encoding", &ENCODINGS);
    // The layout reports other wrong encodings; `Text` is also the default, so only the file tells.
    if !kind.is_newest() && fields.has("encoding") && encoding == Encoding::Text {
        reader.refuse(fields.value_at("encoding"), Mistake::AggregateText { kind: kind.word() });
    }
    let timestamp = timestamp(reader, &fields);
    fields.choice(reader, "each", &[("*", ())]);
    let except = fields.texts(reader, "except");
    if fields.has("except") && !fields.has("each") && !fields.has("json") {
        reader.refuse(fields.key_at("except"), Mistake::ExceptWithoutEach);
    }
    fields.choice(reader, "json", &[("*", ())]);
    let (packed, packed_at) = packed(reader, &fields)?;
    let qualifier = qualifier?;
    let spec = ColumnSpec {
        qualifier: qualifier.owned(),
        value: content.as_ref().map(Text::owned).unwrap_or_default(),
        encoding,
        timestamp,
        each: fields.has("each"),
        except: except.iter().map(Text::owned).collect(),
        packed,
    };
    let places = ColumnPlaces {
        at: fields.at(),
        qualifier: qualifier.place(),
        value: content.as_ref().map(Text::place),
        timestamp: fields.value_at("timestamp"),
        encoding: fields.value_at("encoding"),
        except: except.iter().map(Text::place).collect(),
        packed: packed_at.as_ref().map(Text::place),
    };
    Some((spec, places))
}

/// The message or JSON object that a column holds instead of one value, and its byte range; `None` if it is refused.
fn packed<'a>(reader: &mut Reader<'_>, fields: &Fields<'a>) -> Option<(PackedSpec, Option<Text<'a>>)> {
    let keys: Vec<_> = ["message", "repeated", "json"].into_iter().filter(|key| fields.has(key)).collect();
    match keys.as_slice() {
        [] => Some((PackedSpec::None, None)),
        ["json"] => Some((PackedSpec::Json, Some(fields.required_text(reader, "json")?))),
        ["message"] => {
            let name = fields.required_text(reader, "message")?;
            Some((PackedSpec::Message(name.owned()), Some(name)))
        }
        ["repeated"] => {
            let name = fields.required_text(reader, "repeated")?;
            Some((PackedSpec::Repeated(name.owned()), Some(name)))
        }
        [.., last] => {
            reader.refuse(fields.key_at(last), Mistake::PackedTwice);
            None
        }
    }
}

fn timestamp(reader: &mut Reader<'_>, fields: &Fields<'_>) -> TimestampSpec {
    let Some(value) = fields.value("timestamp") else { return TimestampSpec::Implied };
    match value.get_ref() {
        DeValue::String(name) if !name.is_empty() => TimestampSpec::Field(name.to_string()),
        DeValue::Integer(number) if number.as_str().bytes().all(|digit| digit == b'0') => TimestampSpec::Zero,
        other => {
            let value_text = other.as_integer().map_or_else(|| "empty".to_owned(), |number| format!("`{number}`"));
            reader.refuse(value.span(), Mistake::Timestamp { value: value_text });
            TimestampSpec::Implied
        }
    }
}

fn compile(reader: &mut Reader<'_>, spec: &TableSpec, schema: &SourceSchema, places: &TablePlaces) -> Option<Layout> {
    match Layout::compile(spec, schema) {
        Ok(layout) => Some(layout),
        Err(errors) => {
            for source in errors {
                let refused_before = match source.place {
                    Place::Family(index) => {
                        spec.families.get(index).is_some_and(|family| !Id::Family.allows(&family.name))
                    }
                    _ => false,
                };
                if !refused_before {
                    let at = places.of(source.place, source.span.clone());
                    reader.refuse(at, Mistake::Layout { source });
                }
            }
            None
        }
    }
}
