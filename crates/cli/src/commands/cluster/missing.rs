//! A build without clusters: the commands say so.

use std::sync::Arc;

use tidetable_job::Project;
use tidetable_runner::units::UnitCarrier;

use crate::args::{Executor, Global, Scheduler};
use crate::error::CliError;

/// Another machine.
#[derive(Debug, Clone)]
pub struct Elsewhere;

impl Elsewhere {
    pub fn of(_: &str, _: &Project) -> Self {
        Self
    }
}

/// Refuses a scheduler.
pub fn check(_: &Elsewhere) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}

pub fn carrier(_: &Elsewhere, _: &str) -> Result<Arc<dyn UnitCarrier>, CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}

pub fn scheduler(_: &Global, _: &Scheduler) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}

pub fn executor(_: &Global, _: &Executor) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}
