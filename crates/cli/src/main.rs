//! The `tidetable` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidetable_cli::main()
}
