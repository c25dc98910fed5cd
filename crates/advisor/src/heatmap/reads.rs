//! What a query reads of a loaded table.

use tidetable_job::workload::{Params, Query};
use tidetable_layout::{KeyRange, Projection, SourceSchema};

use crate::error::{AdvisorError, Result};
use crate::heatmap::map::Heatmap;
use crate::heatmap::stored::{History, StoredTable};
use crate::queries::{draw_specs, plan, records_fields};
use crate::spread::WriteLog;
use crate::trial::{Draw, DrawCollector, DrawSpec};

/// What a query reads, over its draws.
#[derive(Debug)]
pub struct StoredReads {
    /// Source rows read, by row key and by the time at which they were written: a source row counts once for each draw in
    /// whose key ranges its row lies.
    pub map: Heatmap,
    /// The same as a log, in which keys are known from the time of their first write.
    pub log: WriteLog,
    /// The number of draws; 1 for a query without parameters.
    pub draws: usize,
}

/// What `query` reads of a loaded table, with slices at least `width` seconds wide; `None` if the table is empty. Parameters
/// that are drawn come from the table's records.
///
/// # Errors
/// If the predicate is not valid over the records of the table, a parameter has no value, or the table cannot be read.
pub fn stored_reads(table: &StoredTable, query: &Query, width: Option<i64>) -> Result<Option<StoredReads>> {
    let layout = table.snapshot.layout();
    let (spec, drawn) = draws(table, query)?;
    let planned = plan(layout, query, &spec.columns, &drawn)?;
    let Some(history) = table.history(width)? else { return Ok(None) };

    let ranges: Vec<&KeyRange> = planned.iter().flat_map(|draw| &draw.ranges).collect();
    let reads = reads_by_rank(table, &history, &ranges)?;
    let log = history.log.multiplied(&reads);
    let mut map = Heatmap::of_log(&log);
    table.name(&history, &mut map)?;
    Ok(Some(StoredReads { map, log, draws: planned.len() }))
}

/// Rows drawn from the records of the table.
fn draws(table: &StoredTable, query: &Query) -> Result<(DrawSpec, Vec<Draw>)> {
    let snapshot = &table.snapshot;
    let layout = snapshot.layout();
    let source = layout.source();
    let time = source.fields.get(source.time).map(|field| field.name.as_str()).unwrap_or_default();
    let fields = records_fields(layout);
    let at = fields.iter().position(|field| field.name == time);
    let schema = SourceSchema { fields, time: at.unwrap_or_default() };
    let spec = draw_specs(std::slice::from_ref(query), &schema)?.pop().unwrap_or_default();
    if matches!(query.params, Params::Lists(_)) {
        return Ok((spec, Vec::new()));
    }
    if at.is_none() {
        return Err(AdvisorError::NoTimes { table: snapshot.table().name().to_owned() });
    }

    let collector = DrawCollector::new(spec.clone());
    let columns: Vec<usize> = (0..layout.records_schema().fields().len()).collect();
    if let Some(range) = snapshot.whole(&KeyRange::all()) {
        for block in snapshot.scan(&range, &Projection::all(snapshot.schema()))? {
            let records = layout.decode(block?.without_empty_rows(), &columns);
            let records = records
                .map_err(|source| AdvisorError::Decode { layout: snapshot.table().name().to_owned(), source })?;
            collector.look(&records, time, None);
        }
    }
    Ok((spec, collector.finish(None)))
}

/// For each row key, the number of ranges that hold it.
fn reads_by_rank(table: &StoredTable, history: &History, ranges: &[&KeyRange]) -> Result<Vec<u32>> {
    let mut starts: Vec<&[u8]> = ranges.iter().map(|range| range.start.as_slice()).collect();
    let mut ends: Vec<&[u8]> = ranges.iter().filter_map(|range| range.end.as_deref()).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let (mut begun, mut ended, mut reads) = (0_usize, 0_usize, Vec::new());
    table.each_name(history, |key| {
        // Ranges are half-open: one that ends at a key does not hold it.
        while starts.get(begun).is_some_and(|start| *start <= key) {
            begun += 1;
        }
        while ends.get(ended).is_some_and(|end| *end <= key) {
            ended += 1;
        }
        reads.push(u32::try_from(begun.saturating_sub(ended)).unwrap_or(u32::MAX));
    })?;
    Ok(reads)
}
