//! Which rows an output block has, and from which sources each comes. Pure: reads keys only.

use std::cmp::Ordering;
use std::ops::Range;

use tidetable_layout::Block;

/// A source during planning: its block and the next row of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) block: &'a Block,
    pub(super) row: usize,
}

/// The rows of an output block, in key order.
#[derive(Debug, Default)]
pub(super) struct BlockPlan {
    pub(super) steps: Vec<Step>,
}

/// Some rows of an output block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Rows that only this source has.
    Copy { source: usize, rows: Range<usize> },
    /// One row that several sources have: (source, row) each, older first.
    Combine { rows: Vec<(usize, usize)> },
}

impl BlockPlan {
    /// Plans up to `limit` rows, or until one source's block is used up, and moves `heads` past them.
    pub(super) fn new(heads: &mut [Head<'_>], limit: usize) -> Self {
        let mut plan = Self::default();
        let mut planned = 0;
        let mut least = Vec::with_capacity(heads.len());
        while planned < limit && heads.iter().all(|head| head.row < head.block.keys.len()) {
            let next = least_heads(heads, &mut least);
            match least.as_slice() {
                [source] => {
                    let rows = run_before(&heads[*source], next.map(|next| &heads[next]), limit - planned);
                    planned += rows.len();
                    heads[*source].row = rows.end;
                    plan.copy(*source, rows);
                }
                several => {
                    plan.steps.push(Step::Combine { rows: several.iter().map(|s| (*s, heads[*s].row)).collect() });
                    several.iter().for_each(|source| heads[*source].row += 1);
                    planned += 1;
                }
            }
        }
        plan
    }

    fn copy(&mut self, source: usize, rows: Range<usize>) {
        match self.steps.last_mut() {
            Some(Step::Copy { source: last, rows: before }) if *last == source && before.end == rows.start => {
                before.end = rows.end;
            }
            _ => self.steps.push(Step::Copy { source, rows }),
        }
    }
}

fn compare(a: &Head<'_>, b: &Head<'_>) -> Ordering {
    a.block.keys.compare(a.row, &b.block.keys, b.row)
}

/// Puts the heads with the least key into `least`, in order; returns one with the next key.
fn least_heads(heads: &[Head<'_>], least: &mut Vec<usize>) -> Option<usize> {
    least.clear();
    let mut next: Option<usize> = None;
    for (at, head) in heads.iter().enumerate() {
        let order = least.first().map_or(Ordering::Less, |first| compare(head, &heads[*first]));
        match order {
            Ordering::Less => {
                next = least.first().copied();
                least.clear();
                least.push(at);
            }
            Ordering::Equal => least.push(at),
            Ordering::Greater => {
                if next.is_none_or(|next| compare(head, &heads[next]).is_lt()) {
                    next = Some(at);
                }
            }
        }
    }
    next
}

/// The rows of `head` that come before the row of `next`, at most `limit`, at least one.
fn run_before(head: &Head<'_>, next: Option<&Head<'_>>, limit: usize) -> Range<usize> {
    let end = head.block.keys.len().min(head.row + limit);
    let Some(next) = next else { return head.row..end };
    let before = |row: usize| head.block.keys.compare(row, &next.block.keys, next.row).is_lt();
    // Runs are often one row long (a day of each meter) or very long: gallop, then bisect.
    let (mut low, mut step) = (head.row + 1, 1);
    while low < end && before(low) {
        low += step;
        step *= 2;
    }
    let (mut low, mut high) = (low.saturating_sub(step / 2).max(head.row + 1), low.min(end));
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    head.row..low
}
