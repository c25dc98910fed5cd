//! `tidetable scheduler`, `tidetable executor`, and where the work of a run goes.

use tidetable_job::Project;

/// The scheduler that `--on` or the project names; `None` for this process.
pub fn scheduler_of(on: Option<&str>, project: &Project) -> Option<Elsewhere> {
    let address = on.or(project.cluster.url.as_deref()).filter(|on| !on.is_empty() && *on != "local")?;
    Some(Elsewhere::of(address, project))
}

#[cfg(feature = "cluster")]
mod built;
#[cfg(feature = "cluster")]
pub use built::{Elsewhere, carrier, check, executor, scheduler};

#[cfg(not(feature = "cluster"))]
mod missing;
#[cfg(not(feature = "cluster"))]
pub use missing::{Elsewhere, carrier, check, executor, scheduler};
