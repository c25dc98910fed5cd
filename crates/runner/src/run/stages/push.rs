//! The push stage: writes tables into Bigtable after the exports are published.

use tidetable_record::{PushRecord, RunRecord};

use crate::job::{Push, Stage};
use crate::run::Run;
use crate::run::error::RunError;
use crate::run::stages::retry::Retry;

impl Run<'_> {
    /// Pushes what the job file asks for. A push that fails for good is recorded, and the run goes on.
    pub(crate) fn push(&self, record: &mut RunRecord) -> Result<(), RunError> {
        for push in &self.job.pushes {
            self.options.stop.check()?;
            let mut retry = Retry::new(Stage::Push, self.job, self.options, self.observer);
            let pushed = loop {
                let error = match self.push_once(push) {
                    Ok(pushed) => break pushed,
                    Err(error) => error,
                };
                self.options.stop.check()?;
                match retry.after(&push.name, error, &mut record.attempts) {
                    Ok(()) => {}
                    Err(error @ RunError::Interrupted { .. }) => return Err(error),
                    Err(error) => {
                        let error = error.to_string();
                        self.note(record, format!("push {} failed: {error}", push.name));
                        break PushRecord { target: push.to.clone(), error: Some(error), ..PushRecord::default() };
                    }
                }
            };
            record.pushes.push(PushRecord { push: push.name.clone(), table: push.table.clone(), ..pushed });
        }
        Ok(())
    }

    fn push_once(&self, push: &Push) -> Result<PushRecord, RunError> {
        let Some(pusher) = &self.options.pusher else { return Err(RunError::NoPusher { push: push.name.clone() }) };
        let pushed = pusher.push(self.project, self.store, push, &self.options.run, &self.options.stop);
        pushed.map_err(|source| RunError::Push { push: push.name.clone(), source })
    }
}
