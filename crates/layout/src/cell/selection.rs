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
    /// Which rows they have, and the timestamps of these.
    Timestamps,
}

/// The groups and columns that encode the selected cells, as a schema of their own. Serves reads of some columns of a table.
#[derive(Debug, Clone)]
pub struct CellSelection {
    /// What to read of the table's blocks.
    pub projection: Projection,
    /// The schema of what [`Self::groups`] returns.
    pub schema: StoredSchema,
    /// The groups of the table that have selected columns.
    of: Vec<SelectedGroup>,
}

/// The selected columns of one group of a table.
#[derive(Debug, Clone)]
struct SelectedGroup {
    group: usize,
    columns: Vec<usize>,
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
            let wanted = wanted_columns(group, &is_wanted);
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
            of.push(SelectedGroup { group: at, columns });

            let qualifiers = group.qualifier == QualifierKind::Dynamic;
            let group = GroupProjection { qualifiers, timestamps: true, columns: wanted, sums: false };
            projection.groups.push(Some(group));
        }
        Self { projection, schema: part, of }
    }

    /// The selected groups of a block of the table, each with its selected columns.
    pub fn groups(&self, mut groups: Vec<Option<GroupBlock>>) -> Vec<Option<GroupBlock>> {
        let mut selected = Vec::with_capacity(self.of.len());
        for SelectedGroup { group, columns } in &self.of {
            let stored = groups.get_mut(*group).and_then(Option::take);
            selected.push(stored.map(|stored| {
                let columns = columns.iter().map(|column| stored.columns.get(*column).cloned().flatten()).collect();
                GroupBlock { columns, ..stored }
            }));
        }
        selected
    }
}

/// For each column of `group`, whether it is wanted. A packed cell needs all columns of its group.
fn wanted_columns(group: &Group, is_wanted: impl Fn(&Group, &str, Option<&[u8]>) -> bool) -> Vec<bool> {
    let is_constant = group.qualifier == QualifierKind::Constant;
    match &group.packed {
        Some(packed) => {
            let wanted = is_wanted(group, &packed.family, is_constant.then_some(packed.qualifier.as_slice()));
            vec![wanted; group.columns.len()]
        }
        None => group
            .columns
            .iter()
            .map(|column| is_wanted(group, &column.family, is_constant.then_some(column.qualifier.as_slice())))
            .collect(),
    }
}
