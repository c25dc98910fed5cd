//! Columns of aggregate families: accepted types and stored encoding.

use crate::compile::compiler::{Compiler, type_name};
use crate::error::{ColumnPart, Place, Problem};
use crate::plan::ValuePlan;
use crate::schema::{Encoding, FieldType, Merge, ValueType};
use crate::spec::ColumnSpec;

impl Compiler {
    /// The plan of a column in a family of kind `merge`: 64-bit integers, or sketches. Reports types and encodings that do not merge.
    pub(super) fn aggregate(
        &mut self,
        merge: Merge,
        declared: &ColumnSpec,
        place: &dyn Fn(ColumnPart) -> Place,
        plan: ValuePlan,
        kind: ValueType,
    ) -> (ValuePlan, ValueType, Encoding) {
        use FieldType::{Int64, Text, UInt64};
        let stored = match merge {
            Merge::Newest => return (plan, kind, declared.encoding),
            Merge::Sum | Merge::Min | Merge::Max => Encoding::Int64,
            Merge::Hll => Encoding::Bytes,
        };

        // `Text` is also the default, so it cannot be told from an explicit `text` here.
        if declared.encoding != Encoding::Text && declared.encoding != stored {
            let encoding = if stored == Encoding::Int64 { "int64" } else { "bytes" };
            let problem = Problem::AggregateEncoding { kind: merge.word(), encoding };
            self.error(place(ColumnPart::Encoding), 0..0, problem);
        }

        match (&plan, kind, merge) {
            (ValuePlan::Field(field), ValueType::Field(UInt64 | Int64 | Text), Merge::Hll) => {
                (ValuePlan::Sketch(*field), ValueType::Bytes, stored)
            }
            // Bytes are sketches that something else made; each is checked when it is encoded.
            (ValuePlan::Template(_), ValueType::Bytes, Merge::Hll) => (plan, kind, stored),
            (ValuePlan::Field(_), ValueType::Field(UInt64 | Int64), Merge::Sum | Merge::Min | Merge::Max) => {
                (plan, kind, stored)
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
                (plan, kind, stored)
            }
        }
    }
}
