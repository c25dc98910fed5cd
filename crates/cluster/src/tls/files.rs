//! The files of a process: its authority, its certificate and its key.

use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::ClusterError;

/// Files in PEM that a process uses for TLS: whom it trusts, and who it is itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authority that the other processes' certificates are from; without it those of the system count. A
    /// server with it wants a certificate of the authority from every client, too.
    pub ca: Option<PathBuf>,
    /// The certificate of this process, followed by those up to the authority.
    pub cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub key: Option<PathBuf>,
}

/// What the files hold. The key is shown nowhere.
pub(crate) struct Pem {
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// Whether no file is named, so that connections are in clear.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files, and checks that each holds what it is named for.
    pub(crate) fn read(&self) -> Result<Pem, ClusterError> {
        let ca = self.ca.as_deref().map(|path| read(path, "certificate", has_certificate)).transpose()?;
        let cert = self.cert.as_deref().map(|path| read(path, "certificate", has_certificate)).transpose()?;
        let key = self.key.as_deref().map(|path| read(path, "private key", has_key)).transpose()?;
        let identity = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert, key)),
            (Some(_), None) => return Err(ClusterError::HalfIdentity { given: "certificate", missing: "private key" }),
            (None, Some(_)) => return Err(ClusterError::HalfIdentity { given: "private key", missing: "certificate" }),
        };
        Ok(Pem { ca, identity })
    }
}

fn read(path: &Path, holds: &'static str, is_right: fn(&[u8]) -> bool) -> Result<Vec<u8>, ClusterError> {
    let file = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) if is_right(&bytes) => Ok(bytes),
        Ok(_) => Err(ClusterError::TlsContent { file, holds }),
        Err(source) => Err(ClusterError::TlsFile { file, source }),
    }
}

fn has_certificate(pem: &[u8]) -> bool {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    found.is_ok_and(|found| !found.is_empty())
}

fn has_key(pem: &[u8]) -> bool {
    PrivateKeyDer::from_pem_slice(pem).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_what_they_are_named_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let of = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        let cert = path("cert.pem", &of("CERTIFICATE"));
        let key = path("key.pem", &of("PRIVATE KEY"));
        let empty = path("empty.pem", "no PEM\n");
        let files = |ca: &Option<PathBuf>, cert: &Option<PathBuf>, key: &Option<PathBuf>| {
            let files = TlsFiles { ca: ca.clone(), cert: cert.clone(), key: key.clone() };
            files.read().map(|pem| (pem.ca.is_some(), pem.identity.is_some())).map_err(|error| error.to_string())
        };
        assert!(TlsFiles::default().is_empty());
        assert_eq!(files(&None, &None, &None), Ok((false, false)));
        assert_eq!(files(&cert, &cert, &key), Ok((true, true)));
        let missing = Some(dir.path().join("missing.pem"));
        for (result, words) in [
            (files(&empty, &None, &None), "empty.pem holds no certificate"),
            (files(&None, &key, &cert), "key.pem holds no certificate"),
            (files(&None, &cert, &cert), "cert.pem holds no private key"),
            (files(&missing, &None, &None), "missing.pem"),
            (files(&None, &cert, &None), "without its private key"),
            (files(&None, &None, &key), "without its certificate"),
        ] {
            let text = result.unwrap_err();
            assert!(text.contains(words), "{text}");
        }
    }
}
