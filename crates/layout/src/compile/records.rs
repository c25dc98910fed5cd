//! Plans the records that a layout decodes to: their columns, where each is stored, and their sort order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field as ArrowField, Schema};

use crate::error::{Advice, LayoutWarning, Lost, LostReason, Place};
use crate::plan::{GroupPlan, Layout, Origin, RecordField, ValuePlan};
use crate::schema::{ColumnRef, FieldType, Group};
use crate::spec::Field;
use crate::template::dependence::{determined, time_parts};
use crate::template::form::Form;
use crate::template::segment::{FieldSegment, Segment};
use crate::template::time_format::{Unit, resolution};
use crate::time::{DAY, HOUR};

/// Plans the record fields of a layout: where each is stored, which do not read back, and what its owner should know of them.
pub(crate) fn plan_records(layout: &mut Layout) {
    let mut wanted: Vec<usize> = Vec::new();
    let mut unpivoted = false;
    for field in 0..layout.source.fields.len() {
        match &layout.unpivot {
            Some(unpivot) if unpivot.columns.contains(&field) => {
                if !unpivoted {
                    wanted.extend([unpivot.metric, unpivot.metric + 1]);
                }
                unpivoted = true;
            }
            _ => wanted.push(field),
        }
    }

    let mut schema = Vec::new();
    let held = held(layout);
    for field in wanted {
        let Some(Field { name, kind }) = layout.fields.get(field).cloned() else { continue };
        let candidates = origins(layout, &held, field, kind);
        if candidates.is_empty() {
            let why = lost_reason(layout, field);
            warn(layout, Advice::Lost { column: name.clone(), why });
            layout.lost.push(Lost { column: name, why });
            continue;
        }

        let (steps, origins): (Vec<i64>, Vec<Origin>) = candidates.into_iter().unzip();
        if steps.first().is_some_and(|step| *step > layout.spec.granularity.micros().max(1000)) {
            warn(layout, Advice::CoarseTime { column: name.clone() });
        }
        if let Some(Origin::Value { group, column }) = origins.first()
            && let merge = layout.merge_of(*group, *column)
            && !merge.is_newest()
        {
            warn(layout, Advice::Merged { column: name.clone(), kind: merge.word() });
        }

        schema.push(ArrowField::new(&name, kind.arrow(), true));
        layout.records.push(RecordField { field, kind, origins, steps });
    }

    layout.records_schema = Arc::new(Schema::new(schema));
    layout.record_order = order(layout);
}

/// Adds a warning about the table as a whole.
fn warn(layout: &mut Layout, advice: Advice) {
    layout.warnings.push(LayoutWarning { place: Place::Table, span: 0..0, advice });
}

/// The resolution of a field of this type that is stored with resolution `step`.
fn step_of(kind: FieldType, step: i64) -> i64 {
    if kind == FieldType::Date && step <= DAY { 1 } else { step }
}

/// For each group, the columns that hold a field and no other, by field.
type Held = Vec<HashMap<usize, Vec<usize>>>;

fn held(layout: &Layout) -> Held {
    layout.groups.iter().map(held_by).collect()
}

/// The columns of a group that hold a field and no other, by field.
fn held_by(plan: &GroupPlan) -> HashMap<usize, Vec<usize>> {
    let mut held: HashMap<usize, Vec<usize>> = HashMap::new();
    for (column, value) in plan.columns.iter().enumerate() {
        let field = match value {
            ValuePlan::Field(field) => *field,
            ValuePlan::Template(segments) => {
                let mut fields = segments.iter().filter_map(Segment::field);
                let (Some(only), None) = (fields.next(), fields.next()) else { continue };
                only.field
            }
            _ => continue,
        };
        held.entry(field).or_default().push(column);
    }
    held
}

/// An origin of a field, and what ranks it: its resolution in microseconds, then the cost of reading it.
struct Candidate {
    step: i64,
    cost: u8,
    origin: Origin,
}

/// The segments that print `field` other than by a time format, with their resolutions.
fn plain(segments: &[Segment], field: usize) -> Vec<(usize, i64)> {
    let mut found = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        if let Some(printed) = segment.field().filter(|printed| printed.field == field)
            && !matches!(printed.form, Form::Time(_))
            && let Some(step) = printed.resolution()
        {
            found.push((at, step));
        }
    }
    found
}

/// Where `field` is stored, ordered by (resolution, cost to read), best first.
fn origins(layout: &Layout, held: &Held, field: usize, kind: FieldType) -> Vec<(i64, Origin)> {
    let mut found: Vec<Candidate> = Vec::new();
    for (segment, step) in plain(&layout.key.segments, field) {
        found.push(Candidate { step, cost: 0, origin: Origin::Key { segment } });
    }
    let (key, key_units, key_zone) = time_parts(&layout.key.segments, field);
    if let Some(step) = resolution(&key_units) {
        // An hour of local time can repeat.
        let step = if key_zone.is_some() { step.max(HOUR) } else { step };
        let origin = Origin::KeyTime { segments: key.clone() };
        found.push(Candidate { step: step_of(kind, step), cost: 0, origin });
    }

    let mut values = ValueOrigins::default();
    for (group, plan) in layout.groups.iter().enumerate() {
        if plan.time == Some(field) {
            found.push(Candidate { step: layout.spec.granularity.micros(), cost: 1, origin: Origin::Cell { group } });
        }
        for column in held.get(group).and_then(|held| held.get(&field)).into_iter().flatten().copied() {
            values.add(layout, ColumnRef { group, column }, field, kind);
        }
        found.append(&mut values.of_record);

        let Some(segments) = &plan.qualifier else { continue };
        for (segment, step) in plain(segments, field) {
            found.push(Candidate { step, cost: 4, origin: Origin::Qualifier { group, segment } });
        }
        let (qualifier, units, zone) = time_parts(segments, field);
        if !qualifier.is_empty() && (key.is_empty() || zone == key_zone) {
            let all: Vec<Unit> = key_units.iter().copied().chain(units).collect();
            if let Some(step) = resolution(&all) {
                let origin = Origin::KeyAndQualifier { key: key.clone(), group, qualifier };
                found.push(Candidate { step: step_of(kind, step), cost: 4, origin });
            }
        }
    }

    if found.is_empty() {
        found = values.of_row;
    }
    if found.is_empty() {
        found = values.merged.into_iter().take(1).collect();
    }
    found.sort_by_key(|candidate| (candidate.step, candidate.cost));
    best_first(found)
}

/// Columns that hold a field, by what their values are worth.
#[derive(Default)]
struct ValueOrigins {
    /// Each value is that of one record.
    of_record: Vec<Candidate>,
    /// A row-level value that the key does not determine belongs to no single record, unless the row is one record.
    of_row: Vec<Candidate>,
    /// An aggregate of several values is none of them.
    merged: Vec<Candidate>,
}

impl ValueOrigins {
    /// Adds a column that holds `field` and no other.
    fn add(&mut self, layout: &Layout, place: ColumnRef, field: usize, kind: FieldType) {
        let ColumnRef { group, column } = place;
        let Some(plan) = layout.groups.get(group) else { return };
        let (segment, candidate) = match plan.columns.get(column) {
            Some(ValuePlan::Field(_)) => {
                // Where records with one timestamp are kept side by side each has its own value; elsewhere the newest wins.
                let keeps_all = layout.stored.groups.get(group).is_some_and(Group::keeps_duplicates);
                let cost = if keeps_all { 2 } else { 3 };
                let segment = FieldSegment { field, kind, form: Form::Text };
                (segment, Candidate { step: 1, cost, origin: Origin::Value { group, column } })
            }
            Some(ValuePlan::Template(segments)) => {
                let Some(printed) = segments.iter().find_map(Segment::field) else { return };
                let Some(step) = printed.resolution().filter(|_| printed.form != Form::BigEndian) else { return };
                let origin = Origin::ValueText { group, column };
                (printed.clone(), Candidate { step: step_of(kind, step), cost: 5, origin })
            }
            _ => return,
        };

        let one_record = layout.groups.iter().all(GroupPlan::is_of_row);
        if !layout.merge_of(group, column).is_newest() {
            self.merged.push(candidate);
        } else if one_record || !plan.is_of_row() || determined(&layout.key.segments, &segment) {
            self.of_record.push(candidate);
        } else {
            self.of_row.push(candidate);
        }
    }
}

/// The candidates that a reader needs, in this order: those after one that every record has bring nothing.
fn best_first(candidates: Vec<Candidate>) -> Vec<(i64, Origin)> {
    let mut out: Vec<(i64, Origin)> = Vec::new();
    for Candidate { step, origin, .. } in candidates {
        if out.iter().any(|(_, earlier)| earlier.is_certain() && earlier.group() == origin.group()) {
            continue;
        }
        let is_last = origin.is_key();
        out.push((step, origin));
        // Every record has a key, so no later origin is needed.
        if is_last {
            break;
        }
    }
    out
}

/// Why no origin of `field` reads back.
fn lost_reason(layout: &Layout, field: usize) -> LostReason {
    let sketched =
        layout.groups.iter().flat_map(|group| &group.columns).any(|value| *value == ValuePlan::Sketch(field));
    let mut reason = if sketched { LostReason::Sketch } else { LostReason::Absent };

    let templates = layout.groups.iter().flat_map(|group| {
        let values = group.columns.iter().filter_map(|value| match value {
            ValuePlan::Template(segments) => Some(segments.as_slice()),
            _ => None,
        });
        values.chain(group.qualifier.as_deref())
    });

    for segments in templates.chain([layout.key.segments.as_slice()]) {
        for printed in segments.iter().filter_map(Segment::field).filter(|printed| printed.field == field) {
            let why = match printed.form {
                Form::Hash | Form::Salt(_) => LostReason::Hashed,
                Form::Time(_) if printed.resolution().is_none() => LostReason::IncompleteTime,
                _ => LostReason::MixedText,
            };
            if matches!(reason, LostReason::Absent | LostReason::Sketch) || why == LostReason::MixedText {
                reason = why;
            }
        }
    }
    reason
}

/// The record fields that records are sorted by, see [`Layout::record_order`].
fn order(layout: &Layout) -> Vec<usize> {
    let mut out = Vec::new();
    let mut within = layout.source.time;
    let fields: Vec<(usize, &FieldSegment)> =
        layout.key.segments.iter().enumerate().filter_map(|(at, segment)| Some((at, segment.field()?))).collect();

    for (index, (at, segment)) in fields.iter().enumerate() {
        let Some(record) = record_of(layout, segment.field) else { return out };
        let ends_key = at + 1 == layout.key.segments.len();
        let is_ordered = match &segment.form {
            Form::ZeroPad(_) => true,
            Form::SpacePad(_) => segment.kind == FieldType::Text,
            Form::BigEndian => segment.kind == FieldType::UInt64,
            // At the end of the key the text alone decides the order.
            Form::Text => segment.kind == FieldType::Text && ends_key,
            Form::Epoch(_) => true,
            Form::Time(format) => format.is_ordered(),
            _ => false,
        };
        if !is_ordered {
            return out;
        }

        let steps = layout.records.get(record).map(|record| record.steps.as_slice()).unwrap_or_default();
        let exact = layout.records.get(record).is_some_and(|record| record.origins.first().is_some_and(Origin::is_key))
            && segment.resolution().map(|step| step_of(segment.kind, step)) == steps.first().copied();
        if exact {
            if !out.contains(&record) {
                out.push(record);
            }
        } else if index + 1 == fields.len() && segment.kind == FieldType::Timestamp {
            within = segment.field;
        } else {
            return out;
        }
    }

    if let Some(record) = record_of(layout, within)
        && !out.contains(&record)
        && always_there(layout, record)
    {
        out.push(record);
    }
    out
}

/// The index among the record fields of a field of the layout.
fn record_of(layout: &Layout, field: usize) -> Option<usize> {
    layout.records.iter().position(|record| record.field == field)
}

/// Whether a record can lack the field only if it is the only record of its row.
fn always_there(layout: &Layout, record: usize) -> bool {
    let Some(record) = layout.records.get(record) else { return false };
    record.origins.last().is_some_and(Origin::is_key)
        || layout
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| !group.is_of_row())
            .all(|(group, _)| record.origins.iter().any(|origin| origin.is_certain() && origin.group() == Some(group)))
}
