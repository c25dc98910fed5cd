//! Runs of key prefixes that agree in some fields. Keys ascend, so the prefixes of an entity, of a site, and of whatever else leads
//! the key are neighbours: a value is read once a run.

use arrow::array::ArrayRef;

use crate::block::Keys;
use crate::error::DecodeError;
use crate::plan::{Layout, RecordField};
use crate::scalar::ColumnBuilder;
use crate::template::print::split;

/// Runs of the prefixes of a block that agree in some fields.
pub(crate) struct PrefixRuns {
    /// For each of the fields, a value per run.
    pub(crate) columns: Vec<ArrayRef>,
    /// For each prefix, the number of its run.
    pub(crate) run_of: Vec<u32>,
}

impl PrefixRuns {
    /// Reads `fields`, each with the segment of the key that prints it, which is in the prefix.
    ///
    /// # Errors
    /// If the layout cannot have printed a prefix.
    pub(crate) fn read(layout: &Layout, keys: &Keys, fields: &[(&RecordField, usize)]) -> Result<Self, DecodeError> {
        let segments = layout.key.prefix_segments();
        let mut builders: Vec<ColumnBuilder> =
            fields.iter().map(|(record, _)| ColumnBuilder::new(record.kind, 0)).collect();
        let (mut spans, mut last): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        let mut run_of = Vec::with_capacity(keys.prefix_count());
        let mut runs = 0u32;

        for index in 0..keys.prefix_count() {
            let prefix = keys.prefix(index);
            if !split(segments, prefix, &mut spans) {
                return Err(bad_key(prefix));
            }

            let is_same = runs > 0 && fields.iter().all(|(_, segment)| spans.get(*segment) == last.get(*segment));
            if !is_same {
                for ((_, segment), builder) in fields.iter().zip(&mut builders) {
                    let (field, span) = (layout.key.field(*segment), spans.get(*segment));
                    if !field.zip(span).is_some_and(|(field, span)| field.read(span, builder)) {
                        return Err(bad_key(prefix));
                    }
                }
                runs += 1;
                std::mem::swap(&mut spans, &mut last);
            }
            run_of.push(runs - 1);
        }

        let columns = builders.into_iter().map(ColumnBuilder::finish).collect::<Result<_, _>>()?;
        Ok(Self { columns, run_of })
    }

    /// The number of runs.
    pub(crate) fn count(&self) -> usize {
        self.run_of.last().map_or(0, |last| *last as usize + 1)
    }

    /// For each run, the end of its rows among those of the block.
    pub(crate) fn row_ends(&self, keys: &Keys) -> Vec<u32> {
        let mut ends: Vec<u32> = Vec::new();
        for (end, prefix) in (1..).zip(keys.prefix_of()) {
            let run = self.run_of.get(*prefix as usize).copied().unwrap_or(0) as usize;
            match ends.get_mut(run) {
                Some(last) => *last = end,
                None => ends.push(end),
            }
        }
        ends
    }

    /// For each row, the number of the run of its prefix.
    pub(crate) fn of_rows(&self, keys: &Keys) -> Vec<u32> {
        // A prefix without a run cannot be: `read` gave each one.
        keys.prefix_of().iter().map(|prefix| self.run_of.get(*prefix as usize).copied().unwrap_or(0)).collect()
    }
}

/// The error for a key prefix that the layout cannot have printed.
fn bad_key(prefix: &[u8]) -> DecodeError {
    DecodeError::Key { key: String::from_utf8_lossy(prefix).into_owned() }
}
