//! Rejected events, and their removal from a batch.

use arrow::array::BooleanArray;
use arrow::compute::filter;

use crate::encode::batch::{EncodedBatch, EncodedGroup};
use crate::error::{EncodeError, LayoutReject, RejectReason};
use crate::plan::Layout;

/// Rejected events: event, field at fault, reason.
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

/// Removes rejected rows, with all their events.
pub(super) fn drop_rejected(
    layout: &Layout,
    laid_out: EncodedBatch,
    rejects: Rejects,
) -> Result<EncodedBatch, EncodeError> {
    let EncodedBatch { rows, prefix, tail, time, groups, mut rejected } = laid_out;
    let events = prefix.len();
    let row_of = |event: usize| rows.as_ref().map_or(event, |rows| rows.get(event).map_or(event, |row| *row as usize));
    let mut list = rejects.list;
    list.sort_by_key(|(event, ..)| *event);
    for (event, field, reason) in list {
        let row = row_of(event);
        if rejected.last().is_none_or(|last: &LayoutReject| last.row != row) {
            let column = field.and_then(|field| layout.name(field));
            rejected.push(LayoutReject { row, column, reason });
        }
    }
    let mut bad = rejected.iter().map(|reject| reject.row).peekable();
    let keep: Vec<bool> = (0..events)
        .map(|event| {
            let row = row_of(event);
            while bad.next_if(|bad| *bad < row).is_some() {}
            bad.peek() != Some(&row)
        })
        .collect();
    let kept_rows = (0..events).zip(&keep).filter(|(_, keep)| **keep).map(|(event, _)| row_of(event) as u32).collect();
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

fn kept<T>(values: Vec<T>, keep: &[bool]) -> Vec<T> {
    values.into_iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| value).collect()
}
