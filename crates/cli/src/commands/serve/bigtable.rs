//! Bigtable's clients.

use std::io::Write;

use tidetable_bigtable::serve::{Address, ServeOptions, Server};

use super::shared::{Served, reachable, versions};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::stdout;

/// The address without `--bind`, that of the emulator.
const DEFAULT: &str = "127.0.0.1:8086";

/// Listens, and says what is served where. Only the line for the shell goes to standard output.
pub(super) async fn start(shared: &Served<'_>) -> Result<Server, CliError> {
    let args = shared.args;
    let options = ServeOptions {
        bind: args.bind.clone().unwrap_or_else(|| DEFAULT.to_owned()),
        address: Address { project: args.project.clone(), instance: args.instance.clone() },
        request_memory: args.request_memory,
        strict: args.strict,
        queries: shared.queries.clone(),
    };
    let server = Server::bind(&shared.tables, options).await?;
    let address = server.local_address()?;

    let (names, versions) = (&shared.names, versions(args));
    print_message(shared.global, &format!("serving {names} ({versions}) on {address}; Ctrl-C ends it"));
    if !address.ip().is_loopback() {
        let text = "this address can be reached from elsewhere, and whoever reaches it can read all tables";
        tracing::warn!("{text}");
    }

    let mut out = stdout();
    writeln!(out, "export BIGTABLE_EMULATOR_HOST={}", reachable(address))?;
    out.flush()?;
    Ok(server)
}
