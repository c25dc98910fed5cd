//! Interns printed templates: each distinct key prefix or qualifier is printed once.

use arrow::array::{Array, ArrayRef, StringArray};

use crate::encode::dictionary::{Dictionary, NumberCodes};
use crate::encode::rejects::Rejects;
use crate::error::RejectReason;
use crate::scalar::{ColumnView, RawIntegers, ScalarRef, column_views};
use crate::schema::FieldType;
use crate::template::print::write_segments;
use crate::template::segment::{FieldSegment, Segment};
use crate::time::calendar::{Calendar, MAX_TIME, MIN_TIME};
use crate::time::{DAY, MINUTE};

/// Marks a code that is unknown or rejected, so that its value is printed again.
const UNKNOWN: u32 = u32::MAX;

/// The number of minutes in a day.
const MINUTES: usize = 1440;

/// How codes are looked up, by the fields of the template. Printing is slow, so each value is printed once.
enum Plan {
    /// No field: all events have one code.
    Constant,
    /// One 64-bit field: lookup by value.
    Number(usize),
    /// One time in fixed digits: lookup by the digits, which are far fewer than distinct times.
    Digits(FieldSegment),
    /// One time that prints only hours and minutes: lookup by the minute of the day.
    Minutes(FieldSegment),
    /// One text field: lookup by its bytes.
    Text(usize),
    /// Anything else: every event is printed.
    General,
}

/// Limits of what a template may print.
pub(crate) struct Limits {
    /// The most bytes of one output.
    pub(crate) most: usize,
    /// The reject reason for more bytes than that.
    pub(crate) too_long: RejectReason,
    /// The reject reason if there are none; `None` if empty output is allowed.
    pub(crate) empty: Option<RejectReason>,
    /// Byte strings that other columns have reserved.
    pub(crate) taken: Vec<Vec<u8>>,
    /// Whether a null field rejects the event; otherwise the event has no code.
    pub(crate) null_rejects: bool,
}

/// An event that has no qualifier, because a field of it is null.
pub(crate) struct Absent {
    pub(crate) event: usize,
    pub(crate) field: usize,
}

/// Turns one template into codes of a dictionary, across batches.
pub(crate) struct Interner {
    segments: Vec<Segment>,
    plan: Plan,
    limits: Limits,
    pub(crate) dictionary: Dictionary,
    numbers: NumberCodes,
    /// For [`Plan::Minutes`]: the code of each minute of a day.
    by_minute: Vec<u32>,
    /// Whether new values always print new bytes, so that the dictionary needs no lookup.
    is_fresh: bool,
    /// Whether values are looked up; otherwise each is printed anew, unless it is that of the event before.
    looks_up: bool,
    /// For [`Plan::Text`]: the texts in order of first appearance.
    known_texts: Dictionary,
    /// For [`Plan::Text`]: the code of each of `known_texts`.
    text_codes: Vec<u32>,
    calendar: Calendar,
    scratch: Vec<u8>,
}

impl Interner {
    pub(crate) fn new(segments: &[Segment], limits: Limits) -> Self {
        let fields: Vec<&FieldSegment> = segments.iter().filter_map(Segment::field).collect();
        let plan = match fields.as_slice() {
            [] => Plan::Constant,
            [one] if one.is_minute_of_day() => Plan::Minutes((*one).clone()),
            [one] if one.kind == FieldType::Timestamp && one.is_number() => Plan::Digits((*one).clone()),
            [one] if matches!(one.kind, FieldType::UInt64 | FieldType::Int64) => Plan::Number(one.field),
            [one] if one.kind == FieldType::Text => Plan::Text(one.field),
            _ => Plan::General,
        };
        let minutes = if let Plan::Minutes(_) = plan { vec![UNKNOWN; MINUTES] } else { Vec::new() };
        let is_fresh = matches!(plan, Plan::Number(_) | Plan::Digits(_) | Plan::Text(_))
            && fields.iter().all(|field| field.is_injective());
        Self {
            segments: segments.to_vec(),
            by_minute: minutes,
            is_fresh,
            looks_up: true,
            plan,
            limits,
            dictionary: Dictionary::new(),
            numbers: NumberCodes::default(),
            known_texts: Dictionary::new(),
            text_codes: Vec::new(),
            calendar: Calendar::default(),
            scratch: Vec::new(),
        }
    }

    /// The approximate memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        let texts = self.known_texts.memory() + self.text_codes.capacity() * size_of::<u32>();
        self.dictionary.memory() + self.numbers.memory() + texts
    }

    /// Looks nothing up from now on: where most values are new, that takes longer than to print them.
    pub(crate) fn look_nothing_up(&mut self) {
        self.looks_up = false;
    }

    /// The code of each event. Codes of events in `rejects` or `absent` are meaningless; `absent` gets the events whose template has a
    /// null, unless nulls reject.
    pub(crate) fn codes(
        &mut self,
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
        absent: &mut Vec<Absent>,
    ) -> Vec<u32> {
        let mut codes = Vec::with_capacity(events);
        if let Plan::Constant = self.plan {
            let code = self.print(|_| None).unwrap_or_else(|(field, reason)| {
                for event in 0..events {
                    rejects.push(event, field, reason.clone());
                }
                0
            });
            codes.resize(events, code);
            return codes;
        }

        let one = match &self.plan {
            Plan::Number(field) | Plan::Text(field) => Some(*field),
            Plan::Digits(segment) | Plan::Minutes(segment) => Some(segment.field),
            _ => None,
        };
        let one = one.and_then(|field| columns.get(field));
        match one.map(|column| (ColumnView::new(column.as_ref()), column.null_count() == 0)) {
            Some((view, true)) => match (view.raw(), &view) {
                (Some(RawIntegers::Unsigned(values)), _) => {
                    for (event, value) in values.iter().enumerate() {
                        codes.push(self.number(*value, ScalarRef::UInt(*value), event, rejects));
                    }
                }
                (Some(RawIntegers::Signed(values)), ColumnView::Int(_)) => {
                    for (event, value) in values.iter().enumerate() {
                        codes.push(self.number(value.cast_unsigned(), ScalarRef::Int(*value), event, rejects));
                    }
                }
                (Some(RawIntegers::Signed(times)), _) if self.by_minute.is_empty() => {
                    self.times(times, rejects, &mut codes)
                }
                (Some(RawIntegers::Signed(times)), _) => self.minutes(times, rejects, &mut codes),
                (_, ColumnView::Text(texts)) => self.texts(texts, rejects, &mut codes),
                _ => self.general(columns, events, rejects, absent, &mut codes),
            },
            _ => self.general(columns, events, rejects, absent, &mut codes),
        }
        codes
    }

    /// The codes of times by the minute of their day.
    fn minutes(&mut self, times: &[i64], rejects: &mut Rejects, codes: &mut Vec<u32>) {
        let mut last: Option<(i64, u32)> = None;
        for (event, time) in times.iter().enumerate() {
            let code = match last {
                Some((known, code)) if known == *time => code,
                _ => {
                    let rejected = rejects.list.len();
                    let code = self.minute(*time, event, rejects);
                    // A rejected time must be rejected each time, so it is not cached.
                    last = (rejects.list.len() == rejected).then_some((*time, code));
                    code
                }
            };
            codes.push(code);
        }
    }

    /// The codes of texts without nulls.
    fn texts(&mut self, texts: &StringArray, rejects: &mut Rejects, codes: &mut Vec<u32>) {
        let mut last: Option<(&str, u32)> = None;
        let mut guess = 0;

        for event in 0..texts.len() {
            let text = texts.value(event);
            if let Some((known, code)) = last
                && known == text
            {
                codes.push(code);
                continue;
            }

            match self.text(text, &mut guess) {
                Ok(code) => {
                    last = Some((text, code));
                    codes.push(code);
                }
                Err((field, reason)) => {
                    rejects.push(event, field, reason);
                    codes.push(0);
                }
            }
        }
    }

    #[inline]
    fn number(&mut self, value: u64, scalar: ScalarRef<'_>, event: usize, rejects: &mut Rejects) -> u32 {
        match self.numbers.find(value) {
            Some(code) => code,
            None => self.new_number(value, scalar, event, rejects),
        }
    }

    #[cold]
    fn new_number(&mut self, value: u64, scalar: ScalarRef<'_>, event: usize, rejects: &mut Rejects) -> u32 {
        match self.print(|_| Some(scalar)) {
            Ok(code) => {
                match self.looks_up {
                    true => self.numbers.insert(value, code),
                    false => self.numbers.keep_only(value, code),
                }
                code
            }
            Err((field, reason)) => {
                rejects.push(event, field, reason);
                0
            }
        }
    }

    #[inline]
    fn minute(&mut self, time: i64, event: usize, rejects: &mut Rejects) -> u32 {
        let minute = (time.rem_euclid(DAY) / MINUTE) as usize;
        match self.by_minute.get(minute) {
            Some(code) if *code != UNKNOWN && (MIN_TIME..=MAX_TIME).contains(&time) => *code,
            _ => self.new_minute(minute, time, event, rejects),
        }
    }

    #[cold]
    fn new_minute(&mut self, minute: usize, time: i64, event: usize, rejects: &mut Rejects) -> u32 {
        match self.print(|_| Some(ScalarRef::Time(time))) {
            Ok(code) => {
                if let Some(slot) = self.by_minute.get_mut(minute) {
                    *slot = code;
                }
                code
            }
            Err((field, reason)) => {
                rejects.push(event, field, reason);
                0
            }
        }
    }

    /// The codes of times by the digits that they print.
    fn times(&mut self, times: &[i64], rejects: &mut Rejects, codes: &mut Vec<u32>) {
        let Plan::Digits(segment) = &self.plan else { return };
        let segment = segment.clone();
        let mut calendar = self.calendar;
        let mut last: Option<(i64, u32)> = None;

        for (event, time) in times.iter().enumerate() {
            let code = match last {
                Some((known, code)) if known == *time => code,
                _ => match segment.number(ScalarRef::Time(*time), &mut calendar) {
                    Ok(number) => {
                        let rejected = rejects.list.len();
                        let code = self.number(number, ScalarRef::Time(*time), event, rejects);
                        // A rejected time must be rejected each time, so it is not cached.
                        last = (rejects.list.len() == rejected).then_some((*time, code));
                        code
                    }
                    Err(reason) => {
                        rejects.push(event, Some(segment.field), reason);
                        0
                    }
                },
            };
            codes.push(code);
        }
        self.calendar = calendar;
    }

    /// The code of a text. `guess` is the index of the previous text, and becomes that of this one: telemetry repeats its entities in
    /// one order, so the successor is tried first.
    fn text(&mut self, text: &str, guess: &mut u32) -> Result<u32, (Option<usize>, RejectReason)> {
        let next = if *guess as usize + 1 < self.known_texts.len() { *guess + 1 } else { 0 };
        if let Some(code) = self.text_codes.get(next as usize)
            && *code != UNKNOWN
            && self.known_texts.get(next) == text.as_bytes()
        {
            *guess = next;
            return Ok(*code);
        }

        if !self.looks_up {
            return self.print(|_| Some(ScalarRef::Text(text)));
        }

        let known = self.known_texts.len();
        let place = self.known_texts.intern(text.as_bytes());
        *guess = place;
        if place as usize == known {
            // Rejected texts keep an unknown code, so that they are printed and rejected again.
            self.text_codes.push(UNKNOWN);
        }

        match self.text_codes.get(place as usize) {
            Some(code) if *code != UNKNOWN => Ok(*code),
            _ => {
                let code = self.print(|_| Some(ScalarRef::Text(text)))?;
                if let Some(slot) = self.text_codes.get_mut(place as usize) {
                    *slot = code;
                }
                Ok(code)
            }
        }
    }

    /// The codes of events by printing each of them.
    fn general(
        &mut self,
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
        absent: &mut Vec<Absent>,
        codes: &mut Vec<u32>,
    ) {
        // From here on two lookups can print the same bytes.
        self.is_fresh = false;
        let views = column_views(columns);

        for event in 0..events {
            match self.print(|field| views.get(field)?.get(event)) {
                Ok(code) => codes.push(code),
                Err((Some(field), RejectReason::Null)) if !self.limits.null_rejects => {
                    absent.push(Absent { event, field });
                    codes.push(0);
                }
                Err((field, reason)) => {
                    rejects.push(event, field, reason);
                    codes.push(0);
                }
            }
        }
    }

    /// Prints the template for the values that `get` returns by field, and interns the output.
    fn print<'a>(
        &mut self,
        get: impl Fn(usize) -> Option<ScalarRef<'a>>,
    ) -> Result<u32, (Option<usize>, RejectReason)> {
        self.scratch.clear();
        write_segments(&self.segments, get, &mut self.calendar, &mut self.scratch)
            .map_err(|(field, reason)| (Some(field), reason))?;

        if self.scratch.len() > self.limits.most {
            return Err((None, self.limits.too_long.clone()));
        }
        if let (true, Some(reason)) = (self.scratch.is_empty(), &self.limits.empty) {
            return Err((None, reason.clone()));
        }
        if self.limits.taken.contains(&self.scratch) {
            let qualifier = String::from_utf8_lossy(&self.scratch).into_owned();
            return Err((None, RejectReason::ConstantQualifier { qualifier }));
        }
        let needs_no_lookup = self.is_fresh || !self.looks_up;
        Ok(if needs_no_lookup { self.dictionary.push(&self.scratch) } else { self.dictionary.intern(&self.scratch) })
    }
}
