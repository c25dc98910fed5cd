//! Whether executors are connected to a scheduler, which serves that by HTTP beside gRPC.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether at least one executor is connected; `None` if the scheduler does not say.
pub(crate) async fn has_executors(host: &str, port: u16) -> Option<bool> {
    let asked = async {
        // Brackets are of URLs.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut stream = TcpStream::connect((bare, port)).await.ok()?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.ok()?;
        is_ready(&answer)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// What the start of a status line says.
fn is_ready(line: &[u8]) -> Option<bool> {
    match line.get(8..12)? {
        b" 200" => Some(true),
        b" 503" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_it() {
        assert_eq!(is_ready(b"HTTP/1.1 200"), Some(true));
        assert_eq!(is_ready(b"HTTP/1.1 503"), Some(false));
        assert_eq!(is_ready(b"HTTP/1.1 404"), None);
        assert_eq!(is_ready(b"HTTP"), None);
    }
}
