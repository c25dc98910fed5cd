//! What distinguishes the records of a row when files are merged.

use std::collections::HashSet;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Group, Projection, StoredSchema};

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

/// Least and greatest timestamp.
pub(super) type Bounds = (i64, i64);

impl Identity {
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
        let is_timed = |group: &usize| schema.groups[*group].timestamps == TimestampKind::Stored;
        match groups.as_slice() {
            [group] if has_gc && schema.groups[*group].qualifier == QualifierKind::Dynamic => {
                Self::Versions { group: *group }
            }
            _ if has_gc => Self::Row,
            [group] => Self::Cell { group: *group },
            [_, ..] if groups.iter().all(is_timed) => Self::Time { groups },
            _ => Self::Row,
        }
    }

    /// The projection of qualifiers and timestamps that distinguish records.
    pub(super) fn projection(&self, schema: &StoredSchema) -> Projection {
        let wanted = |(at, group): (usize, &Group)| {
            self.groups().contains(&at).then(|| GroupProjection {
                qualifiers: !matches!(self, Self::Time { .. }),
                timestamps: true,
                columns: vec![false; group.columns.len()],
                sums: false,
            })
        };
        Projection { groups: schema.groups.iter().enumerate().map(wanted).collect() }
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
        let of_group = |group: &usize| {
            let group = block.groups.get(*group)?.as_ref()?;
            group.timestamps.as_ref()?.get(group.records(row))
        };
        let mut times = self.groups().iter().filter_map(of_group).flatten();
        let first = *times.next()?;
        Some(times.fold((first, first), |(least, greatest), time| (least.min(*time), greatest.max(*time))))
    }

    /// Whether a merge joins records of two parts of a row. It does for a part without: that may stand for an empty row.
    pub(super) fn collide(&self, (one, row): (&Block, usize), (other, other_row): (&Block, usize)) -> bool {
        let (cells, others) = (self.cells(one, row), self.cells(other, other_row));
        cells.is_empty() || others.is_empty() || share(&cells, &others)
    }
}

/// Qualifier and timestamp.
type Cell<'a> = (&'a [u8], i64);

/// The qualifiers and timestamps of a row in a group; those that it does not have are empty and 0.
fn cells(block: &Block, group: usize, row: usize) -> Vec<Cell<'_>> {
    let Some(Some(group)) = block.groups.get(group) else { return Vec::new() };
    let qualifier = |record: usize| {
        let qualifiers = group.qualifiers.as_ref()?;
        qualifiers.dictionary.get(*qualifiers.codes.get(record)? as usize).map(AsRef::as_ref)
    };
    let time = |record: usize| group.timestamps.as_ref().and_then(|times| times.get(record).copied());
    group.records(row).map(|record| (qualifier(record).unwrap_or_default(), time(record).unwrap_or_default())).collect()
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
