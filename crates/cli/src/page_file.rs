//! Reports as HTML pages: where `--report` says.

use std::io::Write;

use tidetable_source::Location;

use crate::args::Global;
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::Destination;
use crate::output::values::bytes;

/// A page that is to be written.
#[derive(Debug)]
pub struct PageFile {
    destination: Destination,
}

impl PageFile {
    /// The file of `--report`, if it is given. To be called before the work: it refuses a file that cannot be written.
    ///
    /// # Errors
    /// If it names no file, or is in a missing directory.
    pub fn of(to: Option<&Location>) -> Result<Option<Self>, CliError> {
        to.map(|to| Ok(Self { destination: Destination::of(to, "--report")? })).transpose()
    }

    /// Whether it takes standard output, which then has no other result.
    pub fn is_stdout(&self) -> bool {
        self.destination.is_stdout()
    }

    /// Writes the page, and says so. A file that was there is replaced when the new one is complete.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, global: &Global, html: &str) -> Result<(), CliError> {
        let mut out = self.destination.open()?;
        let written = out.write_all(html.as_bytes()).map_err(CliError::from).and_then(|()| Ok(out.finish()?));
        match written {
            Err(_) if self.destination.reader_is_gone() => return Err(CliError::closed_pipe()),
            written => written?,
        }
        if !self.is_stdout() {
            let size = bytes(html.len() as u64);
            print_message(global, &format!("wrote the page {}, {size}", self.destination.shown()));
        }
        Ok(())
    }
}
