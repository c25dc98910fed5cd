//! The compiled layout: the plan that encoding and decoding follow.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::error::{LayoutWarning, Lost};
use crate::schema::{FieldType, Merge, StoredSchema};
use crate::spec::{Field, SourceSchema, TableSpec, Window};
use crate::template::dependence::{determined, time_parts};
use crate::template::form::Form;
use crate::template::print::split;
use crate::template::segment::{FieldSegment, Segment};
use crate::template::time_format::resolution;
use crate::time::{DAY, HOUR};

/// A table's layout, compiled against its source: encodes batches and decodes blocks. Immutable and shared between threads.
#[derive(Debug, Clone)]
pub struct Layout {
    pub(crate) spec: TableSpec,
    pub(crate) source: SourceSchema,
    pub(crate) stored: Arc<StoredSchema>,
    pub(crate) warnings: Vec<LayoutWarning>,
    /// The source's fields, then `metric` and `value` if columns are unpivoted. All `field` indexes below refer to this list.
    pub(crate) fields: Vec<Field>,
    pub(crate) key: KeyPlan,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) unpivot: Option<Unpivot>,
    pub(crate) records: Vec<RecordField>,
    pub(crate) records_schema: SchemaRef,
    pub(crate) lost: Vec<Lost>,
    pub(crate) record_order: Vec<usize>,
}

/// How the row key is printed and stored: an interned prefix and an integer tail.
#[derive(Debug, Clone)]
pub(crate) struct KeyPlan {
    pub(crate) segments: Vec<Segment>,
    /// How many of `segments` print the prefix; the others print the tail.
    pub(crate) prefix: usize,
    /// The fields of the tail, from left to right.
    pub(crate) tail: Vec<TailField>,
}

/// A field of the tail, as digits of its integer.
#[derive(Debug, Clone)]
pub(crate) struct TailField {
    /// Index among the segments of the key.
    pub(crate) segment: usize,
    /// The number of the field is `tail / shift % modulus`.
    pub(crate) shift: u64,
    pub(crate) modulus: u64,
}

impl TailField {
    /// The number of this field in a tail.
    pub(crate) fn number(&self, tail: u64) -> u64 {
        tail / self.shift % self.modulus
    }

    /// The number of this field in each tail. Divides only if that changes one.
    pub(crate) fn numbers(&self, tails: &[u64]) -> Vec<u64> {
        let greatest = tails.iter().copied().fold(0, u64::max);
        if self.shift == 1 && greatest < self.modulus {
            return tails.to_vec();
        }
        tails.iter().map(|tail| self.number(*tail)).collect()
    }
}

impl KeyPlan {
    /// The segments that print the prefix.
    pub(crate) fn prefix_segments(&self) -> &[Segment] {
        self.segments.get(..self.prefix).unwrap_or_default()
    }

    /// The field of a segment; `None` if it is a literal.
    pub(crate) fn field(&self, segment: usize) -> Option<&FieldSegment> {
        self.segments.get(segment).and_then(Segment::field)
    }
}

/// How a group is encoded and decoded; the stored form of it is [`crate::schema::Group`].
#[derive(Debug, Clone)]
pub(crate) struct GroupPlan {
    /// The template of the qualifiers of a dynamic group.
    pub(crate) qualifier: Option<Vec<Segment>>,
    /// Qualifiers that a dynamic group may not produce: the constant columns of its families.
    pub(crate) taken: Vec<Vec<u8>>,
    /// The field of the timestamps; `None` for timestamp 0.
    pub(crate) time: Option<usize>,
    pub(crate) columns: Vec<ValuePlan>,
}

impl GroupPlan {
    /// Whether its cells belong to the row as a whole rather than to one record.
    pub(crate) fn is_of_row(&self) -> bool {
        self.qualifier.is_none() && self.time.is_none()
    }
}

/// Where the values of a column come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValuePlan {
    Empty,
    Field(usize),
    Template(Vec<Segment>),
    /// A sketch of each single value, for families of kind `hll`.
    Sketch(usize),
}

/// Columns that become (metric, value) pairs, an event each.
#[derive(Debug, Clone)]
pub(crate) struct Unpivot {
    /// The source fields to unpivot.
    pub(crate) columns: Vec<usize>,
    /// Index of the field `metric`; `value` comes after it.
    pub(crate) metric: usize,
}

/// A field of the records, and where it is stored.
#[derive(Debug, Clone)]
pub(crate) struct RecordField {
    /// Index among the fields of the layout.
    pub(crate) field: usize,
    pub(crate) kind: FieldType,
    /// Where its values are stored, best first. Each origin fills the nulls of those before it.
    pub(crate) origins: Vec<Origin>,
    /// The resolution of a time by origin, in microseconds; 1 is exact.
    pub(crate) steps: Vec<i64>,
}

/// A place that stores a field of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// One segment of the row key.
    Key { segment: usize },
    /// Time formats of the key that together give a time.
    KeyTime { segments: Vec<usize> },
    /// The timestamp of the cell.
    Cell { group: usize },
    /// A typed value of a column.
    Value { group: usize, column: usize },
    /// The only field of the template of a column's values.
    ValueText { group: usize, column: usize },
    /// One segment of the qualifier of a dynamic group.
    Qualifier { group: usize, segment: usize },
    /// Time formats of the key and the qualifier that together give a time.
    KeyAndQualifier { key: Vec<usize>, group: usize, qualifier: Vec<usize> },
}

impl Origin {
    /// Whether the row key alone stores it, so that all records of a row share the value.
    pub(crate) fn is_key(&self) -> bool {
        matches!(self, Self::Key { .. } | Self::KeyTime { .. })
    }

    /// The group that stores it; `None` for the key.
    pub(crate) fn group(&self) -> Option<usize> {
        match self {
            Self::Key { .. } | Self::KeyTime { .. } => None,
            Self::Cell { group }
            | Self::Value { group, .. }
            | Self::ValueText { group, .. }
            | Self::Qualifier { group, .. }
            | Self::KeyAndQualifier { group, .. } => Some(*group),
        }
    }

    /// Whether every record of its group has a value here.
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Self::Cell { .. } | Self::Qualifier { .. } | Self::KeyAndQualifier { .. })
    }
}

impl Layout {
    /// The table as its job file declares it.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The columns of the source that the layout was compiled for.
    pub fn source(&self) -> &SourceSchema {
        &self.source
    }

    /// The schema of its blocks and SSTs.
    pub fn stored(&self) -> &Arc<StoredSchema> {
        &self.stored
    }

    /// Consequences of the layout that its owner should know.
    pub fn warnings(&self) -> &[LayoutWarning] {
        &self.warnings
    }

    /// The source columns that records do not contain, each with the reason.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// The schema of the records: the source columns that can be decoded, in source order; unpivoted ones as `metric`, `value`.
    pub fn records_schema(&self) -> SchemaRef {
        Arc::clone(&self.records_schema)
    }

    /// The bytes that each part of the row key's template printed, in the order of [`crate::outline::template_parts`]; `None`
    /// if the layout cannot have written the key.
    pub fn split_key<'k>(&self, key: &'k [u8]) -> Option<Vec<&'k [u8]>> {
        let mut parts = Vec::with_capacity(self.key.segments.len());
        split(&self.key.segments, key, &mut parts).then_some(parts)
    }

    /// Whether all events of a row lie in one window: the key holds the event time in UTC, at least as fine as the
    /// window. Then windows can be read independently.
    pub fn rows_lie_in_one_window(&self) -> bool {
        self.spec.window == Window::None || self.window_origin().is_some()
    }

    /// Whether a table keeps cells as they are, whose row keys are any bytes: `{row_key:hex}`.
    pub(crate) fn keeps_cells(&self) -> bool {
        matches!(self.key.segments.as_slice(), [Segment::Field(field)] if field.form == Form::Hex)
    }

    /// The record fields that the output of `decode` is sorted by, most significant first, all ascending.
    ///
    /// Only orders that the key bytes guarantee: text before a delimiter does not sort as the tuple does (`ab#` comes
    /// after `ab!c#`), and fields after a truncated time are sorted only within its resolution.
    pub fn record_order(&self) -> Vec<usize> {
        self.record_order.clone()
    }

    /// Whether the row key and the qualifier determine the value of a column, so that every write stores the same value.
    pub fn follows_from_key(&self, group: usize, column: usize) -> bool {
        let Some(plan) = self.groups.get(group) else { return false };
        let segments: Vec<Segment> = self.key.segments.iter().chain(plan.qualifier.iter().flatten()).cloned().collect();

        match plan.columns.get(column) {
            Some(ValuePlan::Empty) => true,
            Some(ValuePlan::Field(field) | ValuePlan::Sketch(field)) => {
                let kind = self.fields.get(*field).map_or(FieldType::Text, |field| field.kind);
                determined(&segments, &FieldSegment { field: *field, kind, form: Form::Text })
            }
            Some(ValuePlan::Template(parts)) => {
                parts.iter().filter_map(Segment::field).all(|part| determined(&segments, part))
            }
            None => false,
        }
    }

    /// Whether the row key or the qualifier of a group shows an hour of the event time, or less than that: then readings that
    /// print alike share a cell by the coarseness of a template, and not because only the newest of each entity or day is kept.
    pub fn shows_time_of_day(&self, group: usize) -> bool {
        let qualifier = self.groups.get(group).and_then(|plan| plan.qualifier.as_ref());
        let mut parts = self.key.segments.iter().chain(qualifier.into_iter().flatten()).filter_map(Segment::field);
        parts.any(|part| part.field == self.source.time && part.is_time() && part.finest() <= HOUR)
    }

    /// The name of a field of the layout.
    pub(crate) fn name(&self, field: usize) -> Option<String> {
        self.fields.get(field).map(|field| field.name.clone())
    }

    /// Where the key stores the window of its row; `None` if it does not, or the table has one window.
    pub(crate) fn window_origin(&self) -> Option<Origin> {
        let most = match self.spec.window {
            Window::Hour => HOUR,
            // A day determines its week and month.
            Window::Day | Window::Week | Window::Month => DAY,
            Window::None => return None,
        };

        let time = self.source.time;
        let (segments, units, zone) = time_parts(&self.key.segments, time);
        if zone.is_none() && resolution(&units).is_some_and(|step| step <= most) {
            return Some(Origin::KeyTime { segments });
        }

        let segment = self.key.segments.iter().position(|segment| {
            segment.field().is_some_and(|field| {
                let is_whole_time = field.field == time && !matches!(field.form, Form::Time(_));
                is_whole_time && field.resolution().is_some_and(|step| step <= most)
            })
        })?;
        Some(Origin::Key { segment })
    }

    /// How equal cells of a column merge; the newest wins if there is no such column.
    pub(crate) fn merge_of(&self, group: usize, column: usize) -> Merge {
        let group = self.stored.groups.get(group);
        group.and_then(|group| group.columns.get(column)).map(|column| column.merge).unwrap_or_default()
    }

    /// The time zone of the time formats among these segments of the key; `None` for UTC.
    pub(crate) fn key_zone(&self, segments: &[usize]) -> Option<chrono_tz::Tz> {
        let field = segments.first().and_then(|segment| self.key.field(*segment))?;
        if let Form::Time(format) = &field.form { format.zone() } else { None }
    }
}
