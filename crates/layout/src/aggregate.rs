//! Aggregate families: which columns they take, and how their cells are held.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder};

use crate::compile::{Compiler, type_name};
use crate::datum::{Datum, View};
use crate::error::{Advice, ColumnPart, Place, Problem};
use crate::hll::Distinct;
use crate::layout::{Layout, ValuePlan};
use crate::schema::Merge;
use crate::spec::ColumnSpec;
use crate::value::{Encoding, FieldType, ValueType};

impl Merge {
    /// The word of a job file, and of messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Hll => "hll",
        }
    }
}

impl Compiler {
    /// A column as a family of kind `merge` holds it: numbers of eight bytes, or sketches.
    pub(crate) fn aggregate(
        &mut self,
        merge: Merge,
        declared: &ColumnSpec,
        place: &dyn Fn(ColumnPart) -> Place,
        plan: ValuePlan,
        kind: ValueType,
    ) -> (ValuePlan, ValueType, Encoding) {
        use FieldType::{Int64, Text, UInt64};
        let own = match merge {
            Merge::Newest => return (plan, kind, declared.encoding),
            Merge::Sum | Merge::Min | Merge::Max => Encoding::Int64,
            Merge::Hll => Encoding::Bytes,
        };
        // Text is what a column has that says nothing; whether it says so is the job file's to know.
        if declared.encoding != Encoding::Text && declared.encoding != own {
            let encoding = if own == Encoding::Int64 { "int64" } else { "bytes" };
            let problem = Problem::AggregateEncoding { kind: merge.word(), encoding };
            self.error(place(ColumnPart::Encoding), 0..0, problem);
        }
        match (&plan, kind, merge) {
            (ValuePlan::Field(field), ValueType::Field(UInt64 | Int64 | Text), Merge::Hll) => {
                (ValuePlan::Sketch(*field), ValueType::Bytes, own)
            }
            (ValuePlan::Field(_), ValueType::Field(UInt64 | Int64), Merge::Sum | Merge::Min | Merge::Max) => {
                (plan, kind, own)
            }
            _ => {
                let found = match (&plan, kind) {
                    (ValuePlan::Empty, _) => "empty",
                    (ValuePlan::Field(_), ValueType::Field(kind)) => type_name(kind),
                    _ => "a template",
                };
                let takes = if merge == Merge::Hll { "an integer or text" } else { "an integer" };
                let problem = Problem::AggregateNeedsType { kind: merge.word(), found, takes };
                self.error(place(ColumnPart::Value), 0..declared.value.len(), problem);
                (plan, kind, own)
            }
        }
    }
}

/// For each value the sketch of it alone; null where there is none.
pub(crate) fn sketches(values: &dyn Array) -> ArrayRef {
    let view = View::new(values);
    let mut out = BinaryBuilder::with_capacity(values.len(), values.len() * 24);
    let mut bytes = Vec::new();
    for index in 0..values.len() {
        let distinct = match view.get(index) {
            Some(Datum::UInt(value)) => Distinct::Integer(value),
            Some(Datum::Int(value)) => Distinct::Integer(value.cast_unsigned()),
            Some(Datum::Text(text)) => Distinct::Bytes(text.as_bytes()),
            _ => {
                out.append_null();
                continue;
            }
        };
        bytes.clear();
        distinct.write_sketch(&mut bytes);
        out.append_value(&bytes);
    }
    Arc::new(out.finish())
}

/// What to know of a column that reads back from cells that merge.
pub(crate) fn merged_advice(layout: &Layout, name: &str, group: usize, column: usize) -> Option<Advice> {
    let merge = merge_of(layout, group, column);
    (!merge.is_newest()).then(|| Advice::Merged { column: name.to_owned(), kind: merge.word() })
}

/// What becomes of alike cells of a column.
pub(crate) fn merge_of(layout: &Layout, group: usize, column: usize) -> Merge {
    let group = layout.stored.groups.get(group);
    group.and_then(|group| group.columns.get(column)).map(|column| column.merge).unwrap_or_default()
}
