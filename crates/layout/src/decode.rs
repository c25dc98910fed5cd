//! Reading back: blocks to records.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, take};
use arrow::datatypes::TimestampMicrosecondType;

use crate::block::{Block, GroupProjection, Projection};
use crate::civil::DAY;
use crate::datum::{Datum, View};
use crate::error::DecodeError;
use crate::frame::{Frame, bound_fields, group_of};
use crate::keys::Keys;
use crate::layout::{Layout, TailField, ValuePlan};
use crate::read::Builder;
use crate::records::{Origin, RecordField, window_origin};
use crate::schema::TimestampKind;
use crate::segment::{Segment, split};
use crate::template::Form;
use crate::time_format::Moment;
use crate::window::window_of;

impl Layout {
    /// What must be read to decode these record fields (indices into [`Layout::records_schema`]). No fields: the
    /// cheapest that still counts records exactly.
    pub fn projection(&self, fields: &[usize]) -> Projection {
        let events = self.groups.iter().filter(|group| !group.is_of_row()).count();
        let mut groups: Vec<Option<GroupProjection>> = Vec::with_capacity(self.groups.len());
        for (plan, stored) in self.groups.iter().zip(&self.stored.groups) {
            // Rows without events still make a record; without event groups every key does.
            let wanted = events > 0;
            let joins = events > 1 && !plan.is_of_row();
            groups.push(wanted.then(|| GroupProjection {
                qualifiers: joins && !bound_fields(plan).is_empty(),
                timestamps: joins && stored.timestamps == TimestampKind::Stored,
                columns: vec![false; stored.columns.len()],
                sums: false,
            }));
        }
        let mut want = |group: usize, set: &dyn Fn(&mut GroupProjection)| {
            if let (Some(slot), Some(stored)) = (groups.get_mut(group), self.stored.groups.get(group)) {
                set(slot.get_or_insert_with(|| GroupProjection {
                    qualifiers: false,
                    timestamps: false,
                    columns: vec![false; stored.columns.len()],
                    sums: false,
                }));
            }
        };
        for origin in fields.iter().filter_map(|field| self.records.get(*field)).flat_map(|record| &record.origins) {
            match origin {
                Origin::Key { .. } | Origin::KeyTime { .. } => {}
                Origin::Cell { group } => want(*group, &|group| group.timestamps = true),
                Origin::Value { group, column } | Origin::ValueText { group, column } => want(*group, &|group| {
                    if let Some(slot) = group.columns.get_mut(*column) {
                        *slot = true;
                    }
                }),
                Origin::Qualifier { group, .. } | Origin::KeyAndQualifier { group, .. } => {
                    want(*group, &|group| group.qualifiers = true);
                }
            }
        }
        Projection { groups }
    }

    /// The records of a block, in the order of row keys; inside a row by time if the last field of
    /// [`Layout::record_order`] is among `fields`, else as stored. `fields` are indices into
    /// [`Layout::records_schema`], and the block must hold what [`Layout::projection`] says of them.
    ///
    /// # Errors
    /// If the block lacks something, or holds a key or a qualifier that this layout cannot have made.
    pub fn decode(&self, mut block: Block, fields: &[usize]) -> Result<RecordBatch, DecodeError> {
        let schema = self.records_schema.project(fields).map_err(|_| DecodeError::NoField {
            field: fields.iter().copied().max().unwrap_or(0),
            count: self.records.len(),
        })?;
        if block.groups.len() != self.groups.len() {
            return Err(DecodeError::Shape { group: block.groups.len() });
        }
        let frame = Frame::build(self, &block)?;
        let timestamps: Vec<Option<ArrayRef>> = block
            .groups
            .iter_mut()
            .map(|group| {
                let times = group.as_mut()?.timestamps.take()?;
                Some(Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")) as ArrayRef)
            })
            .collect();
        let reader = Reader { layout: self, block: &block, frame: &frame, timestamps };
        let mut columns = Vec::with_capacity(fields.len());
        for record in fields.iter().filter_map(|field| self.records.get(*field)) {
            columns.push(reader.column(record)?);
        }
        if let Some(by) = self.record_order.last().and_then(|last| fields.iter().position(|field| field == last))
            && let Some(indices) = columns.get(by).and_then(|column| time_order(&frame, column.as_ref()))
        {
            for column in &mut columns {
                *column = take(column.as_ref(), &indices, None)?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(frame.count));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?)
    }
}

impl Layout {
    /// The start of the window of each row, as its key says; `None` if rows do not keep to windows, or all lie in one.
    ///
    /// # Errors
    /// If a key is none that this layout can have made.
    pub fn row_windows(&self, keys: &Keys) -> Result<Option<Vec<i64>>, DecodeError> {
        let Some(origin) = window_origin(self) else { return Ok(None) };
        let Some(kind) = self.fields.get(self.source.time).map(|field| field.kind) else { return Ok(None) };
        let record = RecordField { field: self.source.time, kind, origins: vec![origin], steps: Vec::new() };
        let block = Block { keys: keys.clone(), groups: Vec::new() };
        let frame = Frame::of_rows(keys.len());
        let times = Reader { layout: self, block: &block, frame: &frame, timestamps: Vec::new() }.column(&record)?;
        let view = View::new(times.as_ref());
        let window = |row| match view.get(row) {
            Some(Datum::Time(time)) => Ok(window_of(self.spec.window, time)),
            Some(Datum::Date(days)) => Ok(window_of(self.spec.window, i64::from(days).saturating_mul(DAY))),
            _ => Err(DecodeError::Key { key: String::from_utf8_lossy(&keys.get(row)).into_owned() }),
        };
        (0..keys.len()).map(window).collect::<Result<_, _>>().map(Some)
    }
}

/// Record indices that put the times of each row in order; `None` if they are.
fn time_order(frame: &Frame, column: &dyn Array) -> Option<UInt32Array> {
    let times = column.as_primitive_opt::<TimestampMicrosecondType>()?;
    let values = times.values();
    let mut start = 0;
    let sorted = frame.row_ends.iter().all(|end| {
        let row = values.get(start..*end as usize).unwrap_or_default();
        start = *end as usize;
        row.is_sorted()
    });
    if sorted {
        return None;
    }
    let mut indices: Vec<u32> = (0..frame.count as u32).collect();
    let mut start = 0;
    for end in &frame.row_ends {
        if let Some(row) = indices.get_mut(start..*end as usize) {
            // The sort is stable and finds falling runs, which rows of versions are.
            row.sort_by_key(|record| values.get(*record as usize).copied());
        }
        start = *end as usize;
    }
    Some(UInt32Array::from(indices))
}

pub(crate) struct Reader<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) block: &'a Block,
    pub(crate) frame: &'a Frame,
    pub(crate) timestamps: Vec<Option<ArrayRef>>,
}

impl Reader<'_> {
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

    fn origin(&self, record: &RecordField, origin: &Origin) -> Result<ArrayRef, DecodeError> {
        match origin {
            Origin::Key { segment } => match self.tail_field(*segment) {
                Some(tail) => self.tail_values(record, tail),
                None => self.prefix_field(record, *segment),
            },
            Origin::KeyTime { segments } => self.key_time(record, segments),
            Origin::Cell { group } => {
                let times = self.timestamps.get(*group).and_then(Option::as_ref);
                self.frame.pick(*group, times.ok_or(DecodeError::NotProjected { group: *group })?)
            }
            Origin::Value { group, column } => {
                let array = self.stored(*group, *column)?;
                if *array.data_type() != record.kind.arrow() {
                    return Err(DecodeError::Shape { group: *group });
                }
                self.frame.pick(*group, array)
            }
            Origin::ValueText { group, column } => self.value_text(record, *group, *column),
            Origin::Qualifier { group, segment } => self.qualifier(record, *group, *segment),
            Origin::KeyAndQualifier { key, group, qualifier } => self.key_and_qualifier(record, key, *group, qualifier),
        }
    }

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
        let segments = self.layout.key.prefix_segments();
        let field = self.layout.key.field(segment);
        let mut builder = Builder::new(record.kind, keys.prefix_count());
        let mut spans = Vec::new();
        for index in 0..keys.prefix_count() {
            let prefix = keys.prefix(index);
            let span = if split(segments, prefix, &mut spans) { spans.get(segment) } else { None };
            let read = field.zip(span).is_some_and(|(field, span)| field.read(span, &mut builder));
            if !read {
                return Err(self.bad_key(prefix));
            }
        }
        self.frame.spread(&builder.finish()?, Some(keys.prefix_of()))
    }

    fn tail_values(&self, record: &RecordField, tail: &TailField) -> Result<ArrayRef, DecodeError> {
        let keys = &self.block.keys;
        let field = self.layout.key.field(tail.segment);
        let mut builder = Builder::new(record.kind, keys.len());
        for (row, value) in keys.tails().iter().enumerate() {
            let number = tail.number(*value);
            if !field.is_some_and(|field| field.read_number(number, &mut builder)) {
                return Err(self.bad_key(&keys.get(row)));
            }
        }
        self.frame.spread(&builder.finish()?, None)
    }

    fn key_time(&self, record: &RecordField, segments: &[usize]) -> Result<ArrayRef, DecodeError> {
        let keys = &self.block.keys;
        let zone = self.layout.key_zone(segments);
        let mut builder = Builder::new(record.kind, keys.len());
        let mut moments = KeyMoments::new(self.layout, keys, segments);
        for row in 0..keys.len() {
            let time = moments.of(row).and_then(|moment| moment.resolve(zone));
            if !time.is_some_and(|time| builder.push_time(time)) {
                return Err(self.bad_key(&keys.get(row)));
            }
        }
        self.frame.spread(&builder.finish()?, None)
    }

    fn value_text(&self, record: &RecordField, group: usize, column: usize) -> Result<ArrayRef, DecodeError> {
        let array = self.stored(group, column)?;
        let texts = array.as_string_opt::<i32>().ok_or(DecodeError::Shape { group })?;
        let plan = self.layout.groups.get(group).and_then(|plan| plan.columns.get(column));
        let Some(ValuePlan::Template(segments)) = plan else { return Err(DecodeError::Shape { group }) };
        // One field between literals: its bytes are what they leave.
        let place = segments.iter().position(|segment| segment.field().is_some()).unwrap_or(0);
        let literal = |segments: &[Segment]| -> usize {
            segments.iter().filter(|segment| segment.field().is_none()).filter_map(Segment::width).sum()
        };
        let (before, after) = segments.split_at_checked(place).unwrap_or_default();
        let (before, after) = (literal(before), literal(after));
        let field = segments.get(place).and_then(Segment::field);
        let mut builder = Builder::new(record.kind, texts.len());
        for text in texts {
            let Some(text) = text else {
                builder.push_null();
                continue;
            };
            let end = text.len().checked_sub(after);
            let span = end.and_then(|end| text.as_bytes().get(before..end));
            if !field.zip(span).is_some_and(|(field, span)| field.read(span, &mut builder)) {
                return Err(DecodeError::Shape { group });
            }
        }
        self.frame.pick(group, &builder.finish()?)
    }

    fn qualifier(&self, record: &RecordField, group: usize, segment: usize) -> Result<ArrayRef, DecodeError> {
        let qualifiers = group_of(self.block, group)?.qualifiers.as_ref().ok_or(DecodeError::NotProjected { group })?;
        let segments = self.segments_of(group);
        let field = segments.get(segment).and_then(Segment::field);
        let mut builder = Builder::new(record.kind, qualifiers.dictionary.len());
        let mut spans = Vec::new();
        for bytes in &qualifiers.dictionary {
            let span = if split(segments, bytes, &mut spans) { spans.get(segment) } else { None };
            if !field.zip(span).is_some_and(|(field, span)| field.read(span, &mut builder)) {
                return Err(DecodeError::Qualifier { qualifier: String::from_utf8_lossy(bytes).into_owned() });
            }
        }
        let codes = UInt32Array::from(qualifiers.codes.clone());
        let by_record = take(builder.finish()?.as_ref(), &codes, None)?;
        self.frame.pick(group, &by_record)
    }

    fn segments_of(&self, group: usize) -> &[Segment] {
        self.layout.groups.get(group).and_then(|plan| plan.qualifier.as_deref()).unwrap_or_default()
    }

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
        let mut moments = KeyMoments::new(self.layout, keys, key);
        let rows = self.frame.rows();
        let records = UInt32Array::from_iter_values(0..found.len() as u32);
        let records = self.frame.pick(group, &(Arc::new(records) as ArrayRef))?;
        let records = records.as_primitive_opt::<arrow::datatypes::UInt32Type>().ok_or(DecodeError::Shape { group })?;
        let mut builder = Builder::new(record.kind, rows.len());
        let mut spans = Vec::new();
        for (row, record) in rows.iter().zip(records) {
            let Some(record) = record else {
                builder.push_null();
                continue;
            };
            let code = qualifiers.codes.get(record as usize).copied().unwrap_or(u32::MAX);
            let bytes = qualifiers.dictionary.get(code as usize).ok_or(DecodeError::Shape { group })?;
            let moment = moments.of(*row as usize).ok_or_else(|| self.bad_key(&keys.get(*row as usize)))?;
            let mut moment = moment;
            let split = split(segments, bytes, &mut spans);
            let read = split
                && qualifier.iter().all(|at| {
                    let field = segments.get(*at).and_then(Segment::field);
                    field.zip(spans.get(*at)).is_some_and(|(field, span)| field.read_moment(span, &mut moment))
                });
            let time = if read { moment.resolve(zone) } else { None };
            if !time.is_some_and(|time| builder.push_time(time)) {
                return Err(DecodeError::Qualifier { qualifier: String::from_utf8_lossy(bytes).into_owned() });
            }
        }
        Ok(builder.finish()?)
    }
}

impl Layout {
    pub(crate) fn key_zone(&self, segments: &[usize]) -> Option<chrono_tz::Tz> {
        let field = segments.first().and_then(|segment| self.key.field(*segment))?;
        if let Form::Time(format) = &field.form { format.zone() } else { None }
    }
}

/// What the time formats of row keys say, row by row.
struct KeyMoments<'a> {
    layout: &'a Layout,
    keys: &'a Keys,
    segments: &'a [usize],
    last: Option<(u32, Moment)>,
}

impl<'a> KeyMoments<'a> {
    fn new(layout: &'a Layout, keys: &'a Keys, segments: &'a [usize]) -> Self {
        Self { layout, keys, segments, last: None }
    }

    fn of(&mut self, row: usize) -> Option<Moment> {
        let prefix = self.keys.prefix_of().get(row).copied()?;
        let mut moment = match self.last {
            Some((known, moment)) if known == prefix => moment,
            _ => {
                let moment = self.of_prefix(prefix)?;
                self.last = Some((prefix, moment));
                moment
            }
        };
        let tail = self.keys.tails().get(row).copied().unwrap_or(0);
        for own in self.layout.key.tail.iter().filter(|own| self.segments.contains(&own.segment)) {
            if let Some(Form::Time(format)) = self.layout.key.field(own.segment).map(|field| &field.form) {
                format.read_number(own.number(tail), &mut moment);
            }
        }
        Some(moment)
    }

    fn of_prefix(&self, prefix: u32) -> Option<Moment> {
        let mut moment = Moment::default();
        let mut own = self.segments.iter().filter(|segment| **segment < self.layout.key.prefix).peekable();
        if own.peek().is_some() {
            let mut spans = Vec::new();
            if !split(self.layout.key.prefix_segments(), self.keys.prefix(prefix as usize), &mut spans) {
                return None;
            }
            for segment in own {
                let (field, span) = self.layout.key.field(*segment).zip(spans.get(*segment))?;
                if !field.read_moment(span, &mut moment) {
                    return None;
                }
            }
        }
        Some(moment)
    }
}
