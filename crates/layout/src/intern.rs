//! Templates to codes: each distinct key prefix or qualifier is printed once.

use arrow::array::{Array, ArrayRef};

use crate::civil::{Calendar, DAY, FIRST_TIME, LAST_TIME, MINUTE};
use crate::datum::{Datum, Raw, View, views};
use crate::dictionary::{Dictionary, NumberCodes};
use crate::error::RejectReason;
use crate::segment::{FieldSegment, Segment, write_segments};
use crate::value::FieldType;

/// Events that cannot be laid out, with the field at fault.
#[derive(Debug, Default)]
pub(crate) struct Rejects {
    pub(crate) list: Vec<(usize, Option<usize>, RejectReason)>,
}

impl Rejects {
    #[cold]
    pub(crate) fn push(&mut self, event: usize, field: Option<usize>, reason: RejectReason) {
        self.list.push((event, field, reason));
    }
}

/// Stands for a code that is not known yet, or of something that was rejected.
const UNKNOWN: u32 = u32::MAX;

/// Minutes of a day.
const MINUTES: usize = 1440;

/// What the template depends on, which decides how codes are looked up.
enum Plan {
    Constant,
    /// One 64-bit field: looked up by its value.
    Number(usize),
    /// One time in fixed digits: looked up by the digits, of which there are far fewer than moments.
    Digits(FieldSegment),
    /// One time of which only hours and minutes show: looked up by the minute of the day.
    Minutes(FieldSegment),
    /// One text field: looked up by its bytes.
    Text(usize),
    General,
}

/// What printed bytes must keep to.
pub(crate) struct Limits {
    /// Most bytes.
    pub(crate) most: usize,
    /// The reason given when there are more.
    pub(crate) too_long: RejectReason,
    /// The reason given when there is none; `None` if that is fine.
    pub(crate) empty: Option<RejectReason>,
    /// Bytes that something else has already.
    pub(crate) taken: Vec<Vec<u8>>,
    /// Whether a null field rejects the event, or leaves it without a code.
    pub(crate) null_rejects: bool,
}

/// Turns one template into codes of a dictionary, batch after batch.
pub(crate) struct Interner {
    segments: Vec<Segment>,
    plan: Plan,
    limits: Limits,
    pub(crate) dictionary: Dictionary,
    numbers: NumberCodes,
    /// For [`Plan::Minutes`]: the code of each minute of a day.
    minutes: Vec<u32>,
    /// Whether values that were not looked up before print bytes that were not printed before.
    is_fresh: bool,
    /// For [`Plan::Text`]: the texts, by the order in which they came.
    texts: Dictionary,
    /// For [`Plan::Text`]: the code of each text.
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
            minutes,
            is_fresh,
            plan,
            limits,
            dictionary: Dictionary::new(),
            numbers: NumberCodes::default(),
            texts: Dictionary::new(),
            text_codes: Vec::new(),
            calendar: Calendar::default(),
            scratch: Vec::new(),
        }
    }

    /// The code of each event. Events whose code means nothing are in `rejects`, or for want of a value in `absent`, with the
    /// field that is null.
    pub(crate) fn codes(
        &mut self,
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
        absent: &mut Vec<(usize, usize)>,
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
        match one.map(|column| (View::new(column.as_ref()), column.null_count() == 0)) {
            Some((view, true)) => match (view.raw(), &view) {
                (Some(Raw::Unsigned(values)), _) => {
                    for (event, value) in values.iter().enumerate() {
                        let code = self.number(*value, Datum::UInt(*value), event, rejects);
                        codes.push(code);
                    }
                }
                (Some(Raw::Signed(values)), View::Int(_)) => {
                    for (event, value) in values.iter().enumerate() {
                        codes.push(self.number(value.cast_unsigned(), Datum::Int(*value), event, rejects));
                    }
                }
                (Some(Raw::Signed(times)), _) if self.minutes.is_empty() => self.times(times, rejects, &mut codes),
                (Some(Raw::Signed(times)), _) => {
                    for (event, time) in times.iter().enumerate() {
                        codes.push(self.minute(*time, event, rejects));
                    }
                }
                (_, View::Text(texts)) => {
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
                _ => self.general(columns, events, rejects, absent, &mut codes),
            },
            _ => self.general(columns, events, rejects, absent, &mut codes),
        }
        codes
    }

    #[inline]
    fn number(&mut self, value: u64, datum: Datum<'_>, event: usize, rejects: &mut Rejects) -> u32 {
        match self.numbers.find(value) {
            Some(code) => code,
            None => self.new_number(value, datum, event, rejects),
        }
    }

    #[cold]
    fn new_number(&mut self, value: u64, datum: Datum<'_>, event: usize, rejects: &mut Rejects) -> u32 {
        match self.print(|_| Some(datum)) {
            Ok(code) => {
                self.numbers.insert(value, code);
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
        match self.minutes.get(minute) {
            Some(code) if *code != UNKNOWN && (FIRST_TIME..=LAST_TIME).contains(&time) => *code,
            _ => self.new_minute(minute, time, event, rejects),
        }
    }

    #[cold]
    fn new_minute(&mut self, minute: usize, time: i64, event: usize, rejects: &mut Rejects) -> u32 {
        match self.print(|_| Some(Datum::Time(time))) {
            Ok(code) => {
                if let Some(slot) = self.minutes.get_mut(minute) {
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

    fn times(&mut self, times: &[i64], rejects: &mut Rejects, codes: &mut Vec<u32>) {
        let Plan::Digits(segment) = &self.plan else { return };
        let segment = segment.clone();
        let mut calendar = self.calendar;
        let mut last: Option<(i64, u32)> = None;
        for (event, time) in times.iter().enumerate() {
            let code = match last {
                Some((known, code)) if known == *time => code,
                _ => match segment.number(Datum::Time(*time), &mut calendar) {
                    Ok(number) => {
                        let rejected = rejects.list.len();
                        let code = self.number(number, Datum::Time(*time), event, rejects);
                        // A rejected time must be rejected again when it comes again.
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

    /// The code of a text; `guess` is the place of the text that came last.
    fn text(&mut self, text: &str, guess: &mut u32) -> Result<u32, (Option<usize>, RejectReason)> {
        let next = if *guess as usize + 1 < self.texts.len() { *guess + 1 } else { 0 };
        if let Some(code) = self.text_codes.get(next as usize)
            && *code != UNKNOWN
            && self.texts.get(next) == text.as_bytes()
        {
            *guess = next;
            return Ok(*code);
        }
        let known = self.texts.len();
        let place = self.texts.intern(text.as_bytes());
        *guess = place;
        if place as usize == known {
            // Rejected texts keep their place, with a code that asks again.
            self.text_codes.push(UNKNOWN);
        }
        match self.text_codes.get(place as usize) {
            Some(code) if *code != UNKNOWN => Ok(*code),
            _ => {
                let code = self.print(|_| Some(Datum::Text(text)))?;
                if let Some(slot) = self.text_codes.get_mut(place as usize) {
                    *slot = code;
                }
                Ok(code)
            }
        }
    }

    fn general(
        &mut self,
        columns: &[ArrayRef],
        events: usize,
        rejects: &mut Rejects,
        absent: &mut Vec<(usize, usize)>,
        codes: &mut Vec<u32>,
    ) {
        // From here on the same bytes may come by two ways.
        self.is_fresh = false;
        let views = views(columns);
        for event in 0..events {
            match self.print(|field| views.get(field)?.get(event)) {
                Ok(code) => codes.push(code),
                Err((Some(field), RejectReason::Null)) if !self.limits.null_rejects => {
                    absent.push((event, field));
                    codes.push(0);
                }
                Err((field, reason)) => {
                    rejects.push(event, field, reason);
                    codes.push(0);
                }
            }
        }
    }

    /// Prints the template and interns it.
    fn print<'a>(&mut self, get: impl Fn(usize) -> Option<Datum<'a>>) -> Result<u32, (Option<usize>, RejectReason)> {
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
        Ok(if self.is_fresh { self.dictionary.push(&self.scratch) } else { self.dictionary.intern(&self.scratch) })
    }
}
