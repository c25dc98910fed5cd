//! Lines of JSON into columns: a line is a record, and a record an event, or a list of events.
//!
//! All of a record is read before any of its values: what is outside of a list belongs to each of its events. Records of a
//! file mostly have the same keys in the same order, so each key is compared with the one at its place in the record before.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter};
use tidetable_layout::FieldType;

use crate::column_diff::ColumnDiff;
use crate::csv::{Block, Dialect, Parsed, TextNotes};
use crate::json::otel;
use crate::json::paths::{Member, Paths};
use crate::json::scan::{Fault, Kind, Scanner, Value, elements, unescaped};
use crate::reject::{RejectReason, Rejected, raw};
use crate::time::Adjusted;
use crate::value::{ColumnBuilder, ColumnPlan};

/// Members of an object whose keys are remembered.
const REMEMBERED: usize = 256;

/// How the records of one file are read.
#[derive(Debug)]
pub(crate) struct JsonPlan {
    /// The dialect of lines, which says where records end.
    pub dialect: Dialect,
    pub columns: Vec<ColumnPlan>,
    pub paths: Paths,
    /// The lists whose elements are events, at most 64.
    pub lists: Vec<String>,
    /// Whether records are batches of OpenTelemetry, each with many events.
    pub is_otel: bool,
    /// Why every record is rejected, if so.
    pub refused: Option<ColumnDiff>,
}

/// Reads all records of a block, line by line.
pub(crate) fn parse(plan: &JsonPlan, block: Block<'_>) -> Result<Parsed, ArrowError> {
    let is_utf8 = std::str::from_utf8(block.bytes).is_ok();
    let mut rows = Rows::new(plan, block);
    let mut at = 0;
    while at < block.bytes.len() {
        let rest = block.bytes.get(at..).unwrap_or_default();
        let end = memchr(b'\n', rest).map_or(block.bytes.len(), |found| at + found + 1);
        rows.line(at, end, is_utf8);
        at = end;
    }
    rows.finish()
}

/// A record, with the bytes behind it: numbers are read in words.
#[derive(Debug, Clone, Copy)]
struct Record<'t> {
    rest: &'t [u8],
    length: usize,
    /// Where its line starts and ends in the block.
    start: usize,
    end: usize,
}

impl<'t> Record<'t> {
    fn text(&self) -> &'t [u8] {
        self.rest.get(..self.length).unwrap_or(self.rest)
    }
}

/// A value of a column in the record that is being read.
#[derive(Debug, Clone)]
struct Slot {
    /// `None` if the record has no value.
    kind: Option<Kind>,
    range: Range<usize>,
    /// How many keys led to it: of two ways to a column the shorter counts.
    depth: u8,
}

const EMPTY: Slot = Slot { kind: None, range: 0..0, depth: 0 };

/// A key of the record before, and where it leads.
#[derive(Debug, Default)]
struct Remembered<'a> {
    /// As it is written in the record before, escapes and all.
    key: Vec<u8>,
    member: Option<&'a Member>,
}

/// The lists of events that are found in a record, or in an element of another list.
#[derive(Debug, Default, Clone)]
struct Lists<'a> {
    /// Each list with the offset of its bracket in the record.
    found: Vec<(&'a Member, usize)>,
    /// Which of the declared ones are there, a bit each.
    there: u64,
}

struct Rows<'a> {
    plan: &'a JsonPlan,
    block: Block<'a>,
    columns: Vec<ColumnBuilder<'a>>,
    slots: Vec<Slot>,
    /// For each node of the paths the keys of its object in the record before.
    remembered: Vec<Vec<Remembered<'a>>>,
    starts: Vec<u32>,
    rejected: Vec<Rejected>,
    read: u64,
    /// How many values are NaN and so null.
    nans: u64,
    /// An offset and its line, to count on from.
    mark: (usize, u64),
    /// The events of a batch, a line each; kept for its room.
    events: Vec<u8>,
    /// Where the record that is read starts in the block.
    record_start: usize,
    /// Keys that are neither declared nor known, and lists of events without an element.
    notes: TextNotes,
}

impl<'a> Rows<'a> {
    fn new(plan: &'a JsonPlan, block: Block<'a>) -> Self {
        let room = block.lines + 1;
        Self {
            plan,
            block,
            columns: plan.columns.iter().map(|column| ColumnBuilder::new(column, room)).collect(),
            slots: vec![EMPTY; plan.columns.len()],
            remembered: (0..plan.paths.len()).map(|_| Vec::new()).collect(),
            starts: Vec::with_capacity(room),
            rejected: Vec::new(),
            read: 0,
            nans: 0,
            mark: (0, block.first_line),
            events: Vec::new(),
            record_start: 0,
            notes: TextNotes::default(),
        }
    }

    /// Reads the line from `start` to `end`, which may be blank.
    fn line(&mut self, start: usize, end: usize, is_utf8: bool) {
        let bytes = self.block.bytes;
        let rest = bytes.get(start..).unwrap_or_default();
        let text = self.plan.dialect.body(bytes.get(start..end).unwrap_or_default());
        let record = Record { rest, length: text.len(), start, end };
        self.record_start = start;
        if text.trim_ascii().is_empty() {
            return;
        }

        if let Some(diff) = &self.plan.refused {
            return self.refuse(&record, None, RejectReason::Columns(diff.clone()));
        }
        if !is_utf8 && std::str::from_utf8(text).is_err() {
            return self.refuse(&record, None, RejectReason::InvalidUtf8);
        }
        if !self.plan.is_otel {
            return self.record(&record);
        }

        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match otel::events(text, &mut events) {
            Ok(()) => {
                let mut at = 0;
                while let Some(length) = events.get(at..).and_then(|rest| memchr(b'\n', rest)) {
                    let rest = events.get(at..).unwrap_or_default();
                    self.record(&Record { rest, length, start, end });
                    at += length + 1;
                }
            }
            Err(fault) => self.refuse(&record, None, reason(fault)),
        }
        self.events = events;
    }

    /// A record: its events are accepted or rejected one by one, unless it is no JSON.
    fn record(&mut self, record: &Record<'_>) {
        self.slots.fill(EMPTY);
        let mut scanner = Scanner::new(record.text(), 0);
        let mut lists = Lists::default();
        match self.root(&mut scanner, &mut lists) {
            Ok(()) => {
                self.notes.list_records += u64::from(!self.plan.lists.is_empty());
                self.expand(record, &lists);
            }
            Err(reason) => self.refuse(record, None, reason),
        }
    }

    fn root(&mut self, scanner: &mut Scanner<'_>, lists: &mut Lists<'a>) -> Result<(), RejectReason> {
        if scanner.peek() != Some(b'{') {
            return Err(reason(scanner.fault("a record is an object in braces")));
        }
        scanner.enter().map_err(reason)?;
        self.object(scanner, 0, lists)?;
        scanner.end().map_err(reason)
    }

    /// The members of an object, behind its brace.
    fn object(&mut self, scanner: &mut Scanner<'_>, node: usize, lists: &mut Lists<'a>) -> Result<(), RejectReason> {
        let mut place = 0;
        while let Some(key) = scanner.key(place == 0).map_err(reason)? {
            match self.member(node, place, scanner.text(&key.range), key.kind, true) {
                Some(member) => self.take(scanner, member, false, lists)?,
                None => {
                    scanner.value().map_err(reason)?;
                }
            }
            place += 1;
        }
        Ok(())
    }

    /// The elements of an array that is no list of events, behind its bracket: their keys are 0, 1, ..
    fn array(&mut self, scanner: &mut Scanner<'_>, node: usize, lists: &mut Lists<'a>) -> Result<(), RejectReason> {
        let mut place = 0;
        while scanner.element(place == 0).map_err(reason)? {
            let key = place.to_string();
            match self.member(node, place, key.as_bytes(), Kind::Text { has_escapes: false }, false) {
                Some(member) => self.take(scanner, member, false, lists)?,
                None => {
                    scanner.value().map_err(reason)?;
                }
            }
            place += 1;
        }
        Ok(())
    }

    /// Where the key at `place` of an object leads; `is_key` unless it is the place of an element.
    #[inline]
    fn member(&mut self, node: usize, place: usize, key: &[u8], kind: Kind, is_key: bool) -> Option<&'a Member> {
        let remembered = self.remembered.get_mut(node)?;
        if let Some(known) = remembered.get(place).filter(|known| known.key == key) {
            return known.member;
        }
        let members = &self.plan.paths.node(node)?.members;
        let plain = unescaped(key, matches!(kind, Kind::Text { has_escapes: true }))?;
        let found = members.binary_search_by(|member| member.key.as_slice().cmp(&plain)).ok();
        let member = found.and_then(|at| members.get(at));
        if member.is_none() && is_key && !self.plan.is_otel {
            self.note_new(node, &plain);
        }
        let remembered = self.remembered.get_mut(node)?;
        if place < REMEMBERED {
            remembered.resize_with(remembered.len().max(place + 1), Remembered::default);
            if let Some(known) = remembered.get_mut(place) {
                *known = Remembered { key: key.to_vec(), member };
            }
        }
        member
    }

    /// Notes a key of the object `node` that leads nowhere, unless it is known.
    fn note_new(&mut self, node: usize, key: &[u8]) {
        let Some(found) = self.plan.paths.node(node) else { return };
        if self.notes.new_keys.len() >= TextNotes::MOST_NEW_KEYS || found.others.contains(key) {
            return;
        }
        let name = format!("{}{}", found.prefix, String::from_utf8_lossy(key));
        if !self.notes.new_keys.contains_key(&name) {
            let line = self.line_of(self.record_start);
            self.notes.new_keys.insert(name, line);
        }
    }

    /// The line at an offset of the block.
    fn line_of(&self, offset: usize) -> u64 {
        let before = self.block.bytes.get(..offset).unwrap_or_default();
        self.block.first_line + memchr_iter(b'\n', before).count() as u64
    }

    /// The value of a member that leads somewhere. `is_element`: of one element of its list of events.
    fn take(
        &mut self,
        scanner: &mut Scanner<'_>,
        member: &'a Member,
        is_element: bool,
        lists: &mut Lists<'a>,
    ) -> Result<(), RejectReason> {
        let first = scanner.peek();
        let start = scanner.at();
        if first == Some(b'[') && member.is_list && !is_element {
            lists.found.push((member, start));
            lists.there |= bit(member);
            return scanner.value().map(drop).map_err(reason);
        }

        let value = match (first, member.node) {
            (Some(b'{'), Some(node)) => {
                scanner.enter().map_err(reason)?;
                self.object(scanner, node, lists)?;
                Value { kind: Kind::Nested, range: start..scanner.at() }
            }
            (Some(b'['), Some(node)) => {
                scanner.enter().map_err(reason)?;
                self.array(scanner, node, lists)?;
                Value { kind: Kind::Nested, range: start..scanner.at() }
            }
            _ => scanner.value().map_err(reason)?,
        };
        if value.kind != Kind::Null {
            lists.there |= bit(member);
        }
        match member.column {
            Some((column, depth)) => self.set(column, depth, value),
            None => Ok(()),
        }
    }

    /// Keeps the value of a column. Of two ways to a column the shorter counts.
    #[inline]
    fn set(&mut self, column: usize, depth: u8, value: Value) -> Result<(), RejectReason> {
        let Some(slot) = self.slots.get_mut(column) else { return Ok(()) };
        if slot.kind.is_some() {
            match slot.depth.cmp(&depth) {
                std::cmp::Ordering::Less => return Ok(()),
                std::cmp::Ordering::Equal => {
                    let key = self.plan.columns.get(column).map(|column| column.name.clone());
                    return Err(RejectReason::KeyTwice { key: key.unwrap_or_default() });
                }
                std::cmp::Ordering::Greater => {}
            }
        }
        *slot = Slot { kind: Some(value.kind), range: value.range, depth };
        Ok(())
    }

    /// Adds an event for each element of the lists of a record, which go side by side; one if it has none.
    fn expand(&mut self, record: &Record<'_>, lists: &Lists<'a>) {
        if lists.found.is_empty() {
            return self.event(record, lists.there);
        }
        let elements = lists.found.iter().map(|(_, start)| elements(record.text(), *start));
        let elements: Vec<Vec<usize>> = match elements.collect() {
            Ok(elements) => elements,
            Err(fault) => return self.refuse(record, None, reason(fault)),
        };
        let counts = elements.iter().map(Vec::len);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        if least != most {
            return self.refuse(record, None, RejectReason::UnequalLists { least, most });
        }
        if most == 0 {
            // The line matters for the first only.
            let is_first = self.notes.empty_lists.count == 0;
            let line = if is_first { self.line_of(record.start) } else { 0 };
            self.notes.empty_lists.add(line);
        }

        let outer = self.slots.clone();
        for index in 0..most {
            self.slots.clone_from_slice(&outer);
            let mut inner = Lists { found: Vec::new(), there: lists.there };
            let starts = elements.iter().filter_map(|starts| starts.get(index).copied());
            let taken = lists.found.iter().zip(starts).try_for_each(|((member, _), start)| {
                self.take(&mut Scanner::new(record.text(), start), member, true, &mut inner)
            });
            match taken {
                Ok(()) => self.expand(record, &inner),
                Err(reason) => self.refuse(record, None, reason),
            }
        }
    }

    /// Adds the values of the slots as an event. `there` are the lists that the record has, a bit each.
    fn event(&mut self, record: &Record<'_>, there: u64) {
        if let Some((_, list)) = self.plan.lists.iter().enumerate().find(|(bit, _)| there & (1 << bit) == 0) {
            return self.refuse(record, None, RejectReason::NoList { list: list.clone() });
        }

        let nans = self.nans;
        for column in 0..self.columns.len() {
            if let Err(reason) = self.push(record, column) {
                self.nans = nans;
                let rows = self.starts.len();
                self.columns.iter_mut().for_each(|column| column.truncate(rows));
                return self.refuse(record, Some(column), reason);
            }
        }
        self.read += 1;
        self.starts.push(record.start as u32);
    }

    #[inline]
    fn push(&mut self, record: &Record<'_>, column: usize) -> Result<(), RejectReason> {
        let parts = (self.columns.get_mut(column), self.slots.get(column), self.plan.columns.get(column));
        let (Some(target), Some(slot), Some(plan)) = parts else { return Ok(()) };
        let rest = record.rest.get(slot.range.start..).unwrap_or_default();
        let length = slot.range.len();
        match slot.kind {
            None | Some(Kind::Null) => {
                target.push_null();
                Ok(())
            }
            // Prometheus writes it as a string.
            Some(Kind::NotFinite | Kind::Text { .. })
                if plan.kind == FieldType::Float64 && !plan.rejects_nan && rest.get(..length) == Some(b"NaN") =>
            {
                self.nans += 1;
                target.push_null();
                Ok(())
            }
            Some(Kind::Text { has_escapes: true }) => {
                let written = rest.get(..length).unwrap_or(rest);
                let Some(plain) = unescaped(written, true) else {
                    return Err(reason(Fault { at: slot.range.start, what: "an escape stands for no character" }));
                };
                target.push(&plain, true)
            }
            // A string is a value, also an empty one: JSON has a null of its own.
            Some(Kind::Text { .. }) => target.push_first(rest, length, true),
            Some(Kind::Number | Kind::Bool | Kind::NotFinite | Kind::Nested) => target.push_first(rest, length, false),
        }
    }

    /// Rejects a record, or one of its events.
    fn refuse(&mut self, record: &Record<'_>, column: Option<usize>, reason: RejectReason) {
        self.read += 1;
        let (from, line) = self.mark;
        let before = self.block.bytes.get(from..record.start).unwrap_or_default();
        let line = line + memchr_iter(b'\n', before).count() as u64;
        self.mark = (record.start, line);
        let column = column.and_then(|index| self.plan.columns.get(index)).map(|column| column.name.clone());
        let body = self.plan.dialect.body(self.block.bytes.get(record.start..record.end).unwrap_or_default());
        self.rejected.push(Rejected { line, lines: 1, column, reason, raw: raw(body) });
    }

    fn finish(mut self) -> Result<Parsed, ArrowError> {
        let mut times = Adjusted::default();
        for column in &mut self.columns {
            times.add_column(&column.remarks(), None);
        }
        times.counts.nan = self.nans;
        let columns = self.columns.into_iter().map(ColumnBuilder::finish).collect::<Result<Vec<ArrayRef>, _>>()?;
        let (starts, rejected, read) = (self.starts, self.rejected, self.read);
        Ok(Parsed { columns, starts, rejected, read, times, notes: self.notes })
    }
}

fn reason(fault: Fault) -> RejectReason {
    RejectReason::NotJson { what: fault.what, byte: fault.at as u64 + 1 }
}

fn bit(member: &Member) -> u64 {
    member.list.map_or(0, |list| 1 << list)
}
