//! How long units that only wait take on executors of this process: `units COUNT MILLIS EXECUTORS`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidetable_cluster::{Ballista, ExecutorOptions, SchedulerOptions, TlsFiles, run_executor, run_scheduler};
use tidetable_job::Project;
use tidetable_runner::units::{Unit, UnitCarrier};
use tidetable_runner::{Stop, Worker, WorkerOptions, runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Ballista's own messages: RUST_LOG=warn.
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let mut number = |default: u64| numbers.next().unwrap_or(Ok(default));
    let (count, millis, executors) = (number(2000)?, number(10)?, number(2)?);
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n")?;
    let (servers, queries) = (runtime()?, runtime()?);
    let (told, heard) = std::sync::mpsc::channel();
    let bind = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let (executor_timeout, tls) = (Duration::from_secs(40), TlsFiles::default());
    let options = SchedulerOptions { bind, host: None, executor_timeout, tls };
    servers.spawn(async move {
        run_scheduler(options, move |address| {
            let _ = told.send(address);
        })
        .await
    });
    let address = format!("ballista://{}", heard.recv()?);
    for at in 0..executors {
        let name = format!("executor-{at}");
        let project = Project::find(dir.path())?;
        let about = WorkerOptions { name: name.clone(), memory: 64 << 20, temp_dir: None };
        let worker = Worker::open(project, about, queries.handle().clone(), || 0)?;
        let options = ExecutorOptions {
            scheduler: address.clone(),
            slots: 1,
            bind: bind.ip(),
            host: None,
            ports: (0, 0),
            heartbeat: Duration::from_secs(5),
            tls: TlsFiles::default(),
            work_dir: dir.path().join(&name),
            name,
        };
        servers.spawn(run_executor(options, Arc::new(worker)));
    }
    let root = Project::find(dir.path())?.root;
    let ballista = Ballista::new(&address, &TlsFiles::default(), "units")?;
    let stop = Stop::default();
    let carry = |units: &[Unit]| ballista.carry(units, &stop, &|_, _| true, &|_| {});
    // Until the executors are connected.
    carry(&[Unit::waiting(&root, 0)])?;
    let units: Vec<Unit> = (0..count).map(|_| Unit::waiting(&root, millis)).collect();
    let clock = Instant::now();
    carry(&units)?;
    let took = clock.elapsed().as_secs_f64();
    let least = (count * millis) as f64 / 1000.0 / executors as f64;
    writeln!(
        std::io::stdout(),
        "{count} units of {millis} ms on {executors} executors: {took:.2} s, {least:.2} s of waiting"
    )?;
    Ok(())
}
