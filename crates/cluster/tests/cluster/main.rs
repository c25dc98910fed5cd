//! A scheduler and two executors in this process: units come back once each, whatever fails in between.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chaos;
mod waiting;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidetable_cluster::{ExecutorOptions, SchedulerOptions, TlsFiles, run_executor, run_scheduler};
use tidetable_job::Project;
use tidetable_runner::{Worker, WorkerOptions};
use tokio::runtime::{Builder, Runtime};

/// The clock stands still: nothing depends on it.
fn clock() -> i64 {
    1_600_000_000_000_000
}

/// The servers, which end with it.
struct Cluster {
    address: String,
    _servers: Runtime,
    _queries: Runtime,
}

/// Starts a scheduler, and two executors of the project in `dir`.
fn start(dir: &Path) -> Cluster {
    let runtime = || Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let (servers, queries) = (runtime(), runtime());
    let (told, heard) = std::sync::mpsc::channel();
    let bind = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let (executor_timeout, tls) = (Duration::from_secs(40), TlsFiles::default());
    let options = SchedulerOptions { bind, host: None, executor_timeout, tls };
    servers.spawn(async move {
        run_scheduler(options, move |address| told.send(address).unwrap()).await.unwrap();
    });
    let address = format!("ballista://{}", heard.recv().unwrap());
    for name in ["one", "two"] {
        let project = Project::find(dir).unwrap();
        let about = WorkerOptions { name: name.to_owned(), memory: 64 << 20, temp_dir: None };
        let worker = Worker::open(project, about, queries.handle().clone(), clock).unwrap();
        let options = ExecutorOptions {
            scheduler: address.clone(),
            slots: 1,
            bind: bind.ip(),
            host: None,
            ports: (0, 0),
            heartbeat: Duration::from_secs(5),
            tls: TlsFiles::default(),
            work_dir: dir.join(format!("work-{name}")),
            name: name.to_owned(),
        };
        servers.spawn(run_executor(options, Arc::new(worker)));
    }
    Cluster { address, _servers: servers, _queries: queries }
}
