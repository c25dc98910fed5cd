//! The password of a user, as a verifier of SCRAM-SHA-256: what is kept in memory does not let anyone log in.

use std::num::NonZeroU32;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

use crate::error::{PostgresError, Result};

/// Rounds of the hash, as PostgreSQL has them.
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4_095);
/// Rounds that a verifier may ask clients for at most.
const MOST_ROUNDS: u32 = 10_000_000;
/// Bytes of a salt that is made here.
const SALT: usize = 16;
/// How a verifier begins, as in `pg_authid`.
const PREFIX: &str = "SCRAM-SHA-256$";

const NOT_ASCII: &str = "the password has letters that are not ASCII, which clients write in several ways: use others, or the \
                         verifier that `SELECT rolpassword FROM pg_authid` of a PostgreSQL shows";
const EMPTY: &str = "the file holds no password: write it into the first line";
const VERIFIER: &str = "the verifier is not of the form SCRAM-SHA-256$ROUNDS:SALT$STORED_KEY:SERVER_KEY";

/// What a password is compared with.
#[derive(Clone)]
pub(crate) struct Password {
    pub(crate) salt: Vec<u8>,
    pub(crate) rounds: u32,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

impl std::fmt::Debug for Password {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

impl Password {
    /// The password in the first line of a file: in clear, or as a verifier. `salt` is random.
    ///
    /// # Errors
    /// If the file cannot be read, or holds no password that clients can send.
    pub(crate) fn read(file: &Path, salt: [u8; SALT]) -> Result<Self> {
        let name = || file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|source| PostgresError::File { file: name(), source })?;
        let line = text.lines().next().unwrap_or_default();
        let wrong = |problem| PostgresError::Password { file: name(), problem };

        match line.strip_prefix(PREFIX) {
            Some(rest) => verifier(rest).ok_or_else(|| wrong(VERIFIER)),
            None if line.is_empty() => Err(wrong(EMPTY)),
            None if !line.is_ascii() => Err(wrong(NOT_ASCII)),
            None => Ok(Self::of(line, salt)),
        }
    }

    /// The verifier of a password.
    pub(crate) fn of(password: &str, salt: [u8; SALT]) -> Self {
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, &salt, password.as_bytes(), &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key).as_ref().to_vec();
        Self { salt: salt.to_vec(), rounds: ROUNDS.get(), stored_key, server_key: sign(&salted, b"Server Key") }
    }
}

fn verifier(text: &str) -> Option<Password> {
    let (head, keys) = text.split_once('$')?;
    let (rounds, salt) = head.split_once(':')?;
    let (stored_key, server_key) = keys.trim_end().split_once(':')?;
    let rounds = rounds.parse().ok().filter(|rounds| (1..=MOST_ROUNDS).contains(rounds))?;
    let key = |text: &str| STANDARD.decode(text).ok().filter(|key| key.len() == digest::SHA256_OUTPUT_LEN);
    let salt = STANDARD.decode(salt).ok()?;
    Some(Password { salt, rounds, stored_key: key(stored_key)?, server_key: key(server_key)? })
}

/// HMAC-SHA-256 of a message.
pub(super) fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_a_password_or_a_verifier() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let file = folder.path().join("password");
            std::fs::write(&file, text).unwrap();
            Password::read(&file, [7; SALT]).map_err(|error| error.to_string())
        };
        let of_clear = read("secret\n").unwrap();
        let encode = |bytes: &[u8]| STANDARD.encode(bytes);
        let verifier = format!(
            "SCRAM-SHA-256$4096:{}${}:{}\n",
            encode(&of_clear.salt),
            encode(&of_clear.stored_key),
            encode(&of_clear.server_key)
        );
        assert_eq!(read(&verifier).unwrap().stored_key, of_clear.stored_key);
        assert!(read("").unwrap_err().contains("first line"));
        assert!(read("naïve").unwrap_err().contains("ASCII"));
        assert!(read("SCRAM-SHA-256$4096:x").unwrap_err().contains("form"));
        let missing = Password::read(&folder.path().join("missing"), [0; SALT]).unwrap_err().to_string();
        assert!(missing.contains("missing"), "{missing}");
        assert!(!format!("{of_clear:?}").contains("stored"));
    }
}
