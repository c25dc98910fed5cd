//! The projection that decoding a set of fields needs.

use crate::block::{GroupProjection, Projection};
use crate::decode::align::bound_fields;
use crate::plan::{Layout, Origin};
use crate::schema::TimestampKind;

impl Layout {
    /// The projection that decodes these record fields (indices into [`Layout::records_schema`]). Without fields: the
    /// cheapest projection that still counts records exactly.
    pub fn projection(&self, fields: &[usize]) -> Projection {
        let events = self.groups.iter().filter(|group| !group.is_of_row()).count();
        let mut groups: Vec<Option<GroupProjection>> = Vec::with_capacity(self.groups.len());
        for (plan, stored) in self.groups.iter().zip(&self.stored.groups) {
            // A row without events is still a record; without event groups every key is one.
            let wanted = events > 0;
            let joins = events > 1 && !plan.is_of_row();
            groups.push(wanted.then(|| GroupProjection {
                qualifiers: joins && !bound_fields(plan).is_empty(),
                timestamps: joins && stored.timestamps == TimestampKind::Stored,
                columns: vec![false; stored.columns.len()],
                sums: false,
            }));
        }
        let mut want = |group: usize, set: &dyn Fn(&mut GroupProjection)| {
            if let (Some(slot), Some(stored)) = (groups.get_mut(group), self.stored.groups.get(group)) {
                set(slot.get_or_insert_with(|| GroupProjection {
                    qualifiers: false,
                    timestamps: false,
                    columns: vec![false; stored.columns.len()],
                    sums: false,
                }));
            }
        };
        for origin in fields.iter().filter_map(|field| self.records.get(*field)).flat_map(|record| &record.origins) {
            match origin {
                Origin::Key { .. } | Origin::KeyTime { .. } => {}
                Origin::Cell { group } => want(*group, &|group| group.timestamps = true),
                Origin::Value { group, column } | Origin::ValueText { group, column } => want(*group, &|group| {
                    if let Some(slot) = group.columns.get_mut(*column) {
                        *slot = true;
                    }
                }),
                Origin::Qualifier { group, .. } | Origin::KeyAndQualifier { group, .. } => {
                    want(*group, &|group| group.qualifiers = true);
                }
            }
        }
        Projection { groups }
    }
}
