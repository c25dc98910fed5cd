//! A project whose root is in a bucket of our own server, which counts, keeps and fails requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tidetable_bucket_server::{Arrival, Fault, Kind, Options, Server, Watch};

use super::{Project, Ran, json_lines};

const ID: &str = "AKIATESTONLY";
/// The secret key: it is to be found nowhere.
pub const SECRET: &str = "hush-hush-key-0123456789";
/// The bucket of the server.
pub const BUCKET: &str = "tidetable";

/// The project and its server.
pub struct InBucket {
    pub project: Project,
    pub server: Server,
}

impl InBucket {
    /// A project with the root `s3://tidetable/prod`.
    pub fn new(project: Project) -> Self {
        Self::with(project, Options::default())
    }

    /// The same with options of the server.
    pub fn with(project: Project, options: Options) -> Self {
        let server = Server::start(options).unwrap();
        let place = Self { project, server };
        place.root("prod");
        place
    }

    /// Makes a prefix of the bucket the root.
    pub fn root(&self, prefix: &str) {
        self.root_with(prefix, "");
    }

    /// The same with leases of six seconds, for tests that kill their holder. A machine under load may lose one so short.
    pub fn root_of_short_leases(&self, prefix: &str) {
        self.root_with(prefix, "lease = \"6s\"\n");
    }

    fn root_with(&self, prefix: &str, lease: &str) {
        let toml = format!(
            "[root]\nurl = \"s3://{BUCKET}/{prefix}\"\n{lease}[root.storage]\nendpoint = \"{}\"\n\
             allow_http = true\nregion = \"us-east-1\"\naccess_key_id = \"{ID}\"\nsecret_access_key = {{ env = \"T_KEY\" }}\n",
            self.server.endpoint()
        );
        self.project.write("tidetable.toml", toml);
    }

    /// A command, not yet run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.env("T_KEY", SECRET);
        command
    }

    /// Runs a command, which must end with `code`.
    pub fn ends(&self, code: i32, args: &[&str]) -> Ran {
        let ran = Ran::of(&mut self.command(args));
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs a command, which must end with one of `codes`; the code.
    pub fn ends_with(&self, codes: &[i32], args: &[&str]) -> i32 {
        let ran = Ran::of(&mut self.command(args));
        let code = ran.code.filter(|code| codes.contains(code));
        code.unwrap_or_else(|| panic!("{args:?} ended with {:?}: {}{}", ran.code, ran.stdout, ran.stderr))
    }

    /// Runs a command, which must succeed; its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        self.ends(0, args).stdout
    }

    /// The rows of a query.
    pub fn sql(&self, query: &str) -> Vec<Value> {
        json_lines(&self.ok(&["sql", "--output", "json", "-c", query]))
    }

    /// Removes an object by a request of its own: the server does not look at signatures.
    pub fn remove(&self, key: &str) {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        write!(stream, "DELETE /{BUCKET}/{key} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        // The server may leave the connection open: its first bytes say that it has answered.
        let mut reply = vec![0; 12];
        stream.read_exact(&mut reply).unwrap();
        assert!(reply.ends_with(b"204"), "{}", String::from_utf8_lossy(&reply));
    }

    /// Follows the requests from now on.
    pub fn follow(&self, fault: impl Fn(&Arrival<'_>) -> Option<Fault> + Send + Sync + 'static) -> Arc<Followed> {
        let followed = Arc::new(Followed { lines: Mutex::default(), count: AtomicU64::new(0), fault: Box::new(fault) });
        self.server.watch(Some(followed.clone()));
        followed
    }
}

type FaultOf = Box<dyn Fn(&Arrival<'_>) -> Option<Fault> + Send + Sync>;

/// Requests as they came.
pub struct Followed {
    lines: Mutex<Vec<String>>,
    count: AtomicU64,
    fault: FaultOf,
}

impl Followed {
    /// Kind and key of each.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// How many have come.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }
}

impl Watch for Followed {
    fn before(&self, arrival: &Arrival<'_>) -> Option<Fault> {
        self.lines.lock().unwrap().push(format!("{} {}", arrival.kind, arrival.key));
        self.count.fetch_add(1, Ordering::SeqCst);
        (self.fault)(arrival)
    }
}

/// Whether a request lists objects.
pub fn is_list(arrival: &Arrival<'_>) -> bool {
    arrival.kind == Kind::ListObjects
}
