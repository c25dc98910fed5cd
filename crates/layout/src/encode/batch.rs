//! Encoded batches: what an encoder returns for a batch of the source.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::BooleanBuffer;

use crate::encode::dictionary::Dictionary;
use crate::error::LayoutReject;

/// A batch in stored form: one entry per accepted event, in source order.
#[derive(Debug, Clone)]
pub struct EncodedBatch {
    /// The batch row of each event; `None` if event `i` is row `i`.
    pub rows: Option<Vec<u32>>,
    /// For each event, the code of its key's prefix in [`Encoder::prefixes`](crate::encode::Encoder::prefixes).
    pub prefix: Vec<u32>,
    /// For each event, its key's tail; empty if keys have none.
    pub tail: Vec<u64>,
    /// Event time in microseconds, not truncated. It determines the window.
    pub time: Vec<i64>,
    /// The cells of each group, in the order of the stored schema.
    pub groups: Vec<EncodedGroup>,
    /// The rejected rows of the batch, once each, ascending.
    pub rejected: Vec<LayoutReject>,
}

/// The cells of one group. An event without a value in any column has no cell in the group.
#[derive(Debug, Clone)]
pub struct EncodedGroup {
    /// For each event, its code in [`Encoder::qualifiers`](crate::encode::Encoder::qualifiers), if the group is dynamic.
    pub qualifier: Option<Vec<u32>>,
    /// For each event, its cells' timestamp in microseconds; `None` if all are 0.
    pub timestamps: Option<Vec<i64>>,
    /// One for each column of the group; null where there is no cell.
    pub columns: Vec<ArrayRef>,
}

/// The dictionaries of an encoder, which the codes of its batches refer to.
#[derive(Debug)]
pub struct Dictionaries {
    /// The prefixes of row keys, in order of first appearance.
    pub prefixes: Dictionary,
    /// Qualifiers of each group; `None` if it is constant.
    pub qualifiers: Vec<Option<Dictionary>>,
}

impl EncodedBatch {
    /// The events without a value in any column, ascending.
    pub fn without_cells(&self) -> Vec<usize> {
        let mut some: Option<BooleanBuffer> = None;
        for column in self.groups.iter().flat_map(|group| &group.columns) {
            let Some(nulls) = column.nulls().filter(|_| column.null_count() > 0) else { return Vec::new() };
            some = Some(match some {
                Some(before) => &before | nulls.inner(),
                None => nulls.inner().clone(),
            });
        }
        some.map_or(Vec::new(), |some| (0..some.len()).filter(|event| !some.value(*event)).collect())
    }
}
