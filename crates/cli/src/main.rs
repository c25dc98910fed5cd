//! The `tidetable` command.

use std::process::ExitCode;

/// Loads allocate hundreds of MiB in large blocks; `.cargo/config.toml` has the settings.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tidetable_cli::main()
}
