//! From a declared layout to a compiled one, with all its errors at once.

mod packed;
mod stored;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::civil::DAY;
use crate::error::{Advice, ColumnPart, LayoutError, LayoutWarning, Place, Problem};
use crate::layout::{Layout, Unpivot, ValuePlan};
use crate::schema::{Merge, PackedForm, StoredSchema};
use crate::segment::{FieldSegment, Segment};
use crate::spec::{ColumnSpec, Field, SourceSchema, TableSpec, TimestampSpec};
use crate::template::{Form, Piece, Replacement, Template, closest};
use crate::time_format::Unit;
use crate::value::{Encoding, FieldType, ValueType};

const MAX_QUALIFIER: usize = 16 * 1024;
/// Bigtable's advice for a table.
const ADVISED_FAMILIES: usize = 100;

pub(crate) fn compile(spec: &TableSpec, source: &SourceSchema) -> Result<Layout, Vec<LayoutError>> {
    let mut compiler = Compiler { fields: Vec::new(), names: HashMap::new(), errors: Vec::new(), warnings: Vec::new() };
    source.fields.iter().cloned().for_each(|field| compiler.add(field));
    if source.fields.get(source.time).is_none_or(|field| field.kind != FieldType::Timestamp) {
        compiler.error(Place::Table, 0..0, Problem::NoEventTime);
        return Err(compiler.errors);
    }
    let unpivot = compiler.unpivot(spec);
    let key = compiler.row_key(spec);
    let scope = Scope { spec, source, unpivot: unpivot.as_ref(), key: &key };
    let columns = compiler.columns(&scope);
    compiler.check_qualifiers(spec, &columns);
    compiler.check_upsert(spec, &columns);
    if !compiler.errors.is_empty() {
        return Err(compiler.errors);
    }
    let (groups, stored) = stored::group(spec, source, &columns);
    let (key, tail) = stored::split_key(key);
    let mut layout = Layout {
        spec: spec.clone(),
        source: source.clone(),
        stored: Arc::new(StoredSchema { tail, groups: stored, upsert: spec.upsert }),
        warnings: compiler.warnings,
        fields: compiler.fields,
        key,
        groups,
        unpivot,
        records: Vec::new(),
        records_schema: Arc::new(arrow::datatypes::Schema::empty()),
        lost: Vec::new(),
        record_order: Vec::new(),
    };
    crate::records::plan(&mut layout);
    Ok(layout)
}

pub(crate) struct Compiler {
    fields: Vec<Field>,
    /// The first field of each name.
    names: HashMap<String, usize>,
    errors: Vec<LayoutError>,
    warnings: Vec<LayoutWarning>,
}

/// What the columns of a table are compiled against.
struct Scope<'a> {
    spec: &'a TableSpec,
    source: &'a SourceSchema,
    unpivot: Option<&'a Unpivot>,
    key: &'a [Segment],
}

/// A column of a family, `each` expanded.
struct CompiledColumn {
    family: usize,
    place: Place,
    span: Range<usize>,
    qualifier: Vec<Segment>,
    content: Content,
    /// Field of the timestamps; `None` for 0.
    time: Option<usize>,
    is_event_time: bool,
}

/// What the cells of a column are made of.
enum Content {
    One { value: ValuePlan, kind: ValueType, encoding: Encoding },
    Packed { form: PackedForm, fields: Vec<usize> },
}

impl CompiledColumn {
    fn constant(&self) -> Option<&str> {
        match self.qualifier.as_slice() {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

pub(crate) fn type_name(kind: FieldType) -> &'static str {
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

/// What type of column a form takes, if it does not take `kind`.
fn form_needs(form: &Form, kind: FieldType) -> Option<&'static str> {
    use FieldType::{Date, Int64, Text, Timestamp, UInt64};
    let (fits, takes) = match form {
        Form::Text | Form::Percent(_) | Form::Hash | Form::Salt(_) => (true, ""),
        Form::ZeroPad(_) => (matches!(kind, UInt64 | Int64), "an integer"),
        Form::SpacePad(_) | Form::Reversed => (matches!(kind, Text | UInt64 | Int64), "text or an integer"),
        Form::Time(_) => (matches!(kind, Timestamp | Date), "a timestamp or a date"),
        Form::Epoch(_) | Form::MsReversed => (kind == Timestamp, "a timestamp"),
        Form::Domain => (kind == Text, "text"),
        Form::BigEndian => (matches!(kind, UInt64 | Int64 | Timestamp), "an integer or a timestamp"),
    };
    (!fits).then_some(takes)
}

impl Compiler {
    pub(crate) fn error(&mut self, place: Place, span: Range<usize>, problem: Problem) {
        self.errors.push(LayoutError { place, span, problem });
    }

    fn warn(&mut self, place: Place, span: Range<usize>, advice: Advice) {
        self.warnings.push(LayoutWarning { place, span, advice });
    }

    fn add(&mut self, field: Field) {
        self.names.entry(field.name.clone()).or_insert(self.fields.len());
        self.fields.push(field);
    }

    fn find(&self, name: &str) -> Result<usize, Problem> {
        self.names.get(name).copied().ok_or_else(|| Problem::UnknownColumn {
            name: name.to_owned(),
            suggestion: closest(name, self.fields.iter().map(|field| field.name.as_str())),
        })
    }

    fn unpivot(&mut self, spec: &TableSpec) -> Option<Unpivot> {
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

    fn parse(&mut self, place: Place, text: &str) -> Option<Template> {
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

    /// Binds a template's names; with `delimited`, it must also be one that can be taken apart.
    fn bind(&mut self, place: Place, template: &Template, delimited: bool) -> Option<Vec<Segment>> {
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
            // `{value}` and `{metric}` mean the unpivoted pair before a source column of that name.
            let index = match self.fields.iter().rposition(|own| own.name == field.name) {
                Some(index) => index,
                None => {
                    if let Err(problem) = self.find(&field.name) {
                        self.error(place, field.name_span.clone(), problem);
                    }
                    continue;
                }
            };
            let kind = self.fields.get(index).map_or(FieldType::Text, |own| own.kind);
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
            for (at, segment) in segments.iter().enumerate() {
                let varies = segment.width().is_none();
                let marked = matches!(segments.get(at + 1), None | Some(Segment::Literal(_)));
                let fixed_after = segments.iter().skip(at + 1).all(|after| after.width().is_some());
                if let (true, false, false, Some(field)) = (varies, marked, fixed_after, segment.field()) {
                    let column = self.fields.get(field.field).map(|own| own.name.clone()).unwrap_or_default();
                    let span = spans.get(at).cloned().unwrap_or(0..0);
                    self.error(place, span, Problem::NoDelimiter { column });
                }
            }
        }
        (self.errors.len() == errors).then_some(segments)
    }

    fn row_key(&mut self, spec: &TableSpec) -> Vec<Segment> {
        let place = Place::RowKey;
        let Some(template) = self.parse(place, &spec.row_key) else { return Vec::new() };
        let Some(segments) = self.bind(place, &template, true) else { return Vec::new() };
        let fields = || {
            template.pieces.iter().filter_map(|piece| if let Piece::Field(field) = piece { Some(field) } else { None })
        };
        if fields().next().is_none() {
            self.error(place, 0..spec.row_key.len(), Problem::EmptyRowKey);
        }
        for field in fields() {
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
            && let Some(field) = fields().next()
        {
            self.warn(place, field.span.clone(), Advice::TimeFirst);
        }
        segments
    }

    fn columns(&mut self, scope: &Scope<'_>) -> Vec<CompiledColumn> {
        let spec = scope.spec;
        let mut columns = Vec::new();
        for (family, declared) in spec.families.iter().enumerate() {
            let name = &declared.name;
            let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
                self.error(Place::Family(family), 0..name.len(), Problem::BadFamily { name: name.clone() });
            }
            if spec.families.iter().take(family).any(|other| other.name == *name) {
                self.error(Place::Family(family), 0..name.len(), Problem::DuplicateFamily { name: name.clone() });
            }
            for (column, declared) in declared.columns.iter().enumerate() {
                if declared.packed.is_none() {
                    let merge = spec.families.get(family).map(|family| family.kind).unwrap_or_default();
                    self.column(declared, (family, column, merge), scope, &mut columns);
                } else {
                    columns.extend(self.packed(declared, (family, column), scope));
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

    fn column(
        &mut self,
        declared: &ColumnSpec,
        (family, column, merge): (usize, usize, Merge),
        scope: &Scope<'_>,
        out: &mut Vec<CompiledColumn>,
    ) {
        let source = scope.source;
        let place = |part| Place::Column { family, column, part };
        let qualifier = self.parse(place(ColumnPart::Qualifier), &declared.qualifier);
        let value = self.parse(place(ColumnPart::Value), &declared.value);
        let mut except = scope.unpivot.map(|unpivot| unpivot.columns.clone()).unwrap_or_default();
        except.extend(self.except(declared, (family, column)));
        let (Some(qualifier), Some(value)) = (qualifier, value) else { return };
        let mut expanded = Vec::new();
        if declared.each {
            for (field, own) in source.fields.iter().enumerate().filter(|(field, _)| !except.contains(field)) {
                let value = value.clone().replace("value", &Replacement::Field(&own.name));
                let value = value.replace("column", &Replacement::Text(&own.name));
                let qualifier = qualifier.clone().replace("value", &Replacement::Field(&own.name));
                expanded.push((qualifier.replace("column", &Replacement::Text(&own.name)), value, field));
            }
        } else {
            expanded.push((qualifier, value, 0));
        }
        for (qualifier, value, _) in expanded {
            let errors = self.errors.len();
            let qualifier = self.bind(place(ColumnPart::Qualifier), &qualifier, true);
            let value = self.bind(place(ColumnPart::Value), &value, false);
            if let (Some(qualifier), Some(value)) = (qualifier, value) {
                self.check_length(declared, place(ColumnPart::Qualifier), &qualifier);
                let (plan, kind) = plan_value(value);
                if let Some(problem) = encoding_needs(declared.encoding, kind) {
                    self.error(place(ColumnPart::Encoding), 0..0, problem);
                }
                let (plan, kind, encoding) = self.aggregate(merge, declared, &place, plan, kind);
                let of_value = match &plan {
                    ValuePlan::Empty => true,
                    ValuePlan::Field(field) | ValuePlan::Sketch(field) => self.all_determined(scope.key, &[*field]),
                    ValuePlan::Template(segments) => {
                        segments.iter().filter_map(Segment::field).all(|field| determined(scope.key, field))
                    }
                };
                let time = self.timestamp(declared, place(ColumnPart::Timestamp), scope, &qualifier, of_value);
                out.push(CompiledColumn {
                    family,
                    place: place(ColumnPart::Qualifier),
                    span: 0..declared.qualifier.len(),
                    qualifier,
                    content: Content::One { value: plan, kind, encoding },
                    time,
                    is_event_time: time == Some(source.time) && declared.timestamp == TimestampSpec::Implied,
                });
            }
            // The other columns of `each` would only repeat it.
            if self.errors.len() > errors {
                break;
            }
        }
    }

    /// The columns of `except`.
    fn except(&mut self, declared: &ColumnSpec, (family, column): (usize, usize)) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, name) in declared.except.iter().enumerate() {
            match self.find(name) {
                Ok(field) => found.push(field),
                Err(problem) => {
                    let part = ColumnPart::Except(at);
                    self.error(Place::Column { family, column, part }, 0..name.len(), problem);
                }
            }
        }
        found
    }

    fn check_length(&mut self, declared: &ColumnSpec, place: Place, qualifier: &[Segment]) {
        let literal: usize = qualifier.iter().filter_map(Segment::width).sum();
        if literal > MAX_QUALIFIER {
            self.error(place, 0..declared.qualifier.len(), Problem::QualifierTooLong);
        }
    }

    /// Whether all rows of one key have one value of each of these fields.
    fn all_determined(&self, key: &[Segment], fields: &[usize]) -> bool {
        fields.iter().all(|field| {
            let kind = self.fields.get(*field).map_or(FieldType::Text, |own| own.kind);
            determined(key, &FieldSegment { field: *field, kind, form: Form::Text })
        })
    }

    /// The field of the timestamps; `of_value` says whether the key determines the value.
    fn timestamp(
        &mut self,
        declared: &ColumnSpec,
        place: Place,
        scope: &Scope<'_>,
        qualifier: &[Segment],
        of_value: bool,
    ) -> Option<usize> {
        match &declared.timestamp {
            TimestampSpec::Zero => None,
            TimestampSpec::Implied => {
                let mut parts = qualifier.iter().filter_map(Segment::field);
                let of_row = of_value && parts.all(|own| determined(scope.key, own));
                (!of_row).then_some(scope.source.time)
            }
            TimestampSpec::Field(name) => match self.find(name) {
                Ok(field) => {
                    let kind = self.fields.get(field).map_or(FieldType::Text, |own| own.kind);
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

    /// Where a row is one event, values of several events meet only in cells of no time.
    fn check_upsert(&mut self, spec: &TableSpec, columns: &[CompiledColumn]) {
        let aggregate = |column: &&CompiledColumn| {
            spec.families.get(column.family).is_some_and(|family| !family.kind.is_newest()) && column.time.is_some()
        };
        let repeated = |column: &&CompiledColumn| {
            matches!(&column.content, Content::Packed { form: PackedForm::Repeated { .. }, .. })
        };
        for column in columns.iter().filter(|_| spec.upsert).filter(repeated) {
            self.error(column.place, column.span.clone(), Problem::RepeatedUpsert);
        }
        for column in columns.iter().filter(|_| spec.upsert).filter(aggregate) {
            let Place::Column { family, column, .. } = column.place else { continue };
            let place = Place::Column { family, column, part: ColumnPart::Timestamp };
            self.error(place, 0..0, Problem::AggregateUpsert);
        }
    }

    /// Two columns of a family must never make the same qualifier.
    fn check_qualifiers(&mut self, spec: &TableSpec, columns: &[CompiledColumn]) {
        // There may be thousands of constants, which are not compared one by one.
        let (mut constants, mut templates) = (HashSet::new(), Vec::<&CompiledColumn>::new());
        for column in columns {
            let family = || spec.families.get(column.family).map(|family| family.name.clone()).unwrap_or_default();
            if let Some(own) = column.constant() {
                if !constants.insert((column.family, own)) {
                    let problem = Problem::DuplicateQualifier { family: family(), qualifier: own.to_owned() };
                    self.error(column.place, column.span.clone(), problem);
                }
                continue;
            }
            for other in templates.iter().filter(|other| other.family == column.family) {
                if !tell_apart(&column.qualifier, &other.qualifier) {
                    let other = self.source_of(spec, other.place);
                    let problem = Problem::AmbiguousQualifiers { family: family(), other };
                    self.error(column.place, column.span.clone(), problem);
                }
            }
            templates.push(column);
        }
    }

    fn source_of(&self, spec: &TableSpec, place: Place) -> String {
        let Place::Column { family, column, .. } = place else { return String::new() };
        let declared = spec.families.get(family).and_then(|family| family.columns.get(column));
        declared.map(|column| column.qualifier.clone()).unwrap_or_default()
    }
}

/// Tells the percent-encoded fields of a template which literals are around them.
fn add_escapes(segments: &mut [Segment]) {
    let literal = |segment: &Segment| if let Segment::Literal(text) = segment { Some(text.clone()) } else { None };
    let literals: Vec<String> = segments.iter().filter_map(literal).collect();
    for segment in segments {
        if let Segment::Field(FieldSegment { form: Form::Percent(escapes), .. }) = segment {
            literals.iter().flat_map(|text| text.bytes()).for_each(|byte| escapes.add(byte));
        }
    }
}

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
        Form::Salt(_) => "salt".to_owned(),
    }
}

fn plan_value(segments: Vec<Segment>) -> (ValuePlan, ValueType) {
    match segments.as_slice() {
        [] => (ValuePlan::Empty, ValueType::Empty),
        [Segment::Field(field)] if field.form == Form::Text => {
            (ValuePlan::Field(field.field), ValueType::Field(field.kind))
        }
        // Raw bytes are no text.
        _ if segments.iter().filter_map(Segment::field).any(|field| field.form == Form::BigEndian) => {
            (ValuePlan::Template(segments), ValueType::Bytes)
        }
        _ => (ValuePlan::Template(segments), ValueType::Field(FieldType::Text)),
    }
}

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

/// Whether all rows of one key have one value of `wanted`.
pub(crate) fn determined(key: &[Segment], wanted: &FieldSegment) -> bool {
    let in_utc = |segment: &FieldSegment| match &segment.form {
        Form::Time(format) => format.zone().is_none(),
        _ => true,
    };
    let counts_weeks = |segment: &FieldSegment| match &segment.form {
        Form::Time(format) => format.units().any(|unit| matches!(unit, Unit::IsoYear | Unit::IsoWeek)),
        _ => false,
    };
    // Weeks do not lie inside months and years, nor these inside weeks; days lie inside all of them.
    let nested = |own: &FieldSegment, step: i64| step <= DAY || counts_weeks(own) == counts_weeks(wanted);
    let own = key.iter().filter_map(Segment::field).filter(|own| own.field == wanted.field);
    own.into_iter().any(|own| {
        let Some(step) = own.resolution() else { return *own == *wanted };
        // An hour of local time may come twice.
        let exact = step == 1 && in_utc(own);
        *own == *wanted || exact || (in_utc(own) && in_utc(wanted) && step <= wanted.finest() && nested(own, step))
    })
}

/// Whether no bytes can be made by both of two dynamic templates.
fn tell_apart(left: &[Segment], right: &[Segment]) -> bool {
    let literal = |segments: &[Segment]| match segments.first() {
        Some(Segment::Literal(text)) => text.clone(),
        _ => String::new(),
    };
    let (start, other) = (literal(left), literal(right));
    if !start.starts_with(&other) && !other.starts_with(&start) {
        return true;
    }
    let width = |segments: &[Segment]| segments.iter().map(Segment::width).sum::<Option<usize>>();
    matches!((width(left), width(right)), (Some(left), Some(right)) if left != right)
}
