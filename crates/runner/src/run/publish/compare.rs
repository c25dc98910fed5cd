//! Compares an export with the tables it reads and with its published files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidetable_blobs::Stat;
use tidetable_export::{ExportError, adopt, appended_unlisted, found_instead};
use tidetable_job::{Export, ExportMode, Per, Period};
use tidetable_sql::{Session, SessionOptions, SqlError};
use tidetable_store::Snapshot;
use tidetable_store::leave_out;
use tidetable_store::published::{FileState, Part as ListedPart, PartFile, Published};

use crate::checks::presence::{holds_records, surely_holds};
use crate::fault::error::RunError;
use crate::fault::threads::joined;
use crate::run::damage::damage_in;
use crate::run::parts::{PartSelection, StalePart};
use crate::run::publish::decide::{ExportInputs, PartDecision, SourcePeriod};
use crate::run::publish::stage::{ExportOwner, Others, PublishStage};

/// An export compared with its tables.
pub(crate) struct ComparedExport<'a> {
    pub(crate) export: &'a Export,
    pub(crate) session: Session,
    /// The tables it reads.
    pub(crate) tables: Vec<String>,
    /// Versions of the tables, as they are read.
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) published: Published,
    /// Fingerprint of the query and its settings.
    pub(crate) query: String,
    /// The parts to publish or withdraw.
    pub(crate) parts: Vec<StalePart>,
    /// Parts without records that were never published.
    pub(crate) empty: Vec<StalePart>,
    /// Labels that failed before and have no records any more.
    pub(crate) gone: Vec<String>,
    /// Notes on its files.
    pub(crate) notes: Vec<String>,
    /// Number of parts that are neither published nor withdrawn.
    pub(crate) unchanged: usize,
}

/// Compared exports by name.
pub(crate) type ComparedExports<'a> = HashMap<String, ComparedExport<'a>>;

impl ComparedExport<'_> {
    /// Whether its tables are unchanged since the comparison.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub(crate) fn is_current(&self) -> Result<bool, RunError> {
        for snapshot in &self.snapshots {
            let (known, latest) = (snapshot.version(), snapshot.table().latest()?);
            if latest.is_none_or(|latest| (latest.number, &latest.commit) != (known.number, &known.commit)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The state of the files of an export.
#[derive(Default)]
struct FileAudit {
    /// Labels of parts with a damaged file; they are published again.
    damaged: HashSet<String>,
    /// Notes for the user, as on files that stay although they are damaged.
    notes: Vec<String>,
    /// Whether the list must be written.
    is_other: bool,
}

/// The files of a part, compared with its list.
#[derive(Default)]
struct PartAudit {
    /// The files, with the stamps that they have now.
    files: Vec<PartFile>,
    /// How many of them exist.
    there: usize,
    /// The last damaged one.
    damaged: Option<String>,
    /// The last missing one.
    missing: Option<String>,
    /// The part with rows that a run appended before it was interrupted.
    appended: Option<ListedPart>,
}

impl<'a> PublishStage<'a> {
    /// Compares `export` with `tables`, those it reads, and with its list `published`.
    pub(crate) fn compare(
        &self,
        export: &'a Export,
        tables: &[String],
        wanted: &PartSelection<'_>,
        mut published: Published,
    ) -> Result<ComparedExport<'a>, RunError> {
        let query_error = |error| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(query_error)?;
        let snapshots: Vec<Snapshot> =
            tables.iter().map(|table| self.store.snapshot(table)).collect::<Result<_, _>>()?;

        let blobs = self.store.blobs().as_ref();
        let (others, mut stats) = self.look_up(export, &published)?;
        let inputs = ExportInputs { export, zone: self.job.timezone, snapshots: &snapshots, now: self.options.now };
        let query = inputs.fingerprint();

        if published.job.is_empty() {
            self.adopt_or_refuse(export, &inputs.periods(&published), &query, &mut published)?;
            stats = blobs.stat_all(&paths(&published))?;
        }

        let before = published.clone();
        let audit = self.audit(&inputs, &mut published, stats)?;
        if audit.is_other && !self.options.plan_only {
            // For queries that add to published rows. Parts to publish again stay listed until then.
            let mut list = published.clone();
            let again = before.parts.into_iter().filter(|(label, _)| audit.damaged.contains(label));
            list.parts.extend(again);
            list.save(blobs)?;
            published.tag = list.tag;
        }

        let PartDecision { mut parts, others: unchanged, mut gone } = inputs.parts(&published, &query, wanted);
        self.find_empty(&session, tables, &snapshots, &mut parts).map_err(query_error)?;
        self.refuse_taken(export, &parts, &others)?;

        let empty: Vec<StalePart> = parts.extract_if(.., |part| part.is_empty && part.previous.is_none()).collect();
        gone.extend(empty.iter().map(|part| part.label.clone()));
        for part in &mut parts {
            if part.is_empty {
                "no records left".clone_into(&mut part.reason);
            } else if audit.damaged.contains(&part.label) {
                "its file is not as published".clone_into(&mut part.reason);
            }
        }

        let mut notes = audit.notes;
        notes.extend(self.undeclared_notes(export, &snapshots));
        let tables = tables.to_vec();
        Ok(ComparedExport {
            export,
            session,
            tables,
            snapshots,
            published,
            query,
            parts,
            empty,
            gone,
            notes,
            unchanged,
        })
    }

    /// Finds the parts for which the tables hold no records.
    fn find_empty(
        &self,
        session: &Session,
        tables: &[String],
        snapshots: &[Snapshot],
        parts: &mut [StalePart],
    ) -> Result<(), SqlError> {
        for part in parts {
            if part.period.per == Per::Query || part.sealed || part.lost.is_some() {
                continue;
            }
            let bounds = part.period.bounds(self.job.timezone);
            if snapshots.iter().any(|snapshot| surely_holds(snapshot, &bounds)) {
                continue;
            }

            part.is_empty = match self.runtime.block_on(holds_records(session, tables, bounds)) {
                Ok(holds) => !holds,
                // Publishing the part alone fails, and names the file.
                Err(error) if damage_in(&error).is_some() => false,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// Refuses to publish a part into a directory that another export has.
    fn refuse_taken(&self, export: &Export, parts: &[StalePart], others: &Others) -> Result<(), RunError> {
        for part in parts {
            match others.get(&part.folder) {
                Some(owner) if owner.job != self.job.name => {
                    return Err(owned_by_other(export, &part.folder, &owner.job));
                }
                Some(owner) => {
                    let (export, folder) = (export.name.clone(), part.folder.clone());
                    return Err(RunError::ExportFormer { export, folder, former: owner.export.clone() });
                }
                None => {}
            }
        }
        Ok(())
    }

    /// What other jobs publish, and the metadata of the listed files, looked up at the same time: in a bucket each is a
    /// list of a page per 1,000 files, one page after the other.
    fn look_up(&self, export: &Export, published: &Published) -> Result<(Arc<Others>, Vec<Option<Stat>>), RunError> {
        std::thread::scope(|scope| {
            let stats = scope.spawn(|| self.store.blobs().stat_all(&paths(published)));
            let others = self.check_owner(export, published);
            let stats = joined(stats);
            Ok((others?, stats?))
        })
    }

    /// Adopts, replaces or refuses published files without a list, as the options say.
    fn adopt_or_refuse(
        &self,
        export: &Export,
        made: &[SourcePeriod],
        query: &str,
        published: &mut Published,
    ) -> Result<(), RunError> {
        if self.options.rebuild {
            return Ok(());
        }

        for SourcePeriod { period, sources } in made {
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

        if !published.parts.is_empty() && !self.options.plan_only {
            published.save(self.store.blobs().as_ref())?;
        }
        Ok(())
    }

    /// Compares the files of all parts with the list. A part with a damaged or missing file counts
    /// as unpublished, unless it can no longer be made from the tables. A part with other valid files than listed, as
    /// an interrupted run leaves it, is adopted. `stats` are of all files in the order of the list.
    fn audit(
        &self,
        inputs: &ExportInputs<'_>,
        published: &mut Published,
        stats: Vec<Option<Stat>>,
    ) -> Result<FileAudit, RunError> {
        let export = inputs.export;
        let mut audit = FileAudit::default();
        let (mut gone, mut touched) = (Vec::new(), Vec::new());
        let mut stats = stats.into_iter();

        for (label, part) in &published.parts {
            let found = self.audit_part(export, label, part, &mut stats, &mut audit.is_other)?;
            if let Some(appended) = found.appended {
                audit.is_other = true;
                touched.push((label.clone(), appended));
                continue;
            }
            if found.there == found.files.len() && found.damaged.is_none() {
                if found.files != part.files() {
                    touched.push((label.clone(), part.clone().with_files(&found.files)));
                }
                continue;
            }
            match &found.damaged {
                Some(path) if export.accumulates() => {
                    return Err(ExportError::Damaged { path: path.clone() }.into());
                }
                // What is left may contain rows of earlier runs.
                None if found.there > 0 && export.mode != ExportMode::Replace => {
                    return Err(ExportError::Partial { folder: part.folder.clone() }.into());
                }
                _ => {}
            }

            let stays = !self.options.force
                && Period::of_label(export.per, label).is_some_and(|period| inputs.is_sealed(&period));
            match found.damaged {
                Some(path) if stays => audit.notes.push(not_made_again(&path, "damaged")),
                Some(_) => {
                    audit.damaged.insert(label.clone());
                    gone.push((label.clone(), None));
                }
                None if stays => {
                    let path = found.missing.unwrap_or_else(|| part.folder.clone());
                    audit.notes.push(not_made_again(&path, "missing"));
                }
                None => gone.push((label.clone(), found_instead(self.store, &export.name, label, part)?)),
            }
        }

        audit.is_other |= gone.iter().any(|(_, instead)| instead.is_some());
        published.parts.extend(touched);
        for (label, instead) in gone {
            match instead {
                Some(part) => drop(published.parts.insert(label, part)),
                None => drop(published.parts.remove(&label)),
            }
        }
        Ok(audit)
    }

    /// Compares the files of the part `label` with the list. `stats` gives their metadata next. Sets `is_other` if a file has
    /// another stamp than the list says.
    fn audit_part(
        &self,
        export: &Export,
        label: &str,
        part: &ListedPart,
        stats: &mut impl Iterator<Item = Option<Stat>>,
        is_other: &mut bool,
    ) -> Result<PartAudit, RunError> {
        let blobs = self.store.blobs().as_ref();
        let mut found = PartAudit { files: part.files(), ..PartAudit::default() };
        for ((path, _), file) in part.files_at().into_iter().zip(&mut found.files) {
            let state = file.state_by(blobs, &path, stats.next().flatten())?;
            found.there += usize::from(state != FileState::Missing);

            match state {
                FileState::SameBytes(stamp) => {
                    // A list of an earlier build without stamps is not rewritten just to add them.
                    *is_other |= file.stamp.is_some();
                    file.stamp = stamp;
                }
                FileState::Changed => found.damaged = Some(path),
                // With several files each has a unique name: a different file under it was not published.
                FileState::Another if !part.more.is_empty() || !export.accumulates() => found.damaged = Some(path),
                FileState::Another => match appended_unlisted(self.store, &export.name, label, part)? {
                    Some(appended) => found.appended = Some(appended),
                    None => found.damaged = Some(path),
                },
                FileState::Missing => found.missing = Some(path),
                FileState::AsPublished => {}
            }
        }
        Ok(found)
    }

    /// Warnings of tables that an export reads and that this job made and no longer declares.
    fn undeclared_notes(&self, export: &Export, snapshots: &[Snapshot]) -> Vec<String> {
        let mut notes = Vec::new();
        for snapshot in snapshots.iter().filter(|snapshot| snapshot.version().table.job == self.job.name) {
            let (job, table) = (&self.job.name, snapshot.table().name());
            if self.job.table(table).is_none() {
                notes.push(format!(
                    "warning: {} reads {table}, which job {job} made and no longer declares: no run adds to it",
                    export.name
                ));
            }
        }
        notes
    }

    /// The list of an export of the job.
    pub(crate) fn published(&self, export: &Export) -> Result<Published, RunError> {
        Ok(Published::load(self.store.blobs().as_ref(), &export.name)?)
    }

    /// Refuses to publish under the name of another job's export. Returns what other jobs publish.
    fn check_owner(&self, export: &Export, published: &Published) -> Result<Arc<Others>, RunError> {
        if !published.job.is_empty() && published.job != self.job.name {
            return Err(owned_by_other(export, &export.name, &published.job));
        }
        if let Some(others) = self.others.get() {
            return Ok(Arc::clone(others));
        }

        // A damaged list of another export does not stop publishing.
        let lists = Published::readable_of(self.store.blobs().as_ref(), |name| self.job.export(name).is_none());
        let (lists, damaged) = lists?;
        damaged.iter().for_each(leave_out);

        let mut folders = Others::new();
        for list in lists {
            let owner = ExportOwner { job: list.job, export: list.name };
            folders.extend(list.parts.into_values().map(|part| (part.folder, owner.clone())));
        }
        Ok(Arc::clone(self.others.get_or_init(|| Arc::new(folders))))
    }
}

/// The warning about a file of a part that stays listed, because the tables may lack cells of it.
fn not_made_again(path: &str, state: &str) -> String {
    format!(
        "warning: {path} is {state}, and cells of its part have passed their retention: put it back from a backup, or publish \
         what is left with --force"
    )
}

/// Paths of the files of all parts.
fn paths(published: &Published) -> Vec<String> {
    published.parts.values().flat_map(ListedPart::paths).collect()
}

fn owned_by_other(export: &Export, name: &str, owner: &str) -> RunError {
    RunError::ExportOwned { export: export.name.clone(), name: name.to_owned(), owner: owner.to_owned() }
}
