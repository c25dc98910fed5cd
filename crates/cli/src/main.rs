//! The `tidetable` command.

use std::process::ExitCode;

/// Loads hold hundreds of MiB in large blocks; how it treats them stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tidetable_cli::main()
}
