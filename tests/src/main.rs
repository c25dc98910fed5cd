//! The tidetable command, under a name of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidetable_cli::main()
}
