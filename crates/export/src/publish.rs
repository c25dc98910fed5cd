//! Publishing one part of an export, and listing it.

use std::collections::BTreeMap;

use datafusion::error::DataFusionError;
use datafusion::physical_plan::execute_stream;
use datafusion::scalar::ScalarValue;
use futures::TryStreamExt;
use parquet::errors::ParquetError;
use tidetable_sql::{Session, SqlError};
use tidetable_sstable::ReadAt;
use tidetable_store::{Part, Published, Store};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{ExportError, Result};
use crate::ordering::sorting_columns;
use crate::shape::{columns, duplicate, file_schema, to_file};
use crate::writer::{FileWriter, WrittenFile, hexadecimal};

/// The one file of a part. One, so that a restated part is replaced at once.
pub(crate) const FILE: &str = "part-0.parquet";
const COMPARED: u64 = 1 << 20;

/// A part to publish.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// Where to.
    pub store: &'a Store,
    /// What the query sees: a session restricted to the part.
    pub session: &'a Session,
    /// Name of the export.
    pub export: &'a str,
    /// The job it belongs to.
    pub job: &'a str,
    /// Name of the part's folder, such as `SENSOR_20180101`.
    pub folder: &'a str,
    /// Label of the part, such as `2018-01-01`.
    pub label: &'a str,
    /// The query.
    pub sql: &'a str,
    /// Values for its `$name` parameters.
    pub params: &'a [(&'a str, ScalarValue)],
    /// Fingerprint of the query and its settings.
    pub query: &'a str,
    /// For each table read, the last version that changed what the part shows.
    pub sources: &'a BTreeMap<String, u64>,
    /// Logical time of the run, microseconds.
    pub now: i64,
    /// The run.
    pub run: &'a str,
    /// The part as it was listed before.
    pub previous: Option<&'a Part>,
}

/// What publishing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There was no such part before.
    Created,
    /// Its file was replaced.
    Replaced,
    /// Its file holds these very bytes already, and was not touched.
    Unchanged,
    /// The query gave no row and there was no such part: nothing was written.
    Skipped,
}

/// A part after publishing. [`record`] lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPart {
    /// Label of the part.
    pub label: String,
    /// What was done.
    pub outcome: Outcome,
    /// What to list; `None` if it was skipped.
    pub part: Option<Part>,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// A file of the part under a former name, which no list names once this part is recorded.
    pub obsolete: Option<String>,
}

/// Runs the query and puts its rows into the part's file. The query runs as one part, so that the same
/// data makes the same bytes; publish several parts at a time to use all cores.
///
/// # Errors
/// [`ExportError`]; what was published before is still there.
pub async fn publish(request: &PublishRequest<'_>) -> Result<PublishedPart> {
    let failed = |source: SqlError| ExportError::Query {
        export: request.export.to_owned(),
        label: request.label.to_owned(),
        source: Box::new(source),
    };
    let engine = |source: DataFusionError| failed(source.into());
    let frame = request.session.sequential().sql_with(request.sql, request.params).await.map_err(failed)?;
    let context = frame.task_ctx();
    let plan = frame.create_physical_plan().await.map_err(engine)?;
    let schema = file_schema(&plan.schema());
    if let Some(column) = duplicate(&schema) {
        return Err(ExportError::DuplicateColumn { export: request.export.to_owned(), column: column.to_owned() });
    }
    let sorting = sorting_columns(plan.as_ref(), &schema);
    let path = format!("exports/{}/{FILE}", request.folder);
    let parquet = |source: ParquetError| ExportError::Parquet { path: path.clone(), source };
    let metadata =
        [("tidetable.export", request.export), ("tidetable.label", request.label), ("tidetable.job", request.job)];
    let create = || -> Result<FileWriter> {
        let blob = request.store.blobs().replacer(&path)?;
        FileWriter::new(blob, schema.clone(), sorting.clone(), &metadata).map_err(parquet)
    };
    let mut stream = execute_stream(plan, context.into()).map_err(engine)?;
    // Made with the first row, so that a part without rows leaves no folder behind.
    let mut writer = None;
    let mut rows = 0;
    while let Some(batch) = stream.try_next().await.map_err(engine)? {
        if batch.num_rows() == 0 {
            continue;
        }
        rows += batch.num_rows() as u64;
        let batch = to_file(&batch, &schema).map_err(|error| parquet(error.into()))?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(create()?),
        };
        writer.write(&batch).map_err(parquet)?;
    }
    let mut published = PublishedPart {
        label: request.label.to_owned(),
        outcome: Outcome::Skipped,
        part: None,
        columns: columns(&schema),
        obsolete: None,
    };
    let writer = match writer {
        Some(writer) => writer,
        // Readers of a part that was there must find it, empty.
        None if request.previous.is_some() => create()?,
        None => return Ok(published),
    };
    let file = writer.finish().map_err(parquet)?;
    let part = Part {
        folder: request.folder.to_owned(),
        file: FILE.to_owned(),
        rows,
        bytes: file.bytes,
        checksum: file.checksum.clone(),
        query: request.query.to_owned(),
        sources: request.sources.clone(),
        now: request.now,
        run: request.run.to_owned(),
    };
    let before = request.previous.map(Part::path).filter(|before| *before != path);
    published.outcome = if before.is_none() && request.previous.is_some() && holds(request.store, &path, &file)? {
        Outcome::Unchanged
    } else {
        file.publish()?;
        if request.previous.is_some() { Outcome::Replaced } else { Outcome::Created }
    };
    published.obsolete = before;
    published.part = Some(part);
    Ok(published)
}

/// Whether the file at `path` has the bytes of `file`. Asks the file itself, for a run that stopped may
/// have replaced it without listing that.
fn holds(store: &Store, path: &str, file: &WrittenFile) -> Result<bool> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let blobs = store.blobs();
    if !blobs.list(folder)?.iter().any(|known| known == name) {
        return Ok(false);
    }
    let there = blobs.open(path)?;
    if there.len() != file.bytes {
        return Ok(false);
    }
    let checksum = checksum(there.as_ref()).map_err(|source| ExportError::Compare { path: path.to_owned(), source })?;
    Ok(checksum == file.checksum)
}

/// xxh3-128 of a file, hexadecimal.
pub(crate) fn checksum_of(bytes: &[u8]) -> String {
    let mut hash = Xxh3::new();
    hash.update(bytes);
    hexadecimal(&hash)
}

fn checksum(file: &dyn ReadAt) -> std::io::Result<String> {
    let mut hash = Xxh3::new();
    let mut at = 0;
    while at < file.len() {
        let length = COMPARED.min(file.len() - at);
        hash.update(&file.read_at(at, length as usize)?);
        at += length;
    }
    Ok(hexadecimal(&hash))
}

/// Lists `parts` in `published`, saves the list, and removes files that no list names any more. Call
/// it after each part, or after many: what is published and not listed is published again.
///
/// # Errors
/// If the list cannot be written; then the list is the old one or the new.
pub fn record(store: &Store, published: &mut Published, job: &str, parts: &[PublishedPart]) -> Result<()> {
    let listed: Vec<&PublishedPart> = parts.iter().filter(|part| part.part.is_some()).collect();
    let Some(last) = listed.last() else { return Ok(()) };
    job.clone_into(&mut published.job);
    published.columns.clone_from(&last.columns);
    for published_part in &listed {
        if let Some(part) = &published_part.part {
            published.parts.insert(published_part.label.clone(), part.clone());
        }
    }
    let blobs = store.blobs().as_ref();
    published.save(blobs)?;
    let obsolete: Vec<&str> = listed.iter().filter_map(|part| part.obsolete.as_deref()).collect();
    if obsolete.is_empty() {
        return Ok(());
    }
    // Another export may have taken the name in the meantime.
    let lists = Published::all(blobs)?;
    let named = |path: &str| lists.iter().flat_map(|list| list.parts.values()).any(|part| part.path() == path);
    obsolete.into_iter().filter(|path| !named(path)).try_for_each(|path| blobs.delete(path)).map_err(Into::into)
}
