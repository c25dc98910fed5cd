//! What a `ReadRows` request asks for.

use tidetable_cells::CellScan;
use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::cells::BatchScan;
use crate::proto::data::read_rows_request::RequestStatsView;
use crate::proto::data::{ReadRowsRequest, RowRange, RowSet, row_range};
use crate::serve::filter::{CompiledFilter, Filter, Wanted, compile};
use crate::serve::refusal::Refusal;

/// Of a request with a filter, its patterns and its lists of cells have such a part of the memory each; a row has the rest.
const SHARES: usize = 8;

/// What a request asks for, once it is found valid.
#[derive(Debug)]
pub(crate) struct RowsPlan {
    /// Row keys: disjoint, ascending.
    ranges: Vec<KeyRange>,
    reversed: bool,
    pub(crate) filter: Option<CompiledFilter>,
    /// Bytes that the request may hold.
    memory: usize,
    /// Greatest number of rows; 0 if there is none.
    pub(crate) limit: u64,
    /// Whether statistics are wanted.
    pub(crate) stats: bool,
    /// Whether the client understands how far a scan has come.
    pub(crate) last_scanned: bool,
}

impl RowsPlan {
    /// Checks a request, which may hold `memory` bytes. `last_scanned`: whether its client understands how far a scan has
    /// come. May take long, to compile patterns.
    ///
    /// # Errors
    /// If it is not valid.
    pub(crate) fn new(request: &ReadRowsRequest, last_scanned: bool, memory: usize) -> Result<Self, Refusal> {
        if !request.authorized_view_name.is_empty() {
            return Err(Refusal::Unserved { what: "an authorized view" });
        }
        if !request.materialized_view_name.is_empty() {
            return Err(Refusal::Unserved { what: "a materialized view" });
        }
        let limit = u64::try_from(request.rows_limit).map_err(|_| Refusal::Field {
            field: "rows_limit",
            problem: format!("it must not be negative, and is {}", request.rows_limit),
        })?;

        let filter = request.filter.as_ref().map(|filter| compile(filter, memory / SHARES)).transpose()?;
        let filter = filter.filter(|filter| !matches!(filter.root, Filter::All));
        Ok(Self {
            ranges: ranges(request.rows.as_ref())?,
            reversed: request.reversed,
            filter,
            memory,
            limit,
            stats: request.request_stats_view == i32::from(RequestStatsView::RequestStatsFull),
            last_scanned: last_scanned && !request.reversed,
        })
    }

    /// Bytes that lists of cells may hold while the filter is evaluated.
    pub(crate) fn list_memory(&self) -> usize {
        self.memory / SHARES
    }

    /// Bytes that a row may hold: what patterns and lists leave.
    fn row_memory(&self) -> usize {
        match &self.filter {
            Some(_) => self.memory - 2 * (self.memory / SHARES),
            None => self.memory,
        }
    }

    /// The scan that has all cells of the answer.
    pub(crate) fn scan(&self, snapshot: Snapshot) -> BatchScan {
        // Statistics tell of all rows that the request names.
        let wanted = match &self.filter {
            Some(filter) if !self.stats => Wanted::of(&filter.root),
            _ => Wanted::everything(),
        };
        let ranges = wanted.ranges(&self.ranges);
        let (columns, times) = (wanted.columns(), wanted.times.clone());
        let scan = CellScan { keys: ranges, reversed: self.reversed, columns, times, ..CellScan::new(snapshot) };
        BatchScan { scan, values: wanted.values, most_row: self.row_memory() }
    }
}

/// The row keys of a set; an empty one means all.
fn ranges(rows: Option<&RowSet>) -> Result<Vec<KeyRange>, Refusal> {
    let Some(rows) = rows.filter(|rows| !rows.row_keys.is_empty() || !rows.row_ranges.is_empty()) else {
        return Ok(vec![KeyRange::all()]);
    };
    if rows.row_keys.iter().any(|key| key.is_empty()) {
        return Err(Refusal::Field { field: "row_keys", problem: "Row keys must be non-empty".to_owned() });
    }
    let keys = rows.row_keys.iter().map(|key| Ok(KeyRange::of_key(key)));
    let ranges = keys.chain(rows.row_ranges.iter().map(range)).collect::<Result<Vec<_>, Refusal>>()?;
    Ok(KeyRange::disjoint(ranges))
}

fn range(range: &RowRange) -> Result<KeyRange, Refusal> {
    let (start, is_open) = match &range.start_key {
        None => (&[][..], false),
        Some(row_range::StartKey::StartKeyClosed(key)) => (key.as_ref(), false),
        Some(row_range::StartKey::StartKeyOpen(key)) => (key.as_ref(), true),
    };
    let (end, is_closed) = match &range.end_key {
        None => (&[][..], false),
        Some(row_range::EndKey::EndKeyOpen(key)) => (key.as_ref(), false),
        Some(row_range::EndKey::EndKeyClosed(key)) => (key.as_ref(), true),
    };
    if !start.is_empty() && !end.is_empty() && start > end {
        return Err(Refusal::Field { field: "row_ranges", problem: "start_key must be less than end_key".to_owned() });
    }

    let start = if is_open && !start.is_empty() { after(start) } else { start.to_vec() };
    let end = match (is_closed, end.is_empty()) {
        (true, _) => Some(after(end)),
        // The key after all.
        (false, true) => None,
        (false, false) => Some(end.to_vec()),
    };
    Ok(KeyRange { start, end })
}

/// The key that comes next after `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use row_range::EndKey::{EndKeyClosed, EndKeyOpen};
    use row_range::StartKey::{StartKeyClosed, StartKeyOpen};

    use super::*;
    use crate::proto::data::{RowFilter, row_filter};

    fn of(
        start: Option<row_range::StartKey>,
        end: Option<row_range::EndKey>,
    ) -> Result<(String, Option<String>), Refusal> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let found = range(&RowRange { start_key: start, end_key: end })?;
        Ok((text(found.start), found.end.map(text)))
    }

    #[test]
    fn ranges_are_open_or_closed() {
        let (closed, open) = (StartKeyClosed("b".into()), StartKeyOpen("b".into()));
        assert_eq!(of(Some(closed.clone()), Some(EndKeyOpen("c".into()))), Ok(("b".into(), Some("c".into()))));
        assert_eq!(of(Some(open), Some(EndKeyClosed("c".into()))), Ok(("b\0".into(), Some("c\0".into()))));
        assert_eq!(of(None, None), Ok((String::new(), None)));
        assert_eq!(of(Some(StartKeyOpen("".into())), Some(EndKeyOpen("".into()))), Ok((String::new(), None)));
        assert_eq!(of(None, Some(EndKeyClosed("".into()))), Ok((String::new(), Some("\0".into()))));
        assert!(of(Some(closed), Some(EndKeyOpen("a".into()))).is_err());
    }

    #[test]
    fn row_lists_and_patterns_together_have_the_memory_of_a_request() {
        let memory = 1 << 20;
        let pattern = RowFilter { filter: Some(row_filter::Filter::ValueRegexFilter("a+".into())) };
        for filter in [None, Some(pattern)] {
            let request = ReadRowsRequest { filter, ..ReadRowsRequest::default() };
            let plan = RowsPlan::new(&request, false, memory).unwrap();
            let of_filter = plan.filter.as_ref().map_or(0, |_| 2 * plan.list_memory());
            assert_eq!(plan.row_memory() + of_filter, memory);
            assert!(plan.row_memory() >= memory / 4 * 3);
        }
    }

    #[test]
    fn sets_are_disjoint_and_ascend() {
        let closed = |start: &'static str, end: &'static str| RowRange {
            start_key: Some(StartKeyClosed(start.into())),
            end_key: Some(EndKeyClosed(end.into())),
        };
        let set = |row_keys: &[&'static str], row_ranges: Vec<RowRange>| {
            let row_keys = row_keys.iter().map(|key| (*key).into()).collect();
            ranges(Some(&RowSet { row_keys, row_ranges }))
        };
        let found = set(&["x", "c", "x"], vec![closed("a", "d"), closed("d", "e")]).unwrap();
        let starts: Vec<&[u8]> = found.iter().map(|range| range.start.as_slice()).collect();
        assert_eq!(starts, [b"a", b"x"]);
        assert_eq!(set(&[], vec![]).unwrap(), ranges(None).unwrap());
        assert!(set(&[""], vec![]).is_err());
    }
}
