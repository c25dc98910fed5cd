//! `tidetable serve`: answers Bigtable's clients until it is asked to end.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tidetable_bigtable::serve::{Address, ServeOptions, Server};
use tidetable_runner::{UlidIds, runtime};
use tidetable_store::{Ids, ulid_text};
use tokio::signal::unix::{SignalKind, signal};

use super::{store, warn_of_lost_windows};
use crate::allocator::give_back;
use crate::args::{Global, Serve};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::stdout;

/// How often memory that requests no longer hold goes back to the system.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Answers the clients of Bigtable from the tables of the store until a signal ends it.
pub fn serve(global: &Global, args: &Serve) -> Result<(), CliError> {
    let store = store(global)?;
    // Queries take a core for long; requests for rows do not wait for them.
    let (requests, queries) = (runtime()?, runtime()?);
    let address = Address { project: args.project.clone(), instance: args.instance.clone() };
    let name = format!("serve-{}", ulid_text(UlidIds::default().next()));
    let options = ServeOptions {
        bind: args.bind.clone(),
        follow: args.follow,
        address,
        name,
        request_memory: args.request_memory,
        strict: args.strict,
        queries: queries.handle().clone(),
    };
    let served = requests.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let server = Server::bind(&store, options).await?;
        print_start(global, args, &server)?;
        let snapshots: Vec<_> = server.tables()?.iter().filter_map(|table| store.snapshot(table).ok()).collect();
        warn_of_lost_windows(global, &snapshots);
        tokio::spawn(async {
            loop {
                tokio::time::sleep(GIVE_BACK).await;
                give_back();
            }
        });
        let end = async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        server.run(end).await?;
        Ok(())
    });
    // What still runs, such as a scan for a client that is gone, ends with the process.
    queries.shutdown_background();
    requests.shutdown_background();
    served
}

/// Says what is served where. Only the line for the shell goes to standard output.
fn print_start(global: &Global, args: &Serve, server: &Server) -> Result<(), CliError> {
    let address = server.local_address()?;
    let tables = server.tables()?;
    let tables = if tables.is_empty() { "no table yet".to_owned() } else { tables.join(", ") };
    let versions = if args.follow { "newest version at each request" } else { "version of now" };
    print_message(global, &format!("serving {tables} ({versions}) on {address}; Ctrl-C ends it"));
    if !address.ip().is_loopback() {
        let text = "this address can be reached from elsewhere, and whoever reaches it can read all tables";
        tracing::warn!("{text}");
    }
    for warning in server.warnings() {
        tracing::warn!("{warning}");
    }
    let mut out = stdout();
    writeln!(out, "export BIGTABLE_EMULATOR_HOST={}", reachable(address))?;
    out.flush()?;
    Ok(())
}

/// The address for clients of this machine: one that means all addresses is none to connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
