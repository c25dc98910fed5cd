//! Times that row keys hold.

use crate::block::Keys;
use crate::plan::Layout;
use crate::template::form::Form;
use crate::template::print::split;
use crate::template::time_format::TimeParts;

/// Decodes the time formats of row keys, row by row.
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
        for own in self.layout.key.tail.iter().filter(|own| self.segments.contains(&own.segment)) {
            if let Some(Form::Time(format)) = self.layout.key.field(own.segment).map(|field| &field.form) {
                format.read_number(own.number(tail), &mut parts);
            }
        }
        Some(parts)
    }

    fn of_prefix(&self, prefix: u32) -> Option<TimeParts> {
        let mut parts = TimeParts::default();
        let mut own = self.segments.iter().filter(|segment| **segment < self.layout.key.prefix).peekable();
        if own.peek().is_some() {
            let mut spans = Vec::new();
            if !split(self.layout.key.prefix_segments(), self.keys.prefix(prefix as usize), &mut spans) {
                return None;
            }
            for segment in own {
                let (field, span) = self.layout.key.field(*segment).zip(spans.get(*segment))?;
                if !field.read_time_parts(span, &mut parts) {
                    return None;
                }
            }
        }
        Some(parts)
    }
}
