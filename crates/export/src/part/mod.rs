//! Publishes one part of an export, and updates the list.

pub(crate) mod adopt;
pub(crate) mod draft;
pub(crate) mod files;
pub(crate) mod mode;
pub(crate) mod request;
pub(crate) mod settle;
pub(crate) mod withdraw;

use std::collections::HashSet;

use datafusion::logical_expr::lit;
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use tidetable_sql::SqlError;
use tidetable_store::published::{MadeFrom, Part, Published};
use tidetable_store::{Store, leave_out};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Result;
use crate::file::cell_query::{cell_columns, cells_in_order};
use crate::file::failures::Failures;
use crate::file::format::FileFormat;
use crate::file::rows::Planned;
use crate::file::shape::columns;
use crate::file::spec::FileSpec;
use crate::part::adopt::{MADE, already_made};
use crate::part::draft::{DraftContent, PartDraft};
use crate::part::files::{PartFiles, part_path};
use crate::part::mode::combined;
use crate::part::request::{DayColumn, FileMode, PublishRequest, PublishedPart};
use crate::part::withdraw::EmptyPart;
use crate::table::column_ids::{assigned, with_ids};

/// How long files stay in a bucket after the list has named others, microseconds: readers of the list before may still open
/// them.
const GRACE: i64 = 60 * 60 * 1_000_000;

/// Runs the query and publishes its rows as the files of the part: [`write_part`], then [`PartDraft::settle`].
///
/// # Errors
/// [`ExportError`](crate::ExportError); the published part is unchanged.
pub async fn publish(request: &PublishRequest<'_>) -> Result<PublishedPart> {
    write_part(request).await?.settle(request)
}

/// Runs the query and writes its rows to files that no reader sees yet. The query runs in one partition, so that the same
/// data gives the same bytes; write several parts at a time to use all cores.
///
/// # Errors
/// [`ExportError`](crate::ExportError); the published part is unchanged.
pub async fn write_part(request: &PublishRequest<'_>) -> Result<PartDraft> {
    let file_name = match request.keep_old {
        true => request.format.file_name().replacen('0', request.stem(), 1),
        false => request.format.file_name().to_owned(),
    };
    let made = made_fingerprint(&request.made_from());
    if request.mode != FileMode::Replace && request.previous.is_some() && !request.keep_old {
        // An interrupted run may have appended the rows without listing them, and `force` must not append them twice.
        if let Some(found) = already_made(request.store, request.folder, request.format, &made)? {
            let rows = found.part.rows;
            return Ok(PartDraft { columns: found.columns, rows, file_name, content: DraftContent::Made(found.part) });
        }
    }

    let path = part_path(request.folder, &file_name);
    let failures = Failures { export: request.export, label: request.label, path: &path };
    let frame = rows(request).await.map_err(|error| failures.query(error))?;
    let mut planned = Planned::of(frame, request.types, &failures).await?;
    let columns = columns(&planned.schema);
    if let Some(known) = request.column_ids {
        planned.schema = with_ids(&planned.schema, &assigned(known, &columns));
    }
    let cells = match request.format {
        FileFormat::CbtCsv => cell_columns(request.session, request.sql, request.params).await,
        _ => Ok(Vec::new()),
    };

    let mut metadata =
        vec![("tidetable.export", request.export), ("tidetable.label", request.label), ("tidetable.job", request.job)];
    if request.mode != FileMode::Replace {
        metadata.push((MADE, &made));
    }
    let spec = FileSpec {
        format: request.format,
        schema: planned.schema.clone(),
        sorting: planned.sorting(),
        metadata: &metadata,
        columns: cells.map_err(|error| failures.query(error))?,
    };

    let (files, rows) = planned.write(PartFiles::new(request, &spec, &file_name), &failures).await?;
    let content = if files.is_empty() { DraftContent::NoRows } else { DraftContent::Files(files.finish()?) };
    Ok(PartDraft { columns, rows, file_name, content })
}

impl PublishRequest<'_> {
    /// What the part is made from.
    pub(crate) fn made_from(&self) -> MadeFrom {
        let folder = self.folder.to_owned();
        MadeFrom { query: self.query.to_owned(), sources: self.sources.clone(), folder, is_gap: false }
    }

    /// The same part without rows.
    pub(crate) fn as_empty(&self) -> EmptyPart<'_> {
        let Self { store, export, label, previous, keep_old, .. } = *self;
        EmptyPart { store, export, label, made_from: self.made_from(), previous, keep_old }
    }
}

/// Fingerprint of what a part is made from.
fn made_fingerprint(made: &MadeFrom) -> String {
    let sources: Vec<String> = made.sources.iter().map(|(table, version)| format!("{table} {version}")).collect();
    format!("{:032x}", xxh3_128(format!("{}\0{}", made.query, sources.join("\0")).as_bytes()))
}

/// The rows of the part: those of its query, combined with those published before as the mode says.
async fn rows(request: &PublishRequest<'_>) -> std::result::Result<DataFrame, SqlError> {
    let session = request.session.sequential();
    let frame = session.sql_with(request.sql, request.params).await?;
    if !request.format.holds_rows() {
        return cells_in_order(frame);
    }
    // Engines that do not tell capitals apart would see two columns of one name.
    let missing = request
        .day
        .filter(|day| frame.schema().fields().iter().all(|field| !field.name().eq_ignore_ascii_case(day.name)));
    let rows = combined(&session, frame, request).await?;
    match missing {
        // Rows published before are of the same day, and may be older than the column.
        Some(DayColumn { name, day }) => {
            Ok(rows.with_column(name, lit(ScalarValue::Date32(Some(day.to_epoch_days()))))?)
        }
        None => Ok(rows),
    }
}

/// Adds `parts` to the list `published` and saves it. Call it after each part, or after many: a part that is published
/// but not listed is published again. When all are listed, [`sweep`] removes obsolete files.
///
/// # Errors
/// If the list cannot be written; then it is the old one or the new one.
pub fn record(store: &Store, published: &mut Published, job: &str, parts: &[PublishedPart]) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    job.clone_into(&mut published.job);
    if let Some(last) = parts.iter().rev().find(|part| !part.columns.is_empty()) {
        published.columns.clone_from(&last.columns);
        published.column_ids = published.column_ids.take().map(|known| assigned(&known, &last.columns));
    }
    for PublishedPart { label, part, made_from, .. } in parts {
        if let Some(part) = part {
            published.empty.remove(label);
            let listed = part.paths();
            published.retired.retain(|path, _| !listed.contains(path));
            published.parts.insert(label.clone(), part.clone());
        } else {
            published.parts.remove(label);
            published.empty.insert(label.clone(), made_from.clone());
        }
    }
    published.save(store.blobs().as_ref())?;
    Ok(())
}

/// In a bucket, notes the obsolete files of `parts` in the list, to be saved by [`record`] with the parts: readers of the
/// list before may still read them. `clock` is the time by the clock, microseconds.
pub fn retire(store: &Store, published: &mut Published, parts: &[PublishedPart], clock: i64) {
    if !store.blobs().capabilities().renames {
        let files = parts.iter().flat_map(|part| &part.obsolete);
        published.retired.extend(files.map(|path| (path.clone(), clock)));
    }
}

/// Removes the [retired](retire) files of a list whose time is up.
///
/// # Errors
/// As [`sweep`], or if the list cannot be saved; then the next sweep removes them again.
pub fn sweep_retired(store: &Store, published: &mut Published, clock: i64) -> Result<()> {
    let due = published.retired.extract_if(.., |_, since| clock.saturating_sub(*since) >= GRACE);
    let gone: Vec<String> = due.map(|(path, _)| path).collect();
    if !gone.is_empty() {
        remove(store, &gone)?;
        published.save(store.blobs().as_ref())?;
    }
    Ok(())
}

/// Removes files under former names, unless a list names them: another part or export may have taken the name.
/// Call it only when every published part is listed. In a bucket they stay, [retired](retire).
///
/// # Errors
/// If a file cannot be removed. If a list cannot be read, nothing is removed.
pub fn sweep(store: &Store, obsolete: &[String]) -> Result<()> {
    if obsolete.is_empty() || !store.blobs().capabilities().renames {
        return Ok(());
    }
    remove(store, obsolete)
}

/// Removes obsolete files that no list names.
fn remove(store: &Store, obsolete: &[String]) -> Result<()> {
    let blobs = store.blobs().as_ref();
    let (lists, damaged) = Published::readable(blobs)?;
    if !damaged.is_empty() {
        // The files of a damaged list are unknown: `clean` removes leftovers once it is repaired.
        damaged.iter().for_each(leave_out);
        return Ok(());
    }

    let named: HashSet<String> = lists.iter().flat_map(|list| list.parts.values()).flat_map(Part::paths).collect();
    let goes: Vec<String> = obsolete.iter().filter(|path| !named.contains(*path)).cloned().collect();
    Ok(blobs.delete_all(&goes)?)
}
