//! A handshake by hand, for the alert that follows it.
//!
//! In TLS 1.3 a server looks at the certificate of a client after the client has ended its handshake. Its alert then comes with
//! the first bytes, and the HTTP client only says that the connection was closed.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

use crate::tls::files::Pem;

/// How long the server is waited for, to connect and to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first bytes of HTTP/2, which a server answers.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Settings of a handshake; `None` if those of the system count, which are not looked up for this.
pub(crate) fn config(pem: &Pem) -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(pem.ca.as_deref()?)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let builder = builder.with_root_certificates(roots);
    let mut config = match &pem.identity {
        Some((cert, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).ok()?;
            builder.with_client_auth_cert(certificates(cert)?, key).ok()?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols.push(b"h2".to_vec());
    Some(Arc::new(config))
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().ok()
}

/// The error of a handshake with the server and of its first answer; `None` if there is none, or no connection.
pub(crate) async fn error_of(config: Arc<ClientConfig>, host: String, port: u16) -> Option<std::io::Error> {
    tokio::task::spawn_blocking(move || {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = (host.as_str(), port).to_socket_addrs().ok()?.next()?;
        let mut tcp = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
        tcp.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut connection = ClientConnection::new(config, ServerName::try_from(host).ok()?).ok()?;
        let mut stream = Stream::new(&mut connection, &mut tcp);
        let answered = stream.write_all(PREFACE).and_then(|()| stream.read(&mut [0]));
        answered.err()
    })
    .await
    .ok()?
}
