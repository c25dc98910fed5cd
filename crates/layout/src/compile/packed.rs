//! Packed columns: cells made of several source columns, as JSON objects or protobuf messages.

use crate::compile::compiler::{CompiledColumn, Compiler, Content, Scope, type_name};
use crate::error::{ColumnPart, Place, Problem};
use crate::protobuf::is_field_number;
use crate::schema::{Encoding, MessageField, PackedForm};
use crate::spec::{ColumnSpec, MessageSpec, PackedSpec, TimestampSpec};
use crate::template::parse::closest;

impl Compiler {
    /// Compiles a packed column; `None` after an error.
    pub(super) fn packed(
        &mut self,
        declared: &ColumnSpec,
        (family, column): (usize, usize),
        scope: &Scope<'_>,
    ) -> Option<CompiledColumn> {
        let place = |part| Place::Column { family, column, part };
        let errors = self.errors.len();
        if scope.unpivot.is_some() {
            self.error(place(ColumnPart::Packed), 0..0, Problem::PackedUnpivot);
            return None;
        }
        let repeated = matches!(declared.packed, PackedSpec::Repeated(_));
        let own = scope.spec.families.get(family);
        if let Some(own) = own.filter(|own| !own.kind.is_newest()) {
            self.error(place(ColumnPart::Packed), 0..0, Problem::PackedAggregate { family: own.name.clone() });
        }
        let excepts = declared.packed != PackedSpec::Json && !declared.except.is_empty();
        for (key, given, part) in [
            ("value", !declared.value.is_empty(), ColumnPart::Value),
            ("encoding", declared.encoding != Encoding::Text, ColumnPart::Encoding),
            ("each", declared.each, ColumnPart::Packed),
            ("except", excepts, ColumnPart::Except(0)),
        ] {
            if given {
                self.error(place(part), 0..0, Problem::PackedAlone { key });
            }
        }
        if repeated && matches!(declared.timestamp, TimestampSpec::Field(_)) {
            self.error(place(ColumnPart::Timestamp), 0..0, Problem::RepeatedTimestamp);
        }
        let at = place(ColumnPart::Qualifier);
        let qualifier = self.parse(at, &declared.qualifier).and_then(|template| self.bind(at, &template, true));
        if let Some(qualifier) = &qualifier {
            self.check_length(declared, at, qualifier);
            if repeated && qualifier.iter().any(|segment| segment.field().is_some()) {
                self.error(at, 0..declared.qualifier.len(), Problem::RepeatedQualifier);
            }
        }
        let content = match &declared.packed {
            PackedSpec::Json => {
                let except = self.except(declared, (family, column));
                let fields: Vec<usize> =
                    (0..scope.source.fields.len()).filter(|field| !except.contains(field)).collect();
                if fields.is_empty() {
                    self.error(place(ColumnPart::Packed), 0..0, Problem::NothingPacked);
                }
                Some((PackedForm::Json, fields))
            }
            PackedSpec::Message(name) | PackedSpec::Repeated(name) => {
                let found = scope.spec.messages.iter().find(|message| message.name == *name);
                match found {
                    Some(message) => self.message(message, repeated, place(ColumnPart::Packed), name.len()),
                    None => {
                        let names = scope.spec.messages.iter().map(|message| message.name.as_str());
                        let suggestion = closest(name, names);
                        let problem = Problem::UnknownMessage { name: name.clone(), suggestion };
                        self.error(place(ColumnPart::Packed), 0..name.len(), problem);
                        None
                    }
                }
            }
            PackedSpec::None => None,
        };
        let (qualifier, (form, fields)) = (qualifier?, content?);
        let time = if repeated {
            // The cell is at timestamp 0, but its records keep their event times.
            Some(scope.source.time)
        } else {
            let of_value = self.all_determined(scope.key, &fields);
            self.timestamp(declared, place(ColumnPart::Timestamp), scope, &qualifier, of_value)
        };
        let is_event_time = time == Some(scope.source.time);
        let span = 0..declared.qualifier.len();
        let content = Content::Packed { form, fields };
        let compiled = CompiledColumn { family, place: at, span, qualifier, content, time, is_event_time };
        (self.errors.len() == errors).then_some(compiled)
    }

    /// The fields of a message by ascending number, checked against the source.
    fn message(
        &mut self,
        message: &MessageSpec,
        repeated: bool,
        place: Place,
        length: usize,
    ) -> Option<(PackedForm, Vec<usize>)> {
        let errors = self.errors.len();
        let mut fields: Vec<MessageField> = message.fields.clone();
        fields.sort_by_key(|field| field.number);
        let mut problems = Vec::new();
        let name = || message.name.clone();
        if fields.is_empty() {
            problems.push(Problem::EmptyMessage { message: name() });
        }
        for pair in fields.windows(2) {
            if let [first, second] = pair
                && first.number == second.number
            {
                let (first, second, number) = (first.name.clone(), second.name.clone(), first.number);
                problems.push(Problem::SameNumber { message: name(), first, second, number });
            }
        }
        let mut found = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let field_name = || field.name.clone();
            if fields.iter().take(at).any(|other| other.name == field.name) {
                problems.push(Problem::FieldTwice { message: name(), field: field_name() });
            }
            if !is_field_number(field.number) {
                problems.push(Problem::FieldNumber { message: name(), field: field_name(), number: field.number });
            }
            match self.find(&field.name) {
                Ok(index) => {
                    found.push(index);
                    let kind = self.fields.get(index).map(|own| own.kind);
                    if let Some((kind, takes)) = kind.and_then(|kind| Some((kind, field.kind.refuses(kind)?))) {
                        let (proto, kind) = (field.kind.name(), type_name(kind));
                        problems.push(Problem::FieldNeedsType {
                            message: name(),
                            field: field_name(),
                            proto,
                            kind,
                            takes,
                        });
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        let (list, number) = &message.list;
        if repeated && !is_field_number(*number) {
            problems.push(Problem::FieldNumber { message: list.clone(), field: name(), number: *number });
        }
        for problem in problems {
            self.error(place, 0..length, problem);
        }
        let form =
            if repeated { PackedForm::Repeated { fields, number: *number } } else { PackedForm::Message { fields } };
        (self.errors.len() == errors).then_some((form, found))
    }
}
