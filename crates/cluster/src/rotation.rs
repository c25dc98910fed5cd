//! Which executor gets the next unit: the one that has had none for the longest.
//!
//! Ballista's own orders begin with the same executor whenever all are free. One that takes no part in a run answers quickly, is free
//! again, and would be sent the same unit for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::AvailableVcores;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::scheduler::TaskKey;
use ballista_scheduler::cluster::{BoundTask, DistributionPolicy};
use ballista_scheduler::state::execution_graph::{TaskDescription, create_task_info};
use ballista_scheduler::state::execution_stage::RunningStage;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion::error::Result;

/// A task for each partition, to executors in turn.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    turns: Mutex<Turns>,
}

/// When executors got their last task, counted in tasks.
#[derive(Debug, Default)]
struct Turns {
    count: u64,
    last: HashMap<String, u64>,
}

impl Turns {
    /// The executor whose turn it is: of those with a free slot, the one with the oldest task, and none is older than any.
    fn next<'a>(&mut self, budgets: &'a mut [&mut AvailableVcores]) -> Option<&'a mut AvailableVcores> {
        let free = budgets.iter_mut().filter(|budget| budget.vcores > 0);
        let next = free.min_by_key(|budget| self.last.get(&budget.executor_id).copied())?;
        self.count += 1;
        self.last.insert(next.executor_id.clone(), self.count);
        Some(next)
    }
}

#[async_trait]
impl DistributionPolicy for Rotation {
    async fn bind_tasks(
        &self,
        mut budgets: Vec<&mut AvailableVcores>,
        running_jobs: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> Result<Vec<BoundTask>> {
        let mut tasks = Vec::new();
        for (job, state) in running_jobs.iter().filter(|(_, state)| matches!(state.status, Some(Status::Running(_)))) {
            let mut graph = state.execution_graph.write().await;
            let session = graph.session_id().to_owned();
            while let Some(stage) = graph.fetch_running_stage(&[]) {
                let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(executor) = turns.next(&mut budgets) else { return Ok(tasks) };
                let Some(partition) = stage.pending.next_slice(1).pop() else { break };
                executor.vcores -= 1;
                tasks
                    .push((executor.executor_id.clone(), task(stage, partition, &executor.executor_id, &session, job)));
            }
        }
        Ok(tasks)
    }

    fn name(&self) -> &str {
        "rotation"
    }
}

/// The task of one partition, which the stage then counts as running.
fn task(stage: &mut RunningStage, partition: usize, executor: &str, session: &str, job: &JobId) -> TaskDescription {
    let task_id = stage.task_infos.len();
    let mut info = create_task_info(executor.to_owned(), task_id);
    info.global_input_partition_ids = vec![partition];
    info.vcores_consumed = 1;
    stage.task_infos.push(info);
    TaskDescription {
        session_id: session.to_owned(),
        key: TaskKey { job_id: job.clone(), stage_id: stage.stage_id, task_id },
        stage_attempt_num: stage.stage_attempt_num,
        task_attempt: stage.task_failure_numbers.get(partition).copied().unwrap_or(0),
        global_input_partition_ids: vec![partition],
        vcores_consumed: 1,
        plan: Arc::clone(&stage.plan),
        session_config: Arc::clone(&stage.session_config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The executors that get tasks while each has as many free slots as given.
    fn turns_of(turns: &mut Turns, slots: &[(&str, u32)], tasks: usize) -> Vec<String> {
        let of = |&(executor, vcores): &(&str, u32)| AvailableVcores { executor_id: executor.to_owned(), vcores };
        let mut free: Vec<AvailableVcores> = slots.iter().map(of).collect();
        let mut free: Vec<&mut AvailableVcores> = free.iter_mut().collect();
        let mut got = Vec::new();
        for _ in 0..tasks {
            let Some(next) = turns.next(&mut free) else { break };
            next.vcores -= 1;
            got.push(next.executor_id.clone());
        }
        got
    }

    #[test]
    fn a_unit_that_comes_back_goes_to_another_executor() {
        let mut turns = Turns::default();
        let all = [("big", 4), ("one", 1), ("two", 1)];
        let sent: Vec<String> = (0..4).flat_map(|_| turns_of(&mut turns, &all, 1)).collect();
        assert_eq!(sent, ["big", "one", "two", "big"]);
        // Those that have joined since, first.
        assert_eq!(turns_of(&mut turns, &[("big", 4), ("new", 1), ("one", 1)], 1), ["new"]);
    }

    #[test]
    fn all_slots_are_used() {
        let got = turns_of(&mut Turns::default(), &[("a", 3), ("b", 1)], 9);
        assert_eq!(got, ["a", "b", "a", "a"]);
    }
}
