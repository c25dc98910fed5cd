//! Rejected events, and their removal from a batch.

use arrow::array::BooleanArray;
use arrow::compute::filter;

use crate::encode::batch::{EncodedBatch, EncodedGroup};
use crate::error::{EncodeError, LayoutReject, RejectReason};
use crate::plan::Layout;

/// The rejected events of a batch: event, field at fault, reason.
#[derive(Debug, Default)]
pub(crate) struct Rejects {
    pub(crate) list: Vec<(usize, Option<usize>, RejectReason)>,
}

impl Rejects {
    #[cold]
    pub(crate) fn push(&mut self, event: usize, field: Option<usize>, reason: RejectReason) {
        self.list.push((event, field, reason));
    }
}

/// Removes rejected rows from a batch, with all their events, and lists each row once with its first reason.
pub(super) fn drop_rejected(
    layout: &Layout,
    encoded: EncodedBatch,
    rejects: Rejects,
) -> Result<EncodedBatch, EncodeError> {
    let EncodedBatch { rows, prefix, tail, time, groups, mut rejected } = encoded;
    let events = prefix.len();
    let mut list = rejects.list;
    list.sort_by_key(|(event, ..)| *event);
    for (event, field, reason) in list {
        let row = row_of(rows.as_deref(), event);
        if rejected.last().is_none_or(|last: &LayoutReject| last.row != row) {
            let column = field.and_then(|field| layout.name(field));
            rejected.push(LayoutReject { row, column, reason });
        }
    }

    let mut bad = rejected.iter().map(|reject| reject.row).peekable();
    let keep: Vec<bool> = (0..events)
        .map(|event| {
            let row = row_of(rows.as_deref(), event);
            while bad.next_if(|bad| *bad < row).is_some() {}
            bad.peek() != Some(&row)
        })
        .collect();
    let kept_events = (0..events).zip(&keep).filter(|(_, keep)| **keep);
    let kept_rows = kept_events.map(|(event, _)| row_of(rows.as_deref(), event) as u32).collect();

    let mask = BooleanArray::from(keep.clone());
    let mut kept_groups = Vec::with_capacity(groups.len());
    for group in groups {
        kept_groups.push(EncodedGroup {
            qualifier: group.qualifier.map(|codes| kept(codes, &keep)),
            timestamps: group.timestamps.map(|times| kept(times, &keep)),
            columns: group.columns.iter().map(|array| filter(array.as_ref(), &mask)).collect::<Result<_, _>>()?,
        });
    }

    Ok(EncodedBatch {
        rows: Some(kept_rows),
        prefix: kept(prefix, &keep),
        tail: kept(tail, &keep),
        time: kept(time, &keep),
        groups: kept_groups,
        rejected,
    })
}

/// The row of the batch that an event comes from.
fn row_of(rows: Option<&[u32]>, event: usize) -> usize {
    rows.and_then(|rows| rows.get(event)).map_or(event, |row| *row as usize)
}

/// The values of the events that are kept.
fn kept<T>(values: Vec<T>, keep: &[bool]) -> Vec<T> {
    values.into_iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| value).collect()
}
