//! What a failed connection means, and what to do.

use std::error::Error;

use rustls::{AlertDescription, CertificateError};

/// Why a connection failed, in words for an operator.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether it fails the next time, too.
    pub(crate) lasts: bool,
}

impl Failure {
    /// A failure that may be over the next time.
    pub(crate) fn passing(reason: String) -> Self {
        Self { reason, lasts: false }
    }

    /// A failure; `lasting`: what is known to be wrong.
    pub(crate) fn of(error: &(dyn Error + 'static), lasting: Option<&str>) -> Self {
        match lasting {
            Some(reason) => Self { reason: reason.to_owned(), lasts: true },
            None => Self::passing(with_causes(error)),
        }
    }
}

/// What fails the next time, too, with the words of it; `None` for all that may go better, such as a process that is not
/// there yet.
pub(crate) fn lasting(error: &(dyn Error + 'static)) -> Option<&'static str> {
    match rustls_of(error)? {
        rustls::Error::InvalidCertificate(wrong) => Some(of_certificate(wrong)),
        rustls::Error::AlertReceived(alert) => of_alert(*alert),
        rustls::Error::InvalidMessage(_) => {
            Some("it does not use TLS: write ballista://HOST:PORT, or start it with --tls-cert")
        }
        _ => None,
    }
}

/// What is wrong with the certificate of a server.
fn of_certificate(wrong: &CertificateError) -> &'static str {
    match wrong {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name: use a name or address that the certificate has, or make one that has \
             this name"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "its certificate has expired, or is not valid yet: renew it, or set the clock of this machine"
        }
        _ => {
            "its certificate is from no authority that is trusted here: name the file with the authority's certificate, by \
             `ca` of `[cluster]` in tidetable.toml, or by --tls-ca of a scheduler or an executor"
        }
    }
}

/// What a server says of the certificate of this process.
fn of_alert(alert: AlertDescription) -> Option<&'static str> {
    match alert {
        AlertDescription::CertificateRequired => Some(
            "it wants a certificate of this process: name its file and that of its key, by `cert` and `key` of `[cluster]` \
             in tidetable.toml, or by --tls-cert and --tls-key",
        ),
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => Some(
            "it does not accept the certificate of this process: use one that is valid and from the authority that its \
             --tls-ca names",
        ),
        _ => None,
    }
}

/// The error of rustls among the causes of `error`.
fn rustls_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // The source of an I/O error is that of what it wraps.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// An error with its causes, which its own words leave out.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn errors_of_certificates_are_found_below_others() {
        let wrapped = |error: rustls::Error| io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        let says = |error: rustls::Error| lasting(&wrapped(error)).unwrap_or("nothing").to_owned();
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(says(unknown).contains("from no authority that is trusted here"));
        assert!(says(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)).contains("another name"));
        assert!(says(rustls::Error::InvalidCertificate(CertificateError::Expired)).contains("renew it"));
        let alert = |alert| says(rustls::Error::AlertReceived(alert));
        assert!(alert(AlertDescription::CertificateRequired).contains("wants a certificate of this process"));
        assert!(alert(AlertDescription::UnknownCA).contains("does not accept the certificate of this process"));
        assert_eq!(alert(AlertDescription::InternalError), "nothing");
        let other = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert!(says(other).contains("does not use TLS"));
        assert_eq!(lasting(&io::Error::other("refused")), None);
    }
}
