//! Times that row keys hold.

use crate::block::Keys;
use crate::plan::Layout;
use crate::template::form::Form;
use crate::template::print::split;
use crate::template::time_format::TimeParts;

/// Decodes the time formats of row keys, row by row. What the prefix says is cached, because rows of one prefix are neighbours.
pub(super) struct KeyTimes<'a> {
    layout: &'a Layout,
    keys: &'a Keys,
    segments: &'a [usize],
    last: Option<(u32, TimeParts)>,
}

impl<'a> KeyTimes<'a> {
    pub(super) fn new(layout: &'a Layout, keys: &'a Keys, segments: &'a [usize]) -> Self {
        Self { layout, keys, segments, last: None }
    }

    /// The parts of the time in the key of `row`; `None` if the layout cannot have printed the key.
    pub(super) fn of(&mut self, row: usize) -> Option<TimeParts> {
        let prefix = self.keys.prefix_of().get(row).copied()?;
        let mut parts = match self.last {
            Some((known, parts)) if known == prefix => parts,
            _ => {
                let parts = self.of_prefix(prefix)?;
                self.last = Some((prefix, parts));
                parts
            }
        };

        let tail = self.keys.tails().get(row).copied().unwrap_or(0);
        for field in self.layout.key.tail.iter().filter(|field| self.segments.contains(&field.segment)) {
            if let Some(Form::Time(format)) = self.layout.key.field(field.segment).map(|field| &field.form) {
                format.read_number(field.number(tail), &mut parts);
            }
        }
        Some(parts)
    }

    /// The parts of the time in the prefix with this number.
    fn of_prefix(&self, prefix: u32) -> Option<TimeParts> {
        let mut parts = TimeParts::default();
        let mut in_prefix = self.segments.iter().filter(|segment| **segment < self.layout.key.prefix).peekable();
        if in_prefix.peek().is_some() {
            let mut spans = Vec::new();
            if !split(self.layout.key.prefix_segments(), self.keys.prefix(prefix as usize), &mut spans) {
                return None;
            }
            for segment in in_prefix {
                let (field, span) = self.layout.key.field(*segment).zip(spans.get(*segment))?;
                if !field.read_time_parts(span, &mut parts) {
                    return None;
                }
            }
        }
        Some(parts)
    }
}
