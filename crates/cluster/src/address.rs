//! Addresses of schedulers.

use tidetable_source::redacted;

use crate::error::ClusterError;

/// The scheme of addresses of schedulers.
pub const SCHEME: &str = "ballista://";
/// The scheme of addresses of schedulers with TLS.
pub const TLS_SCHEME: &str = "ballista+tls://";

/// The address of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

impl Address {
    /// Parses `ballista://HOST:PORT` or `ballista+tls://HOST:PORT`.
    pub(crate) fn parse(address: &str) -> Result<Self, ClusterError> {
        let wrong = || ClusterError::Address { address: redacted(address) };
        let tls = address.starts_with(TLS_SCHEME);
        if !tls && !address.starts_with(SCHEME) {
            return Err(wrong());
        }
        let url = url::Url::parse(address).map_err(|_| wrong())?;
        let plain = url.path().trim_matches('/').is_empty() && url.query().is_none() && url.username().is_empty();
        let host = url.host_str().filter(|host| !host.is_empty() && plain);
        let (host, port) = host.zip(url.port()).ok_or_else(wrong)?;
        Ok(Self { host: host.to_owned(), port, tls })
    }

    /// The address as it is written.
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
