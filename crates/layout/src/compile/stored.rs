//! The stored schema: columns in groups, and the row key split into prefix and tail.

use crate::compile::compiler::{CompiledColumn, Content};
use crate::plan::{GroupPlan, KeyPlan, TailField, ValuePlan};
use crate::schema::{
    Column, Encoding, Group, KeyTail, Merge, Packed, QualifierKind, TailPart, TimestampKind, ValueType,
};
use crate::spec::{SourceSchema, TableSpec};
use crate::template::segment::{FieldSegment, Segment};

/// The most digits of a tail: any 19 digits fit in a u64.
const TAIL_DIGITS: u32 = 19;

/// What identifies a group of columns: for a dynamic group its template, for both kinds the field of the timestamps.
type GroupKey<'a> = (Option<&'a [Segment]>, Option<usize>);

/// Columns in groups: constant columns at timestamp 0, at the event time, at other times, then dynamic columns.
pub(super) fn group(
    spec: &TableSpec,
    source: &SourceSchema,
    columns: &[CompiledColumn],
) -> (Vec<GroupPlan>, Vec<Group>) {
    let mut order: Vec<&CompiledColumn> = columns.iter().collect();
    order.sort_by_key(|column| rank(column));
    let (mut plans, mut groups): (Vec<GroupPlan>, Vec<Group>) = (Vec::new(), Vec::new());

    for column in order {
        let family = spec.families.get(column.family).map(|family| family.name.clone()).unwrap_or_default();
        let qualifier = column.constant().unwrap_or_default().as_bytes().to_vec();
        let (value, kind, encoding) = match &column.content {
            Content::One { value, kind, encoding } => (value, *kind, *encoding),
            Content::Packed { form, fields } => {
                let packed = Packed { family, qualifier, form: form.clone() };
                let (plan, group) = packed_group(source, columns, column, packed, fields);
                plans.push(plan);
                groups.push(group);
                continue;
            }
        };

        let wanted: GroupKey<'_> = (template(column), column.time);
        let known = plans
            .iter()
            .zip(&groups)
            .position(|(plan, group)| group.packed.is_none() && (plan.qualifier.as_deref(), plan.time) == wanted);
        let at = known.unwrap_or_else(|| {
            plans.push(new_plan(column));
            groups.push(new_group(column, None));
            plans.len() - 1
        });

        let (Some(plan), Some(group)) = (plans.get_mut(at), groups.get_mut(at)) else { continue };
        if plan.qualifier.is_some() {
            plan.taken.extend(taken(columns, column));
        }
        plan.columns.push(value.clone());
        group.columns.push(Column {
            family,
            qualifier,
            value: kind,
            encoding,
            merge: spec.families.get(column.family).map(|family| family.kind).unwrap_or_default(),
        });
    }
    (plans, groups)
}

/// The place of a column's group among all groups.
fn rank(column: &CompiledColumn) -> u8 {
    match (column.constant(), column.time) {
        (Some(_), None) => 0,
        (Some(_), Some(_)) if column.is_event_time => 1,
        (Some(_), Some(_)) => 2,
        (None, _) => 3,
    }
}

/// The template of a dynamic column's qualifiers.
fn template(column: &CompiledColumn) -> Option<&[Segment]> {
    column.constant().is_none().then_some(column.qualifier.as_slice())
}

/// The constant qualifiers in the family of a column, which a dynamic column may not produce.
fn taken(columns: &[CompiledColumn], column: &CompiledColumn) -> Vec<Vec<u8>> {
    let same_family = columns.iter().filter(|other| other.family == column.family);
    same_family.filter_map(|other| Some(other.constant()?.as_bytes().to_vec())).collect()
}

fn new_plan(column: &CompiledColumn) -> GroupPlan {
    GroupPlan {
        qualifier: template(column).map(<[Segment]>::to_vec),
        taken: Vec::new(),
        time: column.time,
        columns: Vec::new(),
    }
}

fn new_group(column: &CompiledColumn, packed: Option<Packed>) -> Group {
    Group {
        qualifier: if template(column).is_some() { QualifierKind::Dynamic } else { QualifierKind::Constant },
        timestamps: if column.time.is_some() { TimestampKind::Stored } else { TimestampKind::Zero },
        packed,
        columns: Vec::new(),
    }
}

/// The group of a packed column, whose columns are the `fields` of the source.
fn packed_group(
    source: &SourceSchema,
    columns: &[CompiledColumn],
    column: &CompiledColumn,
    packed: Packed,
    fields: &[usize],
) -> (GroupPlan, Group) {
    let mut plan = new_plan(column);
    if plan.qualifier.is_some() {
        plan.taken = taken(columns, column);
    }
    plan.columns = fields.iter().copied().map(ValuePlan::Field).collect();

    let family = packed.family.clone();
    let mut group = new_group(column, Some(packed));
    for field in fields.iter().filter_map(|field| source.fields.get(*field)) {
        group.columns.push(Column {
            family: family.clone(),
            qualifier: field.name.as_bytes().to_vec(),
            value: ValueType::Field(field.kind),
            encoding: Encoding::Text,
            merge: Merge::Newest,
        });
    }
    (plan, group)
}

/// Splits off the tail: the fixed-width suffix of the key that starts at the leftmost time within 19 digits.
pub(super) fn split_key(segments: Vec<Segment>) -> (KeyPlan, KeyTail) {
    let mut start = None;
    let mut digits = 0;
    for (at, segment) in segments.iter().enumerate().rev() {
        let Some(parts) = segment.tail_parts() else { break };
        digits += KeyTail { parts }.digits();
        if digits > TAIL_DIGITS {
            break;
        }
        if segment.field().is_some_and(FieldSegment::is_time) {
            start = Some(at);
        }
    }
    let all = segments.len();
    let prefix = start.unwrap_or(all);
    // Unless a literal follows each variable-width field, one prefix could be a prefix of another.
    let prefix_free = segments.iter().take(prefix).enumerate().all(|(at, segment)| {
        segment.width().is_some() || (at + 1 < prefix && matches!(segments.get(at + 1), Some(Segment::Literal(_))))
    });
    let prefix = if prefix_free { prefix } else { all };

    let mut parts: Vec<TailPart> = Vec::new();
    for part in segments.iter().skip(prefix).filter_map(Segment::tail_parts).flatten() {
        match (parts.last_mut(), part) {
            (Some(TailPart::Digits(last)), TailPart::Digits(more)) => *last += more,
            (Some(TailPart::Literal(last)), TailPart::Literal(more)) => last.push_str(&more),
            (_, part) => parts.push(part),
        }
    }

    let mut tail = Vec::new();
    let mut shift = 1u64;
    for (at, segment) in segments.iter().enumerate().skip(prefix).rev() {
        if segment.field().is_some() {
            let digits = KeyTail { parts: segment.tail_parts().unwrap_or_default() }.digits();
            let modulus = 10u64.saturating_pow(digits);
            tail.push(TailField { segment: at, shift, modulus });
            shift = shift.saturating_mul(modulus);
        }
    }
    tail.reverse();
    (KeyPlan { segments, prefix, tail }, KeyTail { parts })
}
