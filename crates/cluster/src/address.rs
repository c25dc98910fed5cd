//! Addresses of schedulers.

use crate::error::ClusterError;

/// The scheme of addresses of schedulers.
pub const SCHEME: &str = "ballista://";

/// Host and port of `ballista://HOST:PORT`.
pub(crate) fn host_and_port(address: &str) -> Result<(String, u16), ClusterError> {
    let wrong = || ClusterError::Address { address: address.to_owned() };
    if !address.starts_with(SCHEME) {
        return Err(wrong());
    }
    let url = url::Url::parse(address).map_err(|_| wrong())?;
    let plain = url.path().trim_matches('/').is_empty() && url.query().is_none() && url.username().is_empty();
    let place = url.host_str().filter(|host| !host.is_empty() && plain).zip(url.port());
    place.map(|(host, port)| (host.to_owned(), port)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let place = |address: &str| host_and_port(address).ok();
        assert_eq!(place("ballista://127.0.0.1:50050"), Some(("127.0.0.1".to_owned(), 50050)));
        assert_eq!(place("ballista://node-1.local:1/"), Some(("node-1.local".to_owned(), 1)));
        assert_eq!(place("ballista://[::1]:7"), Some(("[::1]".to_owned(), 7)));
        for wrong in [
            "127.0.0.1:50050",
            "http://a:1",
            "ballista://a",
            "ballista://:1",
            "ballista://a:b",
            "ballista://a:1/x",
            "ballista://user@a:1",
            "",
        ] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
