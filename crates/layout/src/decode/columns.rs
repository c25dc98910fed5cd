//! Decodes one record field of a block: from the key, from timestamps, from values or from qualifiers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, take};

use crate::block::Block;
use crate::decode::align::group_of;
use crate::decode::key_times::KeyTimes;
use crate::decode::prefix_runs::PrefixRuns;
use crate::decode::record_alignment::RecordAlignment;
use crate::error::DecodeError;
use crate::plan::{Layout, Origin, RecordField, TailField, ValuePlan};
use crate::scalar::ColumnBuilder;
use crate::template::form::Form;
use crate::template::print::split;
use crate::template::segment::Segment;

/// Decodes record fields of a block whose records are aligned.
pub(crate) struct ColumnReader<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) block: &'a Block,
    pub(crate) alignment: &'a RecordAlignment,
    pub(crate) timestamps: Vec<Option<ArrayRef>>,
}

impl ColumnReader<'_> {
    /// The values of a record field: those of its best origin, with nulls filled from the others.
    pub(crate) fn column(&self, record: &RecordField) -> Result<ArrayRef, DecodeError> {
        let mut out: Option<ArrayRef> = None;
        for origin in &record.origins {
            let found = self.origin(record, origin)?;
            let filled = match out {
                None => found,
                Some(first) => zip(&is_not_null(first.as_ref())?, &first, &found)?,
            };
            let complete = filled.null_count() == 0;
            out = Some(filled);
            if complete {
                break;
            }
        }
        out.ok_or(DecodeError::NoField { field: record.field, count: self.layout.records.len() })
    }

    /// The values of a record field at one of its origins.
    fn origin(&self, record: &RecordField, origin: &Origin) -> Result<ArrayRef, DecodeError> {
        match origin {
            Origin::Key { segment } => match self.tail_field(*segment) {
                Some(tail) => self.tail_values(record, tail),
                None => self.prefix_field(record, *segment),
            },
            Origin::KeyTime { segments } => self.key_time(record, segments),
            Origin::Cell { group } => {
                let times = self.timestamps.get(*group).and_then(Option::as_ref);
                self.alignment.pick(*group, times.ok_or(DecodeError::NotProjected { group: *group })?)
            }

            Origin::Value { group, column } => {
                let array = self.stored(*group, *column)?;
                if *array.data_type() != record.kind.arrow() {
                    return Err(DecodeError::Shape { group: *group });
                }
                self.alignment.pick(*group, array)
            }
            Origin::ValueText { group, column } => self.value_text(record, *group, *column),
            Origin::Qualifier { group, segment } => self.qualifier(record, *group, *segment),
            Origin::KeyAndQualifier { key, group, qualifier } => self.key_and_qualifier(record, key, *group, qualifier),
        }
    }

    /// The stored values of a column, one per record of its group.
    fn stored(&self, group: usize, column: usize) -> Result<&ArrayRef, DecodeError> {
        let found = group_of(self.block, group)?;
        let array = found.columns.get(column).and_then(Option::as_ref).ok_or(DecodeError::NotProjected { group })?;
        if array.len() == found.len() { Ok(array) } else { Err(DecodeError::Shape { group }) }
    }

    fn tail_field(&self, segment: usize) -> Option<&TailField> {
        self.layout.key.tail.iter().find(|tail| tail.segment == segment)
    }

    fn bad_key(&self, bytes: &[u8]) -> DecodeError {
        DecodeError::Key { key: String::from_utf8_lossy(bytes).into_owned() }
    }

    fn prefix_field(&self, record: &RecordField, segment: usize) -> Result<ArrayRef, DecodeError> {
        let keys = &self.block.keys;
        let runs = PrefixRuns::read(self.layout, keys, &[(record, segment)])?;
        let values = runs.columns.first().ok_or(DecodeError::NoField { field: record.field, count: 0 })?;
        self.alignment.spread(values, Some(&runs.of_rows(keys)))
    }

    fn tail_values(&self, record: &RecordField, tail: &TailField) -> Result<ArrayRef, DecodeError> {
        let keys = &self.block.keys;
        let field = self.layout.key.field(tail.segment);
        let numbers = tail.numbers(keys.tails());
        if let Some(values) =
            field.filter(|field| field.kind == record.kind).and_then(|field| field.read_numbers(numbers))
        {
            return self.alignment.spread(&values, None);
        }
        let mut builder = ColumnBuilder::new(record.kind, keys.len());
        for (row, value) in keys.tails().iter().enumerate() {
            let number = tail.number(*value);
            if !field.is_some_and(|field| field.read_number(number, &mut builder)) {
                return Err(self.bad_key(&keys.get(row)));
            }
        }
        self.alignment.spread(&builder.finish()?, None)
    }

    fn key_time(&self, record: &RecordField, segments: &[usize]) -> Result<ArrayRef, DecodeError> {
        let keys = &self.block.keys;
        let zone = self.layout.key_zone(segments);
        let mut builder = ColumnBuilder::new(record.kind, keys.len());
        let mut key_times = KeyTimes::new(self.layout, keys, segments, 1);
        for row in 0..keys.len() {
            let time = key_times.of(row, 0, |parts| parts.resolve(zone))?;
            if !time.is_some_and(|time| builder.push_time(time)) {
                return Err(self.bad_key(&keys.get(row)));
            }
        }
        self.alignment.spread(&builder.finish()?, None)
    }

    /// Reads the only field of the templates that a column's values were printed by.
    fn value_text(&self, record: &RecordField, group: usize, column: usize) -> Result<ArrayRef, DecodeError> {
        let array = self.stored(group, column)?;
        let values: Vec<Option<&[u8]>> = match (array.as_string_opt::<i32>(), array.as_binary_opt::<i32>()) {
            (Some(texts), _) => texts.iter().map(|text| text.map(str::as_bytes)).collect(),
            (None, Some(values)) => values.iter().collect(),
            (None, None) => return Err(DecodeError::Shape { group }),
        };

        // One field between literals: strip the literals.
        let plan = self.layout.groups.get(group).and_then(|plan| plan.columns.get(column));
        let Some(ValuePlan::Template(segments)) = plan else { return Err(DecodeError::Shape { group }) };
        let place = segments.iter().position(|segment| segment.field().is_some()).unwrap_or(0);
        let (before, after) = segments.split_at_checked(place).unwrap_or_default();
        let (before, after) = (literal_width(before), literal_width(after));
        let field = segments.get(place).and_then(Segment::field);

        let mut builder = ColumnBuilder::new(record.kind, values.len());
        for text in values {
            let Some(text) = text else {
                builder.push_null();
                continue;
            };
            let end = text.len().checked_sub(after);
            let span = end.and_then(|end| text.get(before..end));
            if !field.zip(span).is_some_and(|(field, span)| field.read(span, &mut builder)) {
                return Err(DecodeError::Shape { group });
            }
        }
        self.alignment.pick(group, &builder.finish()?)
    }

    /// Reads a field of qualifiers: once a qualifier, then by record.
    fn qualifier(&self, record: &RecordField, group: usize, segment: usize) -> Result<ArrayRef, DecodeError> {
        let qualifiers = group_of(self.block, group)?.qualifiers.as_ref().ok_or(DecodeError::NotProjected { group })?;
        let segments = self.segments_of(group);
        let field = segments.get(segment).and_then(Segment::field);
        let mut builder = ColumnBuilder::new(record.kind, qualifiers.dictionary.len());
        let mut spans = Vec::new();

        for bytes in &qualifiers.dictionary {
            let span = if split(segments, bytes, &mut spans) { spans.get(segment) } else { None };
            if !field.zip(span).is_some_and(|(field, span)| field.read(span, &mut builder)) {
                return Err(DecodeError::Qualifier { qualifier: String::from_utf8_lossy(bytes).into_owned() });
            }
        }

        let codes = UInt32Array::from(qualifiers.codes.clone());
        let by_record = take(builder.finish()?.as_ref(), &codes, None)?;
        self.alignment.pick(group, &by_record)
    }

    fn segments_of(&self, group: usize) -> &[Segment] {
        self.layout.groups.get(group).and_then(|plan| plan.qualifier.as_deref()).unwrap_or_default()
    }

    /// Reads a time whose formats are partly in the key and partly in the qualifier.
    fn key_and_qualifier(
        &self,
        record: &RecordField,
        key: &[usize],
        group: usize,
        qualifier: &[usize],
    ) -> Result<ArrayRef, DecodeError> {
        let found = group_of(self.block, group)?;
        let qualifiers = found.qualifiers.as_ref().ok_or(DecodeError::NotProjected { group })?;
        let segments = self.segments_of(group);
        let format = qualifier.first().and_then(|at| segments.get(*at)).and_then(Segment::field);
        let zone = if let Some(Form::Time(format)) = format.map(|field| &field.form) { format.zone() } else { None };

        let keys = &self.block.keys;
        let mut key_times = KeyTimes::new(self.layout, keys, key, qualifiers.dictionary.len());
        let rows = self.alignment.rows();
        let records = UInt32Array::from_iter_values(0..found.len() as u32);
        let records = self.alignment.pick(group, &(Arc::new(records) as ArrayRef))?;
        let records = records.as_primitive_opt::<arrow::datatypes::UInt32Type>().ok_or(DecodeError::Shape { group })?;

        let mut builder = ColumnBuilder::new(record.kind, rows.len());
        let mut spans = Vec::new();
        for (row, record) in rows.iter().zip(records) {
            let Some(record) = record else {
                builder.push_null();
                continue;
            };
            let code = qualifiers.codes.get(record as usize).copied().unwrap_or(u32::MAX);
            let bytes = qualifiers.dictionary.get(code as usize).ok_or(DecodeError::Shape { group })?;
            let time = key_times.of(*row as usize, code as usize, |mut parts| {
                let is_read = split(segments, bytes, &mut spans)
                    && qualifier.iter().all(|at| {
                        let field = segments.get(*at).and_then(Segment::field);
                        field.zip(spans.get(*at)).is_some_and(|(field, span)| field.read_time_parts(span, &mut parts))
                    });
                if is_read { parts.resolve(zone) } else { None }
            })?;
            if !time.is_some_and(|time| builder.push_time(time)) {
                return Err(DecodeError::Qualifier { qualifier: String::from_utf8_lossy(bytes).into_owned() });
            }
        }
        Ok(builder.finish()?)
    }
}

/// The total width of the literals among `segments`.
fn literal_width(segments: &[Segment]) -> usize {
    segments.iter().filter(|segment| segment.field().is_none()).filter_map(Segment::width).sum()
}
