//! Row keys and the columns of families: templates are bound to columns of the source, and each column gets its plan.

use crate::compile::compiler::{ColumnIndex, CompiledColumn, Compiler, Content, Scope, type_name};
use crate::error::{Advice, ColumnPart, Place, Problem};
use crate::plan::{Unpivot, ValuePlan};
use crate::schema::{Encoding, FieldType, Merge, PackedForm, ValueType};
use crate::spec::{ColumnSpec, Field, TableSpec, TimestampSpec};
use crate::template::dependence::determined;
use crate::template::form::Form;
use crate::template::parse::{Piece, Replacement};
use crate::template::segment::Segment;
use std::collections::HashMap;

/// The most families that Bigtable advises for a table.
const ADVISED_FAMILIES: usize = 100;

impl Compiler {
    /// The fields to unpivot; adds the fields `metric` and `value` that they become.
    pub(super) fn unpivot(&mut self, spec: &TableSpec) -> Option<Unpivot> {
        if spec.unpivot.is_empty() {
            return None;
        }

        let mut columns = Vec::new();
        for (at, name) in spec.unpivot.iter().enumerate() {
            match self.find(name) {
                Ok(field) if columns.contains(&field) => {
                    self.error(Place::Unpivot(at), 0..name.len(), Problem::ListedTwice { column: name.clone() });
                }
                Ok(field) => columns.push(field),
                Err(problem) => self.error(Place::Unpivot(at), 0..name.len(), problem),
            }
        }
        for reserved in ["metric", "value"] {
            if self.find(reserved).is_ok_and(|field| !columns.contains(&field)) {
                self.error(Place::Unpivot(0), 0..0, Problem::ReservedName { column: reserved.to_owned() });
            }
        }

        let kinds: Vec<FieldType> =
            columns.iter().filter_map(|field| self.fields.get(*field)).map(|field| field.kind).collect();
        let first = kinds.first().copied().unwrap_or(FieldType::Text);
        let kind = if kinds.iter().all(|kind| *kind == first) {
            first
        } else {
            self.warn(Place::Unpivot(0), 0..0, Advice::MixedUnpivot);
            FieldType::Text
        };

        let metric = self.fields.len();
        self.add(Field { name: "metric".to_owned(), kind: FieldType::Text });
        self.add(Field { name: "value".to_owned(), kind });
        Some(Unpivot { columns, metric })
    }

    /// The segments of the row key. Warns of forms that make keys hard to read, and of keys that start with a time.
    pub(super) fn row_key(&mut self, spec: &TableSpec) -> Vec<Segment> {
        let place = Place::RowKey;
        let Some(template) = self.parse(place, &spec.row_key) else { return Vec::new() };
        let Some(segments) = self.bind(place, &template, true) else { return Vec::new() };
        let pieces = template.pieces.iter();
        let fields: Vec<_> =
            pieces.filter_map(|piece| if let Piece::Field(field) = piece { Some(field) } else { None }).collect();

        if fields.is_empty() {
            self.error(place, 0..spec.row_key.len(), Problem::EmptyRowKey);
        }
        for field in &fields {
            let column = field.name.clone();
            match field.form {
                Form::BigEndian => self.warn(place, field.span.clone(), Advice::RawBytes { column }),
                Form::Hash => self.warn(place, field.span.clone(), Advice::Hashed { column }),
                _ => {}
            }
        }

        let first = segments.iter().find_map(Segment::field);
        if let Some(first) = first
            && first.is_time()
            && !matches!(first.form, Form::MsReversed)
            && let Some(field) = fields.first()
        {
            self.warn(place, field.span.clone(), Advice::TimeFirst);
        }
        segments
    }

    /// The columns of all families, with `each` expanded.
    pub(super) fn columns(&mut self, scope: &Scope<'_>) -> Vec<CompiledColumn> {
        let spec = scope.spec;
        let mut columns = Vec::new();
        for (family, declared) in spec.families.iter().enumerate() {
            let name = &declared.name;
            if name.is_empty() || name.len() > 64 || !name.chars().all(is_legal_in_family) {
                self.error(Place::Family(family), 0..name.len(), Problem::BadFamily { name: name.clone() });
            }
            if spec.families.iter().take(family).any(|other| other.name == *name) {
                self.error(Place::Family(family), 0..name.len(), Problem::DuplicateFamily { name: name.clone() });
            }

            for (column, declared) in declared.columns.iter().enumerate() {
                let index = ColumnIndex { family, column };
                if declared.packed.is_none() {
                    let merge = spec.families.get(family).map(|family| family.kind).unwrap_or_default();
                    self.column(declared, index, merge, scope, &mut columns);
                } else {
                    columns.extend(self.packed(declared, index, scope));
                }
            }
        }

        if spec.families.len() > ADVISED_FAMILIES {
            self.warn(Place::Table, 0..0, Advice::ManyFamilies { count: spec.families.len() });
        }
        if columns.is_empty() && self.errors.is_empty() {
            self.error(Place::Table, 0..0, Problem::NoColumns);
        }
        columns
    }

    /// Compiles the column `index` of a family of kind `merge`, and appends it to `out`; with `each` once for each source column.
    fn column(
        &mut self,
        declared: &ColumnSpec,
        index: ColumnIndex,
        merge: Merge,
        scope: &Scope<'_>,
        out: &mut Vec<CompiledColumn>,
    ) {
        let qualifier = self.parse(index.place(ColumnPart::Qualifier), &declared.qualifier);
        let value = self.parse(index.place(ColumnPart::Value), &declared.value);
        let mut except = scope.unpivot.map(|unpivot| unpivot.columns.clone()).unwrap_or_default();
        except.extend(self.except(declared, index));
        let (Some(qualifier), Some(value)) = (qualifier, value) else { return };

        let mut expanded = Vec::new();
        if declared.each {
            let fields = scope.source.fields.iter().enumerate();
            for (_, field) in fields.filter(|(field, _)| !except.contains(field)) {
                let value = value.clone().replace("value", &Replacement::Field(&field.name));
                let value = value.replace("column", &Replacement::Text(&field.name));
                let qualifier = qualifier.clone().replace("value", &Replacement::Field(&field.name));
                expanded.push((qualifier.replace("column", &Replacement::Text(&field.name)), value));
            }
        } else {
            expanded.push((qualifier, value));
        }

        for (qualifier, value) in expanded {
            let errors = self.errors.len();
            let qualifier = self.bind(index.place(ColumnPart::Qualifier), &qualifier, true);
            let value = self.bind(index.place(ColumnPart::Value), &value, false);
            if let (Some(qualifier), Some(value)) = (qualifier, value) {
                out.push(self.bound_column(declared, index, merge, scope, qualifier, value));
            }
            // The other columns of `each` would repeat the same errors.
            if self.errors.len() > errors {
                break;
            }
        }
    }

    /// The column `index`, given its bound templates.
    fn bound_column(
        &mut self,
        declared: &ColumnSpec,
        index: ColumnIndex,
        merge: Merge,
        scope: &Scope<'_>,
        qualifier: Vec<Segment>,
        value: Vec<Segment>,
    ) -> CompiledColumn {
        self.check_length(declared, index.place(ColumnPart::Qualifier), &qualifier);
        let (plan, kind) = plan_value(value);
        if let Some(problem) = encoding_needs(declared.encoding, kind) {
            self.error(index.place(ColumnPart::Encoding), 0..0, problem);
        }
        let (plan, kind, encoding) = self.aggregate(merge, declared, &|part| index.place(part), plan, kind);

        let is_determined = match &plan {
            ValuePlan::Empty => true,
            ValuePlan::Field(field) | ValuePlan::Sketch(field) => self.all_determined(scope.key, &[*field]),
            ValuePlan::Template(segments) => {
                segments.iter().filter_map(Segment::field).all(|field| determined(scope.key, field))
            }
        };
        let time = self.timestamp(declared, index.place(ColumnPart::Timestamp), scope, &qualifier, is_determined);
        CompiledColumn {
            family: index.family,
            place: index.place(ColumnPart::Qualifier),
            span: 0..declared.qualifier.len(),
            qualifier,
            content: Content::One { value: plan, kind, encoding },
            time,
            is_event_time: time == Some(scope.source.time) && declared.timestamp == TimestampSpec::Implied,
        }
    }

    /// Checks families under `upsert`: a row holds one event, so only cells at timestamp 0 aggregate several events.
    pub(super) fn check_upsert(&mut self, spec: &TableSpec, columns: &[CompiledColumn]) {
        if !spec.upsert {
            return;
        }
        for column in columns {
            if matches!(&column.content, Content::Packed { form: PackedForm::Repeated { .. }, .. }) {
                self.error(column.place, column.span.clone(), Problem::RepeatedUpsert);
            }
        }

        for column in columns.iter().filter(|column| column.time.is_some()) {
            let is_aggregate = spec.families.get(column.family).is_some_and(|family| !family.kind.is_newest());
            if let (true, Place::Column { family, column, .. }) = (is_aggregate, column.place) {
                let place = Place::Column { family, column, part: ColumnPart::Timestamp };
                self.error(place, 0..0, Problem::AggregateUpsert);
            }
        }
    }

    /// Checks that no two columns of a family can produce the same qualifier.
    pub(super) fn check_qualifiers(&mut self, spec: &TableSpec, columns: &[CompiledColumn]) {
        // There can be thousands of constants: they are looked up, not compared pairwise.
        let (mut constants, mut templates) = (HashMap::new(), Vec::<&CompiledColumn>::new());
        for column in columns {
            let family = spec.families.get(column.family).map(|family| family.name.as_str()).unwrap_or_default();
            if let Some(constant) = column.constant() {
                let earlier: &mut usize = constants.entry((column.family, constant)).or_default();
                for _ in 0..*earlier {
                    let problem =
                        Problem::DuplicateQualifier { family: family.to_owned(), qualifier: constant.to_owned() };
                    self.error(column.place, column.span.clone(), problem);
                }
                *earlier += 1;
                continue;
            }

            for other in templates.iter().filter(|other| other.family == column.family) {
                if !tell_apart(&column.qualifier, &other.qualifier) {
                    let other = self.source_of(spec, other.place);
                    let problem = Problem::AmbiguousQualifiers { family: family.to_owned(), other };
                    self.error(column.place, column.span.clone(), problem);
                }
            }
            templates.push(column);
        }
    }

    /// The template of the qualifier that is declared at `place`.
    fn source_of(&self, spec: &TableSpec, place: Place) -> String {
        let Place::Column { family, column, .. } = place else { return String::new() };
        let declared = spec.families.get(family).and_then(|family| family.columns.get(column));
        declared.map(|column| column.qualifier.clone()).unwrap_or_default()
    }
}

/// Whether a family id may have this character.
fn is_legal_in_family(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The plan and the stored type of values that a template prints. A single field keeps its type.
fn plan_value(segments: Vec<Segment>) -> (ValuePlan, ValueType) {
    match segments.as_slice() {
        [] => (ValuePlan::Empty, ValueType::Empty),
        [Segment::Field(field)] if field.form == Form::Text => {
            (ValuePlan::Field(field.field), ValueType::Field(field.kind))
        }
        // Raw bytes need not be UTF-8.
        _ if segments
            .iter()
            .filter_map(Segment::field)
            .any(|field| matches!(field.form, Form::BigEndian | Form::Hex)) =>
        {
            (ValuePlan::Template(segments), ValueType::Bytes)
        }
        _ => (ValuePlan::Template(segments), ValueType::Field(FieldType::Text)),
    }
}

/// The problem of an encoding that values of type `kind` cannot have.
fn encoding_needs(encoding: Encoding, kind: ValueType) -> Option<Problem> {
    use FieldType::{Date, Float64, Int64, Text, Timestamp, UInt64};
    let (fits, encoding) = match (encoding, kind) {
        (Encoding::Text, _) | (_, ValueType::Empty) => (true, "text"),
        (Encoding::Bytes, kind) => (matches!(kind, ValueType::Bytes | ValueType::Field(Text)), "bytes"),
        (Encoding::Int64, ValueType::Field(kind)) => (matches!(kind, UInt64 | Int64 | Timestamp | Date), "int64"),
        (Encoding::Float64, ValueType::Field(kind)) => (kind == Float64, "float64"),
        (Encoding::Int64, ValueType::Bytes) => (false, "int64"),
        (Encoding::Float64, ValueType::Bytes) => (false, "float64"),
        (Encoding::Json, kind) => (kind != ValueType::Bytes, "json"),
    };
    let kind = if let ValueType::Field(kind) = kind { type_name(kind) } else { "bytes" };
    (!fits).then_some(Problem::EncodingNeedsType { encoding, kind })
}

/// Whether two dynamic templates can never print the same bytes: they start differently, or have other fixed widths.
fn tell_apart(left: &[Segment], right: &[Segment]) -> bool {
    let (start, other) = (leading_literal(left), leading_literal(right));
    if !start.starts_with(other) && !other.starts_with(start) {
        return true;
    }
    matches!((fixed_width(left), fixed_width(right)), (Some(left), Some(right)) if left != right)
}

/// The literal that a template starts with; empty if it starts with a field.
fn leading_literal(segments: &[Segment]) -> &str {
    if let Some(Segment::Literal(text)) = segments.first() { text } else { "" }
}

/// The printed width of a template in bytes; `None` if it varies.
fn fixed_width(segments: &[Segment]) -> Option<usize> {
    segments.iter().map(Segment::width).sum()
}
