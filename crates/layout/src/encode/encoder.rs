//! The encoder: source columns to key codes, times and value columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;

use crate::encode::batch::{Dictionaries, EncodedBatch, EncodedGroup};
use crate::encode::checks::{check_cells, check_packed, check_times};
use crate::encode::dictionary::Dictionary;
use crate::encode::input::{missing_column, source_columns};
use crate::encode::interner::{Absent, Interner, Limits};
use crate::encode::key_numbers::KeyNumbers;
use crate::encode::rejects::{Rejects, drop_rejected};
use crate::encode::unpivot::unpivot_events;
use crate::encode::values::{add_times, sketches, template_values, times};
use crate::error::{EncodeError, RejectReason};
use crate::plan::{GroupPlan, Layout, TailField, ValuePlan};
use crate::scalar::ColumnView;
use crate::schema::Column;
use crate::spec::Granularity;
use crate::time::calendar::Calendar;

/// The most bytes of a row key that Bigtable accepts.
const MAX_KEY: usize = 4096;
/// The most bytes of a qualifier that Bigtable accepts.
const MAX_QUALIFIER: usize = 16 * 1024;

/// Encodes batches of a source. Keeps a dictionary of key prefixes, and one of qualifiers for each dynamic group, across batches.
pub struct Encoder<'a> {
    layout: &'a Layout,
    prefix: Interner,
    /// The fields of keys that are encoded as numbers.
    numbers: Option<Vec<TailField>>,
    qualifiers: Vec<Option<Interner>>,
    calendar: Calendar,
}

impl Layout {
    /// An encoder with dictionaries of its own; one for each worker.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }
}

impl<'a> Encoder<'a> {
    fn new(layout: &'a Layout) -> Self {
        let tail = layout.stored.tail.width();
        let limits = Limits {
            most: MAX_KEY.saturating_sub(tail),
            too_long: RejectReason::KeyTooLong,
            empty: (tail == 0).then_some(RejectReason::EmptyKey),
            taken: Vec::new(),
            null_rejects: true,
        };

        Self {
            layout,
            prefix: Interner::new(layout.key.prefix_segments(), limits),
            numbers: None,
            qualifiers: layout.groups.iter().map(qualifier_interner).collect(),
            calendar: Calendar::default(),
        }
    }

    /// The same, for keys that are mostly new: their prefixes are not looked up, so that one may have several codes.
    #[must_use]
    pub fn without_lookup_of_prefixes(mut self) -> Self {
        self.prefix.look_nothing_up();
        self
    }

    /// The same, for keys that are encoded as numbers: the tail of each event is the number of its key, and there are no
    /// prefixes.
    #[must_use]
    pub fn with_key_numbers(mut self, numbers: &KeyNumbers) -> Self {
        self.numbers = Some(numbers.fields.clone());
        self
    }

    /// The prefixes of row keys so far.
    pub fn prefixes(&self) -> &Dictionary {
        &self.prefix.dictionary
    }

    /// The qualifiers so far of a dynamic group; `None` for a constant group.
    pub fn qualifiers(&self, group: usize) -> Option<&Dictionary> {
        self.qualifiers.get(group)?.as_ref().map(|interner| &interner.dictionary)
    }

    /// The approximate memory in bytes of the dictionaries, with the tables that find their codes.
    pub fn memory(&self) -> usize {
        self.prefix.memory() + self.qualifiers.iter().flatten().map(Interner::memory).sum::<usize>()
    }

    /// The dictionaries, to be called after the last batch.
    pub fn into_dictionaries(self) -> Dictionaries {
        Dictionaries {
            prefixes: self.prefix.dictionary,
            qualifiers: self.qualifiers.into_iter().map(|group| group.map(|interner| interner.dictionary)).collect(),
        }
    }

    /// Encodes a batch. Rows that cannot be encoded are in `rejected`; they are not errors.
    ///
    /// # Errors
    /// If the batch lacks a column of the source, or has it in another type.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<EncodedBatch, EncodeError> {
        let layout = self.layout;
        let mut columns = source_columns(layout, batch)?;
        let mut events = batch.num_rows();
        let mut rows = None;
        if let Some(unpivot) = &layout.unpivot {
            let unpivoted = unpivot_events(layout, unpivot, &columns, events)?;
            events = unpivoted.rows.len();
            rows = Some(unpivoted.rows);
            columns = unpivoted.columns;
        }

        let mut rejects = Rejects::default();
        check_times(layout, &columns, &mut rejects);
        let time = times(&columns, layout.source.time, &mut rejects);
        let prefix = match &self.numbers {
            Some(_) => vec![0; events],
            None => self.prefix.codes(&columns, events, &mut rejects, &mut Vec::new()),
        };
        let tail = self.tails(&columns, events, &mut rejects);

        let mut groups = Vec::with_capacity(layout.groups.len());
        for (at, plan) in layout.groups.iter().enumerate() {
            let Some(stored) = layout.stored.groups.get(at) else { continue };
            groups.push(self.group(at, plan, &stored.columns, &columns, events, &mut rejects)?);
            if stored.packed.is_some() {
                check_packed(plan, stored, &columns, &mut rejects);
            }
        }

        let encoded = EncodedBatch { rows, prefix, tail, time, groups, rejected: Vec::new() };
        if rejects.list.is_empty() { Ok(encoded) } else { drop_rejected(layout, encoded, rejects) }
    }

    /// The tail of each event's key: the numbers of its fields, added up.
    fn tails(&mut self, columns: &[ArrayRef], events: usize, rejects: &mut Rejects) -> Vec<u64> {
        let layout = self.layout;
        let mut tails: Vec<u64> = Vec::new();

        for tail in self.numbers.as_ref().unwrap_or(&layout.key.tail) {
            let Some(segment) = layout.key.field(tail.segment) else { continue };
            let Some(column) = columns.get(segment.field) else { continue };
            let view = ColumnView::new(column.as_ref());
            if let ColumnView::Time(times) = &view
                && column.null_count() == 0
            {
                add_times(segment, times.values(), tail.shift, &mut tails, &mut self.calendar, rejects);
                continue;
            }

            tails.resize(events, 0);
            for (event, out) in tails.iter_mut().enumerate() {
                let number = view.get(event).ok_or(RejectReason::Null);
                match number.and_then(|scalar| segment.number(scalar, &mut self.calendar)) {
                    Ok(number) => *out = out.wrapping_add(number.wrapping_mul(tail.shift)),
                    Err(reason) => rejects.push(event, Some(segment.field), reason),
                }
            }
        }
        tails
    }

    /// The cells of group `at`, whose columns are `stored`.
    fn group(
        &mut self,
        at: usize,
        plan: &GroupPlan,
        stored: &[Column],
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
    ) -> Result<EncodedGroup, EncodeError> {
        let mut absent = Vec::new();
        let interner = self.qualifiers.get_mut(at).and_then(Option::as_mut);
        let qualifier = interner.map(|interner| {
            let codes = interner.codes(columns, events, rejects, &mut absent);
            if !absent.is_empty() && interner.dictionary.is_empty() {
                // Absent cells need a valid code.
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
            if self.layout.spec.granularity == Granularity::Millis {
                truncate_to_millis(&mut timestamps);
            }
            timestamps
        });

        let mut values = Vec::with_capacity(plan.columns.len());
        for (plan, stored) in plan.columns.iter().zip(stored) {
            let array = match plan {
                ValuePlan::Empty => Arc::new(BooleanArray::new(BooleanBuffer::new_set(events), None)),
                ValuePlan::Field(field) => {
                    columns.get(*field).map(Arc::clone).ok_or_else(|| missing_column(self.layout, *field))?
                }
                ValuePlan::Sketch(field) => {
                    let values = columns.get(*field).ok_or_else(|| missing_column(self.layout, *field))?;
                    sketches(values.as_ref())
                }
                ValuePlan::Template(segments) => {
                    template_values(segments, stored.value, columns, events, &mut self.calendar, rejects)
                }
            };

            check_cells(plan, stored, array.as_ref(), rejects);
            // A value without a qualifier would be lost, so its event is rejected.
            for Absent { event, field } in absent.iter().filter(|absent| array.is_valid(absent.event)) {
                rejects.push(*event, Some(*field), RejectReason::NullQualifier);
            }
            values.push(array);
        }
        Ok(EncodedGroup { qualifier, timestamps, columns: values })
    }
}

/// The interner of the qualifiers of a dynamic group.
fn qualifier_interner(group: &GroupPlan) -> Option<Interner> {
    let segments = group.qualifier.as_ref()?;
    let limits = Limits {
        most: MAX_QUALIFIER,
        too_long: RejectReason::QualifierTooLong,
        empty: None,
        taken: group.taken.clone(),
        null_rejects: false,
    };
    Some(Interner::new(segments, limits))
}

/// Truncates times to milliseconds. Neighbouring rows of telemetry usually share their time, which saves the division.
fn truncate_to_millis(times: &mut [i64]) {
    let mut last = (0i64, 0);
    for time in times {
        if *time != last.0 {
            last = (*time, time.wrapping_sub(time.rem_euclid(1000)));
        }
        *time = last.1;
    }
}
