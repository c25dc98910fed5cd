//! The official emulator, a proxy with faults before it, and tables to push.

pub mod emulator;
pub mod faults;

use std::time::Duration;

use tidetable_bigtable::client::{Client, ClientOptions, Endpoints, TableName, Target};
use tidetable_bigtable::diff::{Diff, DiffReport};
use tidetable_bigtable::push::{Push, PushChoices};
use tidetable_bigtable::{BigtableError, Result};
use tidetable_layout::KeyRange;
use tidetable_record::PushState;
use tidetable_runner::Stop;
use tidetable_store::Store;
use tokio::runtime::{Builder, Runtime};

/// 2026-01-01, microseconds: the clock of the tests.
const NOW: i64 = 1_767_225_600_000_000;

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn client(address: &str, patience: Duration, runtime: &Runtime) -> Client {
    let _inside = runtime.enter();
    let options = ClientOptions {
        patience,
        timeout: Duration::from_secs(10),
        ..ClientOptions::new(Endpoints::plaintext(address), || 0.5)
    };
    Client::new(options).unwrap()
}

pub fn target(table: &str) -> TableName {
    let target: Target = format!("projects/p/instances/i/tables/{table}").parse().unwrap();
    target.table().unwrap()
}

/// A push of table `T` of `store`, which creates what is missing.
pub fn push_of(store: &Store, client: &Client, table: &str, name: &str) -> Push {
    Push {
        store: store.clone(),
        table: "T".to_owned(),
        target: target(table),
        client: client.clone(),
        choices: PushChoices { create: true, ..PushChoices::default() },
        rate: None,
        workers: 3,
        name: name.to_owned(),
        clock: || NOW,
        stop: Stop::default(),
    }
}

/// Pushes until there is nothing left to push, as a user who repeats the command; at most `most` times.
pub fn push_until_done(push: &Push, most: usize, runtime: &Runtime) -> Result<PushState> {
    let mut last = None;
    for attempt in 0..most {
        let push = Push { name: format!("{}-{attempt}", push.name), ..push.clone() };
        let done = push.plan(runtime.handle()).and_then(|plan| {
            let state = push.run(&plan, &|_| {}, runtime.handle())?;
            Ok((state, plan.version))
        });
        match done {
            Ok((state, version)) if version == push.store.table("T").latest_number()? => return Ok(state),
            Ok(_) => {}
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(BigtableError::Stopped { signal: 0 }))
}

/// What differs between table `T` of `store` and `table` in Bigtable.
pub fn diff(store: &Store, client: &Client, table: &str, runtime: &Runtime) -> DiffReport {
    let snapshot = store.snapshot("T").unwrap();
    let diff = Diff {
        now: snapshot.version().now,
        snapshot,
        client: client.clone(),
        target: target(table),
        range: KeyRange::all(),
        most: 10,
        stop: Stop::default(),
    };
    diff.run(runtime.handle()).unwrap()
}
