//! The push stage: writes tables into Bigtable after the exports are published.

use tidetable_job::{Push, Stage};
use tidetable_layout::time::window_name;
use tidetable_record::{PushRecord, PushState, RunRecord};

use crate::fault::error::RunError;
use crate::plan::{PushPlan, TablePlan};
use crate::run::context::Run;
use crate::run::retry::Retry;

impl Run<'_> {
    /// Pushes what the job file asks for. A push that fails for good is recorded, and the run goes on.
    pub(crate) fn push(&self, record: &mut RunRecord) -> Result<(), RunError> {
        for push in &self.job.pushes {
            self.options.stop.check()?;
            let pushed = self.push_retrying(push, record)?;
            record.pushes.push(PushRecord { push: push.name.clone(), table: push.table.clone(), ..pushed });
        }
        Ok(())
    }

    /// Pushes a table, and tries again as the job file allows. The record of a push that fails for good has the error.
    fn push_retrying(&self, push: &Push, record: &mut RunRecord) -> Result<PushRecord, RunError> {
        let mut retry = Retry::new(Stage::Push, self.job, self.options, self.observer);
        loop {
            let error = match self.push_once(push) {
                Ok(pushed) => return Ok(pushed),
                Err(error) => error,
            };
            self.options.stop.check()?;

            match retry.after(&push.name, error, &mut record.attempts) {
                Ok(()) => {}
                Err(error @ RunError::Interrupted { .. }) => return Err(error),
                Err(error) => {
                    let error = error.to_string();
                    self.note(record, format!("push {} failed: {error}", push.name));
                    return Ok(PushRecord { target: push.to.clone(), error: Some(error), ..PushRecord::default() });
                }
            }
        }
    }

    /// The pushes that would write something, by their states and without asking the targets; `tables` are planned.
    pub(crate) fn push_plans(&self, tables: &[TablePlan]) -> Result<Vec<PushPlan>, RunError> {
        let mut plans = Vec::new();
        for push in &self.job.pushes {
            let changes = tables.iter().any(|table| table.table == push.table && table.reason.is_some());
            let table = self.store.table(&push.table);
            let reason = if changes {
                Some(format!("{} changes", push.table))
            } else if let Some(latest) = table.latest()? {
                let states = PushState::of_table(self.store.blobs().as_ref(), &push.table)?;
                let state = states.iter().find(|state| state.table_uuid == latest.table_uuid && is_of(push, state));
                reason(state, latest.number)
            } else {
                None
            };

            plans.extend(reason.map(|reason| PushPlan {
                push: push.name.clone(),
                table: push.table.clone(),
                target: push.to.clone(),
                reason,
            }));
        }
        Ok(plans)
    }

    fn push_once(&self, push: &Push) -> Result<PushRecord, RunError> {
        let Some(pusher) = &self.options.pusher else { return Err(RunError::NoPusher { push: push.name.clone() }) };
        if let Some(version) = self.store.table(&push.table).latest()?
            && let Some(start) = version.lost_windows().first()
        {
            // The push would delete the rows that are missing here.
            let window = window_name(version.table.spec.window, *start);
            return Err(RunError::LostCells { table: push.table.clone(), job: version.table.job, window });
        }

        let pushed = pusher.push(self.project, self.store, push, &self.options.run, &self.options.stop);
        pushed.map_err(|source| RunError::Push { push: push.name.clone(), source })
    }
}

/// Whether `state` is of the target and the keys of `push`.
fn is_of(push: &Push, state: &PushState) -> bool {
    state.target == push.target() && state.start == push.prefix.as_bytes()
}

/// Why a table whose newest version is `latest` is pushed; `None` if the target has it.
fn reason(state: Option<&PushState>, latest: u64) -> Option<String> {
    match state {
        None | Some(PushState { version: 0, running: None, .. }) => Some("never pushed".to_owned()),
        Some(PushState { running: Some(_), .. }) => Some("interrupted, goes on".to_owned()),
        Some(PushState { version, .. }) if *version < latest => {
            Some(format!("version {version} was pushed, {latest} is the newest"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use tidetable_record::PushProgress;

    use super::*;

    #[test]
    fn a_push_is_planned_unless_the_target_has_the_newest_version() {
        let state = |version, running| PushState { version, running, ..PushState::default() };
        assert_eq!(reason(None, 1).as_deref(), Some("never pushed"));
        assert_eq!(reason(Some(&state(0, None)), 1).as_deref(), Some("never pushed"));
        assert_eq!(reason(Some(&state(1, None)), 2).as_deref(), Some("version 1 was pushed, 2 is the newest"));
        assert_eq!(reason(Some(&state(2, Some(PushProgress::default()))), 2).as_deref(), Some("interrupted, goes on"));
        assert_eq!(reason(Some(&state(2, None)), 2), None);
    }
}
