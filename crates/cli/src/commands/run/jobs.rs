//! The jobs of a project and their dependencies.

use tidetable_job::order::{dependencies, in_dependency_order};
use tidetable_job::{Job, Project};

use crate::error::CliError;

/// Every job of the project with its dependencies, in dependency order.
pub fn in_order(project: &Project) -> Result<Vec<(Job, Vec<String>)>, CliError> {
    let mut jobs = Vec::new();
    for name in project.jobs() {
        jobs.push(Job::load(project, &name)?);
    }
    for job in &jobs {
        if let Some(after) = job.after.iter().find(|after| !jobs.iter().any(|job| job.name == **after)) {
            return Err(CliError::UnknownAfter { job: job.name.clone(), after: after.clone() });
        }
    }
    let before = dependencies(&jobs);
    let order = in_dependency_order(&before).map_err(|circle| CliError::Circle { circle: circle.join(", ") })?;
    let mut jobs: Vec<Option<(Job, Vec<String>)>> =
        jobs.into_iter().zip(before).map(Some).map(|pair| pair.map(|(job, (_, before))| (job, before))).collect();
    Ok(order.into_iter().filter_map(|at| jobs.get_mut(at).and_then(Option::take)).collect())
}
