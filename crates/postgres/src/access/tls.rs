//! TLS of the server.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::{PostgresError, Result};

/// The name of the protocol, which clients that begin with TLS at once ask for.
const PROTOCOL: &[u8] = b"postgresql";

/// What accepts TLS with a certificate and its private key, both files in PEM.
///
/// # Errors
/// If a file cannot be read, or the key is not that of the certificate.
pub(crate) fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor> {
    let read = |file: &Path| {
        std::fs::read(file).map_err(|source| PostgresError::File { file: file.display().to_string(), source })
    };
    let unusable = |files: String, reason: String| PostgresError::Tls { files, reason };
    let (cert_pem, key_pem) = (read(cert)?, read(key)?);

    let certs = CertificateDer::pem_slice_iter(&cert_pem).collect::<std::result::Result<Vec<_>, _>>();
    let certs = certs.ok().filter(|certs| !certs.is_empty());
    let certs =
        certs.ok_or_else(|| unusable(cert.display().to_string(), "it holds no certificate in PEM".to_owned()))?;
    let private_key = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|_| unusable(key.display().to_string(), "it holds no private key in PEM".to_owned()))?;

    let both = || format!("{} and {}", cert.display(), key.display());
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certs, private_key))
        .map_err(|error| unusable(both(), error.to_string()))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_what_they_are_named_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let of = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        let (cert, key) = (file("cert.pem", &of("CERTIFICATE")), file("key.pem", &of("PRIVATE KEY")));
        let told = |cert: &Path, key: &Path| acceptor(cert, key).err().unwrap().to_string();
        assert!(told(&key, &key).contains("key.pem cannot be used for TLS: it holds no certificate"));
        assert!(told(&cert, &cert).contains("no private key"));
        assert!(told(&cert, &key).contains("cert.pem and"));
        assert!(told(&folder.path().join("none"), &key).contains("none"));
    }
}
