//! `tidetable proto`: the `.proto` for the protobuf cells of a table.

use std::io::Write;

use super::store;
use crate::args::{Global, Proto};
use crate::error::CliError;
use crate::output::stdout;

/// Prints the `.proto` that reads the protobuf cells of a table.
pub fn proto(global: &Global, args: &Proto) -> Result<(), CliError> {
    let snapshot = store(global)?.snapshot(&args.table)?;
    let text = snapshot.layout().proto().ok_or_else(|| CliError::NoMessages { table: args.table.clone() })?;

    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
