//! A scheduler and executors as processes on loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Project;

/// How long a server may take to start, and a run may take: far beyond what they need.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A process that is killed when the test ends.
pub struct Server {
    child: Child,
}

impl Server {
    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A scheduler and two executors.
pub struct Cluster {
    pub address: String,
    pub scheduler: Server,
    pub executors: Vec<Server>,
}

impl Cluster {
    /// Starts a scheduler, and two executors of `project` in `root` that are called `one` and `two`.
    pub fn of(project: &Project, root: &str) -> Self {
        let (scheduler, address) = scheduler(project, "127.0.0.1:0");
        let executors = ["one", "two"].map(|name| executor(project, &address, root, name)).into();
        Self { address, scheduler, executors }
    }
}

/// Starts a scheduler; its address.
pub fn scheduler(project: &Project, bind: &str) -> (Server, String) {
    let mut command = project.command(&["scheduler", "--bind", bind]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Server { child }, address.trim().to_owned())
}

/// Starts an executor.
pub fn executor(project: &Project, scheduler: &str, root: &str, name: &str) -> Server {
    let args = ["executor", "--scheduler", scheduler, "--root", root, "--slots", "1", "--name", name, "--quiet"];
    let mut command: Command = project.command(&args);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Server { child }
}

/// Waits for a process; kills it after [`LIMIT`].
pub fn ends(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    panic!("the run did not end in {LIMIT:?}");
}
