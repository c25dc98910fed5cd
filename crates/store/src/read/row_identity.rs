//! What distinguishes the records of a row when files are merged.

use std::collections::HashSet;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Projection, StoredSchema};

/// Rows with at most so many records are compared without a set.
const SHORT: usize = 8;

/// What distinguishes the records of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// Nothing: a row is a record.
    Row,
    /// Qualifier and timestamp of the only group with several records a row.
    Cell { group: usize },
    /// Its qualifier alone: rules count or date the versions of a cell.
    Versions { group: usize },
    /// The timestamps of several groups, whose records are joined by time.
    Time { groups: Vec<usize> },
}

/// A block, and the index of a row in it.
pub(super) type PartOfRow<'a> = (&'a Block, usize);

/// Least and greatest timestamp.
pub(super) type Bounds = (i64, i64);

impl Identity {
    /// What distinguishes the records that a scan with this projection reads; `has_gc`: garbage-collection rules apply.
    pub(super) fn new(schema: &StoredSchema, projection: &Projection, has_gc: bool) -> Self {
        let mut groups = Vec::new();
        for (at, (group, wanted)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            let Some(wanted) = wanted else { continue };
            match (group.qualifier, group.timestamps) {
                // Cells of the row. They are in each of its parts; where a value is read the newest one counts.
                (QualifierKind::Constant, TimestampKind::Zero) if wanted.columns.contains(&true) => return Self::Row,
                (QualifierKind::Constant, TimestampKind::Zero) => {}
                _ => groups.push(at),
            }
        }

        let are_timed = groups.iter().all(|group| schema.groups[*group].timestamps == TimestampKind::Stored);
        match groups.as_slice() {
            [group] if has_gc && schema.groups[*group].qualifier == QualifierKind::Dynamic => {
                Self::Versions { group: *group }
            }
            _ if has_gc => Self::Row,
            [group] => Self::Cell { group: *group },
            [_, ..] if are_timed => Self::Time { groups },
            _ => Self::Row,
        }
    }

    /// The projection of qualifiers and timestamps that distinguish records.
    pub(super) fn projection(&self, schema: &StoredSchema) -> Projection {
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (index, group) in schema.groups.iter().enumerate() {
            groups.push(self.groups().contains(&index).then(|| GroupProjection {
                qualifiers: !matches!(self, Self::Time { .. }),
                timestamps: true,
                columns: vec![false; group.columns.len()],
                sums: false,
            }));
        }

        Projection { groups }
    }

    /// What distinguishes the records of a row; nothing if the row is a record.
    fn cells<'a>(&self, block: &'a Block, row: usize) -> Vec<Cell<'a>> {
        match self {
            Self::Row => Vec::new(),
            Self::Cell { group } => cells(block, *group, row),
            Self::Versions { group } => {
                cells(block, *group, row).into_iter().map(|(qualifier, _)| (qualifier, 0)).collect()
            }
            Self::Time { groups } => {
                let cells = groups.iter().flat_map(|group| cells(block, *group, row));
                cells.map(|(_, time)| (&[][..], time)).collect()
            }
        }
    }

    /// The groups whose records it distinguishes.
    pub(super) fn groups(&self) -> &[usize] {
        match self {
            Self::Row => &[],
            Self::Cell { group } | Self::Versions { group } => std::slice::from_ref(group),
            Self::Time { groups } => groups,
        }
    }

    /// Bounds of the timestamps of a row; `None` if it has no records, or those of equal qualifiers collide at any time.
    pub(super) fn bounds(&self, block: &Block, row: usize) -> Option<Bounds> {
        if matches!(self, Self::Versions { .. }) {
            return None;
        }

        let groups = self.groups().iter().filter_map(|group| block.groups.get(*group)?.as_ref());
        let mut times = groups.filter_map(|group| group.timestamps.as_ref()?.get(group.records(row))).flatten();
        let first = *times.next()?;
        Some(times.fold((first, first), |(least, greatest), time| (least.min(*time), greatest.max(*time))))
    }

    /// Whether a merge joins records of two parts of a row. It does for a part without: that may stand for an empty row.
    pub(super) fn collide(&self, one: PartOfRow<'_>, other: PartOfRow<'_>) -> bool {
        let (cells, others) = (self.cells(one.0, one.1), self.cells(other.0, other.1));
        cells.is_empty() || others.is_empty() || share(&cells, &others)
    }
}

/// Qualifier and timestamp of a record, by which a merge joins it.
type Cell<'a> = (&'a [u8], i64);

/// The qualifiers and timestamps of a row in a group; those that it does not have are empty and 0.
fn cells(block: &Block, group: usize, row: usize) -> Vec<Cell<'_>> {
    let Some(Some(group)) = block.groups.get(group) else { return Vec::new() };
    let mut cells: Vec<Cell<'_>> = Vec::with_capacity(group.records(row).len());
    for record in group.records(row) {
        let qualifier = group.qualifiers.as_ref().and_then(|qualifiers| {
            let code = *qualifiers.codes.get(record)?;
            qualifiers.dictionary.get(code as usize)
        });
        let time = group.timestamps.as_ref().and_then(|times| times.get(record));
        cells.push((qualifier.map(AsRef::as_ref).unwrap_or_default(), time.copied().unwrap_or_default()));
    }

    cells
}

/// Whether two lists have an element in common.
fn share(one: &[Cell<'_>], other: &[Cell<'_>]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if few.len() <= SHORT {
        return few.iter().any(|cell| many.contains(cell));
    }
    let known: HashSet<&Cell<'_>> = few.iter().collect();
    many.iter().any(|cell| known.contains(cell))
}

/// Whether two parts of a row have no timestamp in common, by their bounds.
pub(super) fn apart(one: Option<Bounds>, other: Option<Bounds>) -> bool {
    one.zip(other).is_some_and(|((first, last), (other_first, other_last))| last < other_first || other_last < first)
}
