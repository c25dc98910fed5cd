//! A compiled layout.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::compile::determined;
use crate::encode::Encoder;
use crate::error::{LayoutError, LayoutWarning, Lost};
use crate::records::RecordField;
use crate::schema::StoredSchema;
use crate::segment::{FieldSegment, Segment};
use crate::spec::{Field, SourceSchema, TableSpec};
use crate::template::Form;
use crate::value::FieldType;

/// A table's layout, compiled against its source: lays batches out, reads blocks back.
#[derive(Debug, Clone)]
pub struct Layout {
    pub(crate) spec: TableSpec,
    pub(crate) source: SourceSchema,
    pub(crate) stored: Arc<StoredSchema>,
    pub(crate) warnings: Vec<LayoutWarning>,
    /// The source's fields, then `metric` and `value` if columns are unpivoted.
    pub(crate) fields: Vec<Field>,
    pub(crate) key: KeyPlan,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) unpivot: Option<Unpivot>,
    pub(crate) records: Vec<RecordField>,
    pub(crate) records_schema: SchemaRef,
    pub(crate) lost: Vec<Lost>,
    pub(crate) record_order: Vec<usize>,
}

/// The row key: a prefix that is interned and a tail that is one integer.
#[derive(Debug, Clone)]
pub(crate) struct KeyPlan {
    pub(crate) segments: Vec<Segment>,
    /// How many of `segments` the prefix has.
    pub(crate) prefix: usize,
    /// The fields of the tail, from left to right.
    pub(crate) tail: Vec<TailField>,
}

/// A field of the tail.
#[derive(Debug, Clone)]
pub(crate) struct TailField {
    /// Which of the key's segments it is.
    pub(crate) segment: usize,
    /// Its digits are `tail / shift % modulus`.
    pub(crate) shift: u64,
    pub(crate) modulus: u64,
}

impl TailField {
    pub(crate) fn number(&self, tail: u64) -> u64 {
        tail / self.shift % self.modulus
    }
}

impl KeyPlan {
    pub(crate) fn prefix_segments(&self) -> &[Segment] {
        self.segments.get(..self.prefix).unwrap_or_default()
    }

    pub(crate) fn field(&self, segment: usize) -> Option<&FieldSegment> {
        self.segments.get(segment).and_then(Segment::field)
    }
}

/// How a group is written and read.
#[derive(Debug, Clone)]
pub(crate) struct GroupPlan {
    /// The template of a dynamic group.
    pub(crate) qualifier: Option<Vec<Segment>>,
    /// Qualifiers that a dynamic group may not make, for they are constant columns of its families.
    pub(crate) taken: Vec<Vec<u8>>,
    /// The field its timestamps come from; `None` for 0.
    pub(crate) time: Option<usize>,
    pub(crate) columns: Vec<ValuePlan>,
}

impl GroupPlan {
    /// Whether its cells belong to the row as a whole and not to a record of it.
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
    /// A sketch of the one value.
    Sketch(usize),
}

/// Columns that become (metric, value) pairs.
#[derive(Debug, Clone)]
pub(crate) struct Unpivot {
    /// Source fields.
    pub(crate) columns: Vec<usize>,
    /// Index of the field `metric`; `value` comes after it.
    pub(crate) metric: usize,
}

impl Layout {
    /// Compiles `spec` for batches of `source`.
    ///
    /// # Errors
    /// Everything that is wrong with the layout, at once.
    pub fn compile(spec: &TableSpec, source: &SourceSchema) -> Result<Self, Vec<LayoutError>> {
        crate::compile::compile(spec, source)
    }

    /// The layout as declared.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The source it was compiled for.
    pub fn source(&self) -> &SourceSchema {
        &self.source
    }

    /// The shape of its SSTs.
    pub fn stored(&self) -> &Arc<StoredSchema> {
        &self.stored
    }

    /// What its owner should know.
    pub fn warnings(&self) -> &[LayoutWarning] {
        &self.warnings
    }

    /// Source columns that do not read back.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Columns of the records: those of the source that read back, in its order; unpivoted ones as `metric`, `value`.
    pub fn records_schema(&self) -> SchemaRef {
        Arc::clone(&self.records_schema)
    }

    /// Whether all events of a row lie in one window: the key holds the event time, in UTC, at least
    /// as fine as the window. Then windows can be read one by one.
    pub fn rows_keep_to_windows(&self) -> bool {
        crate::records::rows_keep_to_windows(self)
    }

    /// The record fields by which the output of `decode` ascends, the most significant first.
    ///
    /// Only what key bytes can promise: text before a delimiter does not sort as its tuple does (`ab#` comes
    /// after `ab!c#`), and what follows a time that the key cuts short sorts only within its step.
    pub fn record_order(&self) -> Vec<usize> {
        self.record_order.clone()
    }

    /// An encoder with dictionaries of its own; one for each worker.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// 32 hex digits that change when the layout or the source's columns do.
    pub fn fingerprint(&self) -> String {
        crate::fingerprint::fingerprint(&self.spec, &self.source)
    }

    /// Whether the row key and the qualifier determine the value of a column, by group and place in it: then it is the same
    /// each time it is written.
    pub fn follows_from_key(&self, group: usize, column: usize) -> bool {
        let Some(plan) = self.groups.get(group) else { return false };
        let segments: Vec<Segment> = self.key.segments.iter().chain(plan.qualifier.iter().flatten()).cloned().collect();
        let of_field = |field: usize| {
            let kind = self.fields.get(field).map_or(FieldType::Text, |own| own.kind);
            determined(&segments, &FieldSegment { field, kind, form: Form::Text })
        };
        match plan.columns.get(column) {
            Some(ValuePlan::Empty) => true,
            Some(ValuePlan::Field(field) | ValuePlan::Sketch(field)) => of_field(*field),
            Some(ValuePlan::Template(parts)) => {
                parts.iter().filter_map(Segment::field).all(|own| determined(&segments, own))
            }
            None => false,
        }
    }

    pub(crate) fn name(&self, field: usize) -> Option<String> {
        self.fields.get(field).map(|field| field.name.clone())
    }
}
