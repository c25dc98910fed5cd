//! PostgreSQL's clients.

use std::io::Write;
use std::time::Duration;

use tidetable_postgres::{Access, Options, Server};

use super::shared::{Served, reachable, versions};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::stdout;
use crate::output::values::{bytes, count};

/// Listens, and says what is served where, with the limits. Only the URL goes to standard output.
pub(super) async fn start(shared: &Served<'_>, address: &str) -> Result<Server, CliError> {
    let args = &shared.args.postgres;
    let timeout = Duration::from_micros(u64::try_from(args.statement_timeout).unwrap_or_default());
    let timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    let options = Options {
        bind: address.to_owned(),
        access: Access {
            user: args.user.clone().zip(args.password_file.clone()),
            tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        },
        max_clients: args.max_clients,
        memory: shared.args.request_memory,
        timeout,
        queries: shared.queries.clone(),
    };
    let server = Server::bind(&shared.tables, options).await?;
    let address = server.local_address()?;

    let (names, versions, root) = (&shared.names, versions(shared.args), &shared.root);
    let clients = count(args.max_clients as u64, "client");
    let memory = bytes(shared.args.request_memory);
    let time = timeout.map_or_else(|| "no time limit".to_owned(), |timeout| format!("{} s", timeout.as_secs()));
    print_message(
        shared.global,
        &format!(
            "serving {names} ({versions}) of root {root} to PostgreSQL's clients on {address}: at most {clients}, {memory} and \
             {time} a query; Ctrl-C ends it"
        ),
    );

    let user = args.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let mut out = stdout();
    writeln!(out, "postgresql://{user}{}/tidetable", reachable(address))?;
    out.flush()?;
    Ok(server)
}
