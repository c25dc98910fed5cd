//! The servers of a store, from their start to their end.

use std::sync::Arc;
use std::time::Duration;

use tidetable_runner::{UlidIds, runtime};
use tidetable_serving::{RenewedPins, Tables, blocking, release_pins};
use tidetable_store::{Ids, Store, ulid_text};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[cfg(feature = "bigtable")]
use super::bigtable;
#[cfg(feature = "postgres")]
use super::postgres;
use super::shared::Served;
#[cfg(feature = "bigtable")]
use super::shared::answers_bigtable;
use crate::allocator::give_back;
use crate::args::{Global, Serve};
use crate::commands::{project_of_store, store, warn_of_lost_windows};
use crate::error::CliError;

/// How often memory that requests no longer hold goes back to the system.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Answers clients from the tables of the store until a signal ends it.
pub(super) fn serve(global: &Global, args: &Serve) -> Result<(), CliError> {
    let store = store(global)?;
    let root = project_of_store(global)?.root.to_string();
    // Queries take a core for long; requests for rows, and messages, do not wait for them.
    let (requests, queries) = (runtime()?, runtime()?);
    let served = requests.block_on(served(global, args, &store, root, queries.handle().clone()));
    // What still runs, such as a scan for a client that is gone, ends with the process.
    queries.shutdown_background();
    requests.shutdown_background();
    served
}

async fn served(global: &Global, args: &Serve, store: &Store, root: String, queries: Handle) -> Result<(), CliError> {
    let (end, ended) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (opened, follow) = (store.clone(), args.follow);
    let name = format!("serve-{}", ulid_text(UlidIds::default().next()));
    let open = move || Tables::open(&opened, follow, &name);
    let tables = Arc::new(blocking(open, |error| error).await?);

    let names = tables.names()?;
    let snapshots: Vec<_> = names.iter().filter_map(|table| store.snapshot(table).ok()).collect();
    let names = if names.is_empty() { "no table yet".to_owned() } else { names.join(", ") };
    let shared = Served { global, args, tables: Arc::clone(&tables), names, root, queries };

    let started = start(&shared).await;
    let result = match started {
        Ok(servers) => {
            warn(&shared);
            warn_of_lost_windows(global, &snapshots);
            drop(snapshots);
            let renewed = RenewedPins::of(&tables);
            tokio::spawn(async {
                loop {
                    tokio::time::sleep(GIVE_BACK).await;
                    give_back();
                }
            });
            tokio::spawn(async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                end.send_replace(true);
                // The servers wait for it as long as they run.
                end.closed().await;
            });
            let result = run(servers, &ended).await;
            drop(renewed);
            result
        }
        Err(error) => Err(error),
    };
    drop(shared);
    // Scans for clients that are gone may still hold the tables.
    release_pins(tables).await;
    result
}

/// The servers that listen.
struct Servers {
    #[cfg(feature = "bigtable")]
    bigtable: Option<tidetable_bigtable::serve::Server>,
    #[cfg(feature = "postgres")]
    postgres: Option<tidetable_postgres::Server>,
}

/// Starts the servers that the command line asks for, and says where they listen.
async fn start(shared: &Served<'_>) -> Result<Servers, CliError> {
    Ok(Servers {
        #[cfg(feature = "bigtable")]
        bigtable: if answers_bigtable(shared.args) { Some(bigtable::start(shared).await?) } else { None },
        #[cfg(feature = "postgres")]
        postgres: match &shared.args.postgres.postgres {
            Some(address) => Some(postgres::start(shared, address).await?),
            None => None,
        },
    })
}

/// Answers clients until `ended`, or until a server fails.
async fn run(servers: Servers, ended: &watch::Receiver<bool>) -> Result<(), CliError> {
    #[cfg(feature = "postgres")]
    let postgres = async {
        if let Some(server) = servers.postgres {
            server.run(until(ended.clone())).await;
        }
        Ok::<_, CliError>(())
    };
    #[cfg(not(feature = "postgres"))]
    let postgres = async { Ok::<_, CliError>(()) };

    #[cfg(feature = "bigtable")]
    let bigtable = async {
        match servers.bigtable {
            Some(server) => Ok(server.run(until(ended.clone())).await?),
            None => Ok::<_, CliError>(()),
        }
    };
    #[cfg(not(feature = "bigtable"))]
    let bigtable = async { Ok::<_, CliError>(()) };

    tokio::try_join!(bigtable, postgres).map(|_| ())
}

async fn until(mut ended: watch::Receiver<bool>) {
    // Without the sender nothing asks to end any more.
    let _ = ended.wait_for(|has_ended| *has_ended).await;
}

/// Tells what a person should know: tables that are left out, versions that a vacuum may remove.
fn warn(shared: &Served<'_>) {
    for damaged in shared.tables.damaged() {
        tracing::warn!("{damaged}");
    }
    if !shared.args.follow && !shared.tables.are_pinned() {
        tracing::warn!("the store is read-only, so a vacuum by others may remove the versions that are served");
    }
}
