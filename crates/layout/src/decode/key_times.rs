//! Times that row keys hold, alone or with the clock of a qualifier.

use crate::block::Keys;
use crate::error::DecodeError;
use crate::plan::Layout;
use crate::template::form::Form;
use crate::template::print::split;
use crate::template::time_format::TimeParts;

/// The most keys, and the most times of keys and clocks, that are held at once: a few times what blocks have.
const KEYS: usize = 256;
const TIMES: usize = 1 << 14;

/// Decodes the time formats of row keys, row by row. Rows of one prefix are neighbours, and few tails, such as dates, come again and
/// again: what they say is held, in a cache with one place for a tail.
pub(super) struct KeyTimes<'a> {
    layout: &'a Layout,
    keys: &'a Keys,
    segments: &'a [usize],
    /// Whether one of `segments` is in the prefix.
    in_prefix: bool,
    last_prefix: Option<(u32, TimeParts)>,
    places: Vec<KeyTime>,
    /// What the key in each place says of its time.
    parts: Vec<TimeParts>,
    /// The times of each place that was taken, one for each clock.
    times: Vec<ClockTime>,
    /// The number of clocks that each key has.
    clocks: usize,
    /// The number of keys that were read.
    reads: u32,
}

/// A key that was read.
#[derive(Clone, Copy, Default)]
struct KeyTime {
    /// 0 if no format is in the prefix.
    prefix: u32,
    tail: u64,
    /// Index of its first time.
    times: usize,
    /// How many keys had been read then, itself included; 0 for none.
    read: u32,
}

/// A time of the key with the same `read`; 0 for none.
#[derive(Clone, Copy, Default)]
struct ClockTime {
    read: u32,
    time: i64,
}

impl<'a> KeyTimes<'a> {
    /// For times of `segments` of keys, each with one of `clocks` clocks.
    pub(super) fn new(layout: &'a Layout, keys: &'a Keys, segments: &'a [usize], clocks: usize) -> Self {
        let clocks = clocks.max(1);
        let places = (TIMES / clocks).clamp(1, KEYS);
        Self {
            layout,
            keys,
            segments,
            in_prefix: segments.iter().any(|segment| *segment < layout.key.prefix),
            last_prefix: None,
            places: vec![KeyTime::default(); places],
            parts: vec![TimeParts::default(); places],
            times: Vec::new(),
            clocks,
            reads: 0,
        }
    }

    /// The time in the key of `row` with this clock, as `resolve` makes it of what the key says. Equal clocks of equal keys are
    /// resolved once.
    ///
    /// # Errors
    /// If the layout cannot have printed the key.
    pub(super) fn of(
        &mut self,
        row: usize,
        clock: usize,
        resolve: impl FnOnce(TimeParts) -> Option<i64>,
    ) -> Result<Option<i64>, DecodeError> {
        let prefix = if self.in_prefix { self.keys.prefix_of()[row] } else { 0 };
        let tail = self.keys.tails().get(row).copied().unwrap_or(0);
        let place = (tail.wrapping_add(u64::from(prefix)) % self.places.len() as u64) as usize;
        let mut key = self.places[place];
        if key.read == 0 || key.tail != tail || key.prefix != prefix {
            let read = self.read(place, prefix, tail);
            key = read
                .ok_or_else(|| DecodeError::Key { key: String::from_utf8_lossy(&self.keys.get(row)).into_owned() })?;
        }

        let known = &mut self.times[key.times + clock];
        if known.read != key.read {
            let Some(time) = resolve(self.parts[place]) else { return Ok(None) };
            *known = ClockTime { read: key.read, time };
        }
        Ok(Some(known.time))
    }

    /// Reads a key into its place.
    fn read(&mut self, place: usize, prefix: u32, tail: u64) -> Option<KeyTime> {
        self.parts[place] = self.parts_of(prefix, tail)?;
        let before = self.places[place];
        let times = if before.read == 0 { self.times.len() } else { before.times };
        if before.read == 0 {
            self.times.resize(times + self.clocks, ClockTime::default());
        }
        self.reads += 1;
        let key = KeyTime { prefix, tail, times, read: self.reads };
        self.places[place] = key;
        Some(key)
    }

    /// What a key with this prefix and tail says of its time.
    fn parts_of(&mut self, prefix: u32, tail: u64) -> Option<TimeParts> {
        let mut parts = match self.last_prefix {
            Some((known, parts)) if known == prefix => parts,
            _ => {
                let parts = if self.in_prefix { self.of_prefix(prefix)? } else { TimeParts::default() };
                self.last_prefix = Some((prefix, parts));
                parts
            }
        };
        for field in self.layout.key.tail.iter().filter(|field| self.segments.contains(&field.segment)) {
            if let Some(Form::Time(format)) = self.layout.key.field(field.segment).map(|field| &field.form) {
                format.read_number(field.number(tail), &mut parts);
            }
        }
        Some(parts)
    }

    /// What the prefix with this number says of the time.
    fn of_prefix(&self, prefix: u32) -> Option<TimeParts> {
        let mut parts = TimeParts::default();
        let mut spans = Vec::new();
        if !split(self.layout.key.prefix_segments(), self.keys.prefix(prefix as usize), &mut spans) {
            return None;
        }
        for segment in self.segments.iter().filter(|segment| **segment < self.layout.key.prefix) {
            let (field, span) = self.layout.key.field(*segment).zip(spans.get(*segment))?;
            if !field.read_time_parts(span, &mut parts) {
                return None;
            }
        }
        Some(parts)
    }
}
