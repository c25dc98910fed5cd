//! A scheduler and executors as processes on loopback.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::harness::Project;

/// How long a server may take to start, and a run may take: far beyond what they need.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A process that is killed when the test ends.
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts a command.
    pub fn start(mut command: Command) -> Self {
        Self { child: command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap() }
    }

    /// Starts a scheduler; its address.
    pub fn announced(mut command: Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        (Self { child }, address.trim().to_owned())
    }

    /// Starts a scheduler with a log; its address.
    pub fn announced_with_log(mut command: Command, log: &Path) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).stderr(File::create(log).unwrap()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        (Self { child }, address.trim().to_owned())
    }

    /// Starts a command with a log.
    pub fn with_log(mut command: Command, log: &Path) -> Self {
        Self { child: command.stdout(Stdio::null()).stderr(File::create(log).unwrap()).spawn().unwrap() }
    }

    /// Starts an executor; what it returns gets the lines of its log.
    fn logged(mut command: Command) -> (Self, Receiver<String>) {
        command.env("RUST_LOG", "warn,ballista_executor=info").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (told, heard) = channel();
        // Reads on to the end: a log that nobody reads fills its pipe.
        std::thread::spawn(move || {
            log.lines().map_while(Result::ok).for_each(|line| {
                let _ = told.send(line);
            });
        });
        (Self { child }, heard)
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> Option<i32> {
        ends(&mut self.child)
    }

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

/// A scheduler and two executors that it knows.
pub struct Cluster {
    pub address: String,
    pub scheduler: Server,
    pub executors: Vec<Server>,
}

impl Cluster {
    /// Starts a scheduler, and two executors of `project` in `root` that are called `one` and `two`.
    pub fn of(project: &Project, root: &str) -> Self {
        Self::by(&|args| project.command(args), root, &[], &[])
    }

    /// The same with commands that are made otherwise, and more arguments of the scheduler and the executors.
    pub fn by(command: &dyn Fn(&[&str]) -> Command, root: &str, scheduler: &[&str], executor: &[&str]) -> Self {
        let (scheduler, address) =
            Server::announced(command(&[&["scheduler", "--bind", "127.0.0.1:0"], scheduler].concat()));
        let executors = ["one", "two"]
            .map(|name| Server::logged(command(&[&executor_args(&address, root, name)[..], executor].concat())));
        let executors = executors.map(|(server, log)| {
            registers(&log);
            server
        });
        Self { address, scheduler, executors: executors.into() }
    }
}

/// Starts a scheduler; its address.
pub fn scheduler(project: &Project, bind: &str) -> (Server, String) {
    Server::announced(project.command(&["scheduler", "--bind", bind]))
}

/// Starts an executor that the scheduler knows.
pub fn executor(project: &Project, scheduler: &str, root: &str, name: &str) -> Server {
    let (server, log) = Server::logged(project.command(&executor_args(scheduler, root, name)));
    registers(&log);
    server
}

/// Waits until the log of an executor says that the scheduler knows it.
fn registers(log: &Receiver<String>) {
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("Executor registration succeed")) {
        match log.recv_timeout(LIMIT) {
            Ok(line) => lines.push(line),
            Err(error) => panic!("no executor was registered: {error}: {}", lines.join("\n")),
        }
    }
}

/// The command line of an executor.
pub fn executor_args<'a>(scheduler: &'a str, root: &'a str, name: &'a str) -> [&'a str; 10] {
    ["executor", "--scheduler", scheduler, "--root", root, "--slots", "1", "--name", name, "--quiet"]
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
