//! Plans the records that a layout decodes to: their columns, where each is stored, and their sort order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field as ArrowField, Schema};

use crate::error::{Advice, LayoutWarning, Lost, LostReason, Place};
use crate::plan::{GroupPlan, Layout, Origin, RecordField, ValuePlan};
use crate::schema::{FieldType, Group};
use crate::template::dependence::{determined, time_parts};
use crate::template::form::Form;
use crate::template::segment::{FieldSegment, Segment};
use crate::template::time_format::{Unit, resolution};
use crate::time::{DAY, HOUR};

/// Plans the record fields of a layout.
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
        let Some(own) = layout.fields.get(field).cloned() else { continue };
        let candidates = origins(layout, &held, field, own.kind);
        if candidates.is_empty() {
            let why = lost_reason(layout, field);
            let advice = Advice::Lost { column: own.name.clone(), why };
            layout.warnings.push(LayoutWarning { place: Place::Table, span: 0..0, advice });
            layout.lost.push(Lost { column: own.name, why });
            continue;
        }
        let (steps, origins): (Vec<i64>, Vec<Origin>) = candidates.into_iter().unzip();
        if steps.first().is_some_and(|step| *step > layout.spec.granularity.micros().max(1000)) {
            let advice = Advice::CoarseTime { column: own.name.clone() };
            layout.warnings.push(LayoutWarning { place: Place::Table, span: 0..0, advice });
        }
        if let Some(Origin::Value { group, column }) = origins.first()
            && let merge = layout.merge_of(*group, *column)
            && !merge.is_newest()
        {
            let advice = Advice::Merged { column: own.name.clone(), kind: merge.word() };
            layout.warnings.push(LayoutWarning { place: Place::Table, span: 0..0, advice });
        }
        schema.push(ArrowField::new(&own.name, own.kind.arrow(), true));
        layout.records.push(RecordField { field, kind: own.kind, origins, steps });
    }
    layout.records_schema = Arc::new(Schema::new(schema));
    layout.record_order = order(layout);
}

/// The resolution of a field of this type that is stored with resolution `step`.
fn step_of(kind: FieldType, step: i64) -> i64 {
    if kind == FieldType::Date && step <= DAY { 1 } else { step }
}

/// For each group, the columns that hold a field and no other.
type Held = Vec<HashMap<usize, Vec<usize>>>;

fn held(layout: &Layout) -> Held {
    let of_group = |plan: &GroupPlan| {
        let mut held: HashMap<usize, Vec<usize>> = HashMap::new();
        for (column, value) in plan.columns.iter().enumerate() {
            let field = match value {
                ValuePlan::Field(own) => *own,
                ValuePlan::Template(segments) => {
                    let mut fields = segments.iter().filter_map(Segment::field);
                    let (Some(own), None) = (fields.next(), fields.next()) else { continue };
                    own.field
                }
                _ => continue,
            };
            held.entry(field).or_default().push(column);
        }
        held
    };
    layout.groups.iter().map(of_group).collect()
}

/// Where `field` is stored, ordered by (resolution, cost to read), best first.
fn origins(layout: &Layout, held: &Held, field: usize, kind: FieldType) -> Vec<(i64, Origin)> {
    let mut found: Vec<(i64, u8, Origin)> = Vec::new();
    // A row-level value that the key does not determine belongs to no single record, unless the row is one record.
    let one_record = layout.groups.iter().all(GroupPlan::is_of_row);
    let of_record = |plan: &GroupPlan, segment: &FieldSegment| {
        one_record || !plan.is_of_row() || determined(&layout.key.segments, segment)
    };
    let mut of_row = Vec::new();
    // An aggregate of several values is none of them.
    let mut merged = Vec::new();
    let plain = |segments: &[Segment]| -> Vec<(usize, i64)> {
        let own = segments.iter().enumerate().filter_map(|(at, segment)| Some((at, segment.field()?)));
        own.filter(|(_, own)| own.field == field && !matches!(own.form, Form::Time(_)))
            .filter_map(|(at, own)| Some((at, own.resolution()?)))
            .collect()
    };
    for (segment, step) in plain(&layout.key.segments) {
        found.push((step, 0, Origin::Key { segment }));
    }
    let (key, key_units, key_zone) = time_parts(&layout.key.segments, field);
    if let Some(step) = resolution(&key_units) {
        // An hour of local time can repeat.
        let step = if key_zone.is_some() { step.max(HOUR) } else { step };
        found.push((step_of(kind, step), 0, Origin::KeyTime { segments: key.clone() }));
    }
    for (group, plan) in layout.groups.iter().enumerate() {
        if plan.time == Some(field) {
            found.push((layout.spec.granularity.micros(), 1, Origin::Cell { group }));
        }
        for column in held.get(group).and_then(|held| held.get(&field)).into_iter().flatten().copied() {
            match plan.columns.get(column) {
                Some(ValuePlan::Field(_)) => {
                    // Where records with one timestamp are kept side by side each has its own value; elsewhere the newest wins.
                    let alike = layout.stored.groups.get(group).is_some_and(Group::keeps_duplicates);
                    let origin = (1, if alike { 2 } else { 3 }, Origin::Value { group, column });
                    if !layout.merge_of(group, column).is_newest() {
                        merged.push(origin);
                        continue;
                    }
                    let held = of_record(plan, &FieldSegment { field, kind, form: Form::Text });
                    if held { found.push(origin) } else { of_row.push(origin) }
                }
                Some(ValuePlan::Template(segments)) => {
                    if let Some(own) = segments.iter().find_map(Segment::field)
                        && own.form != Form::BigEndian
                        && let Some(step) = own.resolution()
                    {
                        let origin = (step_of(kind, step), 5, Origin::ValueText { group, column });
                        if !layout.merge_of(group, column).is_newest() {
                            merged.push(origin);
                            continue;
                        }
                        if of_record(plan, own) { found.push(origin) } else { of_row.push(origin) }
                    }
                }
                _ => {}
            }
        }
        let Some(segments) = &plan.qualifier else { continue };
        for (segment, step) in plain(segments) {
            found.push((step, 4, Origin::Qualifier { group, segment }));
        }
        let (qualifier, units, zone) = time_parts(segments, field);
        let joint = key.is_empty() || zone == key_zone;
        if !qualifier.is_empty() && joint {
            let all: Vec<Unit> = key_units.iter().copied().chain(units).collect();
            if let Some(step) = resolution(&all) {
                let origin = Origin::KeyAndQualifier { key: key.clone(), group, qualifier };
                found.push((step_of(kind, step), 4, origin));
            }
        }
    }
    if found.is_empty() {
        found = of_row;
    }
    if found.is_empty() {
        found = merged.into_iter().take(1).collect();
    }
    found.sort_by_key(|(step, cost, _)| (*step, *cost));
    let mut out: Vec<(i64, Origin)> = Vec::new();
    for (step, _, origin) in found {
        let known = |earlier: &(i64, Origin)| earlier.1.is_certain() && earlier.1.group() == origin.group();
        if out.iter().any(known) {
            continue;
        }
        let last = origin.is_key();
        out.push((step, origin));
        // Every record has a key, so no later origin is needed.
        if last {
            break;
        }
    }
    out
}

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
        for own in segments.iter().filter_map(Segment::field).filter(|own| own.field == field) {
            let why = match own.form {
                Form::Hash | Form::Salt(_) => LostReason::Hashed,
                Form::Time(_) if own.resolution().is_none() => LostReason::IncompleteTime,
                _ => LostReason::MixedText,
            };
            if matches!(reason, LostReason::Absent | LostReason::Sketch) || why == LostReason::MixedText {
                reason = why;
            }
        }
    }
    reason
}

/// See [`Layout::record_order`].
fn order(layout: &Layout) -> Vec<usize> {
    let mut out = Vec::new();
    let mut within = layout.source.time;
    let position = |field: usize| layout.records.iter().position(|record| record.field == field);
    let fields: Vec<(usize, &FieldSegment)> =
        layout.key.segments.iter().enumerate().filter_map(|(at, segment)| Some((at, segment.field()?))).collect();
    for (index, (at, segment)) in fields.iter().enumerate() {
        let Some(record) = position(segment.field) else { return out };
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
    if let Some(record) = position(within)
        && !out.contains(&record)
        && always_there(layout, record)
    {
        out.push(record);
    }
    out
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
