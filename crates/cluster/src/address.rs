//! Addresses of schedulers, as they are written in configurations and on command lines.

use tidetable_source::redacted;

use crate::error::ClusterError;

/// The scheme of addresses of schedulers whose connections are in clear.
pub const SCHEME: &str = "ballista://";
/// The scheme of addresses of schedulers whose connections are by TLS.
pub const TLS_SCHEME: &str = "ballista+tls://";

/// The address of a scheduler, taken apart: its host, its port, and whether its connections are by TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

impl Address {
    /// Parses `ballista://HOST:PORT` or `ballista+tls://HOST:PORT`. The error shows no password.
    pub(crate) fn parse(address: &str) -> Result<Self, ClusterError> {
        Self::take_apart(address).ok_or_else(|| ClusterError::Address { address: redacted(address) })
    }

    fn take_apart(address: &str) -> Option<Self> {
        let tls = address.starts_with(TLS_SCHEME);
        if !tls && !address.starts_with(SCHEME) {
            return None;
        }
        let url = url::Url::parse(address).ok()?;
        let is_plain = url.path().trim_matches('/').is_empty() && url.query().is_none() && url.username().is_empty();
        let host = url.host_str().filter(|host| !host.is_empty() && is_plain)?;
        Some(Self { host: host.to_owned(), port: url.port()?, tls })
    }

    /// The address as it is written, with its scheme.
    pub(crate) fn text(&self) -> String {
        format!("{}{}:{}", if self.tls { TLS_SCHEME } else { SCHEME }, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parts = |address: &str| {
            let address = Address::parse(address).ok()?;
            Some((address.host, address.port, address.tls))
        };
        assert_eq!(parts("ballista://127.0.0.1:50050"), Some(("127.0.0.1".to_owned(), 50050, false)));
        assert_eq!(parts("ballista://node-1.local:1/"), Some(("node-1.local".to_owned(), 1, false)));
        assert_eq!(parts("ballista://[::1]:7"), Some(("[::1]".to_owned(), 7, false)));
        assert_eq!(parts("ballista+tls://node-1.local:1"), Some(("node-1.local".to_owned(), 1, true)));
        for address in ["ballista://a:1", "ballista+tls://a:1"] {
            assert_eq!(Address::parse(address).unwrap().text(), address);
        }
        for wrong in [
            "127.0.0.1:50050",
            "http://a:1",
            "tls://a:1",
            "ballista+tls://a",
            "ballista://a",
            "ballista://:1",
            "ballista://a:b",
            "ballista://a:1/x",
            "ballista://user@a:1",
            "",
        ] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
        let said = Address::parse("ballista://user:secret@a:1").unwrap_err().to_string();
        assert!(said.contains("@a:1") && !said.contains("secret"), "{said}");
    }
}
