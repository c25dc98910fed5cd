//! Laying batches out: source columns to codes, times and value columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, PrimitiveArray, RecordBatch, StringArray, StringBuilder,
    UInt32Array, new_empty_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter, interleave, take};
use arrow::datatypes::{ArrowPrimitiveType, TimestampMicrosecondType, UInt64Type};

use crate::civil::Calendar;
use crate::datum::{Datum, View, views};
use crate::dictionary::Dictionary;
use crate::error::{EncodeError, LayoutReject, RejectReason};
use crate::intern::{Interner, Limits, Rejects};
use crate::layout::{GroupPlan, Layout, Unpivot, ValuePlan};
use crate::packed::PackedWriter;
use crate::schema::{Column, Group, Packed, PackedForm};
use crate::segment::{FieldSegment, Segment, write_segments};
use crate::spec::Granularity;
use crate::value::{Encoding, FieldType, TIMES, ValueType};

const MAX_KEY: usize = 4096;
const MAX_QUALIFIER: usize = 16 * 1024;
const MAX_CELL: usize = 100 * 1024 * 1024;

/// Lays batches out, keeping one dictionary of key prefixes and one of each dynamic group's qualifiers.
pub struct Encoder<'a> {
    layout: &'a Layout,
    prefix: Interner,
    qualifiers: Vec<Option<Interner>>,
    calendar: Calendar,
}

/// A batch in stored form: one entry for each accepted event, in source order.
#[derive(Debug, Clone)]
pub struct LaidOut {
    /// The batch row of each event; `None` if event `i` is row `i`.
    pub rows: Option<Vec<u32>>,
    /// Code of the key's prefix in [`Encoder::prefixes`].
    pub prefix: Vec<u32>,
    /// The key's tail; empty if keys have none.
    pub tail: Vec<u64>,
    /// Event time, microseconds, not truncated. It decides the window.
    pub time: Vec<i64>,
    /// As in the stored schema.
    pub groups: Vec<LaidOutGroup>,
    /// Rows of the batch that cannot be laid out, once each, ascending.
    pub rejected: Vec<LayoutReject>,
}

/// The cells of one group. An event without a value in any column has no cell in the group.
#[derive(Debug, Clone)]
pub struct LaidOutGroup {
    /// Codes of [`Encoder::qualifiers`] for a dynamic group.
    pub qualifier: Option<Vec<u32>>,
    /// Cell timestamps, microseconds; `None` if all are 0.
    pub timestamps: Option<Vec<i64>>,
    /// One for each column of the group; null where there is no cell.
    pub columns: Vec<ArrayRef>,
}

/// What an encoder has interned.
#[derive(Debug)]
pub struct Dictionaries {
    /// Key prefixes.
    pub prefixes: Dictionary,
    /// Qualifiers of each group; `None` if it is constant.
    pub qualifiers: Vec<Option<Dictionary>>,
}

impl LaidOut {
    /// The events that have no cell at all, ascending.
    pub fn without_cells(&self) -> Vec<usize> {
        let mut some: Option<BooleanBuffer> = None;
        for column in self.groups.iter().flat_map(|group| &group.columns) {
            let Some(nulls) = column.nulls().filter(|_| column.null_count() > 0) else { return Vec::new() };
            some = Some(match some {
                Some(before) => &before | nulls.inner(),
                None => nulls.inner().clone(),
            });
        }
        some.map_or(Vec::new(), |some| (0..some.len()).filter(|event| !some.value(*event)).collect())
    }
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(layout: &'a Layout) -> Self {
        let tail = layout.stored.tail.width();
        let limits = Limits {
            most: MAX_KEY.saturating_sub(tail),
            too_long: RejectReason::KeyTooLong,
            empty: (tail == 0).then_some(RejectReason::EmptyKey),
            taken: Vec::new(),
            null_rejects: true,
        };
        let qualifier = |group: &GroupPlan| {
            let limits = Limits {
                most: MAX_QUALIFIER,
                too_long: RejectReason::QualifierTooLong,
                empty: None,
                taken: group.taken.clone(),
                null_rejects: false,
            };
            group.qualifier.as_ref().map(|segments| Interner::new(segments, limits))
        };
        Self {
            layout,
            prefix: Interner::new(layout.key.prefix_segments(), limits),
            qualifiers: layout.groups.iter().map(qualifier).collect(),
            calendar: Calendar::default(),
        }
    }

    /// The key prefixes seen so far.
    pub fn prefixes(&self) -> &Dictionary {
        &self.prefix.dictionary
    }

    /// The qualifiers of a dynamic group seen so far.
    pub fn qualifiers(&self, group: usize) -> Option<&Dictionary> {
        self.qualifiers.get(group)?.as_ref().map(|interner| &interner.dictionary)
    }

    /// The dictionaries, when the last batch is laid out.
    pub fn into_dictionaries(self) -> Dictionaries {
        Dictionaries {
            prefixes: self.prefix.dictionary,
            qualifiers: self.qualifiers.into_iter().map(|group| group.map(|interner| interner.dictionary)).collect(),
        }
    }

    /// Lays a batch out. Rows that cannot be are in `rejected`; they are no error.
    ///
    /// # Errors
    /// If the batch lacks a column of the source, or has it in another type.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<LaidOut, EncodeError> {
        let layout = self.layout;
        let mut columns = source_columns(layout, batch)?;
        let mut events = batch.num_rows();
        let mut rows = None;
        if let Some(unpivot) = &layout.unpivot {
            let unpivoted = unpivot_events(layout, unpivot, &columns, events)?;
            events = unpivoted.0.len();
            rows = Some(unpivoted.0);
            columns = unpivoted.1;
        }
        let mut rejects = Rejects::default();
        check_times(layout, &columns, &mut rejects);
        let time = times(&columns, layout.source.time, &mut rejects);
        let prefix = self.prefix.codes(&columns, events, &mut rejects, &mut Vec::new());
        let tail = self.tails(&columns, events, &mut rejects);
        let mut groups = Vec::with_capacity(layout.groups.len());
        for (at, plan) in layout.groups.iter().enumerate() {
            let Some(stored) = layout.stored.groups.get(at) else { continue };
            groups.push(self.group(at, plan, &stored.columns, &columns, events, &mut rejects)?);
            if stored.packed.is_some() {
                check_packed(plan, stored, &columns, &mut rejects);
            }
        }
        let laid_out = LaidOut { rows, prefix, tail, time, groups, rejected: Vec::new() };
        if rejects.list.is_empty() { Ok(laid_out) } else { drop_rejected(layout, laid_out, rejects) }
    }

    fn tails(&mut self, columns: &[ArrayRef], events: usize, rejects: &mut Rejects) -> Vec<u64> {
        let layout = self.layout;
        let mut tails: Vec<u64> = Vec::new();
        for tail in &layout.key.tail {
            let Some(segment) = layout.key.field(tail.segment) else { continue };
            let Some(column) = columns.get(segment.field) else { continue };
            let view = View::new(column.as_ref());
            if let View::Time(times) = &view
                && column.null_count() == 0
            {
                add_times(segment, times.values(), tail.shift, &mut tails, &mut self.calendar, rejects);
                continue;
            }
            tails.resize(events, 0);
            for (event, out) in tails.iter_mut().enumerate() {
                let number = view.get(event).ok_or(RejectReason::Null);
                match number.and_then(|datum| segment.number(datum, &mut self.calendar)) {
                    Ok(number) => *out = out.wrapping_add(number.wrapping_mul(tail.shift)),
                    Err(reason) => rejects.push(event, Some(segment.field), reason),
                }
            }
        }
        tails
    }

    fn group(
        &mut self,
        at: usize,
        plan: &GroupPlan,
        stored: &[Column],
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
    ) -> Result<LaidOutGroup, EncodeError> {
        let mut absent = Vec::new();
        let interner = self.qualifiers.get_mut(at).and_then(Option::as_mut);
        let qualifier = interner.map(|interner| {
            let codes = interner.codes(columns, events, rejects, &mut absent);
            if !absent.is_empty() && interner.dictionary.is_empty() {
                // Absent cells need some code, and every code must have bytes.
                interner.dictionary.intern(b"");
            }
            codes
        });
        let timestamps = plan.time.map(|field| {
            let mut timestamps = times(columns, field, rejects);
            if timestamps.iter().any(|time| *time < 0) {
                for (event, _) in timestamps.iter().enumerate().filter(|(_, time)| **time < 0) {
                    rejects.push(event, Some(field), RejectReason::NegativeTimestamp);
                }
            }
            // A divisor known here is several times faster than one that is not.
            match self.layout.spec.granularity {
                Granularity::Millis => {
                    timestamps.iter_mut().for_each(|time| *time = time.wrapping_sub(time.rem_euclid(1000)))
                }
                Granularity::Micros => {}
            }
            timestamps
        });
        let mut values = Vec::with_capacity(plan.columns.len());
        for (plan, stored) in plan.columns.iter().zip(stored) {
            let array = match plan {
                ValuePlan::Empty => Arc::new(BooleanArray::new(BooleanBuffer::new_set(events), None)),
                ValuePlan::Field(field) => {
                    columns.get(*field).map(Arc::clone).ok_or_else(|| missing(self.layout, *field))?
                }
                ValuePlan::Sketch(field) => {
                    let values = columns.get(*field).ok_or_else(|| missing(self.layout, *field))?;
                    crate::aggregate::sketches(values.as_ref())
                }
                ValuePlan::Template(segments) => {
                    template_values(segments, stored.value, columns, events, &mut self.calendar, rejects)
                }
            };
            check_cells(plan, stored, array.as_ref(), rejects);
            // Without a qualifier its cell would be lost; where there is none, nothing is.
            for (event, field) in absent.iter().filter(|(event, _)| array.is_valid(*event)) {
                rejects.push(*event, Some(*field), RejectReason::NullQualifier);
            }
            values.push(array);
        }
        Ok(LaidOutGroup { qualifier, timestamps, columns: values })
    }
}

/// Microseconds of the table's granularity.
pub(crate) fn granularity(layout: &Layout) -> i64 {
    match layout.spec.granularity {
        Granularity::Millis => 1000,
        Granularity::Micros => 1,
    }
}

fn missing(layout: &Layout, field: usize) -> EncodeError {
    EncodeError::MissingColumn { column: layout.name(field).unwrap_or_default() }
}

fn source_columns(layout: &Layout, batch: &RecordBatch) -> Result<Vec<ArrayRef>, EncodeError> {
    let column = |field: &crate::spec::Field| {
        let Some(array) = batch.column_by_name(&field.name) else {
            return Err(EncodeError::MissingColumn { column: field.name.clone() });
        };
        let expected = field.kind.arrow();
        if *array.data_type() != expected {
            let (found, expected) = (array.data_type().to_string(), expected.to_string());
            return Err(EncodeError::WrongType { column: field.name.clone(), found, expected });
        }
        Ok(Arc::clone(array))
    };
    layout.source.fields.iter().map(column).collect()
}

/// One event for each value of the unpivoted columns, and all columns by event.
fn unpivot_events(
    layout: &Layout,
    unpivot: &Unpivot,
    columns: &[ArrayRef],
    rows: usize,
) -> Result<(Vec<u32>, Vec<ArrayRef>), EncodeError> {
    let kind = layout.fields.get(unpivot.metric + 1).map_or(FieldType::Text, |field| field.kind);
    let mut wide: Vec<ArrayRef> = Vec::new();
    for field in &unpivot.columns {
        let array = columns.get(*field).ok_or_else(|| missing(layout, *field))?;
        wide.push(if *array.data_type() == kind.arrow() { Arc::clone(array) } else { as_text(array.as_ref()) });
    }
    let mut event_rows = Vec::with_capacity(rows * wide.len());
    let mut picks = Vec::with_capacity(rows * wide.len());
    for row in 0..rows {
        for (metric, array) in wide.iter().enumerate() {
            // What an upsert does not name it empties.
            if array.is_valid(row) || layout.stored.upsert {
                event_rows.push(u32::try_from(row).map_err(|_| EncodeError::TooManyEvents)?);
                picks.push((metric, row));
            }
        }
    }
    u32::try_from(picks.len()).map_err(|_| EncodeError::TooManyEvents)?;
    let indices = UInt32Array::from(event_rows.clone());
    let mut out = Vec::with_capacity(layout.fields.len());
    for array in columns {
        out.push(take(array.as_ref(), &indices, None)?);
    }
    let names: Vec<&str> =
        unpivot.columns.iter().filter_map(|field| layout.fields.get(*field)).map(|field| field.name.as_str()).collect();
    let metrics: StringArray = picks.iter().map(|(metric, _)| names.get(*metric).copied()).collect();
    out.push(Arc::new(metrics));
    let wide: Vec<&dyn Array> = wide.iter().map(AsRef::as_ref).collect();
    out.push(if picks.is_empty() { new_empty_array(&kind.arrow()) } else { interleave(&wide, &picks)? });
    Ok((event_rows, out))
}

fn as_text(array: &dyn Array) -> ArrayRef {
    let view = View::new(array);
    let mut calendar = Calendar::default();
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = Vec::new();
    for index in 0..array.len() {
        text.clear();
        match view.get(index) {
            Some(datum) => {
                datum.write_text(&mut calendar, &mut text);
                builder.append_value(String::from_utf8_lossy(&text));
            }
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

/// Rejects events with a time that queries cannot work with, in whatever column.
fn check_times(layout: &Layout, columns: &[ArrayRef], rejects: &mut Rejects) {
    for (field, column) in columns.iter().enumerate().take(layout.source.fields.len()) {
        let Some(array) = column.as_primitive_opt::<TimestampMicrosecondType>() else { continue };
        let beyond = |time: &i64| !TIMES.contains(time);
        if array.values().iter().any(beyond) {
            let found = array.iter().enumerate().filter(|(_, time)| time.as_ref().is_some_and(beyond));
            found.for_each(|(event, _)| rejects.push(event, Some(field), RejectReason::TimeRange));
        }
    }
}

/// The values of a timestamp column; a null rejects its event.
fn times(columns: &[ArrayRef], field: usize, rejects: &mut Rejects) -> Vec<i64> {
    let Some(array) = columns.get(field).and_then(|array| array.as_primitive_opt::<TimestampMicrosecondType>()) else {
        return Vec::new();
    };
    if array.null_count() > 0 {
        for event in (0..array.len()).filter(|event| array.is_null(*event)) {
            rejects.push(event, Some(field), RejectReason::Null);
        }
    }
    array.values().to_vec()
}

fn add_times(
    segment: &FieldSegment,
    times: &[i64],
    shift: u64,
    tails: &mut Vec<u64>,
    calendar: &mut Calendar,
    rejects: &mut Rejects,
) {
    // Telemetry comes in order of time: thousands of events share a moment, and more a day.
    let step = segment.even_step();
    let (mut start, mut length) = (0i64, 0u64);
    let mut number = 0u64;
    let mut of = |event: usize, time: i64| {
        if time.wrapping_sub(start).cast_unsigned() >= length {
            match segment.number(Datum::Time(time), calendar) {
                Ok(found) => {
                    start = time - time.rem_euclid(step);
                    length = step.cast_unsigned();
                    number = found.wrapping_mul(shift);
                }
                Err(reason) => {
                    length = 0;
                    number = 0;
                    rejects.push(event, Some(segment.field), reason);
                }
            }
        }
        number
    };
    if tails.is_empty() {
        tails.extend(times.iter().enumerate().map(|(event, time)| of(event, *time)));
    } else {
        for ((event, time), tail) in times.iter().enumerate().zip(tails.iter_mut()) {
            *tail = tail.wrapping_add(of(event, *time));
        }
    }
}

fn template_values(
    segments: &[Segment],
    kind: ValueType,
    columns: &[ArrayRef],
    events: usize,
    calendar: &mut Calendar,
    rejects: &mut Rejects,
) -> ArrayRef {
    let views = views(columns);
    let mut scratch = Vec::new();
    let mut text = StringBuilder::new();
    let mut bytes = BinaryBuilder::new();
    for event in 0..events {
        scratch.clear();
        let written = write_segments_plain(segments, |field| views.get(field)?.get(event), calendar, &mut scratch);
        let present = match written {
            Ok(()) => true,
            Err((_, RejectReason::Null)) => false,
            Err((field, reason)) => {
                rejects.push(event, Some(field), reason);
                false
            }
        };
        match (kind, present) {
            (ValueType::Bytes, true) => bytes.append_value(&scratch),
            (ValueType::Bytes, false) => bytes.append_null(),
            (_, true) => text.append_value(String::from_utf8_lossy(&scratch)),
            (_, false) => text.append_null(),
        }
    }
    if kind == ValueType::Bytes { Arc::new(bytes.finish()) } else { Arc::new(text.finish()) }
}

/// A value need not be taken apart again, so nothing in it is a delimiter.
fn write_segments_plain<'a>(
    segments: &[Segment],
    get: impl Fn(usize) -> Option<Datum<'a>>,
    calendar: &mut Calendar,
    out: &mut Vec<u8>,
) -> Result<(), (usize, RejectReason)> {
    segments.iter().try_for_each(|segment| write_segments(std::slice::from_ref(segment), &get, calendar, out))
}

fn check_cells(plan: &ValuePlan, stored: &Column, array: &dyn Array, rejects: &mut Rejects) {
    let field = if let ValuePlan::Field(field) = plan { Some(*field) } else { None };
    if let Some(texts) = array.as_string_opt::<i32>()
        && texts.value_data().len() > MAX_CELL
    {
        for event in (0..texts.len()).filter(|event| texts.value_length(*event).cast_unsigned() as usize > MAX_CELL) {
            rejects.push(event, field, RejectReason::CellTooLong);
        }
    }
    if stored.encoding == Encoding::Int64
        && let Some(values) = array.as_primitive_opt::<UInt64Type>()
        && max_of(values).is_some_and(|most| most > i64::MAX.cast_unsigned())
    {
        let over = |event: &usize| values.is_valid(*event) && values.value(*event) > i64::MAX.cast_unsigned();
        for event in (0..values.len()).filter(over) {
            rejects.push(event, field, RejectReason::Int64Overflow);
        }
    }
}

/// A message holds what its types hold, and a cell is no longer than a cell may be. The cell of a whole row is not
/// known here.
fn check_packed(plan: &GroupPlan, stored: &Group, columns: &[ArrayRef], rejects: &mut Rejects) {
    let fields =
        plan.columns.iter().filter_map(|plan| if let ValuePlan::Field(field) = plan { Some(*field) } else { None });
    let arrays: Vec<(usize, &ArrayRef)> = fields.filter_map(|field| Some((field, columns.get(field)?))).collect();
    if let Some(Packed { form: PackedForm::Message { fields } | PackedForm::Repeated { fields, .. }, .. }) =
        &stored.packed
    {
        for ((field, array), own) in arrays.iter().zip(fields) {
            if own.kind.holds_all(array.data_type()) {
                continue;
            }
            let view = View::new(array.as_ref());
            let bad = |event: &usize| view.get(*event).is_some_and(|datum| !own.kind.holds(datum));
            for event in (0..array.len()).filter(bad) {
                rejects.push(event, Some(*field), RejectReason::ProtoRange { kind: own.kind.name() });
            }
        }
    }
    // A character is written as six at most, and what is not text is short.
    let texts = || arrays.iter().filter_map(|(_, array)| array.as_string_opt::<i32>());
    if texts().map(|texts| texts.value_data().len()).sum::<usize>() > MAX_CELL / 8
        && let Some(mut writer) = PackedWriter::new(stored, arrays.iter().map(|(_, array)| array.as_ref()))
    {
        let mut cell = Vec::new();
        for event in 0..arrays.first().map_or(0, |(_, array)| array.len()) {
            cell.clear();
            writer.write(event..event + 1, &mut cell);
            if cell.len() > MAX_CELL {
                rejects.push(event, None, RejectReason::CellTooLong);
            }
        }
    }
}

fn max_of<T: ArrowPrimitiveType<Native = u64>>(values: &PrimitiveArray<T>) -> Option<u64> {
    values.values().iter().copied().max()
}

/// Takes rejected rows out, all events of a row together.
fn drop_rejected(layout: &Layout, laid_out: LaidOut, rejects: Rejects) -> Result<LaidOut, EncodeError> {
    let LaidOut { rows, prefix, tail, time, groups, mut rejected } = laid_out;
    let events = prefix.len();
    let row_of = |event: usize| rows.as_ref().map_or(event, |rows| rows.get(event).map_or(event, |row| *row as usize));
    let mut list = rejects.list;
    list.sort_by_key(|(event, ..)| *event);
    for (event, field, reason) in list {
        let row = row_of(event);
        if rejected.last().is_none_or(|last: &LayoutReject| last.row != row) {
            let column = field.and_then(|field| layout.name(field));
            rejected.push(LayoutReject { row, column, reason });
        }
    }
    let mut bad = rejected.iter().map(|reject| reject.row).peekable();
    let keep: Vec<bool> = (0..events)
        .map(|event| {
            let row = row_of(event);
            while bad.next_if(|bad| *bad < row).is_some() {}
            bad.peek() != Some(&row)
        })
        .collect();
    let kept_rows = (0..events).zip(&keep).filter(|(_, keep)| **keep).map(|(event, _)| row_of(event) as u32).collect();
    let mask = BooleanArray::from(keep.clone());
    let mut kept_groups = Vec::with_capacity(groups.len());
    for group in groups {
        kept_groups.push(LaidOutGroup {
            qualifier: group.qualifier.map(|codes| kept(codes, &keep)),
            timestamps: group.timestamps.map(|times| kept(times, &keep)),
            columns: group.columns.iter().map(|array| filter(array.as_ref(), &mask)).collect::<Result<_, _>>()?,
        });
    }
    Ok(LaidOut {
        rows: Some(kept_rows),
        prefix: kept(prefix, &keep),
        tail: kept(tail, &keep),
        time: kept(time, &keep),
        groups: kept_groups,
        rejected,
    })
}

fn kept<T>(values: Vec<T>, keep: &[bool]) -> Vec<T> {
    values.into_iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| value).collect()
}
