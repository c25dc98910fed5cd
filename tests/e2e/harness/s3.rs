//! An S3 server of this machine, not ours: moto's.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use super::Project;
use super::system::{KilledOnDrop, python, wait_for};

/// Who asks: an object is private. The server reads the name and does not look at the signature.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// The bucket of the server.
pub const BUCKET: &str = "meters";

/// A server with an empty bucket, for as long as it is held.
pub struct S3Server {
    pub endpoint: String,
    address: String,
    _process: KilledOnDrop,
}

impl S3Server {
    /// Starts it; none, after the reason was printed, where it cannot be installed.
    pub fn start(project: &Project) -> Option<Self> {
        let python = python(project, "moto.server")?;
        // The port is free again when the listener is dropped.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &address.port().to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (endpoint, address) = (format!("http://{address}"), address.to_string());
        let server = Self { endpoint, address, _process: KilledOnDrop(child) };
        wait_for("the S3 server", || TcpStream::connect(&server.address).is_ok());
        server.ask("PUT", &format!("/{BUCKET}"));
        Some(server)
    }

    /// The body of the reply.
    fn ask(&self, method: &str, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = if method == "PUT" { "Content-Length: 0\r\n" } else { "" };
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: {}\r\n{SIGNED}\r\n{length}\r\n", self.address).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let head = reply.windows(4).position(|end| end == b"\r\n\r\n").expect("a reply has a head");
        let ok = reply.starts_with(b"HTTP/1.0 200") || reply.starts_with(b"HTTP/1.1 200");
        assert!(ok, "{method} {path}: {}", String::from_utf8_lossy(&reply));
        reply.split_off(head + 4)
    }

    /// The keys that begin with `prefix`, of at most a thousand.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let list = String::from_utf8(self.ask("GET", &format!("/{BUCKET}?list-type=2&prefix={prefix}"))).unwrap();
        list.split("<Key>").skip(1).filter_map(|rest| Some(rest.split_once("</Key>")?.0.to_owned())).collect()
    }

    /// The bytes of an object.
    pub fn get(&self, key: &str) -> Vec<u8> {
        self.ask("GET", &format!("/{BUCKET}/{key}"))
    }
}
