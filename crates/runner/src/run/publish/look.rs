//! Compares an export with the tables that it reads, and with what was published of it.

use std::collections::BTreeMap;

use tidetable_export::adopt;
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::{Blobs, Part as ListedPart, Published, Snapshot, StoreError};

use super::super::error::RunError;
use super::super::parts::{Part, Wanted};
use super::decide::{Compared, Made};
use super::{PublishStage, owned};
use crate::job::Export;

/// An export that was compared with its tables.
pub(in crate::run) struct Looked<'a> {
    pub(super) export: &'a Export,
    pub(super) session: Session,
    /// The tables it reads.
    pub(super) tables: Vec<String>,
    /// Their versions.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) published: Published,
    /// Fingerprint of the query and its settings.
    pub(super) query: String,
    /// Folders that other jobs publish, each with its job.
    pub(super) others: BTreeMap<String, String>,
    /// The parts to publish.
    pub(in crate::run) parts: Vec<Part>,
    /// How many parts are not.
    pub(in crate::run) unchanged: usize,
}

impl<'a> PublishStage<'a> {
    /// Compares `export` with `tables`, those it reads.
    pub(in crate::run) fn look(
        &self,
        export: &'a Export,
        tables: &[String],
        wanted: &Wanted<'_>,
    ) -> Result<Looked<'a>, RunError> {
        let query_error = |error| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(query_error)?;
        let snapshots: Vec<Snapshot> =
            tables.iter().map(|table| self.store.snapshot(table)).collect::<Result<_, _>>()?;
        let blobs = self.store.blobs().as_ref();
        let mut published = Published::load(blobs, &export.name)?;
        let others = self.check_owner(export, &published)?;
        let compared = Compared { export, zone: self.job.timezone, snapshots: &snapshots, now: self.options.now };
        let query = compared.fingerprint();
        if published.parts.is_empty() {
            self.found_without_list(export, &compared.periods(&published), &query, &mut published)?;
        }
        forget_missing(blobs, &mut published)?;
        let (parts, unchanged) = compared.parts(&published, &query, wanted);
        let tables = tables.to_vec();
        Ok(Looked { export, session, tables, snapshots, published, query, others, parts, unchanged })
    }

    /// Published files without the list of them are taken as they are, published over, or refused: whatever was asked.
    fn found_without_list(
        &self,
        export: &Export,
        made: &[Made],
        query: &str,
        published: &mut Published,
    ) -> Result<(), RunError> {
        if self.options.rebuild {
            return Ok(());
        }
        for Made { period, sources } in made {
            let (folder, label) = (export.name_template.render_at(period.start), period.label());
            let Some(found) = adopt(self.store, &export.name, &folder, &label, export.format)? else { continue };
            if !self.options.adopt {
                return Err(RunError::ListMissing { export: export.name.clone(), folder });
            }
            self.job.name.clone_into(&mut published.job);
            published.columns = found.columns;
            let part = ListedPart {
                query: query.to_owned(),
                sources: sources.clone(),
                now: self.options.now,
                run: self.options.run.clone(),
                ..found.part
            };
            published.parts.insert(label, part);
        }
        if !published.parts.is_empty() && !self.options.looks_only {
            published.save(self.store.blobs().as_ref())?;
        }
        Ok(())
    }

    /// Refuses to publish under the name of another job's export. Returns the folders that other jobs
    /// publish, each with its job.
    fn check_owner(&self, export: &Export, published: &Published) -> Result<BTreeMap<String, String>, RunError> {
        if !published.job.is_empty() && published.job != self.job.name {
            return Err(owned(export, &export.name, &published.job));
        }
        let lists = Published::all(self.store.blobs().as_ref())?;
        let others = lists.into_iter().filter(|list| list.job != self.job.name);
        Ok(others.flat_map(|list| list.parts.into_values().map(move |part| (part.folder, list.job.clone()))).collect())
    }
}

/// A part of which a file is gone counts as not published.
fn forget_missing(blobs: &dyn Blobs, published: &mut Published) -> Result<(), StoreError> {
    let mut missing = Vec::new();
    for (label, part) in &published.parts {
        let names = blobs.list(&format!("exports/{}", part.folder))?;
        if !part.files().iter().all(|file| names.contains(&file.file)) {
            missing.push(label.clone());
        }
    }
    missing.iter().for_each(|label| drop(published.parts.remove(label)));
    Ok(())
}
