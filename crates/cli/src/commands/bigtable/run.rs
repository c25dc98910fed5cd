//! The push stage of a run.

use tidetable_bigtable::BigtableError;
use tidetable_bigtable::push::{Push as BigtablePush, PushChoices};
use tidetable_job::{Project, Push};
use tidetable_layout::KeyRange;
use tidetable_runner::record::{PushCounts, PushRecord};
use tidetable_runner::run::{PushFailure, Pusher, lock_named};
use tidetable_runner::{RunError, Stop, runtime};
use tidetable_store::Store;

use super::{client, target};
use crate::args::Service;
use crate::commands::clock;
use crate::error::CliError;

/// Ranges of keys at a time.
const PARALLEL: u16 = 4;

/// Pushes tables in runs.
#[derive(Debug)]
pub struct RunPusher;

impl Pusher for RunPusher {
    fn push(
        &self,
        project: &Project,
        store: &Store,
        push: &Push,
        run: &str,
        stop: &Stop,
    ) -> Result<PushRecord, PushFailure> {
        pushed(project, store, push, run, stop).map_err(|error| PushFailure {
            is_transient: matches!(&error, CliError::Bigtable(error) if error.is_transient()),
            source: Box::new(error),
        })
    }
}

fn pushed(project: &Project, store: &Store, push: &Push, run: &str, stop: &Stop) -> Result<PushRecord, CliError> {
    let runtime = runtime()?;
    let patience = i64::try_from(push.patience.as_micros()).unwrap_or(i64::MAX);
    let service = Service { app_profile: None, parallel: PARALLEL, patience };

    let work = BigtablePush {
        store: store.clone(),
        table: push.table.clone(),
        target: target(&push.to)?.table_or(&push.table).map_err(|error| CliError::Bigtable(error.into()))?,
        client: client(&service, runtime.handle())?,
        choices: PushChoices {
            range: KeyRange::prefix(push.prefix.as_bytes()),
            create: push.create,
            to_source: push.to_source,
            ..PushChoices::default()
        },
        rate: push.rate,
        workers: PARALLEL.into(),
        name: run.to_owned(),
        clock,
        stop: stop.clone(),
    };

    let _lock = lock_named(project, store.blobs(), &work.lock_name(), run, stop)?;
    let mut record = PushRecord { target: work.target.to_string(), ..PushRecord::default() };
    let mut is_first = true;

    loop {
        let plan = work.plan(runtime.handle())?;
        if is_first {
            record.before = plan.before;
            is_first = false;
        }

        let state = work.run(&plan, &|_: &PushCounts| {}, runtime.handle()).map_err(|error| match error {
            BigtableError::Stopped { signal } => CliError::Run(RunError::Interrupted { signal }),
            error => error.into(),
        })?;

        if !plan.is_done {
            record.counts.add(&state.counts);
        }

        record.version = plan.version;
        // One that went on may have been of an older version.
        if !plan.resumes {
            return Ok(record);
        }
    }
}
