//! The official emulator, where it is installed.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// A running emulator. It ends when it is dropped.
pub struct Emulator {
    program: PathBuf,
    port: u16,
    child: Child,
}

impl Emulator {
    /// Starts one; `None`, with a printed reason, where it is not installed.
    pub fn start() -> Option<Self> {
        let Some(program) = find() else {
            eprintln!("skipped: cbtemulator is not installed");
            return None;
        };
        // Free now; another program that takes it first makes the test fail, not pass.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = spawn(&program, port);
        Some(Self { program, port, child })
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it and starts another at the same port, which is empty.
    pub fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.program, self.port);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, port: u16) -> Child {
    let mut command = Command::new(program);
    command.args(["-host", "127.0.0.1", "-port", &port.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < LIMIT, "the emulator does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

fn find() -> Option<PathBuf> {
    let inside = "platform/bigtable-emulator/cbtemulator";
    let sdk = std::env::var_os("CLOUDSDK_ROOT").map(|root| PathBuf::from(root).join(inside));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join("cbtemulator"));
    let places: Vec<PathBuf> = places.chain(sdk).chain([Path::new("/usr/lib/google-cloud-sdk").join(inside)]).collect();
    places.into_iter().find(|place| place.is_file())
}
