//! From a declared layout to a compiled one, with all its errors at once.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Advice, ColumnPart, LayoutError, LayoutWarning, Place, Problem};
use crate::plan::{Unpivot, ValuePlan};
use crate::schema::{Encoding, FieldType, PackedForm, ValueType};
use crate::spec::{ColumnSpec, Field, SourceSchema, TableSpec, TimestampSpec};
use crate::template::dependence::determined;
use crate::template::form::Form;
use crate::template::parse::{Piece, Template, closest};
use crate::template::segment::{FieldSegment, Segment};

/// The most bytes of a qualifier that Bigtable accepts.
const MAX_QUALIFIER: usize = 16 * 1024;

/// The state of a compilation: the fields known so far, and what is wrong.
pub(super) struct Compiler {
    pub(super) fields: Vec<Field>,
    /// The fields of each name.
    names: HashMap<String, NamedFields>,
    pub(super) errors: Vec<LayoutError>,
    pub(super) warnings: Vec<LayoutWarning>,
}

/// The fields of one name. Unpivoting can add one to that of the source.
#[derive(Clone, Copy)]
struct NamedFields {
    first: usize,
    last: usize,
}

/// The place of a column in the declaration of its table.
#[derive(Clone, Copy)]
pub(super) struct ColumnIndex {
    pub(super) family: usize,
    pub(super) column: usize,
}

impl ColumnIndex {
    /// The place of a key of the column, for errors.
    pub(super) fn place(self, part: ColumnPart) -> Place {
        Place::Column { family: self.family, column: self.column, part }
    }
}

/// The context that the columns of a table are compiled in.
pub(super) struct Scope<'a> {
    pub(super) spec: &'a TableSpec,
    pub(super) source: &'a SourceSchema,
    pub(super) unpivot: Option<&'a Unpivot>,
    pub(super) key: &'a [Segment],
}

/// A column of a family, bound to the source. With `each` there is one for each source column.
pub(super) struct CompiledColumn {
    pub(super) family: usize,
    pub(super) place: Place,
    pub(super) span: Range<usize>,
    pub(super) qualifier: Vec<Segment>,
    pub(super) content: Content,
    /// The field of the timestamps; `None` for timestamp 0.
    pub(super) time: Option<usize>,
    pub(super) is_event_time: bool,
}

/// What the cells of a column are made of.
pub(super) enum Content {
    One { value: ValuePlan, kind: ValueType, encoding: Encoding },
    Packed { form: PackedForm, fields: Vec<usize> },
}

impl CompiledColumn {
    /// The qualifier, if it has no fields.
    pub(super) fn constant(&self) -> Option<&str> {
        match self.qualifier.as_slice() {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

/// The name of a column type, as messages put it.
pub(super) fn type_name(kind: FieldType) -> &'static str {
    match kind {
        FieldType::UInt64 => "uint64",
        FieldType::Int64 => "int64",
        FieldType::Float64 => "float64",
        FieldType::Decimal { .. } => "a decimal",
        FieldType::Text => "text",
        FieldType::Bool => "bool",
        FieldType::Timestamp => "a timestamp",
        FieldType::Date => "a date",
    }
}

/// The column types that a form takes, for messages; `None` if it takes `kind`.
fn form_needs(form: &Form, kind: FieldType) -> Option<&'static str> {
    use FieldType::{Date, Int64, Text, Timestamp, UInt64};
    let (fits, takes) = match form {
        Form::Text | Form::Percent(_) | Form::Hash | Form::Salt(_) => (true, ""),
        Form::ZeroPad(_) => (matches!(kind, UInt64 | Int64), "an integer"),
        Form::SpacePad(_) | Form::Reversed => (matches!(kind, Text | UInt64 | Int64), "text or an integer"),
        Form::Time(_) => (matches!(kind, Timestamp | Date), "a timestamp or a date"),
        Form::Epoch(_) | Form::MsReversed => (kind == Timestamp, "a timestamp"),
        Form::Domain | Form::Hex => (kind == Text, "text"),
        Form::BigEndian => (matches!(kind, UInt64 | Int64 | Timestamp), "an integer or a timestamp"),
    };
    (!fits).then_some(takes)
}

impl Compiler {
    pub(super) fn new(fields: &[Field]) -> Self {
        let mut compiler = Self { fields: Vec::new(), names: HashMap::new(), errors: Vec::new(), warnings: Vec::new() };
        fields.iter().cloned().for_each(|field| compiler.add(field));
        compiler
    }

    /// Adds a field of the layout. Several may have one name.
    pub(super) fn add(&mut self, field: Field) {
        let index = self.fields.len();
        self.names.entry(field.name.clone()).or_insert(NamedFields { first: index, last: index }).last = index;
        self.fields.push(field);
    }

    pub(super) fn error(&mut self, place: Place, span: Range<usize>, problem: Problem) {
        self.errors.push(LayoutError { place, span, problem });
    }

    pub(super) fn warn(&mut self, place: Place, span: Range<usize>, advice: Advice) {
        self.warnings.push(LayoutWarning { place, span, advice });
    }

    /// The first field of this name.
    pub(super) fn find(&self, name: &str) -> Result<usize, Problem> {
        self.names.get(name).map(|fields| fields.first).ok_or_else(|| Problem::UnknownColumn {
            name: name.to_owned(),
            suggestion: closest(name, self.fields.iter().map(|field| field.name.as_str())),
        })
    }

    /// Parses a template, and reports its errors at `place`.
    pub(super) fn parse(&mut self, place: Place, text: &str) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => Some(template),
            Err(errors) => {
                for (span, problem) in errors {
                    self.error(place, span, problem);
                }
                None
            }
        }
    }

    /// Binds a template's names to columns. With `delimited`, also checks that printed bytes can be split again.
    pub(super) fn bind(&mut self, place: Place, template: &Template, delimited: bool) -> Option<Vec<Segment>> {
        let errors = self.errors.len();
        let mut segments = Vec::new();
        let mut spans = Vec::new();
        for piece in &template.pieces {
            let field = match piece {
                Piece::Literal(text) => {
                    segments.push(Segment::Literal(text.clone()));
                    spans.push(0..0);
                    continue;
                }
                Piece::Field(field) => field,
            };

            // `{value}` and `{metric}` name the unpivoted pair rather than source columns of those names.
            let index = match self.names.get(&field.name).map(|fields| fields.last) {
                Some(last) => last,
                None => {
                    if let Err(problem) = self.find(&field.name) {
                        self.error(place, field.name_span.clone(), problem);
                    }
                    continue;
                }
            };

            let kind = self.fields.get(index).map_or(FieldType::Text, |field| field.kind);
            if let Some(takes) = form_needs(&field.form, kind) {
                let problem = Problem::FormNeedsType {
                    form: form_name(&field.form),
                    column: field.name.clone(),
                    kind: type_name(kind),
                    takes,
                };
                self.error(place, field.span.clone(), problem);
            }
            if let Form::Time(format) = &field.form
                && let Some(zone) = format.zone()
            {
                self.warn(place, field.span.clone(), Advice::LocalTime { zone: zone.name().to_owned() });
            }

            segments.push(Segment::Field(FieldSegment { field: index, kind, form: field.form.clone() }));
            spans.push(field.span.clone());
        }
        add_escapes(&mut segments);

        if delimited && self.errors.len() == errors {
            self.check_delimiters(place, &segments, &spans);
        }
        (self.errors.len() == errors).then_some(segments)
    }

    /// Checks that the end of each field of varying width can be found: by a literal after it, or by the widths of all that follow.
    fn check_delimiters(&mut self, place: Place, segments: &[Segment], spans: &[Range<usize>]) {
        for (at, segment) in segments.iter().enumerate() {
            let varies = segment.width().is_none();
            let is_marked = matches!(segments.get(at + 1), None | Some(Segment::Literal(_)));
            let is_fixed_after = segments.iter().skip(at + 1).all(|after| after.width().is_some());
            if let (true, false, false, Some(field)) = (varies, is_marked, is_fixed_after, segment.field()) {
                let column = self.fields.get(field.field).map(|field| field.name.clone()).unwrap_or_default();
                let span = spans.get(at).cloned().unwrap_or(0..0);
                self.error(place, span, Problem::NoDelimiter { column });
            }
        }
    }

    /// The fields that `except` of column `index` names.
    pub(super) fn except(&mut self, declared: &ColumnSpec, index: ColumnIndex) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, name) in declared.except.iter().enumerate() {
            match self.find(name) {
                Ok(field) => found.push(field),
                Err(problem) => {
                    self.error(index.place(ColumnPart::Except(at)), 0..name.len(), problem);
                }
            }
        }
        found
    }

    /// Reports a qualifier whose fixed parts alone are over the limit.
    pub(super) fn check_length(&mut self, declared: &ColumnSpec, place: Place, qualifier: &[Segment]) {
        let literal: usize = qualifier.iter().filter_map(Segment::width).sum();
        if literal > MAX_QUALIFIER {
            self.error(place, 0..declared.qualifier.len(), Problem::QualifierTooLong);
        }
    }

    /// Whether the key determines the values of all these fields.
    pub(super) fn all_determined(&self, key: &[Segment], fields: &[usize]) -> bool {
        fields.iter().all(|field| {
            let kind = self.fields.get(*field).map_or(FieldType::Text, |field| field.kind);
            determined(key, &FieldSegment { field: *field, kind, form: Form::Text })
        })
    }

    /// The field of the timestamps of a column; `None` for timestamp 0. With `is_determined`, the key determines the value, so that the
    /// cell belongs to the row as a whole.
    pub(super) fn timestamp(
        &mut self,
        declared: &ColumnSpec,
        place: Place,
        scope: &Scope<'_>,
        qualifier: &[Segment],
        is_determined: bool,
    ) -> Option<usize> {
        match &declared.timestamp {
            TimestampSpec::Zero => None,
            TimestampSpec::Implied => {
                let mut parts = qualifier.iter().filter_map(Segment::field);
                let of_row = is_determined && parts.all(|part| determined(scope.key, part));
                (!of_row).then_some(scope.source.time)
            }
            TimestampSpec::Field(name) => match self.find(name) {
                Ok(field) => {
                    let kind = self.fields.get(field).map_or(FieldType::Text, |field| field.kind);
                    if kind != FieldType::Timestamp {
                        let problem = Problem::TimestampNeedsTime { column: name.clone(), kind: type_name(kind) };
                        self.error(place, 0..name.len(), problem);
                    }
                    Some(field)
                }
                Err(problem) => {
                    self.error(place, 0..name.len(), problem);
                    None
                }
            },
        }
    }
}

/// Adds the bytes of a template's literals to the escapes of its percent-encoded fields.
fn add_escapes(segments: &mut [Segment]) {
    let mut literals: Vec<String> = Vec::new();
    for segment in segments.iter() {
        if let Segment::Literal(text) = segment {
            literals.push(text.clone());
        }
    }

    for segment in segments {
        if let Segment::Field(FieldSegment { form: Form::Percent(escapes), .. }) = segment {
            literals.iter().flat_map(|text| text.bytes()).for_each(|byte| escapes.add(byte));
        }
    }
}

/// A form as templates write it, for messages.
fn form_name(form: &Form) -> String {
    match form {
        Form::Text => "text".to_owned(),
        Form::ZeroPad(width) => format!("0{width}"),
        Form::SpacePad(width) => format!("<{width}"),
        Form::Time(_) => "%..".to_owned(),
        Form::Epoch(_) => "an epoch".to_owned(),
        Form::MsReversed => "ms-reversed".to_owned(),
        Form::Reversed => "reversed".to_owned(),
        Form::Domain => "domain".to_owned(),
        Form::Percent(_) => "percent".to_owned(),
        Form::BigEndian => "be".to_owned(),
        Form::Hash => "hash".to_owned(),
        Form::Hex => "hex".to_owned(),
        Form::Salt(_) => "salt".to_owned(),
    }
}
