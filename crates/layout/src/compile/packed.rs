//! Packed columns: cells made of several source columns, as JSON objects or protobuf messages.

use crate::compile::compiler::{ColumnIndex, CompiledColumn, Compiler, Content, Scope, type_name};
use crate::error::{ColumnPart, Place, Problem};
use crate::protobuf::is_field_number;
use crate::schema::{Encoding, MessageField, PackedForm};
use crate::spec::{ColumnSpec, MessageSpec, PackedSpec, TimestampSpec};
use crate::template::parse::closest;

impl Compiler {
    /// Compiles the packed column `index`; `None` after an error.
    pub(super) fn packed(
        &mut self,
        declared: &ColumnSpec,
        index: ColumnIndex,
        scope: &Scope<'_>,
    ) -> Option<CompiledColumn> {
        let errors = self.errors.len();
        if scope.unpivot.is_some() {
            self.error(index.place(ColumnPart::Packed), 0..0, Problem::PackedUnpivot);
            return None;
        }
        let is_repeated = matches!(declared.packed, PackedSpec::Repeated(_));
        self.check_packed_keys(declared, index, scope, is_repeated);

        let place = index.place(ColumnPart::Qualifier);
        let qualifier = self.parse(place, &declared.qualifier).and_then(|template| self.bind(place, &template, true));
        if let Some(qualifier) = &qualifier {
            self.check_length(declared, place, qualifier);
            if is_repeated && qualifier.iter().any(|segment| segment.field().is_some()) {
                self.error(place, 0..declared.qualifier.len(), Problem::RepeatedQualifier);
            }
        }

        let content = self.content(declared, index, scope, is_repeated);
        let (qualifier, (form, fields)) = (qualifier?, content?);
        let time = if is_repeated {
            // The cell is at timestamp 0, but its records keep their event times.
            Some(scope.source.time)
        } else {
            let is_determined = self.all_determined(scope.key, &fields);
            self.timestamp(declared, index.place(ColumnPart::Timestamp), scope, &qualifier, is_determined)
        };

        let compiled = CompiledColumn {
            family: index.family,
            place,
            span: 0..declared.qualifier.len(),
            qualifier,
            content: Content::Packed { form, fields },
            time,
            is_event_time: time == Some(scope.source.time),
        };
        (self.errors.len() == errors).then_some(compiled)
    }

    /// Reports keys that do not go with a packed column.
    fn check_packed_keys(&mut self, declared: &ColumnSpec, index: ColumnIndex, scope: &Scope<'_>, is_repeated: bool) {
        let family = scope.spec.families.get(index.family);
        if let Some(family) = family.filter(|family| !family.kind.is_newest()) {
            let problem = Problem::PackedAggregate { family: family.name.clone() };
            self.error(index.place(ColumnPart::Packed), 0..0, problem);
        }

        let excepts = declared.packed != PackedSpec::Json && !declared.except.is_empty();
        for (key, given, part) in [
            ("value", !declared.value.is_empty(), ColumnPart::Value),
            ("encoding", declared.encoding != Encoding::Text, ColumnPart::Encoding),
            ("each", declared.each, ColumnPart::Packed),
            ("except", excepts, ColumnPart::Except(0)),
        ] {
            if given {
                self.error(index.place(part), 0..0, Problem::PackedAlone { key });
            }
        }
        if is_repeated && matches!(declared.timestamp, TimestampSpec::Field(_)) {
            self.error(index.place(ColumnPart::Timestamp), 0..0, Problem::RepeatedTimestamp);
        }
    }

    /// The form of a packed cell, and the fields that it is made of; `None` after an error.
    fn content(
        &mut self,
        declared: &ColumnSpec,
        index: ColumnIndex,
        scope: &Scope<'_>,
        is_repeated: bool,
    ) -> Option<(PackedForm, Vec<usize>)> {
        let place = index.place(ColumnPart::Packed);
        match &declared.packed {
            PackedSpec::Json => {
                let except = self.except(declared, index);
                let fields: Vec<usize> =
                    (0..scope.source.fields.len()).filter(|field| !except.contains(field)).collect();
                if fields.is_empty() {
                    self.error(place, 0..0, Problem::NothingPacked);
                }
                Some((PackedForm::Json, fields))
            }
            PackedSpec::Message(name) | PackedSpec::Repeated(name) => {
                let found = scope.spec.messages.iter().find(|message| message.name == *name);
                if let Some(message) = found {
                    return self.message(message, is_repeated, place, name.len());
                }
                let names = scope.spec.messages.iter().map(|message| message.name.as_str());
                let suggestion = closest(name, names);
                self.error(place, 0..name.len(), Problem::UnknownMessage { name: name.clone(), suggestion });
                None
            }
            PackedSpec::None => None,
        }
    }

    /// The fields of a message by ascending number, checked against the source. Errors are reported at `place`, a name of `length` bytes.
    fn message(
        &mut self,
        message: &MessageSpec,
        is_repeated: bool,
        place: Place,
        length: usize,
    ) -> Option<(PackedForm, Vec<usize>)> {
        let errors = self.errors.len();
        let mut fields: Vec<MessageField> = message.fields.clone();
        fields.sort_by_key(|field| field.number);

        let mut problems = Vec::new();
        let name = &message.name;
        if fields.is_empty() {
            problems.push(Problem::EmptyMessage { message: name.clone() });
        }
        for pair in fields.windows(2) {
            if let [first, second] = pair
                && first.number == second.number
            {
                let (first, second, number) = (first.name.clone(), second.name.clone(), first.number);
                problems.push(Problem::SameNumber { message: name.clone(), first, second, number });
            }
        }

        let mut found = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let (message, field_name) = (name.clone(), field.name.clone());
            if fields.iter().take(at).any(|other| other.name == field.name) {
                problems.push(Problem::FieldTwice { message: message.clone(), field: field_name.clone() });
            }
            if !is_field_number(field.number) {
                let (message, field_name) = (message.clone(), field_name.clone());
                problems.push(Problem::FieldNumber { message, field: field_name, number: field.number });
            }
            match self.find(&field.name) {
                Ok(index) => {
                    found.push(index);
                    let kind = self.fields.get(index).map(|field| field.kind);
                    if let Some((kind, takes)) = kind.and_then(|kind| Some((kind, field.kind.refuses(kind)?))) {
                        let (proto, kind) = (field.kind.name(), type_name(kind));
                        problems.push(Problem::FieldNeedsType { message, field: field_name, proto, kind, takes });
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        let (list, number) = &message.list;
        if is_repeated && !is_field_number(*number) {
            problems.push(Problem::FieldNumber { message: list.clone(), field: name.clone(), number: *number });
        }

        for problem in problems {
            self.error(place, 0..length, problem);
        }
        let form =
            if is_repeated { PackedForm::Repeated { fields, number: *number } } else { PackedForm::Message { fields } };
        (self.errors.len() == errors).then_some((form, found))
    }
}
