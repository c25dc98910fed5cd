//! The projection that decoding a set of fields needs.

use crate::block::{GroupProjection, Projection};
use crate::decode::align::bound_fields;
use crate::plan::{Layout, Origin};
use crate::schema::{Group, TimestampKind};

impl Layout {
    /// The projection that decodes these record fields (indices into [`Layout::records_schema`]). Without fields: the
    /// cheapest projection that still counts records exactly.
    pub fn projection(&self, fields: &[usize]) -> Projection {
        let events = self.groups.iter().filter(|group| !group.is_of_row()).count();
        let mut groups: Vec<Option<GroupProjection>> = Vec::with_capacity(self.groups.len());
        for (plan, stored) in self.groups.iter().zip(&self.stored.groups) {
            // A row without events is still a record; without event groups every key is one.
            let is_counted = events > 0;
            let joins = events > 1 && !plan.is_of_row();
            groups.push(is_counted.then(|| GroupProjection {
                qualifiers: joins && !bound_fields(plan).is_empty(),
                timestamps: joins && stored.timestamps == TimestampKind::Stored,
                ..nothing_of(stored)
            }));
        }

        for origin in fields.iter().filter_map(|field| self.records.get(*field)).flat_map(|record| &record.origins) {
            let Some(index) = origin.group() else { continue };
            let (Some(slot), Some(stored)) = (groups.get_mut(index), self.stored.groups.get(index)) else { continue };
            let group = slot.get_or_insert_with(|| nothing_of(stored));
            match origin {
                Origin::Key { .. } | Origin::KeyTime { .. } => {}
                Origin::Cell { .. } => group.timestamps = true,
                Origin::Value { column, .. } | Origin::ValueText { column, .. } => {
                    if let Some(wanted) = group.columns.get_mut(*column) {
                        *wanted = true;
                    }
                }
                Origin::Qualifier { .. } | Origin::KeyAndQualifier { .. } => group.qualifiers = true,
            }
        }
        Projection { groups }
    }
}

/// The projection of a group that reads only which records its rows have.
fn nothing_of(group: &Group) -> GroupProjection {
    GroupProjection { qualifiers: false, timestamps: false, columns: vec![false; group.columns.len()], sums: false }
}
