//! Units of publishing: one part of an export. The unit checks it and writes its files; the driver settles them.

use tidetable_export::{DayColumn, FileMode, PartDraft, PublishRequest, write_part};
use tidetable_job::{Export, ExportMode, Job, Period};
use tidetable_record::{CheckRecord, FailingRow};
use tidetable_sql::{ScalarValue, Session};
use tidetable_store::Store;

use crate::checks::checker::{CheckScope, Checker, may_publish};
use crate::fault::error::RunError;
use crate::units::params::period_params;
use crate::units::work::{ParkedPart, PublishWork};

/// A part that was checked and, if it may be published, written.
#[derive(Debug)]
pub(crate) struct WrittenPart {
    pub(crate) checks: Vec<CheckRecord>,
    /// `None` if its checks forbid to publish it.
    pub(crate) draft: Option<PartDraft>,
}

/// What a part is written with.
#[derive(Clone, Copy)]
pub(crate) struct PartContext<'a> {
    pub(crate) job: &'a Job,
    pub(crate) store: &'a Store,
    pub(crate) export: &'a Export,
    /// Logical time of the run.
    pub(crate) now: i64,
    pub(crate) run: &'a str,
    /// A name of its own for the files, in another process.
    pub(crate) apart: Option<&'a str>,
}

impl PublishWork {
    /// The period that its label names; `None` if it names none of the export.
    pub(crate) fn period(&self, export: &Export) -> Option<Period> {
        Period::of_label(export.per, &self.label)
    }

    /// Its request, which writing and settling share.
    pub(crate) fn request<'a>(
        &'a self,
        context: PartContext<'a>,
        session: &'a Session,
        params: &'a [(&'a str, ScalarValue)],
    ) -> PublishRequest<'a> {
        let export = context.export;

        PublishRequest {
            store: context.store,
            session,
            export: &export.name,
            job: &context.job.name,
            folder: &self.folder,
            label: &self.label,
            sql: &export.sql,
            params,
            query: &self.query,
            sources: &self.sources,
            now: context.now,
            run: context.run,
            previous: self.previous.as_ref(),
            format: export.format,
            types: export.column_types(),
            day: self.day_column(export),
            column_ids: self.column_ids.as_ref(),
            file_size: export.file_size,
            mode: match export.mode {
                _ if !export.accumulates() => FileMode::Replace,
                ExportMode::Replace => FileMode::Replace,
                ExportMode::Append => FileMode::Append,
                ExportMode::Upsert => FileMode::Upsert(&export.keys),
            },
            keep_old: export.log.is_some(),
            apart: context.apart,
        }
    }

    /// The column of its day that the files have, if the export asks for one.
    fn day_column<'a>(&self, export: &'a Export) -> Option<DayColumn<'a>> {
        let day = self.period(export)?.start.date();
        export.day_column.as_deref().map(|name| DayColumn { name, day })
    }

    /// Checks the part and the `tables` that it reads, and writes its files. `session` is restricted to the period, whose
    /// parameters are `params`.
    pub(crate) async fn write(
        &self,
        context: PartContext<'_>,
        session: &Session,
        params: &[(&str, ScalarValue)],
        checker: &Checker<'_>,
        tables: &[String],
    ) -> Result<WrittenPart, RunError> {
        let export = context.export;
        let scope = CheckScope { session, label: &self.label, params };
        let checks = checker.part(&scope, export, tables).await;
        let checks =
            checks.map_err(|error| RunError::Query { export: export.name.clone(), source: Box::new(error) })?;

        let draft = match may_publish(&checks) {
            true => Some(write_part(&self.request(context, session, params)).await?),
            false => None,
        };
        Ok(WrittenPart { checks, draft })
    }

    /// Parameters of its queries.
    pub(crate) fn params(&self, period: &Period, job: &Job, now: i64) -> Vec<(&'static str, ScalarValue)> {
        period_params(period, &period.bounds(job.timezone), now)
    }
}

impl WrittenPart {
    /// Leaves the files to the driver.
    pub(crate) fn park(self, failing: Vec<FailingRow>) -> Result<ParkedPart, RunError> {
        let rows = self.draft.as_ref().map_or(0, PartDraft::rows);
        let draft = self.draft.map(PartDraft::park).transpose()?;
        Ok(ParkedPart { checks: self.checks, failing, draft, rows })
    }
}

impl ParkedPart {
    /// The part in `folder` as it was written.
    pub(crate) fn take_over(self, store: &Store, folder: &str) -> Result<WrittenPart, RunError> {
        let draft = self.draft.map(|draft| draft.take_over(store.blobs().as_ref(), folder)).transpose()?;
        Ok(WrittenPart { checks: self.checks, draft })
    }
}
