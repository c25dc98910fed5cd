//! Selects the groups and columns that encode some of a table's cells.

use crate::block::{GroupBlock, GroupProjection, Projection};
use crate::schema::{Group, QualifierKind, StoredSchema};

/// What is read of the groups without a selected column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupsWithout {
    /// Nothing: rows without selected cells do not matter, or keys tell them.
    Nothing,
    /// Which rows they have, where rules, tombstones or upserts may leave rows without cells.
    Rows,
    /// Their timestamps too.
    Timestamps,
}

/// The groups and columns that encode the selected cells, as a schema of their own.
#[derive(Debug, Clone)]
pub struct CellSelection {
    /// What to read of a table.
    pub projection: Projection,
    /// The schema of [`Self::groups`].
    pub schema: StoredSchema,
    /// Group indexes of the table, with column indexes.
    of: Vec<(usize, Vec<usize>)>,
}

impl CellSelection {
    /// Selects columns by group, family and qualifier; the qualifier is `None` where it varies by record.
    pub fn new(
        schema: &StoredSchema,
        without: GroupsWithout,
        is_wanted: impl Fn(&Group, &str, Option<&[u8]>) -> bool,
    ) -> Self {
        // An upsert compares the timestamps of all groups of a row.
        let timestamps = without == GroupsWithout::Timestamps || schema.upsert;
        let mut projection = Projection { groups: Vec::with_capacity(schema.groups.len()) };
        let mut part = StoredSchema { groups: Vec::new(), ..schema.clone() };
        let mut of = Vec::new();
        for (at, group) in schema.groups.iter().enumerate() {
            let is_constant = group.qualifier == QualifierKind::Constant;
            let wanted = |family: &str, qualifier: &[u8]| is_wanted(group, family, is_constant.then_some(qualifier));
            // A packed cell needs all columns of its group.
            let wanted: Vec<bool> = match &group.packed {
                Some(packed) => vec![wanted(&packed.family, &packed.qualifier); group.columns.len()],
                None => group.columns.iter().map(|column| wanted(&column.family, &column.qualifier)).collect(),
            };
            if !wanted.contains(&true) {
                let columns = vec![false; group.columns.len()];
                let some = GroupProjection { qualifiers: false, timestamps, columns, sums: false };
                projection.groups.push((timestamps || without != GroupsWithout::Nothing).then_some(some));
                continue;
            }
            let columns: Vec<usize> = (0..wanted.len()).filter(|column| wanted.get(*column) == Some(&true)).collect();
            let mut kept = group.clone();
            kept.columns = columns.iter().filter_map(|column| group.columns.get(*column).cloned()).collect();
            part.groups.push(kept);
            of.push((at, columns));
            let qualifiers = group.qualifier == QualifierKind::Dynamic;
            let group = GroupProjection { qualifiers, timestamps: true, columns: wanted, sums: false };
            projection.groups.push(Some(group));
        }
        Self { projection, schema: part, of }
    }

    /// Selects its groups from those of a block.
    pub fn groups(&self, mut groups: Vec<Option<GroupBlock>>) -> Vec<Option<GroupBlock>> {
        let group = |(at, columns): &(usize, Vec<usize>)| {
            let stored = groups.get_mut(*at).and_then(Option::take)?;
            let columns = columns.iter().map(|column| stored.columns.get(*column).cloned().flatten()).collect();
            Some(GroupBlock { columns, ..stored })
        };
        self.of.iter().map(group).collect()
    }
}
