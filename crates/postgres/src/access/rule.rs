//! Which addresses need TLS and a password.

use std::net::SocketAddr;

use crate::error::{PostgresError, Result};

/// Checks that an address which other machines reach has TLS and a password.
///
/// # Errors
/// If it lacks one of them; the message names the options that bring it.
pub(crate) fn check_address(address: SocketAddr, has_tls: bool, has_password: bool) -> Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let (missing, options) = match (has_tls, has_password) {
        (true, true) => return Ok(()),
        (false, true) => ("TLS", "--tls-cert FILE and --tls-key FILE"),
        (true, false) => ("a password", "--user NAME and --password-file FILE"),
        (false, false) => {
            ("TLS and a password", "--tls-cert FILE, --tls-key FILE, --user NAME and --password-file FILE")
        }
    };
    Err(PostgresError::Open { address: address.to_string(), missing, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_others_need_both() {
        for local in ["127.0.0.1:5432", "127.9.0.1:1", "[::1]:5432"] {
            assert!(check_address(local.parse().unwrap(), false, false).is_ok(), "{local}");
        }
        for open in ["0.0.0.0:5432", "[::]:5432", "10.0.0.1:5432"] {
            let address = open.parse().unwrap();
            assert!(check_address(address, true, true).is_ok());
            for (tls, password, word) in
                [(false, true, "--tls-cert"), (true, false, "--user"), (false, false, "TLS and")]
            {
                let told = check_address(address, tls, password).unwrap_err().to_string();
                assert!(told.contains(word) && told.contains("127.0.0.1"), "{told}");
            }
        }
    }
}
