//! A build without the feature `bigtable`: the commands say so.

use crate::args::{Diff, Global, Pull, Push};
use crate::error::CliError;

pub fn push(_: &Global, _: &Push) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "bigtable" })
}

pub fn pull(_: &Global, _: &Pull) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "bigtable" })
}

pub fn diff(_: &Global, _: &Diff) -> Result<(), CliError> {
    Err(CliError::NotBuilt { feature: "bigtable" })
}

pub mod new {
    use std::path::Path;

    use tidetable_job::scaffold::Proposal;
    use tokio::runtime::Handle;

    use crate::args::New;
    use crate::error::CliError;

    /// Refuses a table of Bigtable; `None` for a file.
    pub fn proposal(args: &New, _: &Handle) -> Result<Option<Proposal>, CliError> {
        let is_table = |from: &String| from.starts_with("projects/") && !Path::new(from).exists();
        let is_table = args.from.iter().any(is_table);
        if is_table { Err(CliError::NotBuilt { feature: "bigtable" }) } else { Ok(None) }
    }
}
