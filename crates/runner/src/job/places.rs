//! Byte ranges of the parts of a table declaration, so that layout errors in a template are shown
//! at their place in the job file.

use std::ops::Range;

use tidetable_layout::error::{ColumnPart, LayoutError, Place};

use crate::job::fields::Text;

/// Byte ranges of a table; families and columns have the same indexes as in its spec.
#[derive(Debug)]
pub(crate) struct TablePlaces<'a> {
    pub(crate) at: Range<usize>,
    pub(crate) row_key: Text<'a>,
    pub(crate) unpivot: Vec<Text<'a>>,
    pub(crate) families: Vec<FamilyPlaces<'a>>,
}

/// Byte ranges of a family.
#[derive(Debug)]
pub(crate) struct FamilyPlaces<'a> {
    pub(crate) at: Range<usize>,
    pub(crate) columns: Vec<ColumnPlaces<'a>>,
}

/// Byte ranges of a column.
#[derive(Debug)]
pub(crate) struct ColumnPlaces<'a> {
    pub(crate) at: Range<usize>,
    pub(crate) qualifier: Text<'a>,
    pub(crate) value: Option<Text<'a>>,
    pub(crate) encoding: Range<usize>,
    pub(crate) timestamp: Range<usize>,
    pub(crate) except: Vec<Text<'a>>,
    /// `message`, `repeated` or `json`.
    pub(crate) packed: Option<Text<'a>>,
}

impl TablePlaces<'_> {
    /// The byte range of `error`; if it is about something missing, that of the nearest parent.
    pub(crate) fn of(&self, error: &LayoutError) -> Range<usize> {
        let part = error.span.clone();
        match error.place {
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

    fn family(&self, index: usize) -> Option<&FamilyPlaces<'_>> {
        self.families.get(index)
    }
}

impl ColumnPlaces<'_> {
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
