//! A build without clusters: the commands say so.

use std::sync::Arc;

use tidetable_runner::units::UnitCarrier;

use crate::args::{Executor, Global, Scheduler};
use crate::error::CliError;

pub fn carrier(_: &str, _: &str) -> Result<Arc<dyn UnitCarrier>, CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}

pub fn scheduler(_: &Global, _: &Scheduler) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}

pub fn executor(_: &Global, _: &Executor) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "cluster" })
}
