//! Byte ranges of the parts of a table declaration, so that what is wrong with a template is shown at its place in the
//! job file.

use std::ops::Range;

use tidetable_layout::error::{ColumnPart, Place};

/// Byte range of a string of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPlace {
    pub(crate) at: Range<usize>,
    /// Start of its content, if no escape shifts the bytes after it.
    pub(crate) inside: Option<usize>,
    pub(crate) length: usize,
}

impl TextPlace {
    /// The range in the file of the bytes `part` of the string; the whole string if it has escapes.
    pub(crate) fn within(&self, part: Range<usize>) -> Range<usize> {
        match self.inside {
            Some(start) if part.end <= self.length => start + part.start..start + part.end,
            _ => self.at.clone(),
        }
    }

    /// The range of its content; `None` if it has escapes.
    fn content(&self) -> Option<Range<usize>> {
        self.inside.map(|start| start..start + self.length)
    }
}

/// Byte ranges of a table; families and columns have the same indexes as in its spec.
#[derive(Debug, Clone)]
pub struct TablePlaces {
    pub(crate) at: Range<usize>,
    pub(crate) row_key: TextPlace,
    pub(crate) unpivot: Vec<TextPlace>,
    pub(crate) families: Vec<FamilyPlaces>,
}

/// Byte ranges of a family, for mistakes that the layout compiler finds.
#[derive(Debug, Clone)]
pub(crate) struct FamilyPlaces {
    pub(crate) at: Range<usize>,
    pub(crate) gc: Option<TextPlace>,
    pub(crate) columns: Vec<ColumnPlaces>,
}

/// Byte ranges of a column, for mistakes that the layout compiler finds.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlaces {
    pub(crate) at: Range<usize>,
    pub(crate) qualifier: TextPlace,
    pub(crate) value: Option<TextPlace>,
    pub(crate) encoding: Range<usize>,
    pub(crate) timestamp: Range<usize>,
    pub(crate) except: Vec<TextPlace>,
    /// That of `message`, `repeated` or `json`, of which a column has at most one.
    pub(crate) packed: Option<TextPlace>,
}

impl TablePlaces {
    /// The byte range of the bytes `part` of a template or name at `place`; if the file lacks it, that of the nearest
    /// parent. A string with escapes is one range.
    pub fn of(&self, place: Place, part: Range<usize>) -> Range<usize> {
        match place {
            Place::Table => self.at.clone(),
            Place::RowKey => self.row_key.within(part),
            Place::Unpivot(index) => self.unpivot.get(index).map_or_else(|| self.at.clone(), |text| text.within(part)),
            Place::Family(index) => self.family(index).map_or_else(|| self.at.clone(), |family| family.at.clone()),
            Place::Column { family, column, part: key } => {
                let column = self.family(family).and_then(|family| family.columns.get(column));
                column.map_or_else(|| self.at.clone(), |column| column.of(key, part))
            }
        }
    }

    /// The byte range of the row key's template, without its quotes; `None` if it has escapes.
    pub fn row_key(&self) -> Option<Range<usize>> {
        self.row_key.content()
    }

    /// The byte range of the garbage-collection rule of a family, without its quotes; `None` without one, or if it has
    /// escapes.
    pub fn gc(&self, family: usize) -> Option<Range<usize>> {
        self.family(family)?.gc.as_ref()?.content()
    }

    fn family(&self, index: usize) -> Option<&FamilyPlaces> {
        self.families.get(index)
    }
}

impl ColumnPlaces {
    fn of(&self, key: ColumnPart, part: Range<usize>) -> Range<usize> {
        let text = match key {
            ColumnPart::Qualifier => Some(&self.qualifier),
            ColumnPart::Value => self.value.as_ref(),
            ColumnPart::Except(index) => self.except.get(index),
            ColumnPart::Packed => self.packed.as_ref(),
            ColumnPart::Encoding => return self.encoding.clone(),
            ColumnPart::Timestamp => return self.timestamp.clone(),
        };
        text.map_or_else(|| self.at.clone(), |text| text.within(part))
    }
}
