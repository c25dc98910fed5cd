//! Compares an export with the tables that it reads, and with what was published of it.

use std::collections::BTreeMap;

use tidetable_export::{ExportError, adopt, found_instead};
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::{Part as ListedPart, Published, Snapshot};

use super::super::error::RunError;
use super::super::parts::{Part, Wanted};
use super::decide::{Compared, Made};
use super::{PublishStage, owned};
use crate::job::{Export, ExportMode};
use crate::period::Period;

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
        if self.mend(&compared, &mut published)? && !self.options.looks_only {
            // For queries that add to what was published.
            published.save(blobs)?;
        }
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

    /// A part whose files are others than those listed, as a run leaves it that is stopped on its way, is the part it was; one
    /// of which a file is gone counts as not published, unless what is left of it cannot be made again. Returns whether there
    /// are other files.
    fn mend(&self, compared: &Compared<'_>, published: &mut Published) -> Result<bool, RunError> {
        let export = compared.export;
        let blobs = self.store.blobs().as_ref();
        let mut gone = Vec::new();
        for (label, part) in &published.parts {
            let names = blobs.list(&format!("exports/{}", part.folder))?;
            let files = part.files();
            let there = files.iter().filter(|file| names.contains(&file.file)).count();
            if there == files.len() {
                continue;
            }
            let sealed = || Period::of_label(export.per, label).is_some_and(|period| compared.is_sealed(&period));
            if there > 0 && export.mode != ExportMode::Replace {
                return Err(ExportError::Partial { folder: part.folder.clone() }.into());
            }
            if there == 0 || self.options.force || !sealed() {
                gone.push((label.clone(), found_instead(self.store, (&export.name, label), part)?));
            }
        }
        let found = gone.iter().any(|(_, instead)| instead.is_some());
        for (label, instead) in gone {
            match instead {
                Some(part) => drop(published.parts.insert(label, part)),
                None => drop(published.parts.remove(&label)),
            }
        }
        Ok(found)
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
